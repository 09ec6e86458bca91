/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "base/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

#include "base/descriptor.h"
#include "base/error.h"

int slu_library_load(const char *whose, const char *file, const struct slu_symbol *symbols,
                     size_t count)
{
    void *library;

    slu_fd_guard();
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    slu_fd_unguard();
    if (library == NULL)
        return slu_fail(EOPNOTSUPP, "%s: %s", whose, dlerror());
    for (size_t i = 0; i < count; i++) {
        void *found = dlsym(library, symbols[i].name);

        if (found == NULL) {
            dlclose(library);
            return slu_fail(EOPNOTSUPP, "%s: %s has no %s", whose, file, symbols[i].name);
        }
        memcpy(symbols[i].function, &found, sizeof found);
    }
    return 0;
}
