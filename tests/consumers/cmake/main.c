/* SPDX-License-Identifier: MIT */
/* Counts to 42. */
#include <inttypes.h>
#include <stdio.h>

#include "counter.h"

int main(void)
{
    struct counter counter;
    uint64_t was = 0;
    int error = counter_open(&counter);

    for (uint64_t i = 0; error == 0 && i < 4; i++)
        error = counter_add(&counter, 14, &was);
    if (error == 0)
        printf("cmake counts: %" PRIu64 "\n", was);
    else
        fprintf(stderr, "count: %s\n", sluice_last_error());
    counter_close(&counter);
    return error != 0;
}
