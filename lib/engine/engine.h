/* SPDX-License-Identifier: MIT */
/*
 * The completion engine: one per channel or per multichannel, so that polling
 * n peers costs the same as polling one. A channel is an engine with one peer.
 *
 * A queue pair completes in order, so the requests of one of its queues are a ring.
 * Every accepted request has an entry of it. Its life:
 *
 *   FREE --take--> PENDING --completion--> DONE --seen--> SEEN
 *                     |
 *                     +--completion of a blocking call's--> FREE
 *
 * An entry keeps its result until its place in the ring is taken again, so asking
 * twice gives the same answer. If nobody has seen it by then, a success is
 * forgotten, and a failure moves to a bounded list. What is done and unseen is
 * found in the order of completion, of all peers together: see struct slu_order.
 *
 * Credits: a request needs room in its queue pair, and room in the completion queue,
 * each counted here and for sends and receives apart, so that parked receives starve
 * no send. A driver is never asked for more than fits.
 *
 * This is what channels, scopes and nodes use of it; inside.h has the rest.
 */
#ifndef SLU_ENGINE_H
#define SLU_ENGINE_H

#include "engine/seam.h"
#include "engine/state.h"

#define SLU_INLINE inline __attribute__((always_inline))

/* While a call is inside, the transport knows it, and errno is kept. */
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

/* The list of a call, which it need not look at if it has no elements: a request has none then. */
static inline const struct sluice_sge *slu_list_of(const struct sluice_sge *sges, uint32_t count)
{
    return count > 0 ? sges : NULL;
}

/* A request of one operation with one peer; sge_count elements of sges. */
static inline struct sluice_request
slu_request_of(uint32_t opcode, uint32_t peer, const struct sluice_sge *sges, uint32_t sge_count)
{
    return (struct sluice_request){.opcode = opcode,
                                   .peer = peer,
                                   .sges = slu_list_of(sges, sge_count),
                                   .sge_count = sge_count};
}

/* The same message to many peers; the same bytes into memory of many peers. */
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
 * engine.c. own: how many requests of our own, beside those of the program, may be in
 * flight to a peer. None of them costs the program a result that it has not seen.
 */
struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                                     const struct sluice_channel_attr *attr);
void slu_engine_destroy(struct slu_engine *engine);
/* attr.c: whether these can be a channel's: 0, or as slu_engine_create() fails then. */
int slu_channel_check(const struct sluice_pd *pd, const struct sluice_channel_attr *attr);
/* Each engine and each scope of the process has a tag of its own; 0 is nobody's. */
uint64_t slu_next_tag(void);
int slu_engine_shutdown(struct slu_engine *engine, int64_t timeout);

/* arrivals.c: how many of a tag have come; and a wait until at least so many have. */
int slu_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t *count);
int slu_wait_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t least, int64_t timeout);

/* peer.c: the endpoint of a peer is read after its queue pair was made. */
void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint);
int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote);
int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer);
/*
 * engine.c: fails the peers whose byte is not 0, or all if which is NULL, and waits for none. The
 * drain bound of each begins, so that resets, a shutdown or a close that follow wait for it once.
 */
void slu_engine_begin_drain(struct slu_engine *engine, const uint8_t *which);
/* For a program: it enters, and looks first. */
int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer);
/* Whether it has failed, and why. The engine is entered. */
bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error);
/* members.c: the index of a new prepared peer, whose endpoint is written, or why there is none. */
int slu_peer_add(struct slu_engine *engine, struct sluice_endpoint *endpoint);
/* Its work is drained first. */
void slu_peer_remove(struct slu_engine *engine, struct slu_peer *peer);

/* counters.c: those of a peer, or of all if it is NULL. */
int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters);
/* query.c: for a program, whose struct may be of another version; both enter, and look first. */
int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info);
int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error);
/* Fails a peer whose queue pair has failed while nobody was looking. */
void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer);
/* Whether the peer has yet to take a message, before all else that was posted to it. */
bool slu_peer_has_message(const struct slu_peer *peer);
static inline bool slu_peer_has_posted(const struct slu_peer *peer, enum slu_queue queue)
{
    const struct slu_ring *own = &peer->rings[SLU_OWN_RING];

    return peer->rings[queue].oldest != peer->rings[queue].next ||
           (queue == SLU_SEND_QUEUE && own->oldest != own->next);
}

/* The queue pair of a peer, of several the first, which alone has messages; NULL: none any more. */
static inline struct slu_qp *slu_peer_first_qp(const struct slu_engine *engine, uint32_t peer)
{
    struct slu_qp *qp = engine->peers[peer].qp;

    return qp != NULL && engine->attr.queue_pairs > 1 ? slu_stripes_first(qp) : qp;
}

