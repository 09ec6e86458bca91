/* SPDX-License-Identifier: MIT */
/* The regions of places of a protection domain. */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "transport/verbs/queues/queues.h"
#include "transport/verbs/words/words.h"

/*
 * Frees a region of places. If it cannot be deregistered, its memory is leaked, as the device may
 * still write to it.
 */
static void free_places(struct slu_verbs_places *places)
{
    int err = places->ibv ? ibv_dereg_mr(places->ibv) : 0;

    if (err)
        slu_log(SLUICE_LOG_ERROR, "deregistering memory for hints of receives failed: %s",
                strerror(slu_verbs_errno(err)));
    else
        free(places->all);
    free(places);
}

/*
 * Adds a region at the head of the list; or none, without an error, if the device does not register
 * it.
 */
static int add_places(struct slu_verbs_pd *pd)
{
    size_t bytes = SLU_VERBS_PLACES * sizeof(struct slu_verbs_place),
           page = (size_t)sysconf(_SC_PAGESIZE);
    struct slu_verbs_places *places = calloc(1, sizeof *places);

    if (!places)
        return slu_fail(ENOMEM, "no memory for hints of receives");
    bytes = bytes < page ? page : bytes;
    places->all = aligned_alloc(page, bytes);
    if (!places->all) {
        free_places(places);
        return slu_fail(ENOMEM, "no memory for hints of receives");
    }
    places->ibv =
        ibv_reg_mr(pd->ibv, places->all, bytes, IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
    if (!places->ibv) {
        slu_log(SLUICE_LOG_WARN,
                "%s registers no %zu bytes for hints of receives, so there are none: %s",
                pd->base.context->device, bytes, strerror(slu_verbs_errno(errno)));
        free_places(places);
        return 0;
    }
    places->next = pd->places;
    pd->places = places;
    return 0;
}

void slu_verbs_places_free(struct slu_verbs_pd *pd)
{
    while (pd->places) {
        struct slu_verbs_places *places = pd->places;

        pd->places = places->next;
        free_places(places);
    }
}

static bool has_place(const struct slu_verbs_places *places)
{
    return places->free_count > 0 || places->used < SLU_VERBS_PLACES;
}

static struct slu_verbs_place *take_place(struct slu_verbs_places *places)
{
    uint32_t at = places->free_count > 0 ? places->free[--places->free_count] : places->used++;

    memset(&places->all[at], 0, sizeof places->all[at]);
    return &places->all[at];
}

int slu_verbs_place_take(struct slu_verbs_qp *qp)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(qp->base.pd);
    struct slu_verbs_places *places;
    int err = 0;

    pthread_mutex_lock(&pd->places_lock);
    for (places = pd->places; places && !has_place(places);)
        places = places->next;
    if (!places) {
        err = add_places(pd);
        places = pd->places && has_place(pd->places) ? pd->places : NULL;
    }
    if (places) {
        qp->own.places = places;
        qp->own.place = take_place(places);
    }
    pthread_mutex_unlock(&pd->places_lock);
    return err;
}

void slu_verbs_place_give(struct slu_verbs_qp *qp)
{
    struct slu_verbs_pd *pd = slu_verbs_pd_of(qp->base.pd);
    struct slu_verbs_places *places = qp->own.places;

    if (!places)
        return;
    pthread_mutex_lock(&pd->places_lock);
    places->free[places->free_count++] = (uint32_t)(qp->own.place - places->all);
    pthread_mutex_unlock(&pd->places_lock);
}

int slu_verbs_words_write(struct slu_verbs_qp *qp, const void *words, size_t length, uint64_t addr)
{
    struct ibv_sge sge = {
        .addr = (uintptr_t)words, .length = (uint32_t)length, .lkey = qp->own.places->ibv->lkey};
    struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_RDMA_WRITE};

    wr.wr.rdma.remote_addr = addr;
    wr.wr.rdma.rkey = qp->link.hint_rkey;
    return slu_verbs_own_post(qp, &wr);
}
