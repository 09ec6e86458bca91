/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void believe(const uint8_t bytes[SLUICE_REMOTE_MR_BYTES], struct sluice_remote_mr *remote)
{
    sluice_remote_mr_unpack(bytes, remote);
}
