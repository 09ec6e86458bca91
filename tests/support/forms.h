/* SPDX-License-Identifier: MIT */
/*
 * The calls that post requests, one a row: for a channel, for peers of a multichannel, or in a
 * scope; of one request, a list or a multicast; blocking and posted. Tests of all calls take them
 * from here: the test of forms, the random sequences on a pretend device, and the soak.
 * check-symbols.sh finds a call without a row.
 */
#ifndef SUPPORT_FORMS_H
#define SUPPORT_FORMS_H

#include <sluice.h>
#include <stdbool.h>

/* Arguments of the calls; each form uses those that it needs. */
struct form_call {
    struct sluice_channel *channel;
    struct sluice_multichannel *hub;
    struct sluice_scope *scope;
    uint32_t peer;
    const struct sluice_sge *sges;
    uint32_t sge_count;
    const struct sluice_remote_mr *remote;
    uint64_t operands[2]; /* of atomics */
    uint32_t immediate;
    uint32_t flags;                        /* of the request, for the choice of a call */
    const struct sluice_request *requests; /* the first is that of a multicast */
    const uint32_t *peers;
    const struct sluice_peer_remote_mr *remotes;
    uint32_t count;                        /* of a list, or of the peers of a multicast */
    const struct sluice_request *receives; /* the second of two lists */
    uint32_t receive_count;
    int64_t deadline;
    struct sluice_handle *handles;
    struct sluice_completion *completions;
};

enum form_of { OF_CHANNEL, OF_PEER, OF_SCOPE };
enum form_shape { ONE, LIST, MULTICAST, TWO_LISTS };
enum form_end { BLOCKING, POSTED };

struct form {
    const char *name; /* of the call, without sluice_ */
    uint32_t opcode;  /* SLUICE_OP_NONE: of any, also mixed */
    enum form_of of;
    enum form_shape shape;
    enum form_end end;
    int (*call)(const struct form_call *call);
};

