/* SPDX-License-Identifier: MIT */
/*
 * The completion engine. A channel or a multichannel has one, so that polling n peers costs the
 * same as polling one. A channel is an engine with one peer.
 *
 * A queue pair completes its requests in order, so the requests of each of its queues form a ring.
 * Every accepted request has an entry in that ring. The life of an entry:
 *
 *   FREE --take--> PENDING --completion--> DONE --seen--> SEEN
 *                     |
 *                     +--completion of a blocking call's--> FREE
 *
 * An entry keeps its result until its place in the ring is taken again, so asking twice gives the
 * same answer. A result is unseen until its owner has retrieved it. If the place is needed before
 * that, a success moves to aside.c and a failure to the bounded list of failure.c. When no place
 * for results is left, the oldest unseen success is forgotten. Unseen results are retrieved in the
 * order of completion, across all peers: see struct slu_order.
 *
 * Credits: a request needs room in its queue pair and room in the completion queue. Both are
 * counted here, separately for sends and receives, so that parked receives cannot starve sends. A
 * driver is never asked for more than fits.
 *
 * This header is what channels, scopes and nodes use of the engine; inside.h has the rest.
 */
#ifndef SLU_ENGINE_H
#define SLU_ENGINE_H

#include "engine/seam.h"
#include "engine/state.h"

#define SLU_INLINE inline __attribute__((always_inline))

/*
 * Every call that uses the engine enters it first: the transport is notified, and errno is saved
 * until the engine is left.
 */
static inline void slu_engine_enter(struct slu_engine *engine)
{
    engine->call_number++;
    engine->saved_errno = errno;
    if (engine->guarded)
        engine->transport->cq_enter(engine->cq);
}

static inline void slu_engine_leave(struct slu_engine *engine)
{
    if (engine->guarded)
        engine->transport->cq_leave(engine->cq);
    errno = engine->saved_errno;
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

/*
 * engine.c: creates an engine. own is how many requests of the library itself, beside those of the
 * program, may be in flight to a peer. None of them displaces an unseen result of the program.
 */
struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                                     const struct sluice_channel_attr *attr);
void slu_engine_destroy(struct slu_engine *engine);
/*
 * attr.c: checks whether a channel can have these attributes: 0, or the error that
 * slu_engine_create() would give.
 */
int slu_channel_check(const struct sluice_pd *pd, const struct sluice_channel_attr *attr);
/* Returns a tag for an engine or a scope, unique in the process. 0 is never given out. */
uint64_t slu_next_tag(void);
int slu_engine_shutdown(struct slu_engine *engine, int64_t timeout);

/* arrived.c: counts the arrivals of a tag; waits until there are at least that many. */
int slu_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t *count);
int slu_wait_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t least, int64_t timeout);

/* connect.c: reads the endpoint of a peer, whose queue pair must exist. */
void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint);
int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote);
int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer);
/*
 * engine.c: fails the peers whose byte in which is not 0, or all if which is NULL, without waiting.
 * The drain bound of each begins now, so a following reset, shutdown or close waits for it only
 * once.
 */
void slu_engine_begin_drain(struct slu_engine *engine, const uint8_t *which);
/* connect.c: returns the state of a peer to the program: enters the engine, and polls first. */
int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer);
/* words.c: returns whether the peer has failed, and why. The caller has entered the engine. */
bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error);
/*
 * members.c: adds a prepared peer and writes its endpoint. Returns the peer's index, or an error.
 */
int slu_peer_add(struct slu_engine *engine, struct sluice_endpoint *endpoint);
/* Drains the work of a peer, then removes it. */
void slu_peer_remove(struct slu_engine *engine, struct slu_peer *peer);

/* counters.c: reads the counters of a peer, or of all if peer is NULL. */
int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters);
/*
 * query.c: answer the program, whose struct may be of another version. Both enter the engine, and
 * poll first.
 */
int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info);
int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error);
/* peer.c: fails a peer whose queue pair has failed since the last poll. */
void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer);
/*
 * Returns whether the oldest request in the peer's send queue is a message that the peer has not
 * received yet.
 */
