/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void open_nothing(void)
{
    sluice_context_open("soft", NULL);
}
