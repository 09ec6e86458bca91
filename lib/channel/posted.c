/* SPDX-License-Identifier: MIT */
/* Posted requests of a channel: posted without waiting; the program takes the results later. */
#include "config.h"

#include "channel/channel.h"

int sluice_channel_post(struct sluice_channel *channel, const struct sluice_request *requests,
                        uint32_t count, int64_t deadline, struct sluice_handle *handles)
{
    return slu_is_channel(channel)
               ? slu_post(channel->base.engine, requests, count, deadline, handles)
               : slu_not_a_channel(channel);
}

int sluice_channel_post_send(struct sluice_channel *channel, const struct sluice_sge *sges,
                             uint32_t sge_count, int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post(slu_engine_of(channel), SLUICE_OP_SEND, 0, sges, sge_count, deadline,
                            handle);
}

int sluice_channel_post_receive(struct sluice_channel *channel, const struct sluice_sge *sges,
                                uint32_t sge_count, int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post(slu_engine_of(channel), SLUICE_OP_RECEIVE, 0, sges, sge_count, deadline,
                            handle);
}

int sluice_channel_post_write(struct sluice_channel *channel, const struct sluice_sge *sges,
                              uint32_t sge_count, const struct sluice_remote_mr *remote,
                              int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of(channel), SLUICE_OP_WRITE, 0, sges, sge_count,
                                   remote, 0, 0, deadline, handle);
}

int sluice_channel_post_read(struct sluice_channel *channel, const struct sluice_sge *sges,
                             uint32_t sge_count, const struct sluice_remote_mr *remote,
                             int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of(channel), SLUICE_OP_READ, 0, sges, sge_count,
                                   remote, 0, 0, deadline, handle);
}

int sluice_channel_post_compare_swap(struct sluice_channel *channel,
                                     const struct sluice_sge *result,
                                     const struct sluice_remote_mr *remote, uint64_t expected,
                                     uint64_t desired, int64_t deadline,
                                     struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of(channel), SLUICE_OP_COMPARE_SWAP, 0, result, 1,
                                   remote, expected, desired, deadline, handle);
}

int sluice_channel_post_fetch_add(struct sluice_channel *channel, const struct sluice_sge *result,
                                  const struct sluice_remote_mr *remote, uint64_t addend,
                                  int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of(channel), SLUICE_OP_FETCH_ADD, 0, result, 1,
                                   remote, addend, 0, deadline, handle);
}

int sluice_channel_poll(struct sluice_channel *channel, struct sluice_completion *completions,
                        uint32_t count)
{
    return slu_is_channel(channel) ? slu_poll(channel->base.engine, completions, count)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_next(struct sluice_channel *channel, int64_t timeout,
                        struct sluice_completion *completion)
{
    return slu_is_channel(channel) ? slu_next(channel->base.engine, timeout, completion)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_wait(struct sluice_channel *channel, const struct sluice_handle *handle,
                        int64_t timeout, struct sluice_completion *completion)
{
    return slu_is_channel(channel)
               ? slu_wait_handle(channel->base.engine, handle, timeout, completion)
               : slu_not_a_channel(channel);
}

int sluice_channel_cancel(struct sluice_channel *channel, const struct sluice_handle *handle,
                          struct sluice_completion *completion)
{
    return slu_is_channel(channel) ? slu_cancel(channel->base.engine, handle, completion)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_detach(struct sluice_channel *channel, const struct sluice_handle *handle)
{
    return slu_is_channel(channel) ? slu_detach(channel->base.engine, handle)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_flush(struct sluice_channel *channel, int64_t timeout)
{
    return slu_is_channel(channel) ? slu_flush(channel->base.engine, timeout)
                                   : slu_not_a_channel(channel);
}
