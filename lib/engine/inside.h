/* SPDX-License-Identifier: MIT */
/*
 * What the files of the engine use of each other. Of the others only the reports of
 * scopes look in here, which sort what they find; tests/check-style.sh holds it.
 */
#ifndef SLU_ENGINE_INSIDE_H
#define SLU_ENGINE_INSIDE_H

#include "engine/engine.h"

/* attr.c: applies defaults and checks ranges and the device's limits; holds the cache. */
int slu_channel_attr_apply(struct slu_engine *engine, const struct sluice_channel_attr *attr);

/* peer.c: an empty peer without a queue pair; the same with one. */
void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer);
int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer);
/* Keeps the text of the thread's last failure, for sluice_error.text. */
void slu_peer_keep_reason(struct slu_peer *peer);
/* To FAILED, with the cause unless there is one already. Idempotent. */
void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor);
/* The status of a loss: that of a peer that closed, if it said so. Other statuses stay. */
uint32_t slu_peer_judge_loss(const struct slu_engine *engine, struct slu_peer *peer,
                             uint32_t status);
/* Tells the peer that the program ends the connection; that of several is begun together. */
void slu_peer_say_closed(const struct slu_engine *engine, const struct slu_peer *peer);
/* To FAILED, because the program ends the connection, of which the peer is told. */
void slu_peer_close(struct slu_engine *engine, struct slu_peer *peer);
/* As slu_peer_fail(), for a failure that came with no request; reason is what is said of it. */
void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason);
/* Takes the failures that events of the device tell of. */
void slu_peers_alerted(struct slu_engine *engine);
/* Of a peer that was failed: until its work has ended, which the drain bound limits. */
void slu_peer_await_idle(struct slu_engine *engine, struct slu_peer *peer);
static inline uint32_t slu_peer_index(const struct slu_engine *engine, const struct slu_peer *peer)
{
    return (uint32_t)(peer - engine->peers);
}
static inline bool slu_peer_busy(const struct slu_peer *peer)
{
    return slu_peer_has_posted(peer, SLU_SEND_QUEUE) ||
           slu_peer_has_posted(peer, SLU_RECEIVE_QUEUE) || peer->arrivals_posted > 0;
}
/* Who it is: no other, in any process, has that number. */
int slu_peer_identify(struct slu_peer *peer);
/* To who traces: its state has changed. */
void slu_peer_tell_state(const struct slu_engine *engine, const struct slu_peer *peer);
/* Fails it, drains its work, and destroys its queue pair. */
void slu_peer_end(struct slu_engine *engine, struct slu_peer *peer);

/* Nothing of it can complete any more, once it is not busy. */
static inline bool slu_peer_over(const struct slu_peer *peer)
{
    return peer->state >= SLUICE_STATE_FAILED;
}

/* members.c: where a result is counted: with its peer, unless another has the index. */
struct slu_counts *slu_counts_of(struct slu_engine *engine, uint32_t peer, uint32_t flags);

/* room.c: for the peer of an index, which is at most one more than there are. */
int slu_room_reserve(struct slu_engine *engine, uint32_t index);
/* For the work of one more peer; and of one less, which has none and no queue pair. */
int slu_room_grow(struct slu_engine *engine);
void slu_room_shrink(struct slu_engine *engine);

/* probe.c: of a peer that is not connected. */
void slu_probe_init(struct slu_peer *peer);
/* Whether a peer that gives us these rights can be asked: 0, or -EOPNOTSUPP. */
int slu_probe_check(const struct slu_engine *engine, uint32_t peer, uint32_t access);
/* The peer is connected, and gives us these rights. */
void slu_probe_connected(struct slu_engine *engine, struct slu_peer *peer, uint32_t access);
/* Since it was connected. */
bool slu_probe_heard(struct slu_peer *peer);
/* Whether a completion that is of no request is of a probe; then it is done with. */
bool slu_probe_ended(struct slu_engine *engine, const struct slu_wc *wc);
/* The peer has failed; its queue pair is gone. */
void slu_probe_failed(struct slu_engine *engine, struct slu_peer *peer);
void slu_probe_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Looks after the peers that are due. */
void slu_probe_peers(struct slu_engine *engine, int64_t now);

/* progress.c: regions that no posted work names end, if they were given up. */
void slu_end_regions(struct slu_engine *engine);

/* arrivals.c: the array of counts; receives of a peer that was just connected; their ends. */
int slu_arrivals_create(struct slu_engine *engine);
/* Whether there is room for those of one peer more. */
int slu_arrivals_grow(const struct slu_engine *engine);
int slu_arrivals_begin(struct slu_engine *engine, struct slu_peer *peer);
/* Of an id of theirs. */
void slu_arrival_ended(struct slu_engine *engine, const struct slu_wc *wc);
void slu_arrivals_abandon(struct slu_engine *engine, struct slu_peer *peer);

