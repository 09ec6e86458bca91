/* SPDX-License-Identifier: MIT */
#include <sluice.h>

#include "wrong.h"

WRONG(ignored_alloc, "-Wunused-result", struct sluice_pd *pd)
{
    sluice_mr_alloc(pd, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}

WRONG(ignored_register_dmabuf, "-Wunused-result", struct sluice_pd *pd, int fd)
{
    sluice_mr_register_dmabuf(pd, fd, 0, 4096, 0, SLUICE_ACCESS_LOCAL_WRITE);
}

WRONG(ignored_register, "-Wunused-result", struct sluice_pd *pd, void *buffer)
{
    sluice_mr_register(pd, buffer, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}

WRONG(ignored_sge, "-Wunused-result", const struct sluice_mr *mr, struct sluice_sge *sge)
{
    sluice_mr_sge(mr, 4096, 4096, sge);
}

WRONG(ignored_slice, "-Wunused-result", const struct sluice_remote_mr *remote,
      struct sluice_remote_mr *slice)
{
    sluice_remote_mr_slice(remote, 0, 64, slice);
}

WRONG(ignored_unpack, "-Wunused-result", const uint8_t bytes[SLUICE_REMOTE_MR_BYTES],
      struct sluice_remote_mr *remote)
{
    sluice_remote_mr_unpack(bytes, remote);
}

WRONG(of_context, "-Wincompatible-pointer-types", struct sluice_context *context, void *buffer)
{
    return sluice_mr_register(context, buffer, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}

WRONG(write_to_local, "-Wincompatible-pointer-types", struct sluice_channel *channel,
      const struct sluice_sge *sge, const struct sluice_mr *mr)
{
    return sluice_channel_write(channel, sge, 1, mr, SLUICE_S(1));
}