bool slu_peer_has_message(const struct slu_peer *peer);
static inline bool slu_peer_has_posted(const struct slu_peer *peer, enum slu_queue queue)
{
    const struct slu_ring *own = &peer->rings[SLU_OWN_RING];

    return peer->rings[queue].oldest != peer->rings[queue].next ||
           (queue == SLU_SEND_QUEUE && own->oldest != own->next);
}

/*
 * Returns the queue pair of a peer, or NULL if it has none any more. If the peer has several, this
 * is the first, which alone carries messages.
 */
static inline struct slu_qp *slu_peer_first_qp(const struct slu_engine *engine, uint32_t peer)
{
    struct slu_qp *qp = engine->peers[peer].qp;

    return qp != NULL && engine->attr.queue_pairs > 1 ? slu_stripes_first(qp) : qp;
}

/*
 * connected.c: waits until the peer, or every connected peer if it is NULL, has shown a sign of
 * life.
 */
int slu_wait_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);
/* Does the same, but a wake does not end it: the wake ends the program's next wait instead. */
int slu_await_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);

/*
 * peer.c: notes that a connected peer has shown a sign of life by other means: it needs no probe.
 */
void slu_peer_heard(struct slu_peer *peer);

/* progress.c: polls once, without waiting. Returns whether anything completed. */
bool slu_progress(struct slu_engine *engine);

/*
 * wait.c: makes progress until ready(argument) or the absolute time. Returns whether it is ready.
 * The caller has entered the engine.
 */
bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until);
/*
 * The state of a spin. It begins on the first slu_spin() with until == 0, so a zeroed one has not
 * begun.
 */
struct slu_spin {
    int64_t hot; /* no yield before this time */
    int64_t until;
    int64_t patience; /* the spin lasts (patience + 1) times the spin time */
    bool slow;        /* the time without yields is over, and the transport was notified */
};
/*
 * For callers that wait for something that raises no event. slu_spin() returns whether to go on
 * spinning, and yields first if the spin is already long; slu_nap() sleeps until the given time at
 * most. The caller has entered the engine.
 */
bool slu_spin(struct slu_engine *engine, struct slu_spin *spin, int64_t now);
void slu_nap(struct slu_engine *engine, int64_t until);
/* event.c: for event loops, which have not entered the engine: see sluice_channel_fd(). */
static inline int slu_fd(const struct slu_engine *engine)
{
    return engine->transport->cq_fd(engine->cq);
}
int slu_arm(struct slu_engine *engine, int64_t *due);
/*
 * wait.c: wakes a wait. Any thread and any signal handler may call it, without entering the engine.
 */
void slu_wake(struct slu_engine *engine);

/*
 * source.c: checks all requests of a source. Returns the queues that it has requests for, one bit
 * each, with SLU_ALIKE if all requests of each list are of one operation and take the fast path,
 * and SLU_BLOCKY if any has blocks; 0 if there are no requests. Returns the error if a request is
 * wrong, or SLU_NAMES_PLAIN, which is negative so that only the slow path tests for it.
 */
#define SLU_ALIKE 4
#define SLU_BLOCKY 8
_Static_assert(SLU_ALIKE == 1 << SLU_QUEUES, "a bit of its own");
/*
 * Nothing is wrong, but requests name plain memory, so slu_borrow() must be called before they are
 * posted.
 */
#define SLU_NAMES_PLAIN INT32_MIN
int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline);
/* opcode.c: returns "send" and so on, a static string. */
const char *slu_opcode_name(uint32_t opcode);
static inline bool slu_opcode_is_atomic(uint32_t opcode)
{
    return opcode >= SLUICE_OP_COMPARE_SWAP;
}
static inline int slu_no_remote(uint32_t opcode)
{
    return slu_misuse(EINVAL, "a %s needs a remote region, not NULL", slu_opcode_name(opcode));
}
static inline uint32_t slu_count_pending(const struct slu_engine *engine, enum slu_queue queue)
{
    return engine->pending[queue];
}

/*
 * post.c: posts as many requests of a call as fit to one queue; the call must have some for it.
 * Peers without room stall until slu_post_stalled(). A request of a scope belongs to the scope once
 * it is posted.
 */
