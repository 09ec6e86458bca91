/* SPDX-License-Identifier: MIT */
/*
 * Gives back the rings that connections hold for large messages, once none has come for one or two
 * seconds, and the memory of small regions that no region needs. The helper ticks while there is
 * any. If the program owns a CQ, the program is asked
 * to do it there, and is woken if it sleeps.
 */
#include "transport/soft/helper/helper.h"

#define TIDY_TICK SLUICE_S(1)

void slu_soft_tidy_begin(struct soft_context *context)
{
    if (atomic_fetch_add(&context->rings, 1) == 0)
        slu_soft_helper_wake(context);
}

void slu_soft_tidy_end(struct soft_context *context)
{
    atomic_fetch_sub(&context->rings, 1);
}

static void tidy(struct soft_helper *helper, struct soft_cq *cq)
{
    if (!slu_soft_cq_take(cq)) {
        atomic_store(&cq->tidies, true);
        slu_soft_cq_wake(cq);
        return;
    }
    uint64_t turn = slu_soft_turn_begin(helper);
    slu_soft_shm_tidy(cq);
    slu_soft_cq_give_back(cq);
    slu_soft_turn_end(helper, turn);
}

static uint32_t count_slots(struct soft_context *context)
{
    pthread_mutex_lock(&context->lock);
    uint32_t count = context->cqs.size;
    pthread_mutex_unlock(&context->lock);
    return count;
}

void slu_soft_tidy_tick(struct soft_helper *helper)
{
    struct soft_context *context = helper->context;
    int64_t now = slu_now();
    if (atomic_load(&context->rings) == 0 || now - helper->last_tidy < TIDY_TICK)
        return;
    helper->last_tidy = now;
    slu_soft_spares_tidy(context);
    uint32_t count = count_slots(context);
    for (uint32_t slot = 0; slot < count && slu_soft_leading(); slot++) {
        struct soft_cq *cq = slu_soft_cq_find(context, slot);
        if (cq == NULL)
            continue;
        tidy(helper, cq);
        slu_soft_cq_release(cq);
    }
}

int64_t slu_soft_tidy_next(const struct soft_helper *helper)
{
    return atomic_load(&helper->context->rings) == 0 ? INT64_MAX : helper->last_tidy + TIDY_TICK;
}
