/* SPDX-License-Identifier: MIT */
#include "config.h"

#include <sluice/list.h>

#include "../support/memory.h"
#include "invariants.h"
#include "rig.h"

/* To peers 0, 1 and 0: the second chain of peer 0 follows that of peer 1. */
#define CHAINS 3

static struct sluice_list *prepare(struct rig *rig, const struct sluice_request *requests,
                                   uint32_t count)
{
    return made(sluice_multichannel_list_prepare(rig->channel, requests, count));
}

static struct sluice_list *prepare_chains(struct rig *rig)
{
    struct sluice_request requests[CHAINS];
    for (uint32_t i = 0; i < CHAINS; i++) {
        requests[i] = write_of(i % 2, 1 + i);
    }
    return prepare(rig, requests, CHAINS);
}

/* Whichever chain the driver refuses, each request gets its own result, by a submit or a post. */
TEST_WITH(rig, refused_amid_a_list, (2, 4), .times = 2 * CHAINS)
{
    struct sluice_completion completions[CHAINS];
    uint32_t refused = 1 + (uint32_t)_i % CHAINS;
    bool at_once = _i >= CHAINS;
    struct sluice_list *list = prepare_chains(rig);
    fake.by_hand = true;
    memset(completions, 0xcc, sizeof(completions));
    fake.refuse_send = refused;
    if (at_once) {
        /* The requests that are not refused never complete here. */
        require(sluice_list_submit(list, SLUICE_MS(5), completions) < 0, "%s", "it succeeded");
    } else {
        require_ok(sluice_list_post(list, SLUICE_MS(5), completions));
        require_ok(sluice_list_wait(list, LONG));
        require(sluice_list_result(list) < 0, "%s", "it succeeded");
    }
    check_engine(rig->engine);
    for (uint32_t i = 0; i < CHAINS; i++) {
        bool with_it = i % 2 == (refused - 1) % 2;
        uint32_t cause = with_it ? SLUICE_STATUS_GENERAL_ERR : SLUICE_STATUS_DEADLINE;
        require_status(&completions[i], 1 + i,
                       !with_it || i == refused - 1 ? cause : SLUICE_STATUS_WR_FLUSH_ERR, cause);
    }
    sluice_list_free(list);
}

/* A list that is freed in flight writes nothing; its peers may be removed and added. */
TEST_WITH(rig, freed_in_flight, (2, 4), .times = 2)
{
    struct sluice_completion completions[CHAINS];
    struct sluice_endpoint endpoint;
    struct sluice_list *freed = prepare_chains(rig);
    struct sluice_list *kept = prepare_chains(rig);
    fake.by_hand = true;
    require_ok(sluice_list_post(freed, LONG, completions));
    memset(completions, 0xcc, sizeof(completions));
    sluice_list_free(freed);
    check_engine(rig->engine);
    if (_i > 0) {
        struct sluice_completion next[CHAINS];
        require_ok(sluice_list_post(kept, LONG, next));
        require_ok(sluice_multichannel_peer_remove(rig->channel, 1));
        require_result(sluice_multichannel_peer_add(rig->channel, &endpoint), 1);
        require_ok(sluice_multichannel_peer_handshake(rig->channel, 1, &endpoint));
        struct sluice_handle handle = rig_post(rig, write_of(1, 9), LONG);
        fake.by_hand = false;
        require_ok(sluice_list_wait(kept, LONG));
        require_result(sluice_list_result(kept), -ECANCELED);
        require_equal(next[0].error, 0, next[1].error, -ECANCELED, next[2].error, 0);
        require_result(sluice_list_post(kept, LONG, next), -ESTALE);
        sluice_list_free(kept);
        require_ok(sluice_multichannel_wait(rig->channel, &handle, LONG, &next[0]));
        require_class(&next[0], SLUICE_CLASS_NONE);
    } else {
        fake.by_hand = false;
        require_ok(sluice_multichannel_flush(rig->channel, LONG));
        sluice_list_free(kept);
    }
    value_check(completions, sizeof(completions), 0xcc);
}

