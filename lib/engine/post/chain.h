/* SPDX-License-Identifier: MIT */
/*
 * A chain: neighbours in a list that go to one queue of one peer are posted together, with one
 * doorbell. chain.c has the slow path: requests that are refused, wait, or are split.
 */
#ifndef SLU_ENGINE_POST_CHAIN_H
#define SLU_ENGINE_POST_CHAIN_H

#include "engine/post/work.h"
#include "engine/ring/order.h"

#define SLU_CHAIN 16

/* Parts of one request are small and numerous, and a transport may move a whole chain at once. */
#define SLU_PART_CHAIN 64
_Static_assert(SLU_PART_CHAIN < 1 << SLU_PART_BITS, "an id says which part of a chain it is");
#define SLU_SPARE_UNKNOWN INT64_MIN

/* The work requests gathered for one queue of one peer. */
struct slu_chain {
    struct slu_engine *engine;
    struct slu_call *call;
    enum slu_queue queue;
    enum slu_owner owner;
    struct slu_peer *peer;
    uint32_t send_flags; /* of each work request that is no receive */
    uint32_t share;      /* requests that any peer may have in flight */
    int64_t spare; /* entries of the completion queue that no share reserves; see has_share() */
    uint32_t count;
    union {
        struct slu_send_wr sends[SLU_PART_CHAIN];
        struct slu_receive_wr receives[SLU_CHAIN];
    };
};

/*
 * The forms of the fast path. A form posts some requests of one list of a call, all of them alike,
 * until one needs the slow path. It returns the index of the first that is left. There is one form
 * for each owner and queue, and for multicasts.
 */
typedef uint32_t slu_usual_form(struct slu_call *call, int list, uint32_t from, uint32_t end);
#define SLU_USUAL_FORMS (SLU_QUEUES + 1)
extern slu_usual_form *const slu_usual_forms[][SLU_USUAL_FORMS];

static inline uint32_t slu_post_usual(struct slu_call *call, enum slu_queue queue, int list,
                                      uint32_t from, uint32_t end)
{
    return slu_usual_forms[call->owner][call->source->multicast ? SLU_QUEUES : (int)queue](
        call, list, from, end);
}

/*
 * Returns how many entries of a shared completion queue each peer may use; UINT32_MAX: any number.
 */
uint32_t slu_chain_share(const struct slu_engine *engine, enum slu_queue queue);

/* Posts one item of a call, or part of it, or completes it with the reason for refusing it. */
void slu_chain_post_item(struct slu_chain *chain, const struct slu_item *item, uint32_t index);

/* Posts a posted item, whole or split. There was room for it when it was counted. */
void slu_chain_post_posted(struct slu_chain *chain, const struct slu_item *item, uint32_t index);

/* Returns the flags of all sends of a call. owner may be a constant. */
static SLU_INLINE uint32_t slu_call_flags(const struct slu_call *call, enum slu_owner owner)
{
    bool waited = owner == SLU_OWNER_CALL && (call->queues & UINT32_C(1) << SLU_RECEIVE_QUEUE) == 0;
    bool blocking = owner == SLU_OWNER_CALL && call->time >= SLU_BLOCKING_LEAST;

    return SLU_SIGNALED | (waited ? SLU_WAITED : 0) | (blocking ? SLU_BLOCKING : 0);
}

static inline void slu_chain_begin(struct slu_chain *chain, struct slu_call *call,
                                   enum slu_queue queue)
{
    bool shared = call->owner == SLU_OWNER_CALL && call->engine->entries_shared;

    chain->engine = call->engine;
    chain->call = call;
    chain->queue = queue;
    chain->owner = call->owner;
    chain->peer = NULL;
    chain->send_flags = slu_call_flags(call, call->owner);
    chain->share = SLU_UNLIKELY(shared) ? slu_chain_share(call->engine, queue) : UINT32_MAX;
    chain->spare = SLU_SPARE_UNKNOWN;
    chain->count = 0;
}

/*
 * Returns how many parts are posted together: at most half a queue, since only the last is signaled
 * and so returns credits.
 */
static inline uint32_t slu_chain_parts(const struct slu_engine *engine)
{
    uint32_t half = engine->attr.send_depth / 2;

    return half == 0 ? 1 : half < SLU_PART_CHAIN ? half : SLU_PART_CHAIN;
}

/* Returns the room in the completion queue for requests of an owner, which may be a constant. */
static SLU_INLINE uint32_t slu_owner_room(const struct slu_engine *engine, enum slu_queue queue,
                                          enum slu_owner owner)
{
    return owner == SLU_OWNER_CALL ? engine->cq_free[queue] : slu_room_and_places(engine, queue);
}

/* Returns the tag that the handles of an owner's requests have. */
static SLU_INLINE uint64_t slu_owner_tag(const struct slu_engine *engine, enum slu_owner owner)
{
    return owner == SLU_OWNER_SCOPE ? engine->scope.tag : engine->tag;
}

/* Fills in the fields of a new entry that depend on its owner, which may be a constant. */
static SLU_INLINE void slu_entry_own(struct slu_call *call, struct slu_entry *entry,
                                     const enum slu_owner owner, uint32_t index,
                                     const struct sluice_request *request)
{
    if (owner == SLU_OWNER_CALL) {
        entry->index = index;
        entry->call = call;
        return;
    }
    entry->user_data = request->user_data;
    if (owner == SLU_OWNER_SCOPE) {
        entry->index = call->first + index;
        entry->tag = call->engine->scope.tag;
    } else {
        entry->deadline = call->deadline;
        entry->time = call->time;
    }
}

static inline void slu_chain_flush(struct slu_chain *chain)
{
    uint32_t count = chain->count;

    if (count == 0)
        return;
    chain->count = 0;
    if (chain->queue == SLU_RECEIVE_QUEUE) {
        chain->receives[count - 1].next = NULL;
        slu_post_receives(chain->engine, chain->peer, chain->receives);
    } else {
        chain->sends[count - 1].next = NULL;
        slu_post_sends(chain->engine, chain->peer, chain->sends);
    }
}

static inline void slu_chain_set_peer(struct slu_chain *chain, struct slu_peer *peer)
{
    if (chain->peer != peer || chain->count == SLU_CHAIN) {
        slu_chain_flush(chain);
        chain->peer = peer;
    }
}

#endif
