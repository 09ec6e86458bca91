/* SPDX-License-Identifier: MIT */
/* expect: -Wincompatible-pointer-types */
#include <sluice.h>

struct sluice_mr *register_with_context(struct sluice_context *context, void *buffer)
{
    return sluice_mr_register(context, buffer, 4096, SLUICE_ACCESS_LOCAL_WRITE);
}
