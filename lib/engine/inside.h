/* SPDX-License-Identifier: MIT */
/*
 * Functions that the files of the engine share. Outside of the engine only the scope reports
 * include this header, to sort results; tests/check-style.sh enforces that.
 */
#ifndef SLU_ENGINE_INSIDE_H
#define SLU_ENGINE_INSIDE_H

#include "engine/engine.h"

/*
 * attr.c: applies defaults, checks ranges and the device's limits, and takes a reference to the
 * cache.
 */
int slu_channel_attr_apply(struct slu_engine *engine, const struct sluice_channel_attr *attr);

/* connect.c: creates a peer with a queue pair. peer.c: initialises an empty one without. */
void slu_peer_init(const struct slu_engine *engine, struct slu_peer *peer);
int slu_peer_create(struct slu_engine *engine, struct slu_peer *peer);
/* Copies the text of the thread's last failure to the peer, for sluice_error.text. */
void slu_peer_keep_reason(struct slu_peer *peer);
/* Moves the peer to FAILED, with this cause unless it already has one. Idempotent. */
void slu_peer_fail(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                   uint32_t opcode, uint32_t vendor);
/*
 * Returns the status of a lost peer: SLUICE_STATUS_PEER_CLOSED if the peer said that it closes.
 * Statuses that are no loss are returned unchanged.
 */
uint32_t slu_peer_judge_loss(const struct slu_engine *engine, struct slu_peer *peer,
                             uint32_t status);
/*
 * Sends the peer a note that the program ends the connection. Callers send it to several peers
 * before they close the first.
 */
void slu_peer_say_closed(const struct slu_engine *engine, const struct slu_peer *peer);
/* Sends that note, then moves the peer to FAILED, because the program ends the connection. */
void slu_peer_close(struct slu_engine *engine, struct slu_peer *peer);
/* Does the same as slu_peer_fail(), for a failure that no request reported. reason is its text. */
void slu_peer_fail_alone(struct slu_engine *engine, struct slu_peer *peer, uint32_t status,
                         uint32_t vendor, bool inferred, const char *reason);
/* Fails the peers for which the device has raised an event. */
void slu_peers_alerted(struct slu_engine *engine);
/* wait.c: waits until the work of a failed peer has ended, for at most the drain bound. */
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
/* connect.c: gives the peer a random identity, unique across processes. */
int slu_peer_identify(struct slu_peer *peer);
/* peer.c: fires the trace probe for a changed state. */
void slu_peer_tell_state(const struct slu_engine *engine, const struct slu_peer *peer);
/* connect.c: fails a peer, drains its work, and destroys its queue pair. */
void slu_peer_end(struct slu_engine *engine, struct slu_peer *peer);

/*
 * Returns whether the peer has failed or was removed: nothing of it can complete once it is not
 * busy.
 */
static inline bool slu_peer_over(const struct slu_peer *peer)
{
    return peer->state >= SLUICE_STATE_FAILED;
}

/*
 * result.c: returns where results of the peer are counted: with the peer, or with the removed ones
 * if another peer has the index now.
 */
struct slu_counts *slu_counts_of(struct slu_engine *engine, uint32_t peer, uint32_t flags);

/* room.c: makes room in the arrays for the peer of an index, which is at most one past the last. */
int slu_room_reserve(struct slu_engine *engine, uint32_t index);
/*
 * Adjust the room for work: for one more peer, and for one less, which has no work and no queue
 * pair.
 */
int slu_room_grow(struct slu_engine *engine);
void slu_room_shrink(struct slu_engine *engine);

/* peer.c: initialises the probes of a peer that is not connected. */
void slu_probe_init(struct slu_peer *peer);
/* Counts the requests of the peer that have succeeded. */
uint64_t slu_peer_successes(const struct slu_peer *peer);
/* Ends the part of a peer in a wait for connections. */
static inline void slu_peer_stop_awaiting(struct slu_engine *engine, struct slu_peer *peer)
{
    engine->awaited -= peer->probe.awaited;
    peer->probe.awaited = false;
}
/* Returns whether the peer has shown a sign of life since it was connected. */
bool slu_probe_heard(struct slu_peer *peer);

/* probe.c: checks whether a peer that grants these rights can be probed: 0, or -EOPNOTSUPP. */
int slu_probe_check(const struct slu_engine *engine, uint32_t peer, uint32_t access);
/* Probes a peer that is ready. Returns false if there is no room for another probe yet. */
bool slu_probe_ask(struct slu_engine *engine, struct slu_peer *peer);
/* Notes that the peer has connected and grants these rights, and begins keep-alive if it is on. */
void slu_probe_connected(struct slu_engine *engine, struct slu_peer *peer, uint32_t access);
/*
 * Returns whether a completion that belongs to no request belongs to a probe, which is then
 * finished.
 */
bool slu_probe_ended(struct slu_engine *engine, const struct slu_wc *wc);
/* Stops probing a peer, because its queue pair has been destroyed. */
void slu_probe_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Checks the peers whose keep-alive is due. */
void slu_probe_peers(struct slu_engine *engine, int64_t now);

