/* SPDX-License-Identifier: MIT */
/* Unpolled work of a channel: posted without waiting, its results taken when the program likes. */
#include "config.h"

#include "channel/channel.h"

int sluice_channel_post(struct sluice_channel *channel, const struct sluice_request *requests,
                        uint32_t count, int64_t deadline, struct sluice_handle *handles)
{
    return slu_is_channel(channel)
               ? slu_post_requests(channel->engine, requests, count, deadline, handles)
               : slu_not_a_channel(channel);
}

static int post_one(struct sluice_channel *channel, const struct sluice_request *request,
                    int64_t deadline, struct sluice_handle *handle)
{
    return slu_is_channel(channel) ? slu_post_one(channel->engine, request, deadline, handle)
                                   : slu_not_a_channel(channel);
}

static int post_remote(struct sluice_channel *channel, struct sluice_request *request,
                       const struct sluice_remote_mr *remote, int64_t deadline,
                       struct sluice_handle *handle)
{
    return slu_is_channel(channel)
               ? slu_post_remote(channel->engine, request, remote, deadline, handle)
               : slu_not_a_channel(channel);
}

int sluice_channel_send_unpolled(struct sluice_channel *channel, const struct sluice_sge *sges,
                                 uint32_t sge_count, int64_t deadline, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_SEND, 0, sges, sge_count);

    return post_one(channel, &request, deadline, handle);
}

int sluice_channel_receive_unpolled(struct sluice_channel *channel, const struct sluice_sge *sges,
                                    uint32_t sge_count, int64_t deadline,
                                    struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_RECEIVE, 0, sges, sge_count);

    return post_one(channel, &request, deadline, handle);
}

int sluice_channel_write_unpolled(struct sluice_channel *channel, const struct sluice_sge *sges,
                                  uint32_t sge_count, const struct sluice_remote_mr *remote,
                                  int64_t deadline, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_WRITE, 0, sges, sge_count);

    return post_remote(channel, &request, remote, deadline, handle);
}

int sluice_channel_read_unpolled(struct sluice_channel *channel, const struct sluice_sge *sges,
                                 uint32_t sge_count, const struct sluice_remote_mr *remote,
                                 int64_t deadline, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_READ, 0, sges, sge_count);

    return post_remote(channel, &request, remote, deadline, handle);
}

int sluice_channel_compare_swap_unpolled(struct sluice_channel *channel,
                                         const struct sluice_sge *result,
                                         const struct sluice_remote_mr *remote, uint64_t expected,
                                         uint64_t desired, int64_t deadline,
                                         struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_COMPARE_SWAP, 0, result, 1);

    request.operand[0] = expected;
    request.operand[1] = desired;
    return post_remote(channel, &request, remote, deadline, handle);
}

int sluice_channel_fetch_add_unpolled(struct sluice_channel *channel,
                                      const struct sluice_sge *result,
                                      const struct sluice_remote_mr *remote, uint64_t addend,
                                      int64_t deadline, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(SLUICE_OP_FETCH_ADD, 0, result, 1);

    request.operand[0] = addend;
    return post_remote(channel, &request, remote, deadline, handle);
}

int sluice_channel_poll(struct sluice_channel *channel, struct sluice_completion *completions,
                        uint32_t count)
{
    return slu_is_channel(channel) ? slu_poll(channel->engine, completions, count)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_next(struct sluice_channel *channel, int64_t timeout,
                        struct sluice_completion *completion)
{
    return slu_is_channel(channel) ? slu_next(channel->engine, timeout, completion)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_wait(struct sluice_channel *channel, const struct sluice_handle *handle,
                        int64_t timeout, struct sluice_completion *completion)
{
    return slu_is_channel(channel) ? slu_wait_handle(channel->engine, handle, timeout, completion)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_cancel(struct sluice_channel *channel, const struct sluice_handle *handle,
                          struct sluice_completion *completion)
{
    return slu_is_channel(channel) ? slu_cancel(channel->engine, handle, completion)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_detach(struct sluice_channel *channel, const struct sluice_handle *handle)
{
    return slu_is_channel(channel) ? slu_detach(channel->engine, handle)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_flush(struct sluice_channel *channel, int64_t timeout)
{
    return slu_is_channel(channel) ? slu_flush(channel->engine, timeout)
                                   : slu_not_a_channel(channel);
}
