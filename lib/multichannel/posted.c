/* SPDX-License-Identifier: MIT */
/* Posted requests to peers of a multichannel, and taking their results. */
#include "config.h"

#include "multichannel/multichannel.h"

int sluice_multichannel_post(struct sluice_multichannel *multichannel,
                             const struct sluice_request *requests, uint32_t count,
                             int64_t deadline, struct sluice_handle *handles)
{
    return slu_is_multichannel(multichannel)
               ? slu_post(multichannel->base.engine, requests, count, deadline, handles)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_post_send(struct sluice_multichannel *multichannel, uint32_t peer,
                                  const struct sluice_sge *sges, uint32_t sge_count,
                                  int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post(slu_engine_of_many(multichannel), SLUICE_OP_SEND, peer, sges, sge_count,
                            deadline, handle);
}

int sluice_multichannel_post_receive(struct sluice_multichannel *multichannel, uint32_t peer,
                                     const struct sluice_sge *sges, uint32_t sge_count,
                                     int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post(slu_engine_of_many(multichannel), SLUICE_OP_RECEIVE, peer, sges,
                            sge_count, deadline, handle);
}

int sluice_multichannel_post_write(struct sluice_multichannel *multichannel, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   const struct sluice_remote_mr *remote, int64_t deadline,
                                   struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of_many(multichannel), SLUICE_OP_WRITE, peer, sges,
                                   sge_count, remote, 0, 0, deadline, handle);
}

int sluice_multichannel_post_read(struct sluice_multichannel *multichannel, uint32_t peer,
                                  const struct sluice_sge *sges, uint32_t sge_count,
                                  const struct sluice_remote_mr *remote, int64_t deadline,
                                  struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of_many(multichannel), SLUICE_OP_READ, peer, sges,
                                   sge_count, remote, 0, 0, deadline, handle);
}

int sluice_multichannel_post_compare_swap(struct sluice_multichannel *multichannel, uint32_t peer,
                                          const struct sluice_sge *result,
                                          const struct sluice_remote_mr *remote, uint64_t expected,
                                          uint64_t desired, int64_t deadline,
                                          struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of_many(multichannel), SLUICE_OP_COMPARE_SWAP, peer,
                                   result, 1, remote, expected, desired, deadline, handle);
}

int sluice_multichannel_post_fetch_add(struct sluice_multichannel *multichannel, uint32_t peer,
                                       const struct sluice_sge *result,
                                       const struct sluice_remote_mr *remote, uint64_t addend,
                                       int64_t deadline, struct sluice_handle *handle)
{
    return slu_channel_post_remote(slu_engine_of_many(multichannel), SLUICE_OP_FETCH_ADD, peer,
                                   result, 1, remote, addend, 0, deadline, handle);
}

static int post_list(struct sluice_multichannel *multichannel, uint32_t opcode,
                     const struct sluice_request *requests, uint32_t count, int64_t deadline,
                     struct sluice_handle *handles)
{
    struct slu_source source = {
        .lists = {requests}, .counts = {count}, .opcodes = {opcode}, .count = count};

    return slu_is_multichannel(multichannel)
               ? slu_post_source(multichannel->base.engine, &source, deadline, handles)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_post_scatter_send(struct sluice_multichannel *multichannel,
                                          const struct sluice_request *requests, uint32_t count,
                                          int64_t deadline, struct sluice_handle *handles)
{
    return post_list(multichannel, SLUICE_OP_SEND, requests, count, deadline, handles);
}

int sluice_multichannel_post_scatter_write(struct sluice_multichannel *multichannel,
                                           const struct sluice_request *requests, uint32_t count,
                                           int64_t deadline, struct sluice_handle *handles)
{
    return post_list(multichannel, SLUICE_OP_WRITE, requests, count, deadline, handles);
}

int sluice_multichannel_post_gather_receive(struct sluice_multichannel *multichannel,
                                            const struct sluice_request *requests, uint32_t count,
                                            int64_t deadline, struct sluice_handle *handles)
{
    return post_list(multichannel, SLUICE_OP_RECEIVE, requests, count, deadline, handles);
}

int sluice_multichannel_post_gather_read(struct sluice_multichannel *multichannel,
                                         const struct sluice_request *requests, uint32_t count,
                                         int64_t deadline, struct sluice_handle *handles)
{
    return post_list(multichannel, SLUICE_OP_READ, requests, count, deadline, handles);
}

int sluice_multichannel_post_multicast_send(struct sluice_multichannel *multichannel,
                                            const struct sluice_request *request,
                                            const uint32_t *peers, uint32_t count, int64_t deadline,
                                            struct sluice_handle *handles)
{
    struct slu_source source = slu_multicast_send(request, peers, count);

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    return slu_post_source(multichannel->base.engine, &source, deadline, handles);
}

int sluice_multichannel_post_multicast_write(struct sluice_multichannel *multichannel,
                                             const struct sluice_request *request,
                                             const struct sluice_peer_remote_mr *remotes,
                                             uint32_t count, int64_t deadline,
                                             struct sluice_handle *handles)
{
    struct slu_source source = slu_multicast_write(request, remotes, count);

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    return slu_post_source(multichannel->base.engine, &source, deadline, handles);
}

int sluice_multichannel_post_receive_any(struct sluice_multichannel *multichannel,
                                         const struct sluice_request *requests, uint32_t count,
                                         struct sluice_handle *handles)
{
    return slu_is_multichannel(multichannel)
               ? slu_pool_post(multichannel->base.engine, requests, count, handles)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_receive_any_room(const struct sluice_multichannel *multichannel)
{
    return slu_is_multichannel(multichannel) ? slu_pool_refill(multichannel->base.engine)
                                             : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_poll(struct sluice_multichannel *multichannel,
                             struct sluice_completion *completions, uint32_t count)
{
    return slu_is_multichannel(multichannel)
               ? slu_poll(multichannel->base.engine, completions, count)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_next(struct sluice_multichannel *multichannel, int64_t timeout,
                             struct sluice_completion *completion)
{
    return slu_is_multichannel(multichannel)
               ? slu_next(multichannel->base.engine, timeout, completion)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_wait(struct sluice_multichannel *multichannel,
                             const struct sluice_handle *handle, int64_t timeout,
                             struct sluice_completion *completion)
{
    return slu_is_multichannel(multichannel)
               ? slu_wait_handle(multichannel->base.engine, handle, timeout, completion)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_cancel(struct sluice_multichannel *multichannel,
                               const struct sluice_handle *handle,
                               struct sluice_completion *completion)
{
    return slu_is_multichannel(multichannel)
               ? slu_cancel(multichannel->base.engine, handle, completion)
               : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_detach(struct sluice_multichannel *multichannel,
                               const struct sluice_handle *handle)
{
    return slu_is_multichannel(multichannel) ? slu_detach(multichannel->base.engine, handle)
                                             : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_flush(struct sluice_multichannel *multichannel, int64_t timeout)
{
    return slu_is_multichannel(multichannel) ? slu_flush(multichannel->base.engine, timeout)
                                             : slu_not_a_multichannel(multichannel);
}
