/* SPDX-License-Identifier: MIT */
/* Lists of requests, in the forms that calls give them, and the calls that post them. */
#ifndef SLU_ENGINE_STATE_CALL_H
#define SLU_ENGINE_STATE_CALL_H

#include "engine/state/engine.h"

/*
 * A list of requests, in any of the forms that a call may give it. Item i of it is made on the fly,
 * so that no form costs a copy.
 */
struct slu_source {
    const struct sluice_request *lists[2];       /* the second follows the first */
    uint32_t counts[2];                          /* of a multicast: number of peers */
    uint32_t opcodes[2];                         /* SLUICE_OP_NONE: each request has its own */
    const uint32_t *peers;                       /* multicast send, or NULL */
    const struct sluice_peer_remote_mr *remotes; /* multicast write, or NULL */
    uint32_t count;
    bool multicast;
};

struct slu_item {
    const struct sluice_request *request;
    const struct sluice_sge *sges; /* those of the request, inside it or in a list */
    const struct sluice_remote_mr *remote;
    uint32_t peer;
    uint32_t opcode;
    uint64_t bytes; /* of its SGEs together */
};

/*
 * A call that posts a list, on the caller's stack. A call of OWNER_CALL waits until all of the list
 * is done, a call of OWNER_SCOPE until all of it is posted, and a call of OWNER_PROGRAM does not
 * wait.
 */
struct slu_call {
    struct slu_engine *engine;
    const struct slu_source *source;
    struct sluice_completion *completions;
    int64_t deadline; /* of a blocking call: FOREVER until it begins to wait */
    int64_t time;     /* the deadline as it was given */
    enum slu_owner owner;
    uint32_t queues;               /* the result of slu_source_check() */
    bool expired;                  /* the deadline has passed: nothing more is posted */
    struct sluice_handle *handles; /* or NULL; not for OWNER_CALL */
    uint32_t first;       /* of OWNER_SCOPE: how many requests the scope had before this list */
    uint32_t incomplete;  /* requests without a result */
    uint32_t first_real;  /* index of the first failure that is not a mere cancellation */
    uint32_t first_other; /* index of the first one that is */
    struct sluice_completion real, other;
};

/* Returns whether the error only says that something else has failed. */
static inline bool slu_is_mere_cancellation(int error)
{
    return error == -ECANCELED || error == -ENOTCONN;
}

/*
 * Returns the list of a call, or NULL if it has no elements: a request without elements has none.
 */
static inline const struct sluice_sge *slu_list_of(const struct sluice_sge *sges, uint32_t count)
{
    return count > 0 ? sges : NULL;
}

/* Makes a request of one operation with one peer, with sge_count elements from sges. */
static inline struct sluice_request
slu_request_of(uint32_t opcode, uint32_t peer, const struct sluice_sge *sges, uint32_t sge_count)
{
    return (struct sluice_request){.opcode = opcode,
                                   .peer = peer,
                                   .sges = slu_list_of(sges, sge_count),
                                   .sge_count = sge_count};
}

/* Make a source that sends one message to many peers, or writes the same bytes to many peers. */
static inline struct slu_source slu_multicast_send(const struct sluice_request *request,
                                                   const uint32_t *peers, uint32_t count)
{
    return (struct slu_source){.lists = {request},
                               .counts = {count},
                               .opcodes = {SLUICE_OP_SEND},
                               .peers = peers,
                               .count = count,
                               .multicast = true};
}

static inline struct slu_source slu_multicast_write(const struct sluice_request *request,
                                                    const struct sluice_peer_remote_mr *remotes,
                                                    uint32_t count)
{
    return (struct slu_source){.lists = {request},
                               .counts = {count},
                               .opcodes = {SLUICE_OP_WRITE},
                               .remotes = remotes,
                               .count = count,
                               .multicast = true};
}

#endif
