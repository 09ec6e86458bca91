/* SPDX-License-Identifier: MIT */
/* The one device of the soft transport, its contexts, and the transport table. */
#include "transport/soft/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env_check.h"
#include "base/environment.h"
#include "base/fork.h"
#include "connect/address.h"
#include "connect/proof.h"
#include "transport/soft/core/pool.h"
#include "transport/soft/helper/helper.h"
#include "transport/soft/shm/shm.h"

/* Index of "tcp" among the values of SLUICE_WIRE. */
#define SOFT_WIRE_TCP 1

/* Takes the numeric address to listen on from the attributes or the environment. */
static int parse_listen(const struct sluice_context_attr *attr, struct slu_address *listen)
{
    const char *text = attr->address;
    const char *source = "sluice_context_attr.address";
    if (text == NULL) {
        text = slu_env_value(SLU_ENV_TCP_ADDRESS);
        source = slu_env_name(SLU_ENV_TCP_ADDRESS);
    }
    memset(listen, 0, sizeof(*listen));
    return text == NULL || *text == '\0' ? 0 : slu_address_parse(text, source, listen);
}

/*
 * Reads the identity of this process. Without namespaces no peer counts as near, so all are met
 * over TCP, like peers on other hosts.
 */
static void read_identity(struct soft_context *context)
{
    uint32_t wire = slu_env_choice(SLU_ENV_WIRE);

    slu_identity_of_self(&context->who);
    if (wire == SOFT_WIRE_TCP)
        context->who.users = context->who.processes = 0;
    context->shares = wire != SOFT_WIRE_TCP;
}

static void set_limits(struct slu_tcontext *base)
{
    base->transport = &slu_transport_soft;
    snprintf(base->device, sizeof(base->device), "soft");
    base->level = SLUICE_LEVEL_TCP;
    base->gid_index = -1;
    base->numa_node = -1;
    base->max_send_depth = SOFT_MAX_DEPTH;
    base->max_receive_depth = SOFT_MAX_DEPTH;
    base->max_pool_depth = SOFT_MAX_POOL_DEPTH;
    base->max_pool_sge = SOFT_MAX_SGE;
    base->max_sge = SOFT_MAX_SGE;
    base->max_read_sge = SOFT_MAX_SGE;
    base->max_inline = SOFT_MAX_INLINE;
    base->max_read_depth = SOFT_MAX_READ_DEPTH;
    base->max_cq_depth = SOFT_MAX_CQ_DEPTH;
    base->max_cq_entries = SOFT_MAX_CQ_DEPTH;
    base->max_message = SOFT_MAX_MESSAGE;
    base->atomics = SLUICE_ATOMICS_GLOBAL;
}

/* All open contexts, of this process and of its parents. */
static struct slu_fork_lock opened_lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true};
static struct soft_context *opened;

static void enter_process(struct soft_context *context)
{
    context->process = slu_fork_generation();
    slu_fork_lock(&opened_lock);
    context->next = opened;
    opened = context;
    pthread_mutex_unlock(&opened_lock.lock);
}

static void leave_process(const struct soft_context *context)
{
    struct soft_context **link = &opened;
    slu_fork_lock(&opened_lock);
    while (*link != context)
        link = &(*link)->next;
    *link = context->next;
    pthread_mutex_unlock(&opened_lock.lock);
}

static void pay_peers(struct soft_context *context)
{
    if (pthread_mutex_trylock(&context->lock) != 0)
        return;
    for (uint32_t i = 0; i < context->cqs.size; i++) {
        struct soft_cq *cq = context->cqs.items[i];
        if (cq == NULL || !slu_soft_cq_take(cq))
            continue;
        slu_soft_tcp_flush_all(cq);
        atomic_store(&cq->owner, SOFT_FREE);
    }
    pthread_mutex_unlock(&context->lock);
}

/*
 * Sends pending acknowledgements when a program ends without closing its contexts, so that peers
 * learn what it has received. A CQ that another thread owns is skipped: that thread sends them
 * itself.
 */
static __attribute__((destructor)) void end_process(void)
{
    SLU_KEEP_ERRNO;
    if (pthread_mutex_trylock(&opened_lock.lock) != 0)
        return;
    for (struct soft_context *context = opened; context != NULL; context = context->next)
        if (context->process == slu_fork_generation())
            pay_peers(context);
    pthread_mutex_unlock(&opened_lock.lock);
}

