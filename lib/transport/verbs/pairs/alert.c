/* SPDX-License-Identifier: MIT */
/*
 * Alerts: failures of queue pairs that no request of the engine reports, but events of the device,
 * rdma_cm, or requests of our own.
 */
#include "config.h"

#include <stdio.h>

#include "transport/verbs/events/events.h"
#include "transport/verbs/pairs/pairs.h"
#include "transport/verbs/queues/queues.h"
#include "transport/verbs/words/words.h"

/* Reports the end of the rdma_cm connection. The peer's disconnect is all that is known. */
static bool take_parting(struct slu_verbs_qp *qp, struct slu_alert *alert)
{
    if (!atomic_load(&qp->parted) || qp->parted_told || qp->state == SLU_QP_PREPARED)
        return false;
    qp->parted_told = true;
    *alert = (struct slu_alert){.qp = &qp->base, .status = SLUICE_STATUS_RETRY_EXC_ERR};
    snprintf(alert->reason, sizeof alert->reason, "%s", qp->parted_why);
    return true;
}

bool slu_verbs_cq_alert(struct slu_cq *base, struct slu_alert *alert)
{
    struct slu_verbs_cq *cq = slu_verbs_cq_of(base);
    struct slu_verbs_context *context = slu_verbs_context_of(base->context);

    if (!atomic_load(&base->alerted))
        slu_verbs_events_read(context);
    if (!atomic_exchange(&base->alerted, false))
        return false;
    if (atomic_load(&context->fatal))
        slu_verbs_cq_fail(cq, "the device has failed");
    else if (atomic_load(&cq->overrun))
        slu_verbs_cq_fail(cq, "a completion queue has failed");
    for (uint32_t i = 0; i < SLU_VERBS_BUCKETS && !cq->dead; i++) {
        for (struct slu_verbs_qp *qp = cq->qps[i]; qp; qp = qp->next) {
            if (take_parting(qp, alert) || slu_verbs_own_failure(qp, alert) ||
                slu_verbs_events_take(qp, alert)) {
                atomic_store(&base->alerted, true); /* other queue pairs may have failed, too */
                return true;
            }
        }
    }
    return false;
}
