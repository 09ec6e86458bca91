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
 */
#ifndef SLU_ENGINE_H
#define SLU_ENGINE_H

#include "engine/state.h"

/* attr.c: applies defaults and checks ranges and the device's limits. */
int slu_channel_attr_apply(struct slu_engine *engine, const struct slu_tcontext *context,
                           const struct sluice_channel_attr *attr);

/*
 * engine.c. own: how many requests of our own, beside those of the program, may be in
 * flight to a peer. None of them costs the program a result that it has not seen.
 */
struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                                     const struct sluice_channel_attr *attr);
void slu_engine_destroy(struct slu_engine *engine);
/* Each engine and each scope of the process has a tag of its own; 0 is nobody's. */
uint64_t slu_next_tag(void);
int slu_engine_shutdown(struct slu_engine *engine, int64_t timeout);

/* peer.c: an empty peer without a queue pair; the same with one. */
void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer);
int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer);
void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint);
int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote);
int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer);
/* For a program: it enters, and looks first. */
int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer);
/* Whether it has failed, and why. The engine is entered. */
bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error);
/* counters.c: those of a peer, or of all if it is NULL. */
int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters);
/* query.c: for a program, whose struct may be of another version; both enter, and look first. */
int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info);
int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error);
/* Keeps the text of the thread's last failure, for sluice_error.text. */
void slu_peer_keep_reason(struct slu_peer *peer);
/* To FAILED, with the cause unless there is one already. Idempotent. */
void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor);
/* The same for a failure that came with no request; reason is what is said of it. */
void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason);
/* Fails a peer whose queue pair has failed while nobody was looking. */
void slu_peer_notice_loss(struct slu_engine *engine, struct slu_peer *peer);
/* Takes the failures that events of the device tell of. */
void slu_peers_alerted(struct slu_engine *engine);
/* Of a peer that was failed: until its work has ended, which the drain bound limits. */
void slu_peer_await_idle(struct slu_engine *engine, struct slu_peer *peer);
static inline uint32_t slu_peer_index(const struct slu_engine *engine, const struct slu_peer *peer)
{
    return (uint32_t)(peer - engine->peers);
}
static inline bool slu_peer_has_posted(const struct slu_peer *peer, enum slu_queue queue)
{
    const struct slu_ring *own = &peer->rings[SLU_OWN_RING];

    return peer->rings[queue].oldest != peer->rings[queue].next ||
           (queue == SLU_SEND_QUEUE && own->oldest != own->next);
}
static inline bool slu_peer_busy(const struct slu_peer *peer)
{
    return slu_peer_has_posted(peer, SLU_SEND_QUEUE) ||
           slu_peer_has_posted(peer, SLU_RECEIVE_QUEUE);
}

/* ring.c; inline.h has the rest of it: the rings of an index, and of all of them. */
int slu_rings_create(struct slu_engine *engine, struct slu_ring *rings, uint32_t index);
void slu_rings_destroy(struct slu_ring *rings);
/* Entries of a peer that can have results. */
uint32_t slu_rings_results(const struct slu_engine *engine);
bool slu_ring_uses_key(const struct slu_ring *ring, uint32_t max_sge, uint32_t lkey);
/* Room for the results of so many entries. */
int slu_orders_grow(struct slu_engine *engine, uint32_t entries);
void slu_orders_destroy(struct slu_engine *engine);
/* The oldest, whose id is at the tail then; NULL: none. */
struct slu_entry *slu_order_first(const struct slu_engine *engine, struct slu_order *order);
/* Forgets the ids of what was seen otherwise. */
void slu_order_tidy(struct slu_engine *engine, struct slu_order *order);
/* It is full: forgets as many of them as it takes. */
void slu_order_make_room(struct slu_engine *engine, struct slu_order *order);
/* The place of a result that nobody has seen is needed. */
void slu_entry_displace(struct slu_engine *engine, struct slu_ring *ring, struct slu_entry *entry);

/* aside.c: places for as many as there are entries. */
int slu_aside_grow(struct slu_engine *engine, uint32_t entries);
void slu_aside_destroy(struct slu_engine *engine);
void slu_aside_keep(struct slu_engine *engine, struct slu_ring *ring, uint64_t id,
                    const struct slu_entry *entry);
/* NULL: it has none of that id. */
struct slu_entry *slu_aside_find(const struct slu_engine *engine, const struct slu_ring *ring,
                                 uint64_t id);
