/* SPDX-License-Identifier: MIT */
/* expect: -Wmismatched-dealloc */
#include <stdlib.h>

#include <sluice.h>

void free_context(void)
{
    struct sluice_context *context = sluice_context_open("soft", NULL);

    free(context);
}
