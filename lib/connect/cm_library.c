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

static const struct slu_symbol symbols[] = {
    {"rdma_create_event_channel", &slu_rdma.create_event_channel},
    {"rdma_destroy_event_channel", &slu_rdma.destroy_event_channel},
    {"rdma_get_cm_event", &slu_rdma.get_cm_event},
    {"rdma_ack_cm_event", &slu_rdma.ack_cm_event},
    {"rdma_create_id", &slu_rdma.create_id},
    {"rdma_destroy_id", &slu_rdma.destroy_id},
    {"rdma_migrate_id", &slu_rdma.migrate_id},
    {"rdma_bind_addr", &slu_rdma.bind_addr},
    {"rdma_listen", &slu_rdma.listen},
    {"rdma_resolve_addr", &slu_rdma.resolve_addr},
    {"rdma_resolve_route", &slu_rdma.resolve_route},
    {"rdma_connect", &slu_rdma.connect},
    {"rdma_establish", &slu_rdma.establish},
    {"rdma_accept", &slu_rdma.accept},
    {"rdma_reject", &slu_rdma.reject},
    {"rdma_disconnect", &slu_rdma.disconnect},
    {"rdma_init_qp_attr", &slu_rdma.init_qp_attr},
};

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
