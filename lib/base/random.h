/* SPDX-License-Identifier: MIT */
/* Random bytes for keys, nonces and sequence numbers, from the kernel. */
#ifndef SLU_RANDOM_H
#define SLU_RANDOM_H

#include <stddef.h>

/* Fills bytes by getrandom(2). Returns 0, or a negative errno value with a text. */
int slu_random(void *bytes, size_t count);

#endif