/* ring.c; inline.h has the rest of it: the rings of an index, and of all of them. */
int slu_rings_create(struct slu_engine *engine, struct slu_ring *rings, uint32_t index);
void slu_rings_destroy(struct slu_ring *rings);
bool slu_ring_uses(const struct slu_ring *ring, uint32_t max_sge, const struct slu_memory *memory);
/* The entry of a result that nobody has seen is needed. */
void slu_entry_displace(struct slu_engine *engine, struct slu_ring *ring, struct slu_entry *entry);

/* order.c: room for so many results of each queue, of so many peers. */
int slu_places_grow(struct slu_engine *engine, const uint32_t places[SLU_QUEUES], uint32_t peers);
void slu_places_destroy(struct slu_engine *engine);
/* All places of a queue are held: the oldest success that nobody has seen gives its own. */
void slu_place_clear(struct slu_engine *engine, enum slu_queue queue);
/* The oldest of an order of that owner, whose id is at the tail then; NULL: none. */
struct slu_entry *slu_order_first(const struct slu_engine *engine, enum slu_owner owner,
                                  struct slu_order *order);
/* The first of both queues by that rule, which their orders have, and where it is. */
struct slu_first {
    struct slu_entry *entry; /* NULL: there is none */
    struct slu_order *order;
};
struct slu_first slu_order_find(struct slu_engine *engine, enum slu_owner owner,
                                bool (*is_earlier)(const struct slu_entry *one,
                                                   const struct slu_entry *other));
/* There is one, and it is seen. */
void slu_order_take(struct slu_engine *engine, const struct slu_first *first,
                    struct sluice_completion *completion);
/* Drops the ids of what was seen otherwise. */
void slu_order_tidy(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order);
/* The least power of two that is no less. */
uint32_t slu_power_of_two(uint32_t least);

/* aside.c: places for so many results. */
int slu_aside_grow(struct slu_engine *engine, uint32_t results);
void slu_aside_destroy(struct slu_engine *engine);
void slu_aside_keep(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry);
/* NULL: it has none of that id. */
struct slu_entry *slu_aside_find(const struct slu_engine *engine, uint64_t id);
/* Gives its result to its call; a success to one that wants results. */
void slu_entry_tell_failure(const struct slu_entry *entry, uint32_t peer);
void slu_entry_tell_success(const struct slu_entry *entry, uint32_t peer);
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

/* progress.c */
/* Takes all that is there. */
void slu_progress_all(struct slu_engine *engine);

/* One of which nothing is in flight, and nothing will be: its peer failed. */
void slu_fail_unposted(struct slu_engine *engine, struct slu_peer *peer, uint64_t id,
                       struct slu_entry *entry);
/* Completes what a peer's queue pair holds, by hand, after destroying it. */
void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* What a poll returned. */
int slu_take_batch(struct slu_engine *engine, const struct slu_wc *wcs, int count);
/* Polls once for at most so many; how many completions came. */
int slu_poll_queue(struct slu_engine *engine, uint32_t most);
/* And then looks whether anything is late: whether anything came. */
bool slu_look_at_clock(struct slu_engine *engine, int count);

/*
 * The same for calls that a wake ends: 1 if ready, 0 if the time is up, -EINTR,
 * with its text, if woken. What is ready is never interrupted.
 */
int slu_wait_interruptible(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
                           int64_t until);
/* The same until a request is not pending: of no other one is it asked whether it is ready. */
int slu_wait_entry(struct slu_engine *engine, const struct slu_entry *entry, bool interruptible,
                   int64_t until);

static inline bool slu_is_woken(const struct slu_engine *engine)
{
    return SLU_UNLIKELY(atomic_load(&engine->woken));
}
/* The program polls: a wake has done what it was to do. */
void slu_wake_take(struct slu_engine *engine);
static inline void slu_wake_seen(struct slu_engine *engine)
{
    if (slu_is_woken(engine))
        slu_wake_take(engine);
}

/* Flags that an operation may have; of SLU_OPCODES operations. */
#define SLU_OPCODES 7
extern const uint32_t slu_opcode_flags[SLU_OPCODES];

static inline uint32_t slu_queue_depth(const struct slu_engine *engine, enum slu_queue queue)
{
    return queue == SLU_SEND_QUEUE ? engine->attr.send_depth : engine->attr.receive_depth;
}
static inline bool slu_nothing_pends(const struct slu_engine *engine)
{
    return (engine->pending[SLU_SEND_QUEUE] | engine->pending[SLU_RECEIVE_QUEUE]) == 0;
}

