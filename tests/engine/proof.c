/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "invariants.h"
#include "rig.h"

#define COUNT_OF_LIST 4

/* The forms in which a list may be given. */
enum form { BLOCKING, POSTED, SCOPED, FORMS };

/* How the last request ends; those before the third were done, and are not reported. */
enum end { FLUSHED, REFUSED_BY_PEER, DONE };

static struct rig *watched;
static enum end how;

/*
 * Completes the third request after the list is posted; the two before it were done without a
 * completion.
 */
static void end_third(void)
{
    struct slu_qp *qp = rig_qp(watched, 0);
    if (!qp || fake_held(qp, SLU_SEND_QUEUE) < COUNT_OF_LIST) {
        return;
    }
    fake_swallow(qp, SLU_SEND_QUEUE);
    fake_swallow(qp, SLU_SEND_QUEUE);
    if (how == DONE) {
        fake_complete(qp, SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
        fake_complete(qp, SLU_SEND_QUEUE, SLUICE_STATUS_SUCCESS);
    } else if (how == REFUSED_BY_PEER) {
        fake_complete(qp, SLU_SEND_QUEUE, SLUICE_STATUS_REM_ACCESS_ERR);
    }
}

static void run_scope(struct rig *rig, const struct sluice_request *requests, int64_t deadline,
                      struct sluice_completion *completions)
{
    struct sluice_handle handles[COUNT_OF_LIST];
    struct sluice_scope *scope = sluice_multichannel_scope_begin(rig->channel, deadline);
    require(sluice_scope_post(scope, requests, COUNT_OF_LIST, handles) >= 0, "%s",
            sluice_last_error());
    for (uint32_t i = 0; i < COUNT_OF_LIST; i++) {
        require_ok(sluice_scope_wait(scope, &handles[i], LONG, &completions[i]));
    }
    require_ok(sluice_scope_end(scope, NULL));
}

/* Gets the results of a list of writes to peer 0, in its order. */
static void run_list(struct rig *rig, enum form form, int64_t deadline,
                     struct sluice_completion *completions)
{
    struct sluice_request requests[COUNT_OF_LIST];
    struct sluice_handle handles[COUNT_OF_LIST];
    for (uint32_t i = 0; i < COUNT_OF_LIST; i++) {
        requests[i] = write_of(0, 1 + i);
    }
    watched = rig;
    fake.by_hand = true;
    fake.at_poll = end_third;
    if (form == BLOCKING) {
        rig_submit(rig, requests, COUNT_OF_LIST, deadline, completions);
    } else if (form == SCOPED) {
        run_scope(rig, requests, deadline, completions);
    } else {
        require_result(
            sluice_multichannel_post(rig->channel, requests, COUNT_OF_LIST, deadline, handles),
            COUNT_OF_LIST);
        for (uint32_t i = 0; i < COUNT_OF_LIST; i++) {
            require_ok(sluice_multichannel_wait(rig->channel, &handles[i], LONG, &completions[i]));
        }
    }
    check_engine(rig->engine);
    fake.at_poll = NULL;
    fake.by_hand = false;
}

/*
 * Flushed requests do not prove what happened to those before them; the loss was not a matter of
 * time.
 */
TEST_WITH(rig, flush_proves_nothing, (2, 16), .times = FORMS)
{
    struct sluice_completion completions[COUNT_OF_LIST];
    how = FLUSHED;
    run_list(rig, (enum form)_i, SLUICE_MS(20), completions);
    for (uint32_t i = 0; i < COUNT_OF_LIST; i++) {
        bool unknown = i < 2;
        require_status(&completions[i], 1 + i,
                       unknown ? SLUICE_STATUS_WR_FLUSH_ERR : SLUICE_STATUS_DEADLINE,
                       SLUICE_STATUS_DEADLINE);
        require_class(&completions[i], unknown ? SLUICE_CLASS_CANCELLED : SLUICE_CLASS_TIMEOUT);
    }
    rig_works(rig, 1);
}

/* A failure with a reason of its own proves that all before it were done. */
TEST_WITH(rig, failure_proves_all_before_it, (2, 16), .times = FORMS)
{
    struct sluice_completion completions[COUNT_OF_LIST];
    how = REFUSED_BY_PEER;
    run_list(rig, (enum form)_i, LONG, completions);
    require_status(&completions[0], 1, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    require_status(&completions[1], 2, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    require_status(&completions[2], 3, SLUICE_STATUS_REM_ACCESS_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
    require_status(&completions[3], 4, SLUICE_STATUS_WR_FLUSH_ERR, SLUICE_STATUS_REM_ACCESS_ERR);
}

TEST_WITH(rig, success_proves_all_before_it, (2, 16), .times = FORMS)
{
    struct sluice_completion completions[COUNT_OF_LIST];
    how = DONE;
    run_list(rig, (enum form)_i, LONG, completions);
    for (uint32_t i = 0; i < COUNT_OF_LIST; i++) {
        require_status(&completions[i], 1 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
    rig_works(rig, 0);
}