/* An entry is seen: it may be one of these. */
void slu_aside_seen(struct slu_engine *engine, const struct slu_entry *entry);
/* What nobody has seen of a peer is of one that was removed; of a scope, is gone with it. */
void slu_aside_remove_peer(struct slu_engine *engine, uint32_t peer);
void slu_aside_end_scope(struct slu_engine *engine);
/* Gives its result to its call. */
void slu_entry_tell_call(const struct slu_entry *entry, uint32_t peer);
/* The result of one that is not pending. */
void slu_entry_failure(const struct slu_entry *entry, struct sluice_completion *completion);
/* The oldest result of an owner that nobody has seen; false if there is none. */
bool slu_take_done(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completion);
/* An id that is of no request. */
uint64_t slu_id_refused(uint64_t number);
/* For tests: the next ids have this number, of 46 bits. Nothing is pending. */
void slu_engine_set_number(struct slu_engine *engine, uint64_t number);

/* failure.c: keeps that of an entry aside. */
void slu_failure_keep_entry(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry);
/* That of a request that never had an entry; returns its id. */
uint64_t slu_failure_keep_refused(struct slu_engine *engine, enum slu_owner owner, uint32_t index,
                                  const struct sluice_completion *completion);
/* The owner's oldest, if it is older than that number. It counts as seen then. */
bool slu_failure_take(struct slu_engine *engine, enum slu_owner owner, uint64_t before,
                      struct sluice_completion *completion);
/* One that nobody has seen is seen now. */
void slu_failure_see(struct slu_engine *engine, struct slu_failure *failure);
bool slu_failure_find(struct slu_engine *engine, uint64_t id, struct sluice_completion *completion);
/* Forgets one, seen or not: whether it was there. */
bool slu_failure_drop(struct slu_engine *engine, uint64_t id);

/* probe.c */
/* For a program: waits until the peer, or all that are connected if it is NULL, was heard. */
int slu_wait_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);

/* progress.c */
/* Takes all that is there. */
void slu_progress_all(struct slu_engine *engine);
/* Polls once, without waiting: whether anything was done. */
bool slu_progress(struct slu_engine *engine);
/* The failed request of a failed peer: its cause, and its status. */
void slu_entry_failed(const struct slu_peer *peer, struct slu_entry *entry);
/* One of which nothing is in flight, and nothing will be: its peer failed. */
void slu_fail_unposted(struct slu_engine *engine, struct slu_peer *peer, uint64_t id,
                       struct slu_entry *entry);
/* Completes what a peer's queue pair holds, by hand, after destroying it. */
void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* What a poll returned. */
int slu_take_batch(struct slu_engine *engine, const struct slu_wc *wcs, int count);
/* Polls once for at most so many; how many completions came. */
int slu_poll_queue(struct slu_engine *engine, uint32_t most);
/* Polls once for one that is pending. */
void slu_poll_for(struct slu_engine *engine, const struct slu_entry *entry);
/* And then looks whether anything is late: whether anything came. */
bool slu_look_at_clock(struct slu_engine *engine, int count);

/* wait.c */
/*
 * Progresses until ready(argument) or the absolute time: true if ready. The
 * engine is entered.
 */
bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until);
/*
 * The same for calls that a wake ends: 1 if ready, 0 if the time is up, -EINTR,
 * with its text, if woken. What is ready is never interrupted.
 */
int slu_wait_interruptible(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
                           int64_t until);
/* The same until a request is not pending: of no other one is it asked whether it is ready. */
int slu_wait_entry(struct slu_engine *engine, const struct slu_entry *entry, bool interruptible,
                   int64_t until);
/*
 * For a wait of one's own, for what makes no event: until when it spins if it
 * begins now, and a sleep for at most so long. The engine is entered.
 */
int64_t slu_spin_end(const struct slu_engine *engine, int64_t now);
void slu_nap(struct slu_engine *engine, int64_t until);
/* For event loops, which are not inside: see sluice_channel_fd(). */
int slu_fd(const struct slu_engine *engine);
int slu_arm(struct slu_engine *engine, int64_t *due);
/* Any thread, and signal handlers; the engine need not be entered. */
void slu_wake(struct slu_engine *engine);
/* The program polls: a wake has done what it was to do. */
void slu_wake_seen(struct slu_engine *engine);

/* source.c; inline.h has the rest of it */
/* The queues that it has requests for, a bit each; or what is wrong. */
int slu_source_check(const struct slu_engine *engine, const struct slu_source *source,
                     int64_t deadline);
