/* SPDX-License-Identifier: MIT */
/* A shared library that is loaded when it is first needed, and stays. */
#ifndef SLU_LIBRARY_H
#define SLU_LIBRARY_H

#include <stddef.h>

struct slu_symbol {
    const char *name;
    void *function; /* the address of a pointer to it */
};

/* Sets all functions: 0; or -EOPNOTSUPP with a text of whose it is, and nothing is loaded. */
int slu_library_load(const char *whose, const char *file, const struct slu_symbol *symbols,
                     size_t count);

#endif
