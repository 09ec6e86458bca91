/* SPDX-License-Identifier: MIT */
/* Ending an entry, and giving its result to the owner. */
#ifndef SLU_ENGINE_RING_RESULT_H
#define SLU_ENGINE_RING_RESULT_H

#include "engine/request/opcode.h"
#include "engine/ring/order.h"

/*
 * Returns where results of the peer are counted: with the peer, or with the removed ones if another
 * peer has the index now.
 */
struct slu_counts *slu_counts_of(struct slu_engine *engine, uint32_t peer, uint32_t flags);
/* Gives a result to a call, which keeps the first failures. */
void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion);
/* Give the result of an entry to its call. The second is for calls that want completions. */
void slu_entry_tell_failure(const struct slu_entry *entry, uint32_t peer);
void slu_entry_tell_success(const struct slu_entry *entry, uint32_t peer);
/* Fills in the failure of an entry that is not pending. */
void slu_entry_failure(const struct slu_entry *entry, struct sluice_completion *completion);

/* Sets immediate or cause, which share memory with place: the scan may still be reading that. */
static SLU_INLINE void slu_entry_set_immediate(struct slu_entry *entry, uint32_t value)
{
    atomic_store_explicit(&entry->place, value, memory_order_relaxed);
}

/* Records an error of an entry, unless it has one already that is no flush. */
static inline void slu_entry_fail(struct slu_entry *entry, uint32_t status, uint32_t vendor)
{
    if (entry->marks.failed && entry->status != SLUICE_STATUS_WR_FLUSH_ERR)
        return;
    entry->marks.failed = true;
    entry->status = status;
    entry->vendor = vendor;
}

/* Fills in the result of an entry that is not pending. failed is entry->marks.failed. */
static SLU_INLINE void slu_entry_result(const struct slu_entry *entry, uint32_t peer,
                                        const bool failed, struct sluice_completion *completion)
{
    *completion = (struct sluice_completion){.user_data = entry->user_data,
                                             .bytes = entry->bytes,
                                             .peer = peer,
                                             .opcode = entry->opcode,
                                             .flags = entry->marks.flags,
                                             .immediate = entry->immediate};
    if (SLU_UNLIKELY(failed))
        slu_entry_failure(entry, completion);
}

/* Marks a done entry as seen by its owner. */
static inline void slu_entry_seen(struct slu_engine *engine, struct slu_entry *entry)
{
    enum slu_queue queue = slu_opcode_queue(entry->opcode);

    engine->orders[entry->owner][queue].unseen--;
    engine->held[queue]--;
    if (entry->owner == SLU_OWNER_SCOPE)
        engine->scope.failures -= entry->marks.failed;
    atomic_store_explicit(&entry->state, SLU_ENTRY_SEEN, memory_order_relaxed);
}

/*
 * Writes a result to the sink of a poll in progress, or else keeps it, in the order of completion.
 */
static SLU_INLINE void slu_entry_keep(struct slu_engine *engine, enum slu_queue queue, uint64_t id,
                                      struct slu_entry *entry, enum slu_owner owner,
                                      const bool failed)
{
    if (owner == SLU_OWNER_SCOPE) {
        engine->scope.pending--;
        engine->scope.failures += failed;
    } else if (engine->sink.left > 0) {
        engine->sink.left--;
        engine->held[queue]--;
        slu_entry_result(entry, slu_id_peer(id), failed, engine->sink.next++);
        atomic_store_explicit(&entry->state, SLU_ENTRY_SEEN, memory_order_relaxed);
        return;
    }
    entry->number = ++engine->done_number;
    slu_order_push(engine, owner, &engine->orders[owner][queue], id);
    atomic_store_explicit(&entry->state, SLU_ENTRY_DONE, memory_order_relaxed);
}

/*
 * Counts a request that has succeeded. The trace probe is here, where all its arguments are at
 * hand.
 */
static inline void slu_count_success(const struct slu_engine *engine, struct slu_peer *peer,
                                     uint64_t id, const struct slu_entry *entry)
{
    uint64_t bytes = entry->bytes;
    uint32_t opcode = entry->opcode;

    peer->counts.requests[opcode]++;
    peer->counts.bytes[opcode] += bytes;
    SLU_PROBE5(completion, engine, id, opcode, bytes, SLUICE_STATUS_SUCCESS);
}

/*
 * Gives a result that is complete and counted to its owner. failed is entry->marks.failed; likely
 * is a constant: the owner that it probably has.
 */
static SLU_INLINE void slu_entry_end(struct slu_engine *engine, enum slu_queue queue, uint64_t id,
                                     struct slu_entry *entry, const bool failed,
                                     const enum slu_owner likely)
{
    enum slu_owner owner = (enum slu_owner)entry->owner;

    if (likely < SLU_OWNERS_KEEP && SLU_LIKELY(owner == likely)) {
        slu_entry_keep(engine, queue, id, entry, likely, failed);
    } else if (owner == SLU_OWNER_CALL) {
        struct slu_call *call = entry->call;

        atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
        if (failed)
            slu_entry_tell_failure(entry, slu_id_peer(id));
        else if (call->completions != NULL)
            slu_entry_tell_success(entry, slu_id_peer(id));
        else
            call->incomplete--;
    } else if (owner == SLU_OWNER_NOBODY) {
        atomic_store_explicit(&entry->state, SLU_ENTRY_FREE, memory_order_relaxed);
        engine->detached--;
    } else {
        slu_entry_keep(engine, queue, id, entry, owner, failed);
    }
}

/* Return the deadline of a request, as an absolute time and as it was given. */
static inline int64_t slu_entry_deadline(const struct slu_engine *engine,
                                         const struct slu_entry *entry)
{
    return entry->owner == SLU_OWNER_CALL    ? entry->call->deadline
           : entry->owner == SLU_OWNER_SCOPE ? engine->scope.deadline
                                             : entry->deadline;
}

static inline int64_t slu_entry_time(const struct slu_engine *engine, const struct slu_entry *entry)
{
    return entry->owner == SLU_OWNER_CALL    ? entry->call->time
           : entry->owner == SLU_OWNER_SCOPE ? engine->scope.time
                                             : entry->time;
}

#endif
