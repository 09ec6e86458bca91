/* SPDX-License-Identifier: MIT */
#include "counter.h"

int counter_open(struct counter *counter)
{
    struct sluice_prepared_channel *prepared;
    struct sluice_endpoint endpoint;

    *counter = (struct counter){.context = sluice_context_open(NULL, NULL)};
    if (counter->context == NULL)
        return -1;
    counter->pd = sluice_pd_alloc(counter->context);
    if (counter->pd == NULL)
        return -1;
    counter->mr = sluice_mr_alloc(counter->pd, 2 * sizeof(uint64_t),
                                  SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC);
    if (counter->mr == NULL)
        return -1;
    prepared = sluice_channel_prepare(counter->pd, NULL);
    if (prepared == NULL)
        return -1;
    sluice_prepared_channel_endpoint(prepared, &endpoint);
    counter->channel = sluice_prepared_channel_handshake(prepared, &endpoint);
    return counter->channel == NULL ? -1 : 0;
}

int counter_add(struct counter *counter, uint64_t addend, uint64_t *was)
{
    struct sluice_remote_mr whole, number;
    struct sluice_sge result;
    int error;

    sluice_mr_remote(counter->mr, &whole);
    error = sluice_remote_mr_slice(&whole, 0, sizeof(uint64_t), &number);
    if (error == 0)
        error = sluice_mr_sge(counter->mr, sizeof(uint64_t), sizeof(uint64_t), &result);
    if (error == 0)
        error = sluice_channel_fetch_add(counter->channel, &result, &number, addend, SLUICE_S(30));
    if (error == 0)
        *was = ((uint64_t *)sluice_mr_addr(counter->mr))[1];
    return error;
}

void counter_close(struct counter *counter)
{
    sluice_channel_close(counter->channel);
    sluice_mr_deregister(counter->mr);
    sluice_pd_free(counter->pd);
    sluice_context_close(counter->context);
}
