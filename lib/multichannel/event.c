/* SPDX-License-Identifier: MIT */
/* Event loops on a multichannel, and waking it from other threads. */
#include "config.h"

#include "multichannel/multichannel.h"

int sluice_multichannel_fd(const struct sluice_multichannel *multichannel)
{
    return slu_is_multichannel(multichannel) ? slu_fd(multichannel->base.engine)
                                             : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_arm(struct sluice_multichannel *multichannel, int64_t *due)
{
    return slu_is_multichannel(multichannel) ? slu_arm(multichannel->base.engine, due)
                                             : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_wake(struct sluice_multichannel *multichannel)
{
    if (!slu_is_multichannel(multichannel))
        return slu_not_a_multichannel(multichannel);
    slu_wake(multichannel->base.engine);
    return 0;
}

int sluice_multichannel_arrivals(struct sluice_multichannel *multichannel, uint32_t tag,
                                 uint64_t *count)
{
    return slu_is_multichannel(multichannel) ? slu_arrivals(multichannel->base.engine, tag, count)
                                             : slu_not_a_multichannel(multichannel);
}

int sluice_multichannel_wait_arrivals(struct sluice_multichannel *multichannel, uint32_t tag,
                                      uint64_t count, int64_t timeout)
{
    return slu_is_multichannel(multichannel)
               ? slu_wait_arrivals(multichannel->base.engine, tag, count, timeout)
               : slu_not_a_multichannel(multichannel);
}
