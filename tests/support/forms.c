/* SPDX-License-Identifier: MIT */
#include "forms.h"

/* One form a row: its call, operation, object, shape, end, and what the call is given of c. */

#define ROWS(ROW)                                                                                  \
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
    ROW(channel_send_unpolled, SEND, CHANNEL, ONE, UNPOLLED, c->channel, c->sges, c->sge_count,    \
        c->deadline, c->handles)                                                                   \
    ROW(channel_receive_unpolled, RECEIVE, CHANNEL, ONE, UNPOLLED, c->channel, c->sges,            \
        c->sge_count, c->deadline, c->handles)                                                     \
    ROW(channel_write_unpolled, WRITE, CHANNEL, ONE, UNPOLLED, c->channel, c->sges, c->sge_count,  \
        c->remote, c->deadline, c->handles)                                                        \
    ROW(channel_read_unpolled, READ, CHANNEL, ONE, UNPOLLED, c->channel, c->sges, c->sge_count,    \
        c->remote, c->deadline, c->handles)                                                        \
    ROW(channel_compare_swap_unpolled, COMPARE_SWAP, CHANNEL, ONE, UNPOLLED, c->channel, c->sges,  \
        c->remote, c->operands[0], c->operands[1], c->deadline, c->handles)                        \
    ROW(channel_fetch_add_unpolled, FETCH_ADD, CHANNEL, ONE, UNPOLLED, c->channel, c->sges,        \
        c->remote, c->operands[0], c->deadline, c->handles)                                        \
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
    ROW(multichannel_send_unpolled, SEND, PEER, ONE, UNPOLLED, c->hub, c->peer, c->sges,           \
        c->sge_count, c->deadline, c->handles)                                                     \
    ROW(multichannel_receive_unpolled, RECEIVE, PEER, ONE, UNPOLLED, c->hub, c->peer, c->sges,     \
        c->sge_count, c->deadline, c->handles)                                                     \
    ROW(multichannel_write_unpolled, WRITE, PEER, ONE, UNPOLLED, c->hub, c->peer, c->sges,         \
        c->sge_count, c->remote, c->deadline, c->handles)                                          \
    ROW(multichannel_read_unpolled, READ, PEER, ONE, UNPOLLED, c->hub, c->peer, c->sges,           \
        c->sge_count, c->remote, c->deadline, c->handles)                                          \
    ROW(multichannel_compare_swap_unpolled, COMPARE_SWAP, PEER, ONE, UNPOLLED, c->hub, c->peer,    \
        c->sges, c->remote, c->operands[0], c->operands[1], c->deadline, c->handles)               \
    ROW(multichannel_fetch_add_unpolled, FETCH_ADD, PEER, ONE, UNPOLLED, c->hub, c->peer, c->sges, \
        c->remote, c->operands[0], c->deadline, c->handles)                                        \
    ROW(scope_post_send, SEND, SCOPE, ONE, UNPOLLED, c->scope, c->peer, c->sges, c->sge_count,     \
        c->handles)                                                                                \
    ROW(scope_post_receive, RECEIVE, SCOPE, ONE, UNPOLLED, c->scope, c->peer, c->sges,             \
        c->sge_count, c->handles)                                                                  \
    ROW(scope_post_write, WRITE, SCOPE, ONE, UNPOLLED, c->scope, c->peer, c->sges, c->sge_count,   \
        c->remote, c->handles)                                                                     \
    ROW(scope_post_read, READ, SCOPE, ONE, UNPOLLED, c->scope, c->peer, c->sges, c->sge_count,     \
        c->remote, c->handles)                                                                     \
    ROW(scope_post_compare_swap, COMPARE_SWAP, SCOPE, ONE, UNPOLLED, c->scope, c->peer, c->sges,   \
        c->remote, c->operands[0], c->operands[1], c->handles)                                     \
    ROW(scope_post_fetch_add, FETCH_ADD, SCOPE, ONE, UNPOLLED, c->scope, c->peer, c->sges,         \
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
    ROW(multichannel_scatter_send_unpolled, SEND, PEER, LIST, UNPOLLED, c->hub, c->requests,       \
        c->count, c->deadline, c->handles)                                                         \
    ROW(multichannel_scatter_write_unpolled, WRITE, PEER, LIST, UNPOLLED, c->hub, c->requests,     \
        c->count, c->deadline, c->handles)                                                         \
    ROW(multichannel_gather_receive_unpolled, RECEIVE, PEER, LIST, UNPOLLED, c->hub, c->requests,  \
        c->count, c->deadline, c->handles)                                                         \
    ROW(multichannel_gather_read_unpolled, READ, PEER, LIST, UNPOLLED, c->hub, c->requests,        \
        c->count, c->deadline, c->handles)                                                         \
    ROW(multichannel_multicast_send_unpolled, SEND, PEER, MULTICAST, UNPOLLED, c->hub,             \
        c->requests, c->peers, c->count, c->deadline, c->handles)                                  \
    ROW(multichannel_multicast_write_unpolled, WRITE, PEER, MULTICAST, UNPOLLED, c->hub,           \
        c->requests, c->remotes, c->count, c->deadline, c->handles)                                \
    ROW(scope_post_scatter_send, SEND, SCOPE, LIST, UNPOLLED, c->scope, c->requests, c->count,     \
        c->handles)                                                                                \
    ROW(scope_post_scatter_write, WRITE, SCOPE, LIST, UNPOLLED, c->scope, c->requests, c->count,   \
        c->handles)                                                                                \
    ROW(scope_post_gather_receive, RECEIVE, SCOPE, LIST, UNPOLLED, c->scope, c->requests,          \
        c->count, c->handles)                                                                      \
    ROW(scope_post_gather_read, READ, SCOPE, LIST, UNPOLLED, c->scope, c->requests, c->count,      \
        c->handles)                                                                                \
    ROW(scope_post_multicast_send, SEND, SCOPE, MULTICAST, UNPOLLED, c->scope, c->requests,        \
        c->peers, c->count, c->handles)                                                            \
    ROW(scope_post_multicast_write, WRITE, SCOPE, MULTICAST, UNPOLLED, c->scope, c->requests,      \
        c->remotes, c->count, c->handles)

#define CALL(name, opcode, of, shape, end, ...)       \
    static int call_##name(const struct form_call *c) \
    {                                                 \
        return sluice_##name(__VA_ARGS__);            \
    }
ROWS(CALL)

#define DESCRIBE(name, opcode, of, shape, end, ...) \
    {#name, SLUICE_OP_##opcode, OF_##of, shape, end, call_##name},

const struct form forms[FORMS] = {ROWS(DESCRIBE)};

bool form_is_atomic(const struct form *form)
{
    return form->opcode == SLUICE_OP_COMPARE_SWAP || form->opcode == SLUICE_OP_FETCH_ADD;
}

bool form_is_immediate(const struct form *form)
{
    return strstr(form->name, "_immediate") != NULL;
}

bool form_sends(const struct form *form)
{
    return form->opcode == SLUICE_OP_SEND || form->opcode == SLUICE_OP_WRITE;
}

bool form_is_one_sided(const struct form *form)
{
    return form->opcode != SLUICE_OP_SEND && form->opcode != SLUICE_OP_RECEIVE;
}