/* probe.c: waits until the peer was heard, or all that are connected if it is NULL. */
int slu_wait_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);
/* The same, and a wake does not end it: the next wait of the program finds the wake. */
int slu_await_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);

/* The peer, which is connected, was heard by another way: it need not be asked. */
void slu_peer_heard(struct slu_peer *peer);

/* progress.c: polls once, without waiting: whether anything was done. */
bool slu_progress(struct slu_engine *engine);

/*
 * wait.c: progresses until ready(argument) or the absolute time: true if ready. The
 * engine is entered.
 */
bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until);
/* A spin, which begins where until is 0; one that is zeroed has not begun. */
struct slu_spin {
    int64_t hot; /* until then it gives way to nobody */
    int64_t until;
    int64_t patience; /* how many times longer than others it is */
    bool slow;        /* it has given way, and the transport knows */
};
/*
 * For a wait of one's own, for what makes no event: whether it goes on to spin, after giving
 * way to others if it has spun for long; and a sleep for at most so long. The engine is
 * entered.
 */
bool slu_spin(struct slu_engine *engine, struct slu_spin *spin, int64_t now);
void slu_nap(struct slu_engine *engine, int64_t until);
/* For event loops, which are not inside: see sluice_channel_fd(). */
int slu_fd(const struct slu_engine *engine);
int slu_arm(struct slu_engine *engine, int64_t *due);
/* Any thread, and signal handlers; the engine need not be entered. */
void slu_wake(struct slu_engine *engine);

/*
 * source.c: the queues that it has requests for, a bit each, whether all of each list
 * are usual ones of one operation, and whether any has blocks; or what is wrong, or
 * SLU_NAMES_PLAIN, which is negative so that only what is rare asks for it.
 */
#define SLU_ALIKE 4
#define SLU_BLOCKY 8
_Static_assert(SLU_ALIKE == 1 << SLU_QUEUES, "a bit of its own");
/* Nothing is wrong, but requests name plain memory: to be posted by slu_borrow(). */
#define SLU_NAMES_PLAIN INT32_MIN
int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline);
/* "send" and so on; static. */
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
 * post.c: posts what fits of the requests of a call that waits to one queue, which it has some
 * for; peers without room stall. What is of a scope is left to it once it is posted.
 */
void slu_post_call(struct slu_call *call, enum slu_queue queue);
/* Goes on with stalled peers that have room again, or that failed. */
void slu_post_stalled(struct slu_call *call);

/*
 * detached.c: requests of our own beside the program's, which nobody sees the end of and
 * which cost the program no result. The engine is entered.
 */
/* Whether so many can be posted to a peer now. */
bool slu_has_room(const struct slu_engine *engine, uint32_t peer, uint32_t count);
/* Posts one send, write or read, for which there is room; its id. */
uint64_t slu_post_detached(struct slu_engine *engine, const struct sluice_request *request);
/* Whether the request with that id, or 0, is in flight. */
bool slu_is_pending(struct slu_engine *engine, uint64_t id);

/* submit.c */
int slu_submit(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
               struct sluice_completion *completions);

/* words.c: "1 send, write or read, and 2 receives"; returns text. sends: all but receives. */
#define SLU_PENDING_BYTES 64
const char *slu_say_pending(uint32_t sends, uint32_t receives, char text[SLU_PENDING_BYTES]);
/* Returns the error of a request with such a deadline that failed, with a text that tells why. */
int slu_fail_completion(const struct slu_engine *engine, const struct sluice_completion *completion,
                        int64_t time);

/*
 * One request. immediate and completion may be NULL; a remote that is NULL has a text.
 * The order is that of the calls of a channel, so that these cost nothing.
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

/* unpolled.c: posts the longest prefix of it for which there is room, and returns its length. */
int slu_post(struct slu_engine *engine, const struct sluice_request *requests, uint32_t count,
             int64_t deadline, struct sluice_handle *handles);
int slu_post_source(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
                    struct sluice_handle *handles);
int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count);
/* One request: 0 if it was posted. */
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
/* The same two for the work of one owner, whose handles have that tag. */
int slu_poll_owner(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completions, uint32_t count);
int slu_wait_tagged(struct slu_engine *engine, uint64_t tag, const struct sluice_handle *handle,
                    int64_t timeout, struct sluice_completion *completion);

/*
 * blocks.c: those of what is no request of a channel, within memory of so many bytes on each side.
 * 0, and the bytes that they move; or why not, in the words of request 0.
 */
int slu_blocks_check_action(const struct sluice_blocks *blocks, uint64_t addr,
                            uint64_t local_length, uint64_t remote_length, uint64_t *bytes);

/* While a scope is open, nothing else may use the engine: -EBUSY with its text, else 0. */
static inline int slu_scope_check(const struct slu_engine *engine)
{
    return SLU_LIKELY(!engine->scope.open) ? 0 : slu_scope_in_use();
}

#endif
