/* SPDX-License-Identifier: MIT */
/*
 * Results: an entry that is done says what became of its request, to the program or to the call
 * that waits for it.
 */
#include "config.h"

#include "engine/ring/result.h"

#include "engine/request/source.h"

struct slu_counts *slu_counts_of(struct slu_engine *engine, uint32_t index, uint32_t flags)
{
    struct slu_peer *peer = &engine->peers[index];
    bool gone = (flags & SLUICE_PEER_REMOVED) != 0;

    /* A cancelled receive of the pool has no peer. */
    if (index >= engine->peer_count)
        return &engine->past;
    return gone && peer->state != SLUICE_STATE_REMOVED ? &engine->past : &peer->counts;
}

void slu_entry_failure(const struct slu_entry *entry, struct sluice_completion *completion)
{
    enum sluice_error_class error_class = slu_class_of(entry->status, entry->opcode);

    completion->bytes = 0;
    completion->immediate = 0;
    completion->error = slu_class_error(error_class);
    completion->error_class = error_class;
    completion->status = entry->status;
    completion->vendor = entry->vendor;
    completion->cause = entry->cause;
    if (!entry->marks.dropped)
        return;
    completion->bytes = entry->vendor;
    completion->vendor = 0;
}

void slu_call_result(struct slu_call *call, uint32_t index,
                     const struct sluice_completion *completion)
{
    call->incomplete--;
    if (call->completions != NULL)
        call->completions[index] = *completion;
    if (SLU_LIKELY(completion->error == 0))
        return;
    if (slu_is_mere_cancellation(completion->error)) {
        if (index <= call->first_other) {
            call->first_other = index;
            call->other = *completion;
        }
    } else if (index <= call->first_real) {
        call->first_real = index;
        call->real = *completion;
    }
}

/* Returns the user data of a request, which an entry of a call does not hold. */
static inline uint64_t user_data_of(const struct slu_entry *entry)
{
    return slu_source_request(entry->call->source, entry->index)->user_data;
}

void slu_entry_tell_failure(const struct slu_entry *entry, uint32_t peer)
{
    struct sluice_completion completion;

    slu_entry_result(entry, peer, true, &completion);
    completion.user_data = user_data_of(entry);
    slu_call_result(entry->call, entry->index, &completion);
}

void slu_entry_tell_success(const struct slu_entry *entry, uint32_t peer)
{
    struct slu_call *call = entry->call;
    struct sluice_completion *completion = &call->completions[entry->index];

    call->incomplete--;
    slu_entry_result(entry, peer, false, completion);
    completion->user_data = user_data_of(entry);
}
