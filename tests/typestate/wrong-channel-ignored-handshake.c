/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void connect_nothing(struct sluice_prepared_channel *prepared, const struct sluice_endpoint *remote)
{
    sluice_prepared_channel_handshake(prepared, remote);
}