/* A late request is reported as late, even if its peer was reset meanwhile. */
TEST(late_and_then_reset)
{
    struct rig rig;
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct sluice_request request = write_of(0, 1);
    rig_open(&rig, 1, 4);
    struct sluice_list *list = prepare(&rig, &request, 1);
    fake.by_hand = true;
    require_ok(sluice_list_post(list, SLUICE_MS(5), NULL));
    require_ok(sluice_multichannel_flush(rig.channel, LONG));
    require_ok(sluice_multichannel_peer_reset(rig.channel, 0, &endpoint));
    require_ok(sluice_list_wait(list, 0));
    require_error(sluice_list_result(list), -ETIMEDOUT, "within 5 ms reset or removed");
    require_result(sluice_multichannel_poll(rig.channel, &completion, 1), 0);
    sluice_list_free(list);
    rig_close(&rig);
}

/* Where entries are scarce a post may never find room for all of them, but a submit does. */
TEST_WITH(rig, more_than_the_completion_queue, (2, ON_DEVICE(4, fake.max_cq_depth = 9)))
{
    struct sluice_request requests[6];
    struct sluice_completion completions[6];
    struct sluice_counters counters = {.size = sizeof(counters)};
    for (uint32_t i = 0; i < 6; i++) {
        requests[i] = write_of(i % 2, 1 + i);
    }
    struct sluice_list *list = prepare(rig, requests, 6);
    require_error(sluice_list_post(list, LONG, NULL), -E2BIG, "completion queue");
    require_ok(sluice_list_submit(list, LONG, completions));
    for (uint32_t i = 0; i < 6; i++) {
        require_status(&completions[i], 1 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
    struct sluice_list *fits = prepare(rig, requests, 4);
    struct sluice_list *waits = prepare(rig, requests, 1);
    fake.by_hand = true;
    require_ok(sluice_list_post(fits, LONG, NULL));
    require_error(sluice_list_post(waits, LONG, NULL), -EAGAIN, "completion queue");
    require_error(sluice_list_post(waits, 0, NULL), -ETIMEDOUT, "nothing was posted");
    require_ok(sluice_multichannel_peer_counters(rig->channel, 0, &counters));
    require(counters.queue_full > 0 && counters.refused == 1, "%llu full, %llu refused",
            (unsigned long long)counters.queue_full, (unsigned long long)counters.refused);
    fake.by_hand = false;
    require_ok(sluice_list_wait(fits, LONG));
    require_ok(sluice_list_result(fits));
    require_ok(sluice_list_post(waits, LONG, NULL));
    require_ok(sluice_list_wait(waits, LONG));
    require_ok(sluice_list_result(waits));
    sluice_list_free(list);
    sluice_list_free(fits);
    sluice_list_free(waits);
}

/* If a poll of an event loop takes the last completion of a list, the loop does not sleep. */
TEST_WITH(rig, complete_list_keeps_a_loop_awake, (2, 4))
{
    struct sluice_completion completion;
    int64_t due;
    struct sluice_list *list = prepare_chains(rig);
    require_ok(sluice_list_post(list, LONG, NULL));
    while (rig->engine->pending[SLU_SEND_QUEUE] > 0) {
        require_result(sluice_multichannel_poll(rig->channel, &completion, 1), 0);
    }
    due = -1;
    require_result(sluice_multichannel_arm(rig->channel, &due), 1);
    require(due == 0, "due in %lld", (long long)due);
    require_ok(sluice_list_wait(list, 0));
    require_ok(sluice_list_result(list));
    sluice_list_free(list);
}

/* Unread results stay while lists take their entries. */
TEST_WITH(rig, results_stay_beside_lists, (2, 4))
{
    struct sluice_handle handles[4];
    struct sluice_completion completion;
    struct sluice_list *list = prepare_chains(rig);
    for (uint32_t i = 0; i < 4; i++) {
        handles[i] = rig_post(rig, write_of(0, 10 + i), LONG);
    }
    require_ok(sluice_multichannel_flush(rig->channel, LONG));
    for (uint32_t round = 0; round < 20; round++) {
        require_ok(sluice_list_submit(list, LONG, NULL));
        check_engine(rig->engine);
    }
    for (uint32_t i = 0; i < 4; i++) {
        require_ok(sluice_multichannel_wait(rig->channel, &handles[i], 0, &completion));
        require_status(&completion, 10 + i, SLUICE_STATUS_SUCCESS, SLUICE_STATUS_SUCCESS);
    }
    sluice_list_free(list);
}