/* progress.c: deregisters regions that the program gave up, once no posted work names them. */
void slu_end_regions(struct slu_engine *engine);

/*
 * arrivals.c: slu_arrivals_create() makes the array of counters, if arrivals are counted;
 * slu_arrivals_begin() posts the receives of a peer that has just connected.
 */
int slu_arrivals_create(struct slu_engine *engine);
/* Checks whether there is room for the receives of one more peer. */
int slu_arrivals_grow(const struct slu_engine *engine);
int slu_arrivals_begin(struct slu_engine *engine, struct slu_peer *peer);
/* Handles the completion of a receive for arrivals, by its id. */
void slu_arrival_ended(struct slu_engine *engine, const struct slu_wc *wc);
void slu_arrivals_abandon(struct slu_engine *engine, struct slu_peer *peer);

/* ring.c, with the rest in inline.h: makes and ends the rings of an index. */
int slu_rings_create(struct slu_engine *engine, struct slu_ring *rings, uint32_t index);
void slu_rings_destroy(struct slu_ring *rings);
bool slu_ring_uses(const struct slu_ring *ring, uint32_t max_sge, const struct slu_memory *memory);
/* order.c: moves the unseen result of an entry elsewhere, because the entry is needed. */
void slu_entry_displace(struct slu_engine *engine, struct slu_ring *ring, struct slu_entry *entry);

/* order.c: makes room for that many results of each queue, for that many peers. */
int slu_places_grow(struct slu_engine *engine, const uint32_t places[SLU_QUEUES], uint32_t peers);
void slu_places_destroy(struct slu_engine *engine);
/* Frees a place of a queue whose places are all held: forgets the oldest unseen success. */
void slu_place_clear(struct slu_engine *engine, enum slu_queue queue);
/*
 * Returns the oldest unseen entry of an order of that owner, whose id is at the tail afterwards;
 * NULL: none.
 */
struct slu_entry *slu_order_first(const struct slu_engine *engine, enum slu_owner owner,
                                  struct slu_order *order);
/* The earliest unseen entry of both queues, by a rule that each order is sorted by. */
struct slu_first {
    struct slu_entry *entry; /* NULL: there is none */
    struct slu_order *order;
};
struct slu_first slu_order_find(struct slu_engine *engine, enum slu_owner owner,
                                bool (*is_earlier)(const struct slu_entry *one,
                                                   const struct slu_entry *other));
/* Takes the entry that was found, of which there must be one: it is seen from then on. */
void slu_order_take(struct slu_engine *engine, const struct slu_first *first,
                    struct sluice_completion *completion);
