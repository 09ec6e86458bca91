/* SPDX-License-Identifier: MIT */
/*
 * The objects of libibverbs behind ours, and contexts and protection domains around the program's
 * own. Soft refuses all of these calls.
 */
#include "config.h"

#include <errno.h>

#include <sluice/verbs.h>

#include "../support/pair.h"

#ifdef HAVE_VERBS
#include <infiniband/verbs.h>
#endif

TEST(no_verbs_objects_for_wrong_pointers)
{
    require_null(sluice_verbs_context(NULL), EINVAL, "not a context");
    require_null(sluice_verbs_pd(NULL), EINVAL, "not a protection domain");
    require_null(sluice_verbs_mr(NULL), EINVAL, "not a memory region");
    require_null(sluice_verbs_channel_qp(NULL), EINVAL, "not a channel");
    require_null(sluice_verbs_multichannel_qp(NULL, 0), EINVAL, "not a multichannel");
    require_null(sluice_verbs_context_wrap(NULL, NULL), EINVAL, "no ibv_context");
    require_null(sluice_verbs_pd_wrap(NULL, NULL), EINVAL, "open context");
}

TEST(soft_has_no_verbs_objects)
{
    struct pair pair;
    struct ibv_pd *no_pd = (struct ibv_pd *)&pair; /* never dereferenced */
    if (!device_is_soft()) {
        return; /* the other tests are for devices */
    }
    pair_open(&pair, NULL);
    struct memory memory = side_memory(&pair.sides, 0, 64);
    require_null(sluice_verbs_context(pair.sides.contexts[0]), EOPNOTSUPP, "");
    require_null(sluice_verbs_pd(pair.sides.pds[0]), EOPNOTSUPP, "");
    require_null(sluice_verbs_mr(memory.mr), EOPNOTSUPP, "");
    require_null(sluice_verbs_channel_qp(pair.channels[0]), EOPNOTSUPP, "");
    require_null(sluice_verbs_pd_wrap(pair.sides.contexts[0], no_pd), EOPNOTSUPP, "");
    pair_close(&pair);
}

#ifdef HAVE_VERBS

/* Opens the device under test as the program's own. */
static struct ibv_context *open_device(void)
{
    struct ibv_device **devices = ibv_get_device_list(NULL);
    struct ibv_context *ibv = NULL;
    require(devices, "no list of devices%s", "");
    for (int i = 0; devices[i] && !ibv; i++) {
        if (strcmp(ibv_get_device_name(devices[i]), test_device()) == 0) {
            ibv = ibv_open_device(devices[i]);
        }
    }
    ibv_free_device_list(devices);
    require(ibv, "%s cannot be opened", test_device());
    return ibv;
}

TEST(verbs_objects_belong_together)
{
    struct pair pair;
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    if (device_is_soft()) {
        return;
    }
    pair_open(&pair, NULL);
    struct memory memory = side_memory(&pair.sides, 0, 64);
    struct ibv_context *ibv = sluice_verbs_context(pair.sides.contexts[0]);
    struct ibv_pd *pd = sluice_verbs_pd(pair.sides.pds[0]);
    struct ibv_mr *mr = sluice_verbs_mr(memory.mr);
    struct ibv_qp *qp = sluice_verbs_channel_qp(pair.channels[0]);
    require(ibv && pd && mr && qp, "%s", sluice_last_error());
    require(strcmp(ibv_get_device_name(ibv->device), test_device()) == 0, "another device%s", "");
    require(pd->context == ibv && mr->pd == pd && qp->pd == pd, "of other objects%s", "");
    require_equal(mr->lkey, sluice_mr_lkey(memory.mr), qp->qp_type, IBV_QPT_RC);
    require(qp->send_cq && qp->recv_cq, "it completes nowhere%s", "");
    require(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init) == 0, "no answer%s", "");
    require(attr.qp_state == IBV_QPS_RTS, "state %d", (int)attr.qp_state);
    pair_close(&pair);
}

TEST(each_peer_has_its_queue_pair)
{
    struct star star;
    if (device_is_soft()) {
        return;
    }
    star_open(&star, 3, NULL);
    struct ibv_qp *first = sluice_verbs_multichannel_qp(star.hub, 0);
    struct ibv_qp *last = sluice_verbs_multichannel_qp(star.hub, 2);
    require(first && last && first != last, "%s", sluice_last_error());
    require(first->send_cq == last->send_cq, "completion queues differ%s", "");
    require_null(sluice_verbs_multichannel_qp(star.hub, 3), ERANGE, "peer 3: there are peers 0..2");
    star_close(&star);
}

/* The program posts a write of its own, which sluice must not report. */
TEST(posts_of_the_program_and_the_library_coexist)
{
    struct pair pair;
    struct ibv_send_wr *bad;
    if (device_is_soft()) {
        return;
    }
    pair_open(&pair, NULL);
    struct memory from = side_memory(&pair.sides, 0, 64);
    struct memory to = side_memory(&pair.sides, 1, 64);
    pattern_fill(from.bytes, 64, 7);
    struct sluice_remote_mr remote = memory_remote(&to, 0, 64);
    struct ibv_sge sge = {(uintptr_t)from.bytes, 64, sluice_verbs_mr(from.mr)->lkey};
    struct ibv_send_wr wr = {
        .sg_list = &sge,
        .num_sge = 1,
        .opcode = IBV_WR_RDMA_WRITE,
        .send_flags = IBV_SEND_SIGNALED,
        .wr.rdma = {.remote_addr = remote.addr, .rkey = remote.rkey},
    };
    require(ibv_post_send(sluice_verbs_channel_qp(pair.channels[0]), &wr, &bad) == 0, "refused: %s",
            strerror(errno));
    pair_works(&pair); /* in order: behind the write */
    pattern_check(to.bytes, 64, 7);
    pair_close(&pair);
}

