/* SPDX-License-Identifier: MIT */
/*
 * Assigns queue pairs to queues of the device. Guarantee: no queue of the device can overrun, and
 * none is resized, as devices differ in what happens to completions then. Up to the depth that the
 * device allows there is one queue, which the engine's credits keep from overrunning. Beyond that,
 * or if queue pairs come later, queues are added as queue pairs need them, and each queue pair
 * reserves its depths on one of them: on two, flushed requests could be polled before the one that
 * failed. All queues share one completion channel.
 *
 * Only the thread that owns the completion queue accesses its parts. Threads that read events of
 * the device find the completion queue by the context pointer of each part.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "transport/verbs/queues/queues.h"

/* A queue that is added for later queue pairs has room for at least this many. */
#define FEWEST 8

/* Returns the completion vectors in turn, so that interrupts are spread over the processors. */
static int next_vector(struct slu_verbs_context *context)
{
    uint32_t vectors =
        context->ibv->num_comp_vectors > 0 ? (uint32_t)context->ibv->num_comp_vectors : 1;

    return (int)(atomic_fetch_add(&context->next_vector, 1) % vectors);
}

/* Returns a free place, or a new one. */
static struct slu_verbs_part *find_place(struct slu_verbs_cq *cq)
{
    struct slu_verbs_part *grown;

    for (uint32_t i = 0; i < cq->part_count; i++)
        if (!cq->parts[i].ibv)
            return &cq->parts[i];
    grown = realloc(cq->parts, (cq->part_count + 1) * sizeof *grown);
    if (!grown)
        return NULL;
    cq->parts = grown;
    return &grown[cq->part_count];
}

int slu_verbs_cq_add_part(struct slu_verbs_cq *cq, uint32_t entries)
{
    struct slu_verbs_context *context = slu_verbs_context_of(cq->base.context);
    struct slu_verbs_part *place = find_place(cq);
    struct ibv_cq *ibv;

    if (!place)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    ibv = ibv_create_cq(context->ibv, (int)entries, cq, cq->channel, next_vector(context));
    if (!ibv) {
        int err = slu_verbs_errno(-1);

        return slu_fail(err, "cannot create a completion queue of %u entries on %s: %s", entries,
                        context->base.device, strerror(err));
    }
    *place = (struct slu_verbs_part){.ibv = ibv, .entries = entries};
    if (place == &cq->parts[cq->part_count])
        cq->part_count++;
    cq->entries += entries;
    return 0;
}

/* Acknowledges the last batch of events first, as destroying a queue waits for that. */
bool slu_verbs_cq_destroy_part(struct slu_verbs_cq *cq, struct slu_verbs_part *part)
{
    int err;

    if (!part->ibv)
        return true;
    if (part->unacked)
        ibv_ack_cq_events(part->ibv, part->unacked);
    err = ibv_destroy_cq(part->ibv);
    if (err)
        slu_log(SLUICE_LOG_ERROR, "destroying a completion queue of %s failed: %s",
                cq->base.context->device, strerror(slu_verbs_errno(err)));
    return err == 0;
}

/* Any queue pair may take all receives of the pool, so each queue has entries for all of them. */
static uint32_t pool_entries(const struct slu_verbs_cq *cq)
{
    return cq->pool ? cq->pool->depth : 0;
}

static bool has_room(const struct slu_verbs_part *part, uint32_t entries)
{
    return part->ibv && part->entries - part->reserved >= entries;
}

/*
 * Returns the size of a new queue: for all queue pairs to come, if that is known. Otherwise the
 * total is doubled, with a minimum, so that few queues have to be polled however many queue pairs
 * come.
 */
static uint32_t size_of_part(const struct slu_verbs_cq *cq, uint32_t entries)
{
    uint32_t size = cq->base.depth > cq->entries ? cq->base.depth - cq->entries : 0;

    if (cq->extended) {
        if (size < cq->entries)
            size = cq->entries;
        if (size < FEWEST * entries)
            size = FEWEST * entries;
    }
    if (size < entries)
        size = entries;
    return slu_verbs_min(cq->base.context->max_cq_depth, size);
}

int slu_verbs_cq_reserve(struct slu_verbs_cq *cq, uint32_t entries, uint32_t *part)
{
    uint32_t at = 0;
    int err;

    *part = 0;
    if (!cq->grows)
        return 0;
    while (at < cq->part_count && !has_room(&cq->parts[at], entries + pool_entries(cq)))
        at++;
    if (at == cq->part_count) {
        err = slu_verbs_cq_add_part(cq, size_of_part(cq, entries + pool_entries(cq)));
        if (err)
            return err;
        for (at = 0; !has_room(&cq->parts[at], entries + pool_entries(cq));)
            at++;
    }
    cq->parts[at].reserved += entries;
    *part = at;
    return 0;
}

void slu_verbs_cq_release(struct slu_verbs_cq *cq, uint32_t entries, uint32_t part)
{
    if (cq->grows)
        cq->parts[part].reserved -= entries;
}

/*
 * Begins to count reservations, on a completion queue that had one queue without them: reserves
 * what its queue pairs can use.
 */
static void begin_growing(struct slu_verbs_cq *cq)
{
    cq->grows = true;
    for (uint32_t i = 0; i < SLU_VERBS_BUCKETS; i++)
        for (const struct slu_verbs_qp *qp = cq->qps[i]; qp; qp = qp->next)
            cq->parts[0].reserved += slu_verbs_qp_entries(qp);
}

int slu_verbs_cq_extend(struct slu_cq *base, uint32_t entries)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);

    if (!cq->grows)
        begin_growing(cq);
    cq->extended = true;
    base->depth += entries;
    return 0;
}

/* Destroys queues that no queue pair uses, except the first, which stays for later ones. */
void slu_verbs_cq_reduce(struct slu_cq *base, uint32_t entries)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);

    base->depth -= entries;
    for (uint32_t i = 1; i < cq->part_count; i++) {
        struct slu_verbs_part *part = &cq->parts[i];

        if (!part->ibv || part->reserved)
            continue;
        slu_verbs_cq_destroy_part(cq, part);
        cq->entries -= part->entries;
        *part = (struct slu_verbs_part){.ibv = NULL};
    }
    while (cq->part_count > 1 && !cq->parts[cq->part_count - 1].ibv)
        cq->part_count--;
}