void slu_post_call(struct slu_call *call, enum slu_queue queue);
/* Goes on with stalled peers that have room again or have failed. */
void slu_post_stalled(struct slu_call *call);

/*
 * detached.c: requests of the library itself, beside the program's. Their results are discarded,
 * and they displace no result of the program. The caller has entered the engine.
 */
/* Returns whether count requests can be posted to a peer now. */
bool slu_has_room(const struct slu_engine *engine, uint32_t peer, uint32_t count);
/*
 * Posts one send, write or read, for which there must be room. Returns its id, or one that is never
 * in flight if the peer is not ready.
 */
uint64_t slu_post_detached(struct slu_engine *engine, const struct sluice_request *request);
/* Returns whether the request with that id is in flight. No request has the id 0. */
bool slu_is_pending(struct slu_engine *engine, uint64_t id);

/* submit.c */
int slu_submit(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
               struct sluice_completion *completions);

/*
 * words.c: writes "1 send, write or read, and 2 receives" to text and returns text. sends counts
 * all that are not receives.
 */
#define SLU_PENDING_BYTES 64
const char *slu_say_pending(uint32_t sends, uint32_t receives, char text[SLU_PENDING_BYTES]);
/*
 * Returns the error of a failed request that had this deadline, with a text that gives the reason.
 */
int slu_fail_completion(const struct slu_engine *engine, const struct sluice_completion *completion,
                        int64_t time);

/*
 * Blocking calls of one request. immediate and completion may be NULL; a NULL remote is an error
 * with a text. The arguments have the order of the channel calls, so that forwarding them costs
 * nothing.
 */
int slu_submit_send(struct slu_engine *engine, const struct sluice_sge *sges, uint32_t sge_count,
                    int64_t deadline, uint32_t peer, const uint32_t *immediate);
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
 * unpolled.c: posts the longest prefix of the requests for which there is room. Returns its length.
 */
int slu_post(struct slu_engine *engine, const struct sluice_request *requests, uint32_t count,
             int64_t deadline, struct sluice_handle *handles);
int slu_post_source(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
                    struct sluice_handle *handles);
int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count);
/* Posts one request: 0 if it was posted. */
static inline int slu_post_request(struct slu_engine *engine, const struct sluice_request *request,
                                   int64_t deadline, struct sluice_handle *handle)
{
    int posted = slu_post(engine, request, 1, deadline, handle);

    return SLU_LIKELY(posted == 1) ? 0 : posted;
}
int slu_next(struct slu_engine *engine, int64_t timeout, struct sluice_completion *completion);
int slu_flush(struct slu_engine *engine, int64_t timeout);

/* handle.c */
int slu_wait_handle(struct slu_engine *engine, const struct sluice_handle *handle, int64_t timeout,
                    struct sluice_completion *completion);
int slu_cancel(struct slu_engine *engine, const struct sluice_handle *handle,
               struct sluice_completion *completion);
int slu_detach(struct slu_engine *engine, const struct sluice_handle *handle);
/*
 * Do the same as slu_poll() and slu_wait_handle(), for the work of one owner, whose handles have
 * that tag.
 */
int slu_poll_owner(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completions, uint32_t count);
int slu_wait_tagged(struct slu_engine *engine, uint64_t tag, const struct sluice_handle *handle,
                    int64_t timeout, struct sluice_completion *completion);

/*
 * blocks.c: checks blocks that do not belong to a channel's request, within memory of the given
 * lengths on each side. Returns 0 and the bytes that they move, or an error whose text calls them
 * request 0.
 */
int slu_blocks_check_action(const struct sluice_blocks *blocks, uint64_t addr,
                            uint64_t local_length, uint64_t remote_length, uint64_t *bytes);

/*
 * Returns -EBUSY with its text while a scope is open, since nothing else may use the engine then;
 * else 0.
 */
static inline int slu_scope_check(const struct slu_engine *engine)
{
    return SLU_LIKELY(!engine->scope.open) ? 0 : slu_scope_in_use();
}

#endif