TEST(programs_own_device_and_domain_carry_channels)
{
    struct pair pair = {.sides = {{NULL}, {NULL}}};
    uint8_t bytes[64];
    if (device_is_soft()) {
        return;
    }
    struct ibv_context *ibv = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(ibv);
    require(pd, "no protection domain%s", "");
    struct sluice_context *context = made(sluice_verbs_context_wrap(ibv, NULL));
    require(sluice_verbs_context(context) == ibv, "another context%s", "");
    struct sluice_pd *wrapped = made(sluice_verbs_pd_wrap(context, pd));
    require(sluice_verbs_pd(wrapped) == pd, "another domain%s", "");
    for (int i = 0; i < 2; i++) {
        pair.sides.contexts[i] = context;
        pair.sides.pds[i] = wrapped;
    }
    pair_connect(&pair, NULL);
    pair_works(&pair);

    /* Memory that the program registered itself is used by its key. */
    struct ibv_mr *mr = ibv_reg_mr(pd, bytes, sizeof(bytes), IBV_ACCESS_LOCAL_WRITE);
    require(mr, "not registered%s", "");
    struct sluice_sge first = {(uintptr_t)bytes, 32, mr->lkey};
    struct sluice_sge second = {(uintptr_t)bytes + 32, 32, mr->lkey};
    pattern_fill(bytes, 32, 9);
    struct sluice_handle handle = post_of(pair.channels[1], SLUICE_OP_RECEIVE, &second);
    require_ok(sluice_channel_send(pair.channels[0], &first, 1, DEADLINE));
    await(pair.channels[1], handle, SLUICE_CLASS_NONE);
    pattern_check(bytes + 32, 32, 9);
    require(ibv_dereg_mr(mr) == 0, "still in use%s", "");

    sluice_channel_close(pair.channels[0]);
    sluice_channel_close(pair.channels[1]);
    sluice_pd_free(wrapped);
    sluice_context_close(context);
    /* Both objects still exist, and the library holds neither of them. */
    require(ibv_dealloc_pd(pd) == 0, "the domain is in use%s", "");
    require(ibv_close_device(ibv) == 0, "the device is in use%s", "");
}

/* Requests posted through another object around the same domain hold its memory. */
struct holder {
    struct pair pair;
    struct sluice_context *context; /* its own, or NULL */
};

static void holder_open(struct holder *holder, struct sluice_context *context, struct sluice_pd *pd,
                        bool second_context)
{
    holder->context = NULL;
    if (second_context) {
        holder->context = made(sluice_verbs_context_wrap(sluice_verbs_context(context), NULL));
        context = holder->context;
    }
    struct sluice_pd *other = made(sluice_verbs_pd_wrap(context, sluice_verbs_pd(pd)));
    for (int i = 0; i < 2; i++) {
        holder->pair.sides.contexts[i] = context;
        holder->pair.sides.pds[i] = other;
    }
    pair_connect(&holder->pair, NULL);
}

static void holder_close(struct holder *holder)
{
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(holder->pair.channels[i]);
    }
    sluice_pd_free(holder->pair.sides.pds[0]);
    sluice_context_close(holder->context);
}

TEST(work_of_a_second_wrapper_holds_memory, .times = 2)
{
    struct holder holder;
    struct memory memory;
    if (device_is_soft()) {
        return;
    }
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_pd *stranger = sluice_pd_alloc(context);
    require(pd && stranger, "%s", sluice_last_error());
    memory_open(&memory, pd, 64);
    holder_open(&holder, context, pd, _i == 1);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    struct sluice_handle handle = post_of(holder.pair.channels[0], SLUICE_OP_RECEIVE, &sge);
    require_error(sluice_mr_deregister(memory.mr), -EBUSY, "posted work");
    /* A region without references can be deregistered, and so can a domain. */
    struct sluice_mr *free_mr = sluice_mr_alloc(pd, 64, ACCESS_ALL);
    struct sluice_mr *strange_mr = sluice_mr_alloc(stranger, 64, ACCESS_ALL);
    require(free_mr && strange_mr, "%s", sluice_last_error());
    require_ok(sluice_mr_deregister(free_mr));
    require_ok(sluice_mr_deregister(strange_mr));
    sluice_pd_free(stranger);
    require_ok(sluice_channel_send(holder.pair.channels[1], &sge, 1, DEADLINE));
    await(holder.pair.channels[0], handle, SLUICE_CLASS_NONE);
    memory_close(&memory);
    holder_close(&holder);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(wrapping_checks_what_belongs_together)
{
    const struct sluice_context_attr no_port = {.size = sizeof(no_port), .port = 200};
    if (device_is_soft()) {
        return;
    }
    struct ibv_context *ibv = open_device();
    struct ibv_pd *pd = ibv_alloc_pd(ibv);
    struct sluice_context *context = open_context();
    require_null(sluice_verbs_pd_wrap(context, pd), EINVAL, "another ibv_context");
    require_null(sluice_verbs_pd_wrap(context, NULL), EINVAL, "no ibv_pd");
    require_null(sluice_verbs_context_wrap(ibv, &no_port), EINVAL, "port 200");
    sluice_context_close(context);
    require(ibv_dealloc_pd(pd) == 0, "the domain is in use%s", "");
    require(ibv_close_device(ibv) == 0, "the device is in use%s", "");
}

#endif

int main(void)
{
    return run_tests("wrap", 20);
}
