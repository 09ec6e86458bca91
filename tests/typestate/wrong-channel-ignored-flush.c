/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

/* If it timed out, the memory is still in use. */
void flush(struct sluice_channel *channel)
{
    sluice_channel_flush(channel, SLUICE_S(1));
}
