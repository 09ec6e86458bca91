/* SPDX-License-Identifier: MIT */
/*
 * Keeps regions of the program that a batch names. Guarantee: a region cannot end while a posted
 * action that names it has not ended, wherever its bytes are: on the wire, in the queue of a
 * connection, or waiting for a connection.
 */
#include "config.h"

#include "buffer/batch.h"

static bool is_of_program(const struct slu_batch *batch, const struct slu_work *work,
                          const struct slu_buffer_domain *domain)
{
    return !work->early && work->mr == NULL &&
           batch->groups[work->group_index].link->domain == domain;
}

/*
 * Returns whether a posted work uses the memory. Any thread may call this: all that it reads exists
 * from before the batch enters the domain until it has left.
 */
static bool uses(const struct slu_memory_user *user, const struct slu_memory *memory)
{
    const struct slu_batch_hold *hold = slu_container_of(user, struct slu_batch_hold, user);
    const struct slu_batch *batch = hold->batch;

    if (slu_batch_is_over(batch))
        return false;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct slu_work *work = &batch->works[i];
        const struct slu_memory local = {
            .lkey = work->lkey, .start = (uint32_t)work->local, .length = work->span};

        if (!atomic_load_explicit(&work->ended, memory_order_acquire) &&
            is_of_program(batch, work, hold->domain) && slu_memory_meets(memory, &local))
            return true;
    }
    return false;
}

void slu_batch_hold(struct slu_batch *batch)
{
    for (uint32_t i = 0; i < batch->service->domain_count; i++) {
        const struct slu_buffer_domain *domain = &batch->service->domains[i];
        struct slu_batch_hold *hold = &batch->holds[i];
        uint32_t k = 0;

        while (k < batch->count && !is_of_program(batch, &batch->works[k], domain))
            k++;
        if (k == batch->count)
            continue;
        *hold = (struct slu_batch_hold){.user.uses = uses, .batch = batch, .domain = domain};
        slu_pd_enter(domain->pd, &hold->user);
    }
}

void slu_batch_let_go(struct slu_batch *batch)
{
    for (uint32_t i = 0; i < SLUICE_MAX_BUFFER_PDS; i++) {
        struct slu_batch_hold *hold = &batch->holds[i];

        if (hold->domain != NULL)
            slu_pd_leave(hold->domain->pd, &hold->user);
        hold->domain = NULL;
    }
}