static int open_context(const char *device, const struct sluice_context_attr *attr,
                        struct slu_tcontext **made)
{
    if (strcmp(device, "soft") != 0)
        return slu_fail(ENODEV, "the soft transport has no device \"%s\", only \"soft\"", device);
    struct soft_context *context = calloc(1, sizeof(*context));
    if (context == NULL)
        return slu_fail(ENOMEM, "no memory for a context");
    int err = parse_listen(attr, &context->listen);
    if (err == 0)
        err = slu_random(&context->identity, sizeof(context->identity));
    if (err == 0)
        err = slu_proof_init();
    if (err == 0)
        err = slu_soft_keys_init(&context->keys);
    if (err != 0)
        goto free_context;
    context->exports = slu_soft_exports_make();
    if (context->exports == NULL) {
        err = -ENOMEM;
        goto destroy_keys;
    }
    pthread_mutex_init(&context->lock, NULL);
    pthread_mutex_init(&context->spares.lock, NULL);
    context->maps = slu_soft_probe_open();
    read_identity(context);
    set_limits(&context->base);
    enter_process(context);
    *made = &context->base;
    return 0;

destroy_keys:
    slu_soft_keys_destroy(&context->keys);
free_context:
    free(context);
    return err;
}

static void close_context(struct slu_tcontext *base)
{
    struct soft_context *context = (struct soft_context *)base;
    leave_process(context);
    slu_soft_helper_stop(context);
    slu_soft_spares_drop(context);
    pthread_mutex_destroy(&context->spares.lock);
    free(context->qps.items);
    free(context->cqs.items);
    slu_soft_exports_destroy(context->exports);
    if (context->maps >= 0)
        slu_fd_close(context->maps);
    slu_soft_keys_destroy(&context->keys);
    pthread_mutex_destroy(&context->lock);
    free(context);
}

static int alloc_pd(struct slu_tcontext *context, struct slu_tpd **pd)
{
    struct slu_tpd *made = calloc(1, sizeof(*made));
    if (made == NULL)
        return slu_fail(ENOMEM, "no memory for a protection domain");
    made->context = context;
    *pd = made;
    return 0;
}

static void free_pd(struct slu_tpd *pd)
{
    free(pd);
}

const struct slu_transport slu_transport_soft = {
    .name = "soft",
    /*
     * A reply through shared memory takes less; spinning longer would keep a processor that another
     * thread may need.
     */
    .drops_long = true,
    .hot_spin = SLUICE_US(5),
    .id = SLU_TRANSPORT_SOFT,
    .device_list = slu_soft_device_list,
    .open = open_context,
    .close = close_context,
    .pd_alloc = alloc_pd,
    .pd_free = free_pd,
    .mr_register = slu_soft_mr_register,
    .mr_register_dmabuf = slu_soft_mr_register_dmabuf,
    .mr_alloc = slu_soft_mr_alloc,
    .mr_part = slu_soft_mr_part,
    .mr_everything = slu_soft_mr_everything,
    .mr_deregister = slu_soft_mr_deregister,
    .cq_create = slu_soft_cq_create,
    .cq_extend = slu_soft_cq_extend,
    .cq_reduce = slu_soft_cq_reduce,
    .cq_destroy = slu_soft_cq_destroy,
    .cq_enter = slu_soft_cq_enter,
    .cq_leave = slu_soft_cq_leave,
    .cq_poll = slu_soft_cq_poll,
    .cq_is_quiet = slu_soft_cq_is_quiet,
    .cq_arm = slu_soft_cq_arm,
    .cq_fd = slu_soft_cq_fd,
    .cq_wake = slu_soft_cq_interrupt,
    .pool_create = slu_soft_pool_create,
    .pool_destroy = slu_soft_pool_destroy,
    .pool_post = slu_soft_pool_post,
    .pool_take_back = slu_soft_pool_take_back,
    .qp_create = slu_soft_qp_create,
    .qp_endpoint = slu_soft_qp_endpoint,
    .qp_connect = slu_soft_qp_connect,
    .qp_state = slu_soft_qp_state,
    .qp_query = slu_soft_qp_query,
    .qp_probe = slu_soft_qp_probe,
    .qp_moved = slu_soft_qp_moved,
    .qp_stand = slu_soft_qp_stand,
    .qp_loss = slu_soft_qp_loss,
    .qp_farewell = slu_soft_qp_farewell,
    .qp_error = slu_soft_qp_error,
    .qp_destroy = slu_soft_qp_destroy,
    .post_send = slu_soft_post_send,
    .post_receive = slu_soft_post_receive,
};
