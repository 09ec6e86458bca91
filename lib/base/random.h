/* SPDX-License-Identifier: MIT */
/* Random bytes for keys, nonces and sequence numbers, from the kernel. */
#ifndef SLU_RANDOM_H
#define SLU_RANDOM_H

#include <stddef.h>

/* From getrandom(2); 0 or a negative errno. */
int slu_random(void *bytes, size_t count);

#endif
