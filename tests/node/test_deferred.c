/* SPDX-License-Identifier: MIT */
/*
 * The table of connections that are made at first use, on a transport that only counts its queue
 * pairs: steps that come too late, for a queue pair that is gone, change nothing.
 */
#include <string.h>

#include "transport/deferred/deferred.h"

#include "../support/suite.h"

static uint32_t made_count, destroyed, wanted;
static struct slu_qp real;

static int extend(struct slu_cq *cq, uint32_t entries)
{
    (void)cq, (void)entries;
    return 0;
}

static void reduce(struct slu_cq *cq, uint32_t entries)
{
    (void)cq, (void)entries;
}

static int create_qp(struct slu_tpd *pd, struct slu_cq *cq, const struct slu_qp_attr *attr,
                     struct slu_qp **qp)
{
    (void)attr;
    real = (struct slu_qp){.pd = pd, .cq = cq};
    *qp = &real;
    made_count++;
    return 0;
}

static void destroy_qp(struct slu_qp *qp)
{
    (void)qp;
    destroyed++;
}

static void fail_qp(struct slu_qp *qp)
{
    (void)qp;
}

static void write_qp(const struct slu_qp *qp, struct slu_endpoint *endpoint)
{
    (void)qp;
    endpoint->qpn = 1;
}

static void want(struct slu_deferred_user *user, uint32_t peer)
{
    (void)user, (void)peer;
    wanted++;
}

static const struct slu_transport inner = {.id = SLU_TRANSPORT_SOFT,
                                           .cq_extend = extend,
                                           .cq_reduce = reduce,
                                           .qp_create = create_qp,
                                           .qp_destroy = destroy_qp,
                                           .qp_error = fail_qp,
                                           .qp_endpoint = write_qp};

/* A link that fails after its queue pair was given up, and another one was made, fails alone. */
TEST(a_failure_that_comes_late_harms_no_later_connection)
{
    static const struct slu_qp_attr attr = {.send_depth = 1, .receive_depth = 1};
    struct slu_deferred_user user = {.wanted = want};
    struct slu_tcontext context = {.transport = &inner};
    struct slu_tpd pd = {.context = &context};
    struct slu_cq cq = {.context = &context};
    struct slu_transport table;
    struct sluice_endpoint endpoint;
    uint32_t first, second;
    struct slu_qp *qp;

    slu_deferred_over(&inner, &table);
    struct slu_deferred *deferred = slu_deferred_create(&pd, &attr, 1, &user);
    require(deferred, "%s", sluice_last_error());
    slu_deferred_take(&cq, deferred);
    require_ok(table.qp_create(&pd, &cq, &attr, &qp));
    slu_deferred_attach(qp);
    require_ok(slu_deferred_make(deferred, 0, &first, &endpoint));
    slu_deferred_drop(deferred, 0, first);
    require_equal(destroyed, 1, wanted, 1);
    require_ok(slu_deferred_make(deferred, 0, &second, &endpoint));
    require(second != first && made_count == 2, "%u", second);

    slu_deferred_fail(deferred, 0, first, "too late");
    require(slu_deferred_is_made(deferred, 0, second), "it was ended%s", "");
    require(!slu_deferred_has_failed(deferred, 0) && destroyed == 1, "it has failed%s", "");

    slu_deferred_fail(deferred, 0, second, "in time");
    require(slu_deferred_has_failed(deferred, 0) && destroyed == 2, "%u", destroyed);
    require_result((int)slu_deferred_state(deferred, 0), SLU_DEFERRED_NONE);
    table.qp_destroy(qp);
    slu_deferred_free(deferred);
}

int main(void)
{
    return RUN_GROUPS("deferred", {"table", WIRE_SELF, 20});
}
