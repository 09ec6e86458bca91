/* SPDX-License-Identifier: MIT */
/* Posting: blocking calls, posted calls, and requests of the library itself. */
#ifndef SLU_ENGINE_POST_POST_H
#define SLU_ENGINE_POST_POST_H

#include "engine/request/check.h"

/*
 * Posts a list, waits for all of it, and returns the first failure. completions is an array with
 * one for each request, or NULL.
 */
int slu_submit(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
               struct sluice_completion *completions);
/*
 * Blocking calls of one request. immediate and completion may be NULL; a NULL remote is an error
 * with a text. The arguments have the order of the channel calls, so that forwarding them costs
 * nothing.
 */
int slu_submit_send(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                    int64_t deadline, uint32_t peer, const uint32_t *immediate);
/* The same where the device may lack immediate values. */
int slu_submit_checked_send(struct slu_engine *engine, const struct sluice_sge *sges,
                            uint32_t sge_count, int64_t deadline, uint32_t peer,
                            const uint32_t *immediate);
int slu_submit_write(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                     const struct sluice_remote_mr *remote, int64_t deadline, uint32_t peer);
int slu_submit_write_immediate(struct slu_engine *engine, const struct sluice_sge *sges,
                               uint32_t sge_count, const struct sluice_remote_mr *remote,
                               int64_t deadline, uint32_t peer, uint32_t immediate);
int slu_submit_read(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                    const struct sluice_remote_mr *remote, int64_t deadline, uint32_t peer);
int slu_submit_receive(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                       int64_t deadline, struct sluice_completion *completion, uint32_t peer);
/*
 * A read or write that is posted to a peer and polled for once, for a caller that must not wait
 * here. Returns 1 if it succeeded, or 0 if it goes on: a poll then returns its completion, with
 * that user data. Returns -EAGAIN without a text if it cannot be posted now. The caller has checked
 * the memory, and looks after other requests of the engine: this checks no clock.
 */
struct slu_attempt {
    struct sluice_sge sge;
    uint64_t remote_addr;
    uint32_t rkey;
    uint32_t opcode;
    uint32_t peer;
    int64_t deadline;
    uint64_t user_data;
};
int slu_attempt(struct slu_engine *engine, const struct slu_attempt *attempt);
/* Posts the longest prefix of the requests for which there is room. Returns its length. */
int slu_post(struct slu_engine *engine, const struct sluice_request *requests, uint32_t count,
             int64_t deadline, struct sluice_handle *handles);
int slu_post_source(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
                    struct sluice_handle *handles);

/* Posts one request: 0 if it was posted. */
static inline int slu_post_request(struct slu_engine *engine, const struct sluice_request *request,
                                   int64_t deadline, struct sluice_handle *handle)
{
    int posted = slu_post(engine, request, 1, deadline, handle);

    return SLU_LIKELY(posted == 1) ? 0 : posted;
}

/*
 * Posts as many requests of a call as fit to one queue; the call must have some for it. Peers
 * without room stall until slu_post_stalled(). A request of a scope belongs to the scope once it is
 * posted.
 */
void slu_post_call(struct slu_call *call, enum slu_queue queue);
/* Goes on with stalled peers that have room again or have failed. */
void slu_post_stalled(struct slu_call *call);
/*
 * Requests of the library itself, beside the program's. Their results are discarded, and they
 * displace no result of the program. The caller has entered the engine.
 */
/* Returns whether count requests can be posted to a peer now. */
bool slu_has_room(struct slu_engine *engine, uint32_t peer, uint32_t count);
/*
 * Posts one send, write or read, for which there must be room. Returns its id, or one that is never
 * in flight if the peer is not ready.
 */
uint64_t slu_post_detached(struct slu_engine *engine, const struct sluice_request *request);
/* Returns whether the request with that id is in flight. No request has the id 0. */
bool slu_is_pending(struct slu_engine *engine, uint64_t id);

#endif
