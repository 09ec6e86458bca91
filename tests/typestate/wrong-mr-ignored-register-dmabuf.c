/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <sluice.h>

void register_nothing(struct sluice_pd *pd, int fd)
{
    sluice_mr_register_dmabuf(pd, fd, 0, 4096, 0, SLUICE_ACCESS_LOCAL_WRITE);
}
