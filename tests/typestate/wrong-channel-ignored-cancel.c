/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

/* If it failed, the memory is still in use. */
void give_up(struct sluice_channel *channel, const struct sluice_handle *handle)
{
    struct sluice_completion completion;

    sluice_channel_cancel(channel, handle, &completion);
}
