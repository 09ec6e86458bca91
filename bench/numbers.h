/* SPDX-License-Identifier: MIT */
/* Arguments of a benchmark that runs once for each of several numbers. */
#ifndef BENCH_NUMBERS_H
#define BENCH_NUMBERS_H

#include <stdint.h>
#include <stdlib.h>

#define MOST_NUMBERS 16

/* Reads arguments from least to most. Without arguments numbers keeps its defaults. */
static inline int read_numbers(int argc, char **argv, uint32_t least, uint32_t most,
                               uint32_t numbers[MOST_NUMBERS])
{
    if (argc - 1 > MOST_NUMBERS)
        return 0;
    for (int i = 1; i < argc; i++) {
        char *rest;
        unsigned long value = strtoul(argv[i], &rest, 10);

        if (*rest != '\0' || value < least || value > most)
            return 0;
        numbers[i - 1] = (uint32_t)value;
    }
    return 1;
}

#endif