static inline enum slu_queue slu_opcode_queue(uint32_t opcode)
{
    return opcode == SLUICE_OP_RECEIVE ? SLU_RECEIVE_QUEUE : SLU_SEND_QUEUE;
}
static inline enum slu_queue slu_item_queue(const struct slu_item *item)
{
    return slu_opcode_queue(item->opcode);
}

/* The driver refused a request: its peer is failed, and about to be drained. */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_entry *entry,
                      int error);
/* The same if that one did not take the request with that id of a chain. */
void slu_chain_refused(struct slu_engine *engine, struct slu_peer *peer, uint64_t id, int error);
/* Post a chain. If the driver does not say which one it did not take, the first answers for it. */
static SLU_INLINE void slu_post_sends(struct slu_engine *engine, struct slu_peer *peer,
                                      struct slu_send_wr *first)
{
    struct slu_send_wr *bad = NULL;
    int error = engine->transport->post_send(peer->qp, first, &bad);

    if (SLU_UNLIKELY(error < 0))
        slu_chain_refused(engine, peer, bad != NULL ? bad->id : first->id, error);
}
static SLU_INLINE void slu_post_receives(struct slu_engine *engine, struct slu_peer *peer,
                                         struct slu_receive_wr *first)
{
    struct slu_receive_wr *bad = NULL;
    int error = engine->transport->post_receive(peer->qp, first, &bad);

    if (SLU_UNLIKELY(error < 0))
        slu_chain_refused(engine, peer, bad != NULL ? bad->id : first->id, error);
}
/* blocks.c: whether those of an item are right: 0, or what is wrong. */
int slu_blocks_check(const struct slu_item *item, uint32_t index);
/* borrow.c: whether regions may be got for one of plain memory: 0, or what is wrong. */
int slu_borrow_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t index);

/* Items of an unpolled list, from one on. */
struct slu_prefix {
    uint32_t from, count;
    bool counted; /* that they have room */
    int why;      /* -ENOTCONN, -EAGAIN: of the first that was not posted */
};
/*
 * Posts them, as far as they are of the queue and unless they are counted as far as there
 * is room; returns the index of the first that was not looked at.
 */
uint32_t slu_post_prefix(struct slu_call *call, struct slu_prefix *prefix, enum slu_queue queue);

/*
 * The result of a request that is not posted: because the deadline passed
 * before there was room for it (expired), or because of its peer's state. It is
 * counted.
 */
void slu_complete_unposted(const struct slu_engine *engine, const struct slu_item *item,
                           bool expired, int64_t deadline, struct sluice_completion *completion);
/* A blocking call of a list. Its queues are the caller's to set, if it posts by slu_post_call(). */
static inline void slu_call_begin(struct slu_call *call, struct slu_engine *engine,
                                  const struct slu_source *source, int64_t deadline,
                                  struct sluice_completion *completions)
{
    /* Its two failures are written before they are read. */
    call->engine = engine;
    call->source = source;
    call->completions = completions;
    call->handles = NULL;
    call->time = deadline;
    call->deadline = SLUICE_FOREVER;
    call->owner = SLU_OWNER_CALL;
    call->expired = deadline == 0;
    call->incomplete = source->count;
    call->first_real = call->first_other = SLU_NONE;
}
/* Its time counts from now. What of it fails before has not missed its deadline. */
void slu_call_set_due(struct slu_call *call);
/* Waits for what was posted of it, leaves the engine, and returns the result. */
int slu_call_finish(struct slu_call *call);
/* Of one that is complete: that of its first failure, with its text; 0: it has none. */
int slu_call_failure(const struct slu_call *call);
static inline int slu_call_error(const struct slu_call *call)
{
    return SLU_LIKELY((call->first_real & call->first_other) == SLU_NONE) ? 0
                                                                          : slu_call_failure(call);
}
void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion);

/* words.c: "send to" and so on; static. */
const char *slu_opcode_phrase(uint32_t opcode);
/* "500 ms"; returns text. time is not negative. */
#define SLU_DURATION_BYTES 32
const char *slu_say_duration(int64_t time, char text[SLU_DURATION_BYTES]);

/* -ETIMEDOUT of one that was posted and was late, of whose peer no more is known. */
int slu_fail_late(const struct sluice_completion *completion, int64_t time);
/* A deadline, of which that time was given, is about to end the connection. */
void slu_peer_note_late(struct slu_engine *engine, struct slu_peer *peer, int64_t time);
/* Fills in the text; all else is there. */
void slu_peer_describe(const struct slu_peer *peer, struct sluice_error *error);

#include "engine/inline.h"

#endif
