/* SPDX-License-Identifier: MIT */
/* Channels: the public calls, each a thin wrapper around the engine. */
#include "config.h"

#include "channel/channel.h"
#include "engine/statistics/timing.h"
#include "scope/scope.h"

void sluice_channel_close(struct sluice_channel *channel)
{
    SLU_UNCANCELLED_BLOCK;
    if (slu_may_end(channel, SLU_MAGIC_CHANNEL, "channel"))
        slu_channel_destroy(&channel->base);
}

int sluice_channel_shutdown(struct sluice_channel *channel, int64_t deadline)
{
    return slu_is_channel(channel) ? slu_engine_shutdown(channel->base.engine, deadline)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_state(const struct sluice_channel *channel)
{
    return slu_is_channel(channel)
               ? slu_peer_state(channel->base.engine, &channel->base.engine->peers[0])
               : slu_not_a_channel(channel);
}

int sluice_channel_error(const struct sluice_channel *channel, struct sluice_error *error)
{
    return slu_is_channel(channel)
               ? slu_peer_first_error(channel->base.engine, &channel->base.engine->peers[0], error)
               : slu_not_a_channel(channel);
}

int sluice_channel_wait_connected(struct sluice_channel *channel, int64_t timeout)
{
    return slu_is_channel(channel)
               ? slu_wait_connected(channel->base.engine, &channel->base.engine->peers[0], timeout)
               : slu_not_a_channel(channel);
}

int sluice_channel_query(const struct sluice_channel *channel, struct sluice_channel_info *info)
{
    return slu_is_channel(channel)
               ? slu_peer_query(channel->base.engine, &channel->base.engine->peers[0], info)
               : slu_not_a_channel(channel);
}

int sluice_channel_counters(const struct sluice_channel *channel, struct sluice_counters *counters)
{
    return slu_is_channel(channel) ? slu_counters(channel->base.engine, NULL, counters)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_histogram(const struct sluice_channel *channel, uint32_t opcode,
                             struct sluice_histogram *histogram)
{
    return slu_is_channel(channel)
               ? slu_histogram_read(channel->base.engine, NULL, opcode, histogram)
               : slu_not_a_channel(channel);
}

int sluice_channel_histogram_reset(struct sluice_channel *channel)
{
    return slu_is_channel(channel) ? slu_histogram_reset(channel->base.engine)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_submit(struct sluice_channel *channel, const struct sluice_request *requests,
                          uint32_t count, int64_t deadline, struct sluice_completion *completions)
{
    struct slu_source source = {.lists = {requests}, .counts = {count}, .count = count};

    return slu_is_channel(channel)
               ? slu_submit(channel->base.engine, &source, deadline, completions)
               : slu_not_a_channel(channel);
}

int sluice_channel_send(struct sluice_channel *channel, const struct sluice_sge *sges,
                        uint32_t sge_count, int64_t deadline)
{
    return slu_channel_send(slu_engine_of(channel), 0, sges, sge_count, NULL, deadline);
}

int sluice_channel_send_immediate(struct sluice_channel *channel, const struct sluice_sge *sges,
                                  uint32_t sge_count, uint32_t immediate, int64_t deadline)
{
    return slu_channel_send(slu_engine_of(channel), 0, sges, sge_count, &immediate, deadline);
}

int sluice_channel_receive(struct sluice_channel *channel, const struct sluice_sge *sges,
                           uint32_t sge_count, int64_t deadline,
                           struct sluice_completion *completion)
{
    return slu_channel_receive(slu_engine_of(channel), 0, sges, sge_count, deadline, completion);
}

int sluice_channel_write(struct sluice_channel *channel, const struct sluice_sge *sges,
                         uint32_t sge_count, const struct sluice_remote_mr *remote,
                         int64_t deadline)
{
    return slu_channel_move(slu_engine_of(channel), SLUICE_OP_WRITE, 0, sges, sge_count, remote,
                            NULL, deadline);
}

int sluice_channel_write_immediate(struct sluice_channel *channel, const struct sluice_sge *sges,
                                   uint32_t sge_count, const struct sluice_remote_mr *remote,
                                   uint32_t immediate, int64_t deadline)
{
    return slu_channel_move(slu_engine_of(channel), SLUICE_OP_WRITE, 0, sges, sge_count, remote,
                            &immediate, deadline);
}

int sluice_channel_read(struct sluice_channel *channel, const struct sluice_sge *sges,
                        uint32_t sge_count, const struct sluice_remote_mr *remote, int64_t deadline)
{
    return slu_channel_move(slu_engine_of(channel), SLUICE_OP_READ, 0, sges, sge_count, remote,
                            NULL, deadline);
}

struct sluice_scope *sluice_channel_scope_begin(struct sluice_channel *channel, int64_t deadline)
{
    if (!slu_is_channel(channel))
        return slu_misuse_null(EINVAL, "not a channel%s", slu_none_hint(channel));
    return slu_scope_begin(channel->base.engine, deadline);
}