/* Drops the ids of results that are not unseen any more. */
void slu_order_tidy(struct slu_engine *engine, enum slu_owner owner, struct slu_order *order);
/* Returns the least power of two that is not less. */
static inline uint32_t slu_power_of_two(uint32_t least)
{
    uint32_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

/* aside.c: makes places for that many results. */
int slu_aside_grow(struct slu_engine *engine, uint32_t results);
void slu_aside_destroy(struct slu_engine *engine);
void slu_aside_keep(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry);
/* Returns the entry of a displaced success, or NULL if there is none with that id. */
struct slu_entry *slu_aside_find(const struct slu_engine *engine, uint64_t id);
/*
 * result.c: give the result of an entry to its call. The second is for calls that want completions.
 */
void slu_entry_tell_failure(const struct slu_entry *entry, uint32_t peer);
void slu_entry_tell_success(const struct slu_entry *entry, uint32_t peer);
/* Fills in the failure of an entry that is not pending. */
void slu_entry_failure(const struct slu_entry *entry, struct sluice_completion *completion);
/* Takes the oldest unseen result of an owner. Returns false if there is none. */
bool slu_take_done(struct slu_engine *engine, enum slu_owner owner,
                   struct sluice_completion *completion);

/* failure.c: keeps the failure of an entry. */
void slu_failure_keep_entry(struct slu_engine *engine, uint64_t id, const struct slu_entry *entry);
/* Keeps the failure of a request that never had an entry. Returns its id. */
uint64_t slu_failure_keep_refused(struct slu_engine *engine, enum slu_owner owner, uint32_t index,
                                  const struct sluice_completion *completion);
/* Takes the owner's oldest failure, if it is older than that number. It is seen from then on. */
bool slu_failure_take(struct slu_engine *engine, enum slu_owner owner, uint64_t before,
                      struct sluice_completion *completion);
/* Marks an unseen failure as seen. */
void slu_failure_see(struct slu_engine *engine, struct slu_failure *failure);
bool slu_failure_find(struct slu_engine *engine, uint64_t id, struct sluice_completion *completion);
/* Forgets a failure, seen or not. Returns whether it was there. */
bool slu_failure_drop(struct slu_engine *engine, uint64_t id);

/* progress.c */
/* Polls until the completion queue is empty. */
void slu_progress_all(struct slu_engine *engine);

/*
 * Completes a request with a failure: nothing of it is in flight, and nothing will be, because its
 * peer failed.
 */
void slu_fail_unposted(struct slu_engine *engine, struct slu_peer *peer, uint64_t id,
                       struct slu_entry *entry);
/* Destroys the queue pair of a peer, and then completes the work that it held. */
void slu_peer_abandon(struct slu_engine *engine, struct slu_peer *peer);
/* Handles the return value of a poll. Returns how many completions came. */
int slu_take_batch(struct slu_engine *engine, const struct slu_wc *wcs, int count);
/* Polls once, for at most that many completions. Returns how many came. */
int slu_poll_queue(struct slu_engine *engine, uint32_t most);
/* Checks for overdue work after a poll that returned count. Returns whether anything came. */
bool slu_look_at_clock(struct slu_engine *engine, int count);

/*
 * Does the same as slu_wait(), for calls that a wake ends. Returns 1 if ready, 0 if the time is up,
 * and -EINTR, with its text, if woken. A wait that is ready is never interrupted.
 */
int slu_wait_interruptible(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
                           int64_t until);
/* Does the same until the request is not pending. interruptible is whether a wake ends it. */
int slu_wait_entry(struct slu_engine *engine, const struct slu_entry *entry, bool interruptible,
                   int64_t until);

/* Returns when the engine has something to do even if nothing completes. */
static inline int64_t slu_next_due(const struct slu_engine *engine)
{
    int64_t due =
        engine->next_deadline < engine->next_drain ? engine->next_deadline : engine->next_drain;

    return engine->next_probe < due ? engine->next_probe : due;
}

static inline bool slu_is_woken(const struct slu_engine *engine)
{
    return SLU_UNLIKELY(atomic_load(&engine->woken));
}
/* Takes the wake, because the program polls now. */
void slu_wake_take(struct slu_engine *engine);
static inline void slu_wake_seen(struct slu_engine *engine)
{
    if (slu_is_woken(engine))
        slu_wake_take(engine);
}

/* opcode.c: flags that each operation may have. */
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

/* Fails the peer of a request that the driver refused, and makes its drain due at once. */
void slu_post_refused(struct slu_engine *engine, struct slu_peer *peer, struct slu_entry *entry,
                      int error);
/* Does the same for the first request of a chain that the driver did not take, by its id. */
void slu_chain_refused(struct slu_engine *engine, struct slu_peer *peer, uint64_t id, int error);
/* Post a chain. If the driver does not say which request it refused, the first is blamed. */
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
/* blocks.c: checks the blocks of an item: 0, or the error. */
int slu_blocks_check(const struct slu_item *item, uint32_t index);
/* borrow.c: checks whether regions can be obtained for an item of plain memory: 0, or the error. */
int slu_borrow_check(const struct slu_engine *engine, const struct slu_item *item, uint32_t index);

/* The requests of an unpolled list from one index to before another. */
struct slu_prefix {
    uint32_t from, count;
    bool counted; /* all of them are known to have room */
    int why;      /* -ENOTCONN or -EAGAIN: why the first was not posted */
};
/*
 * Posts the requests of a prefix that are for the queue: all of them if they are counted, else as
 * far as there is room. Returns the index of the first that was not handled.
 */
uint32_t slu_post_prefix(struct slu_call *call, struct slu_prefix *prefix, enum slu_queue queue);

/* Begins a blocking call of a list. The caller sets its queues, if it posts by slu_post_call(). */
static inline void slu_call_begin(struct slu_call *call, struct slu_engine *engine,
                                  const struct slu_source *source, int64_t deadline,
                                  struct sluice_completion *completions)
{
    /* real and other are left unset: first_real and first_other say whether they are valid. */
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
/* Starts the deadline of a call. Failures of the call before this are not a missed deadline. */
void slu_call_set_due(struct slu_call *call);
/* Waits for what the call has posted, leaves the engine, and returns the result. */
int slu_call_finish(struct slu_call *call);
/* Returns the first failure of a complete call, with its text. */
int slu_call_failure(const struct slu_call *call);
static inline int slu_call_error(const struct slu_call *call)
{
    return SLU_LIKELY((call->first_real & call->first_other) == SLU_NONE) ? 0
                                                                          : slu_call_failure(call);
}
/* result.c: gives a result to a call, which keeps the first failures. */
void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion);

/* opcode.c: returns "send to" and so on, a static string. */
const char *slu_opcode_phrase(uint32_t opcode);
/* words.c: writes "500 ms" to text and returns text. time is not negative. */
#define SLU_DURATION_BYTES 32
const char *slu_say_duration(int64_t time, char text[SLU_DURATION_BYTES]);

/*
 * Returns -ETIMEDOUT for a request that was posted and late, whose peer's error is not known any
 * more.
 */
int slu_fail_late(const struct sluice_completion *completion, int64_t time);
/*
 * peer.c: notes the state of a peer because a deadline, given as time, is about to end its
 * connection.
 */
void slu_peer_note_late(struct slu_engine *engine, struct slu_peer *peer, int64_t time);

#include "engine/inline.h"

#endif