/* Name, operation, object, shape and end of a form, and the arguments of its call, taken from c. */
#define FORM_ROWS(ROW)                                                                             \
    ROW(channel_send, SEND, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->sge_count,             \
        c->deadline)                                                                               \
    ROW(channel_send_immediate, SEND, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->sge_count,   \
        c->immediate, c->deadline)                                                                 \
    ROW(channel_receive, RECEIVE, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->sge_count,       \
        c->deadline, c->completions)                                                               \
    ROW(channel_write, WRITE, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->sge_count,           \
        c->remote, c->deadline)                                                                    \
    ROW(channel_write_immediate, WRITE, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->sge_count, \
        c->remote, c->immediate, c->deadline)                                                      \
    ROW(channel_read, READ, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->sge_count, c->remote,  \
        c->deadline)                                                                               \
    ROW(channel_compare_swap, COMPARE_SWAP, CHANNEL, ONE, BLOCKING, c->channel, c->sges,           \
        c->remote, c->operands[0], c->operands[1], c->deadline)                                    \
    ROW(channel_fetch_add, FETCH_ADD, CHANNEL, ONE, BLOCKING, c->channel, c->sges, c->remote,      \
        c->operands[0], c->deadline)                                                               \
    ROW(channel_post_send, SEND, CHANNEL, ONE, POSTED, c->channel, c->sges, c->sge_count,          \
        c->deadline, c->handles)                                                                   \
    ROW(channel_post_receive, RECEIVE, CHANNEL, ONE, POSTED, c->channel, c->sges, c->sge_count,    \
        c->deadline, c->handles)                                                                   \
    ROW(channel_post_write, WRITE, CHANNEL, ONE, POSTED, c->channel, c->sges, c->sge_count,        \
        c->remote, c->deadline, c->handles)                                                        \
    ROW(channel_post_read, READ, CHANNEL, ONE, POSTED, c->channel, c->sges, c->sge_count,          \
        c->remote, c->deadline, c->handles)                                                        \
    ROW(channel_post_compare_swap, COMPARE_SWAP, CHANNEL, ONE, POSTED, c->channel, c->sges,        \
        c->remote, c->operands[0], c->operands[1], c->deadline, c->handles)                        \
    ROW(channel_post_fetch_add, FETCH_ADD, CHANNEL, ONE, POSTED, c->channel, c->sges, c->remote,   \
        c->operands[0], c->deadline, c->handles)                                                   \
    ROW(multichannel_send, SEND, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges, c->sge_count,      \
        c->deadline)                                                                               \
    ROW(multichannel_send_immediate, SEND, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges,          \
        c->sge_count, c->immediate, c->deadline)                                                   \
    ROW(multichannel_receive, RECEIVE, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges,              \
        c->sge_count, c->deadline, c->completions)                                                 \
    ROW(multichannel_write, WRITE, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges, c->sge_count,    \
        c->remote, c->deadline)                                                                    \
    ROW(multichannel_write_immediate, WRITE, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges,        \
        c->sge_count, c->remote, c->immediate, c->deadline)                                        \
    ROW(multichannel_read, READ, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges, c->sge_count,      \
        c->remote, c->deadline)                                                                    \
    ROW(multichannel_compare_swap, COMPARE_SWAP, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges,    \
        c->remote, c->operands[0], c->operands[1], c->deadline)                                    \
    ROW(multichannel_fetch_add, FETCH_ADD, PEER, ONE, BLOCKING, c->hub, c->peer, c->sges,          \
        c->remote, c->operands[0], c->deadline)                                                    \
    ROW(multichannel_post_send, SEND, PEER, ONE, POSTED, c->hub, c->peer, c->sges, c->sge_count,   \
        c->deadline, c->handles)                                                                   \
    ROW(multichannel_post_receive, RECEIVE, PEER, ONE, POSTED, c->hub, c->peer, c->sges,           \
        c->sge_count, c->deadline, c->handles)                                                     \
    ROW(multichannel_post_write, WRITE, PEER, ONE, POSTED, c->hub, c->peer, c->sges, c->sge_count, \
        c->remote, c->deadline, c->handles)                                                        \
    ROW(multichannel_post_read, READ, PEER, ONE, POSTED, c->hub, c->peer, c->sges, c->sge_count,   \
        c->remote, c->deadline, c->handles)                                                        \
    ROW(multichannel_post_compare_swap, COMPARE_SWAP, PEER, ONE, POSTED, c->hub, c->peer, c->sges, \
        c->remote, c->operands[0], c->operands[1], c->deadline, c->handles)                        \
    ROW(multichannel_post_fetch_add, FETCH_ADD, PEER, ONE, POSTED, c->hub, c->peer, c->sges,       \
        c->remote, c->operands[0], c->deadline, c->handles)                                        \
    ROW(scope_post_send, SEND, SCOPE, ONE, POSTED, c->scope, c->peer, c->sges, c->sge_count,       \
        c->handles)                                                                                \
    ROW(scope_post_receive, RECEIVE, SCOPE, ONE, POSTED, c->scope, c->peer, c->sges, c->sge_count, \
        c->handles)                                                                                \
    ROW(scope_post_write, WRITE, SCOPE, ONE, POSTED, c->scope, c->peer, c->sges, c->sge_count,     \
        c->remote, c->handles)                                                                     \
    ROW(scope_post_read, READ, SCOPE, ONE, POSTED, c->scope, c->peer, c->sges, c->sge_count,       \
        c->remote, c->handles)                                                                     \
    ROW(scope_post_compare_swap, COMPARE_SWAP, SCOPE, ONE, POSTED, c->scope, c->peer, c->sges,     \
        c->remote, c->operands[0], c->operands[1], c->handles)                                     \
    ROW(scope_post_fetch_add, FETCH_ADD, SCOPE, ONE, POSTED, c->scope, c->peer, c->sges,           \
        c->remote, c->operands[0], c->handles)                                                     \
    ROW(multichannel_scatter_send, SEND, PEER, LIST, BLOCKING, c->hub, c->requests, c->count,      \
        c->deadline, c->completions)                                                               \
    ROW(multichannel_scatter_write, WRITE, PEER, LIST, BLOCKING, c->hub, c->requests, c->count,    \
        c->deadline, c->completions)                                                               \
    ROW(multichannel_gather_receive, RECEIVE, PEER, LIST, BLOCKING, c->hub, c->requests, c->count, \
        c->deadline, c->completions)                                                               \
    ROW(multichannel_gather_read, READ, PEER, LIST, BLOCKING, c->hub, c->requests, c->count,       \
        c->deadline, c->completions)                                                               \
    ROW(multichannel_multicast_send, SEND, PEER, MULTICAST, BLOCKING, c->hub, c->requests,         \
        c->peers, c->count, c->deadline, c->completions)                                           \
    ROW(multichannel_multicast_write, WRITE, PEER, MULTICAST, BLOCKING, c->hub, c->requests,       \
        c->remotes, c->count, c->deadline, c->completions)                                         \
    ROW(multichannel_post_scatter_send, SEND, PEER, LIST, POSTED, c->hub, c->requests, c->count,   \
        c->deadline, c->handles)                                                                   \
    ROW(multichannel_post_scatter_write, WRITE, PEER, LIST, POSTED, c->hub, c->requests, c->count, \
        c->deadline, c->handles)                                                                   \
    ROW(multichannel_post_gather_receive, RECEIVE, PEER, LIST, POSTED, c->hub, c->requests,        \
        c->count, c->deadline, c->handles)                                                         \
    ROW(multichannel_post_gather_read, READ, PEER, LIST, POSTED, c->hub, c->requests, c->count,    \
        c->deadline, c->handles)                                                                   \
    ROW(multichannel_post_multicast_send, SEND, PEER, MULTICAST, POSTED, c->hub, c->requests,      \
        c->peers, c->count, c->deadline, c->handles)                                               \
    ROW(multichannel_post_multicast_write, WRITE, PEER, MULTICAST, POSTED, c->hub, c->requests,    \
        c->remotes, c->count, c->deadline, c->handles)                                             \
    ROW(scope_post_scatter_send, SEND, SCOPE, LIST, POSTED, c->scope, c->requests, c->count,       \
        c->handles)                                                                                \
    ROW(scope_post_scatter_write, WRITE, SCOPE, LIST, POSTED, c->scope, c->requests, c->count,     \
        c->handles)                                                                                \
    ROW(scope_post_gather_receive, RECEIVE, SCOPE, LIST, POSTED, c->scope, c->requests, c->count,  \
        c->handles)                                                                                \
    ROW(scope_post_gather_read, READ, SCOPE, LIST, POSTED, c->scope, c->requests, c->count,        \
        c->handles)                                                                                \
    ROW(scope_post_multicast_send, SEND, SCOPE, MULTICAST, POSTED, c->scope, c->requests,          \
        c->peers, c->count, c->handles)                                                            \
    ROW(scope_post_multicast_write, WRITE, SCOPE, MULTICAST, POSTED, c->scope, c->requests,        \
        c->remotes, c->count, c->handles)                                                          \
    ROW(channel_submit, NONE, CHANNEL, LIST, BLOCKING, c->channel, c->requests, c->count,          \
        c->deadline, c->completions)                                                               \
    ROW(multichannel_submit, NONE, PEER, LIST, BLOCKING, c->hub, c->requests, c->count,            \
        c->deadline, c->completions)                                                               \
    ROW(channel_post, NONE, CHANNEL, LIST, POSTED, c->channel, c->requests, c->count, c->deadline, \
        c->handles)                                                                                \
    ROW(multichannel_post, NONE, PEER, LIST, POSTED, c->hub, c->requests, c->count, c->deadline,   \
        c->handles)                                                                                \
    ROW(scope_post, NONE, SCOPE, LIST, POSTED, c->scope, c->requests, c->count, c->handles)        \
    ROW(multichannel_scatter_gather, NONE, PEER, TWO_LISTS, BLOCKING, c->hub, c->requests,         \
        c->count, c->receives, c->receive_count, c->deadline, c->completions)

enum form_id {
#define FORM_ENUM(name, ...) FORM_##name,
    FORM_ROWS(FORM_ENUM)
#undef FORM_ENUM
        FORMS
};

extern const struct form forms[FORMS];

/*
 * Returns the row for it, with an immediate if the flags of its request have one. There must be
 * one.
 */
const struct form *form_find(enum form_of of, uint32_t opcode, enum form_shape shape,
                             enum form_end end, uint32_t flags);
/* Returns the arguments of a call of one request, except for the object and outputs. */
struct form_call form_call_one(const struct sluice_request *request);

bool form_is_atomic(const struct form *form);
bool form_is_immediate(const struct form *form);
/* Returns whether its bytes go to the peer; those of the other forms come from it. */
bool form_sends(const struct form *form);
/* Returns whether it uses memory of the peer. */
bool form_is_one_sided(const struct form *form);

#endif