/* Flags that an operation may have; of SLU_OPCODES operations. */
#define SLU_OPCODES 7
extern const uint32_t slu_opcode_flags[SLU_OPCODES];
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
static inline uint32_t slu_queue_depth(const struct slu_engine *engine, enum slu_queue queue)
{
    return queue == SLU_SEND_QUEUE ? engine->attr.send_depth : engine->attr.receive_depth;
}
static inline bool slu_nothing_pends(const struct slu_engine *engine)
{
    return (engine->pending[SLU_SEND_QUEUE] | engine->pending[SLU_RECEIVE_QUEUE]) == 0;
}
static inline uint32_t slu_count_pending(const struct slu_engine *engine, enum slu_queue queue)
{
    return engine->pending[queue];
}
static inline enum slu_queue slu_opcode_queue(uint32_t opcode)
{
    return opcode == SLUICE_OP_RECEIVE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}
static inline enum slu_queue slu_item_queue(const struct slu_item *item)
{
    return slu_opcode_queue(item->opcode);
}

/*
 * post.c: posts what fits of the call's requests to one queue; peers without
 * room stall. What is of a scope is left to it once it is posted.
 */
void slu_post_call(struct slu_call *call, enum slu_queue queue);
/* Goes on with stalled peers that have room again, or that failed. */
void slu_post_stalled(struct slu_call *call);
/* The driver refused a request: its peer is failed, and about to be drained. */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_entry *entry,
                      int error);
/* Items of an unpolled list, from one on. */
struct slu_prefix {
    uint32_t from, count;
    bool counted; /* that they have room */
    int64_t time; /* the deadline as it was given */
    int64_t deadline;
    struct sluice_handle *handles; /* that of item 0, or NULL */
    int why;                       /* -ENOTCONN, -EAGAIN: of the first that was not posted */
};
/*
 * Posts them, as far as they are of the queue and unless they are counted as far as there
 * is room; returns the index of the first that was not looked at.
 */
uint32_t slu_post_prefix(struct slu_engine *engine, const struct slu_source *source,
                         struct slu_prefix *prefix, enum slu_queue queue);

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
/*
 * The result of a request that is not posted: because the deadline passed
 * before there was room for it (expired), or because of its peer's state. It is
 * counted.
 */
void slu_complete_unposted(const struct slu_engine *engine, const struct slu_item *item,
                           bool expired, int64_t deadline, struct sluice_completion *completion);
void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion);

/* words.c: "send to" and so on; static. */
const char *slu_opcode_phrase(uint32_t opcode);
/* "500 ms"; returns text. time is not negative. */
#define SLU_DURATION_BYTES 32
const char *slu_say_duration(int64_t time, char text[SLU_DURATION_BYTES]);
/* "1 send, write or read, and 2 receives"; returns text. sends is all that is no receive. */
#define SLU_PENDING_BYTES 64
const char *slu_say_pending(uint32_t sends, uint32_t receives, char text[SLU_PENDING_BYTES]);
/* A deadline, of which that time was given, is about to end the connection. */
void slu_peer_note_late(struct slu_engine *engine, struct slu_peer *peer, int64_t time);
/* Fills in the text; all else is there. */
void slu_peer_describe(const struct slu_peer *peer, struct sluice_error *error);
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
int slu_post(struct slu_engine *engine, const struct slu_source *source, int64_t deadline,
             struct sluice_handle *handles);
int slu_poll(struct slu_engine *engine, struct sluice_completion *completions, uint32_t count);
/* One request: 0 if it was posted. */
static inline int slu_post_request(struct slu_engine *engine, const struct sluice_request *request,
                                   int64_t deadline, struct sluice_handle *handle)
{
    const struct slu_source source = {.lists = {request}, .counts = {1}, .count = 1};
    int posted = slu_post(engine, &source, deadline, handle);

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

/* lib/scope/scope.c: the object of its scopes is made and goes with the engine. */
int slu_scope_create(struct slu_engine *engine);
/* All work is drained. The object of an open scope stays until its end. */
void slu_scope_destroy(struct slu_engine *engine);
struct sluice_scope *slu_scope_begin(struct slu_engine *engine, int64_t deadline);
/* While a scope is open, nothing else may use the engine: -EBUSY with its text, else 0. */
int slu_scope_in_use(void);
static inline int slu_scope_check(const struct slu_engine *engine)
{
    return SLU_LIKELY(!engine->scope.open) ? 0 : slu_scope_in_use();
}

#include "engine/inline.h"

#endif
