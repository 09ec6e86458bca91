/* SPDX-License-Identifier: MIT */
/*
 * Creates and destroys combined queue pairs, with all memory that posting needs. Guarantees: a
 * failed creation leaves nothing behind, and ids of a destroyed queue pair are not reused by
 * another one.
 */
#include "config.h"

#include <stdlib.h>

#include "transport/stripes/inside.h"

/* Give up if the address of the port changes this often while queue pairs are created. */
#define TRIES 8
#define PLACES_MOST (UINT32_C(1) << 16)

static uint32_t power_of_two(uint32_t least)
{
    uint32_t size = 1;

    while (size < least)
        size *= 2;
    return size;
}

static int make_rings(struct stripes_qp *qp, const struct slu_qp_attr *attr)
{
    uint32_t size = power_of_two(attr->send_depth);
    size_t lists = attr->max_sge * sizeof(struct sluice_sge);
    size_t bytes = sizeof(struct sluice_sge) + attr->max_inline;
    size_t stride = sizeof(struct stripes_slot) + (lists > bytes ? lists : bytes);

    qp->ring.stride = (uint32_t)((stride + 7) & ~(size_t)7);
    qp->ring.mask = size - 1;
    qp->ring.slots = calloc(size, qp->ring.stride);
    size = power_of_two(attr->receive_depth);
    qp->receives.mask = size - 1;
    qp->receives.ids = calloc(size, sizeof *qp->receives.ids);
    if (qp->ring.slots == NULL || qp->receives.ids == NULL)
        return slu_fail(ENOMEM, "no memory for queues of %u and %u requests", attr->send_depth,
                        attr->receive_depth);
    return 0;
}

static bool grow_places(struct stripes *stripes)
{
    uint32_t size = stripes->size > 0 ? 2 * stripes->size : 8;
    struct stripes_place *grown = realloc(stripes->places, size * sizeof *grown);

    if (grown == NULL)
        return false;
    for (uint32_t i = stripes->size; i < size; i++)
        grown[i] = (struct stripes_place){.qp = NULL};
    stripes->places = grown;
    stripes->size = size;
    return true;
}

/* Takes a place for a queue pair, by which completions find it. */
static int take_place(struct stripes_qp *qp)
{
    struct stripes *stripes = qp->owner;
    uint32_t at = 0;

    while (at < stripes->size && stripes->places[at].qp != NULL)
        at++;
    if (at == PLACES_MOST || (at == stripes->size && !grow_places(stripes)))
        return slu_fail(ENOMEM, "no memory for %u queue pairs", at + 1);
    stripes->places[at].qp = qp;
    /* No id is 0, which programs may use for requests of their own. */
    if ((++stripes->places[at].generation & (PLACES_MOST - 1)) == 0)
        stripes->places[at].generation++;
    qp->key = stripes->places[at].generation << 16 | at;
    return 0;
}

static void destroy_inner(struct stripes_qp *qp)
{
    for (uint32_t i = 0; i < SLU_QUEUE_PAIRS && qp->qps[i] != NULL; i++) {
        qp->inner->qp_destroy(qp->qps[i]);
        qp->qps[i] = NULL;
    }
}

/*
 * Creates the transport's queue pairs. A further one has at most one stripe in flight, and one
 * receive that detects its failure.
 */
static int create_inner(struct stripes_qp *qp, const struct slu_qp_attr *attr)
{
    struct slu_qp_attr further = *attr;
    int error = qp->inner->qp_create(qp->base.pd, qp->base.cq, attr, &qp->qps[0]);

    further.send_depth = further.receive_depth = 1;
    further.max_inline = 0;
    further.pool = NULL;
    for (uint32_t i = 1; i < qp->count && error == 0; i++) {
        further.first = qp->qps[0];
        error = qp->inner->qp_create(qp->base.pd, qp->base.cq, &further, &qp->qps[i]);
    }
    if (error < 0)
        destroy_inner(qp);
    return error;
}

/*
 * Creates queue pairs with equal addresses. The address of the port may change in between, so tries
 * several times.
 */
static int create_alike(struct stripes_qp *qp, const struct slu_qp_attr *attr)
{
    for (int i = 0; i < TRIES; i++) {
        int error = create_inner(qp, attr);

        if (error < 0 || slu_stripes_agree(qp))
            return error;
        destroy_inner(qp);
    }
    return slu_fail(EADDRNOTAVAIL,
                    "the port of %s has changed %d times while %u queue pairs of a peer were made",
                    qp->base.pd->context->device, TRIES, qp->count);
}

static void free_qp(struct stripes_qp *qp)
{
    free(qp->receives.ids);
    free(qp->ring.slots);
    free(qp);
}

int slu_stripes_qp_create(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                          struct slu_qp **qp)
{
    struct stripes_qp *made = calloc(1, sizeof *made);
    int error;

    if (made == NULL)
        return slu_fail(ENOMEM, "no memory for a queue pair");
    made->base = (struct slu_qp){.pd = pd, .cq = cq};
    made->owner = cq->stripes;
    made->inner = made->owner->inner;
    made->count = attr->queue_pairs;
    made->least = attr->stripe_least;
    made->pooled = attr->pool != NULL;
    error = make_rings(made, attr);
    if (error == 0)
        error = take_place(made);
    if (error < 0) {
        free_qp(made);
        return error;
    }
    error = create_alike(made, attr);
    if (error < 0) {
        slu_stripes_forget(made);
        free_qp(made);
        return error;
    }
    *qp = &made->base;
    return 0;
}

void slu_stripes_qp_destroy(struct slu_qp *base)
{
    struct stripes_qp *qp = stripes_qp_of(base);

    destroy_inner(qp);
    slu_stripes_forget(qp);
    free_qp(qp);
}
