/* SPDX-License-Identifier: MIT */
/* Event loops on a channel, and waking it from other threads. */
#include "config.h"

#include "channel/channel.h"

int sluice_channel_fd(const struct sluice_channel *channel)
{
    return slu_is_channel(channel) ? slu_fd(channel->base.engine) : slu_not_a_channel(channel);
}

int sluice_channel_arm(struct sluice_channel *channel, int64_t *due)
{
    return slu_is_channel(channel) ? slu_arm(channel->base.engine, due)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_wake(struct sluice_channel *channel)
{
    if (!slu_is_channel(channel))
        return slu_not_a_channel(channel);
    slu_wake(channel->base.engine);
    return 0;
}

int sluice_channel_arrivals(struct sluice_channel *channel, uint32_t tag, uint64_t *count)
{
    return slu_is_channel(channel) ? slu_arrivals(channel->base.engine, tag, count)
                                   : slu_not_a_channel(channel);
}

int sluice_channel_wait_arrivals(struct sluice_channel *channel, uint32_t tag, uint64_t count,
                                 int64_t timeout)
{
    return slu_is_channel(channel) ? slu_wait_arrivals(channel->base.engine, tag, count, timeout)
                                   : slu_not_a_channel(channel);
}
