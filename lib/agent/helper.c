/* SPDX-License-Identifier: MIT */
/*
 * The helper of an agent: a thread that serves peers while the program is elsewhere. Guarantee:
 * messages are served on their events while the program is away, and otherwise no later than
 * LONGEST_PAUSE after its last call. Calls in quick succession wake no thread.
 *
 * While the program is away, the helper spins for up to 20 us after each event, and then sleeps on
 * the epoll set with all channels armed. Once the program calls, its own calls serve the peers.
 * Arming channels at the end of each call, and waking the helper for each message, would take
 * many times as long as the message. So the helper dozes, and nothing is armed for it. It checks
 * for calls after 20 us, 40 us and so on up to LONGEST_PAUSE, and serves again if there was none
 * since its last check. If a call sleeps on the set, the helper dozes until a call gives up the
 * lock.
 */
#include "config.h"

#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "base/thread.h"

#define FIRST_PAUSE SLUICE_US(20)
#define LONGEST_PAUSE SLUICE_US(320)
#define NANOSECONDS INT64_C(1000000000)

/* Waits until then; or, while a call sleeps on the set, until a call gives up the lock. */
static void doze(struct sluice_agent *agent, int64_t until)
{
    const struct timespec limit = {.tv_sec = until / NANOSECONDS, .tv_nsec = until % NANOSECONDS};

    slu_agent_arm_for_sleeper(agent);
    if (!agent->driven) {
        pthread_cond_timedwait(&agent->helper.turn, &agent->lock, &limit);
        return;
    }
    agent->helper.parked = true;
    while (agent->helper.parked && !agent->closed)
        pthread_cond_wait(&agent->helper.turn, &agent->lock);
    agent->helper.parked = false;
}

/* Dozes while the program calls. */
static void doze_through(struct sluice_agent *agent)
{
    int64_t pause = FIRST_PAUSE;
    uint64_t seen;

    do {
        seen = agent->helper.calls;
        doze(agent, slu_now() + pause);
        pause = pause < LONGEST_PAUSE ? pause * 2 : LONGEST_PAUSE;
    } while (!agent->closed && (agent->helper.calls != seen || agent->driven));
}

static void sleep_on_set(struct sluice_agent *agent)
{
    agent->helper.sleeps = true;
    slu_agent_sleep(agent, SLUICE_FOREVER);
    agent->helper.sleeps = agent->helper.woken = false;
}

/* Serves until the program calls. */
static void serve_alone(struct sluice_agent *agent)
{
    uint64_t seen = agent->helper.calls;
    int64_t begun = 0;

    while (!agent->closed) {
        bool some = slu_agent_progress(agent);
        int64_t now = slu_now();

        if (agent->helper.calls != seen || agent->driven)
            return;
        if (some)
            begun = now;
        if (!slu_agent_spin(agent, &begun, now))
            sleep_on_set(agent);
    }
}

static void *serve(void *argument)
{
    struct sluice_agent *agent = argument;

    pthread_mutex_lock(&agent->lock);
    while (!agent->closed) {
        serve_alone(agent);
        doze_through(agent);
    }
    pthread_mutex_unlock(&agent->lock);
    return NULL;
}

int slu_agent_start_helper(struct sluice_agent *agent)
{
    int error = slu_thread_start(&agent->thread, "sluice-agent", serve, agent);

    if (error != 0)
        return slu_fail(
            EAGAIN,
            "the thread of the agent cannot be started: %s; raise the limit on threads, "
            "or set SLUICE_AGENT_NO_THREAD and serve peers by calls of the program",
            strerrordesc_np(error));
    agent->has_thread = true;
    return 0;
}
