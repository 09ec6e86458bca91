/* SPDX-License-Identifier: MIT */
/* Scatter, gather and multicast: lists of one operation, which are submitted like any list. */
#include "config.h"

#include "multichannel/multichannel.h"

static int submit_list(struct sluice_multichannel *multichannel, uint32_t opcode,
                       const struct sluice_request *requests, uint32_t count, int64_t deadline,
                       struct sluice_completion *completions)
{
    struct slu_source source = {
        .lists = {requests}, .counts = {count}, .opcodes = {opcode}, .count = count};

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    return slu_submit(multichannel->base.engine, &source, deadline, completions);
}

int sluice_multichannel_scatter_send(struct sluice_multichannel *multichannel,
                                     const struct sluice_request *requests, uint32_t count,
                                     int64_t deadline, struct sluice_completion *completions)
{
    return submit_list(multichannel, SLUICE_OP_SEND, requests, count, deadline, completions);
}

int sluice_multichannel_scatter_write(struct sluice_multichannel *multichannel,
                                      const struct sluice_request *requests, uint32_t count,
                                      int64_t deadline, struct sluice_completion *completions)
{
    return submit_list(multichannel, SLUICE_OP_WRITE, requests, count, deadline, completions);
}

int sluice_multichannel_gather_receive(struct sluice_multichannel *multichannel,
                                       const struct sluice_request *requests, uint32_t count,
                                       int64_t deadline, struct sluice_completion *completions)
{
    return submit_list(multichannel, SLUICE_OP_RECEIVE, requests, count, deadline, completions);
}

int sluice_multichannel_gather_read(struct sluice_multichannel *multichannel,
                                    const struct sluice_request *requests, uint32_t count,
                                    int64_t deadline, struct sluice_completion *completions)
{
    return submit_list(multichannel, SLUICE_OP_READ, requests, count, deadline, completions);
}

int sluice_multichannel_scatter_gather(struct sluice_multichannel *multichannel,
                                       const struct sluice_request *sends, uint32_t send_count,
                                       const struct sluice_request *receives,
                                       uint32_t receive_count, int64_t deadline,
                                       struct sluice_completion *completions)
{
    struct slu_source source = {.lists = {sends, receives},
                                .counts = {send_count, receive_count},
                                .opcodes = {SLUICE_OP_SEND, SLUICE_OP_RECEIVE},
                                .count = send_count + receive_count};

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    if (receive_count > UINT32_MAX - send_count)
        return slu_misuse(EINVAL, "%u sends and %u receives are too many", send_count,
                          receive_count);
    return slu_submit(multichannel->base.engine, &source, deadline, completions);
}

int sluice_multichannel_multicast_send(struct sluice_multichannel *multichannel,
                                       const struct sluice_request *request, const uint32_t *peers,
                                       uint32_t count, int64_t deadline,
                                       struct sluice_completion *completions)
{
    struct slu_source source = slu_multicast_send(request, peers, count);

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    return slu_submit(multichannel->base.engine, &source, deadline, completions);
}

int sluice_multichannel_multicast_write(struct sluice_multichannel *multichannel,
                                        const struct sluice_request *request,
                                        const struct sluice_peer_remote_mr *remotes, uint32_t count,
                                        int64_t deadline, struct sluice_completion *completions)
{
    struct slu_source source = slu_multicast_write(request, remotes, count);

    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    return slu_submit(multichannel->base.engine, &source, deadline, completions);
}
