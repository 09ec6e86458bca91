/* SPDX-License-Identifier: MIT */
/*
 * Agents on a pretend device that fails during a long message: which side gets the error, and how
 * they go on.
 */
#include <poll.h>
#include <stdlib.h>

#include "agent/agent.h"

#include "../agent/agents.h"
#include "../support/fair.h"
#include "check.h"

#define BYTES 9000000
#define VENDOR 0x51ce00
/* Time until a message that could not be read is read again. */
#define PAUSE SLUICE_MS(100)

/* Only data queue pairs give rights to memory: fails the next request of any of them. */
static void fail_data(void)
{
    struct fake_qp_info info;
    for (uint32_t i = 0; fake_verbs_qp(i, &info); i++) {
        if (fake_verbs_change(&info, IBV_QPS_INIT)->qp_access_flags != 0) {
            fake_verbs_end(info.qpn, FAKE_SEND, 1, IBV_WC_FATAL_ERR, VENDOR);
        }
    }
}

/*
 * A receive from a named rank returns the error once all work in flight has ended; a receive from
 * any rank does not. The message stays the next one, and arrives over the new pair.
 */
TEST(a_message_that_cannot_be_read_stays, .times = 2)
{
    struct agents agents;
    struct sender sender;
    struct sluice_agent_mr *mr;
    uint8_t *bytes = malloc(BYTES);
    agents_open(&agents, NULL, NULL);
    /* This connects the data queue pair. */
    mr = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    region_works(&agents, mr, 1);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    pattern_fill(bytes, BYTES, 2);
    fail_data();
    start_sender(&sender, agents.at_owner, bytes, BYTES, DEADLINE);
    if (_i == 0) {
        require_null(sluice_agent_receive(agents.holder, agents.at_holder, DEADLINE), EIO, "fatal");
    }
    receive_pattern(agents.holder, _i == 0 ? agents.at_holder : NULL, BYTES, 2);
    join_sender(&sender, 0);
    require(peer_info(agents.at_holder).reconnects > 0, "nothing has failed");
    free(bytes);
    agents_close(&agents);
}

/* Returns the number of the queue pair that holds so many completions; 0: none does. */
static uint32_t find_holding(uint32_t completions)
{
    struct fake_qp_info info;
    for (uint32_t i = 0; fake_verbs_qp(i, &info); i++) {
        if (fake_verbs_held(info.qpn, FAKE_SEND) >= completions) {
            return info.qpn;
        }
    }
    return 0;
}

static void hold_data(void)
{
    struct fake_qp_info info;
    for (uint32_t i = 0; fake_verbs_qp(i, &info); i++) {
        if (fake_verbs_change(&info, IBV_QPS_INIT)->qp_access_flags != 0) {
            fake_verbs_hold(info.qpn);
        }
    }
}

/*
 * One piece of the message has failed and the others are still in flight, as the pair was connected
 * again just before. They keep their memory until they end, whichever receive comes next.
 */
TEST(pieces_in_flight_keep_their_memory, .times = 2)
{
    struct agents agents;
    struct sender sender;
    struct sluice_agent_mr *mr;
    struct sluice_sge sge;
    struct sluice_agent_peer *peer;
    uint8_t *bytes = malloc(BYTES);
    uint32_t qpn;
    bool told = false;
    agents_open(&agents, NULL, NULL);
    peer = _i == 0 ? agents.at_holder : NULL;
    mr = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    region_works(&agents, mr, 1);
    fail_data();
    sge = memory_sge(&agents.memory, 0, 8);
    require_error(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE), -EIO, "fatal");
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    pattern_fill(bytes, BYTES, 3);
    fail_data();
    hold_data();
    start_sender(&sender, agents.at_owner, bytes, BYTES, DEADLINE);
    while ((qpn = find_holding(3)) == 0) {
        require_null(sluice_agent_receive(agents.holder, peer, 0), ETIMEDOUT, "message");
    }
    fake_verbs_release_some(qpn, FAKE_SEND, 1);
    for (int i = 0; i < 5 && fake_verbs_held(qpn, FAKE_SEND) > 0; i++) {
        require(sluice_agent_receive(agents.holder, peer, 0) == NULL, "what came?");
        told = errno == EIO;
        require(errno == ETIMEDOUT || fake_verbs_held(qpn, FAKE_SEND) == 0, "%s",
                sluice_last_error());
    }
    fake_verbs_release(0);
    if (_i == 0 && !told) {
        require_null(sluice_agent_receive(agents.holder, peer, DEADLINE), EIO, "fatal");
    }
    receive_pattern(agents.holder, peer, BYTES, 3);
    join_sender(&sender, 0);
    free(bytes);
    agents_close(&agents);
}

/* Makes other work of the agent due at once. */
static void be_due(struct sluice_agent *agent)
{
    pthread_mutex_lock(&agent->lock);
    slu_agent_due(agent, slu_now());
    pthread_mutex_unlock(&agent->lock);
}

/*
 * The message is read again after a pause. An event loop wakes when the pause is over, whatever was
 * due before, and wakes again when the message can be received.
 */
TEST(event_loop_wakes_after_a_pause)
{
    struct agents agents;
    struct sender sender;
    struct sluice_agent_mr *mr;
    struct sluice_agent_message *message = NULL;
    int64_t before = 0, due;
    uint8_t *bytes = malloc(BYTES);
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    region_works(&agents, mr, 1);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    pattern_fill(bytes, BYTES, 4);
    fail_data();
    start_sender(&sender, agents.at_owner, bytes, BYTES, DEADLINE);
    while (peer_info(agents.at_holder).reconnects == 0) {
        before = slu_now();
        require_null(sluice_agent_receive(agents.holder, NULL, 0), ETIMEDOUT, "message");
    }
    while (message == NULL) {
        struct pollfd pollfd = {.fd = sluice_agent_fd(agents.holder), .events = POLLIN};
        be_due(agents.holder);
        if (sluice_agent_arm(agents.holder, &due) == 1) {
            message = sluice_agent_receive(agents.holder, NULL, 0);
            continue;
        }
        require(due <= PAUSE || slu_now() >= before + PAUSE, "due in %lld ns", (long long)due);
        require(due < DEADLINE || poll(&pollfd, 1, (int)(DEADLINE / 1000000)) == 1, "no event");
        if (due < DEADLINE) {
            poll(&pollfd, 1, (int)(due / 1000000) + 1);
        }
    }
    pattern_check(sluice_agent_message_addr(message), BYTES, 4);
    sluice_agent_message_free(message);
    join_sender(&sender, 0);
    free(bytes);
    agents_close(&agents);
}

int main(void)
{
    return run_verbs("verbs_agents", WIRE_SELF, 60);
}
