/* SPDX-License-Identifier: MIT */
/* Loading of shared libraries when they are first needed. Loaded libraries stay loaded. */
#ifndef SLU_LIBRARY_H
#define SLU_LIBRARY_H

#include <stddef.h>

struct slu_symbol {
    const char *name;
    void *function; /* address of the function pointer to set */
};

/*
 * Loads a library and sets all function pointers. Returns 0, or -EOPNOTSUPP with a text that begins
 * with whose; then nothing is loaded.
 */
int slu_library_load(const char *whose, const char *file, const struct slu_symbol *symbols,
                     size_t count);

#endif
