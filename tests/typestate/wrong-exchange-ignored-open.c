/* SPDX-License-Identifier: MIT */
/* expect: -Wunused-result */
#include <stddef.h>

#include <sluice.h>

void open_blindly(void)
{
    sluice_exchange_open(NULL, SLUICE_S(1));
}
