/* SPDX-License-Identifier: MIT */
/*
 * The table, and completion queues. A completion queue is the transport's own object, so functions
 * that are not replaced here are the transport's, without an indirection.
 */
#include "config.h"

#include <stdlib.h>

#include "transport/stripes/inside.h"

static int create_cq(struct slu_tcontext *context, uint32_t depth, struct slu_cq **cq)
{
    struct stripes *stripes = calloc(1, sizeof *stripes);
    int error;

    if (stripes == NULL)
        return slu_fail(ENOMEM, "no memory for a completion queue");
    error = context->transport->cq_create(context, depth, &stripes->cq);
    if (error < 0) {
        free(stripes);
        return error;
    }
    stripes->inner = context->transport;
    stripes->cq->stripes = stripes;
    *cq = stripes->cq;
    return 0;
}

static void destroy_cq(struct slu_cq *cq)
{
    struct stripes *stripes = cq->stripes;

    stripes->inner->cq_destroy(cq);
    free(stripes->places);
    free(stripes);
}

struct slu_qp *slu_stripes_first(struct slu_qp *qp)
{
    return stripes_qp_of(qp)->qps[0];
}

/* Only the first queue pair carries messages. */
static void be_slow(struct slu_qp *qp)
{
    stripes_qp_of(qp)->inner->qp_slow(stripes_qp_of(qp)->qps[0]);
}

static bool find_untaken(const struct slu_qp *base, uint64_t *untaken)
{
    const struct stripes_qp *qp = (const struct stripes_qp *)base;

    return qp->inner->qp_untaken(qp->qps[0], untaken);
}

void slu_stripes_over(const struct slu_transport *inner, struct slu_transport *table)
{
    *table = *inner;
    table->cq_create = create_cq;
    table->cq_destroy = destroy_cq;
    table->cq_poll = slu_stripes_cq_poll;
    table->cq_is_quiet = NULL;
    table->cq_alert = slu_stripes_cq_alert;
    table->cq_arm = slu_stripes_cq_arm;
    table->qp_create = slu_stripes_qp_create;
    table->qp_endpoint = slu_stripes_qp_endpoint;
    table->qp_connect = slu_stripes_qp_connect;
    table->qp_state = slu_stripes_qp_state;
    table->qp_query = slu_stripes_qp_query;
    table->qp_probe = slu_stripes_qp_probe;
    table->qp_slow = inner->qp_slow != NULL ? be_slow : NULL;
    table->qp_moved = slu_stripes_qp_moved;
    table->qp_stand = slu_stripes_qp_stand;
    table->qp_loss = slu_stripes_qp_loss;
    table->qp_farewell = slu_stripes_qp_farewell;
    table->qp_untaken = inner->qp_untaken != NULL ? find_untaken : NULL;
    table->qp_error = slu_stripes_qp_error;
    table->qp_destroy = slu_stripes_qp_destroy;
    table->post_send = slu_stripes_post_send;
    table->post_receive = slu_stripes_post_receive;
}
