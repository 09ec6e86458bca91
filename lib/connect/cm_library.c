/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/cm_library.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

#include "base/base.h"
#include "base/fork.h"
#include "base/library.h"

#define LIBRARY "librdmacm.so.1"

struct slu_cm_library slu_rdma;

#define SYMBOL(name) {"rdma_" #name, &slu_rdma.name},
static const struct slu_symbol symbols[] = {SLU_RDMA_CALLS(SYMBOL)};

int slu_cm_load(void)
{
    static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER};
    static bool loaded;
    struct slu_text text;
    int error = 0;

    slu_fork_lock(&lock);
    if (!loaded)
        error = slu_library_load("rdma_cm", LIBRARY, symbols, sizeof symbols / sizeof symbols[0]);
    loaded = error == 0;
    pthread_mutex_unlock(&lock.lock);
    if (error == 0)
        return 0;
    slu_text_save(&text);
    return slu_fail(-error, "%.200s: install it, or leave out \"rdmacm:\"", text.bytes);
}
