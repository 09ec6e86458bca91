/* SPDX-License-Identifier: MIT */
/*
 * The helper of an agent: a thread that serves peers while the program is elsewhere. Guarantee:
 * whatever comes is served by an event if the program is away, and no later than LONGEST_PAUSE after
 * the last call otherwise; and calls that follow each other wake no thread.
 *
 * While the program is away, the helper spins for a moment after each event, and then sleeps on
 * the set with all channels armed. Once the program calls, its own calls serve the peers: arming
 * channels at the end of each, and waking the helper for each message, would take many times as
 * long as the message. So the helper dozes, and nothing is armed for it. It looks after 20 us, 40
 * us and so on up to LONGEST_PAUSE, and serves again when there was no call since it looked last. If a
 * call sleeps on the set, the helper dozes without a limit, until a call gives up the lock.
 */
#include "config.h"

#include <signal.h>
#include <string.h>
#include <time.h>

#include "agent/agent.h"
#include "base/descriptor.h"

#define FIRST_PAUSE SLUICE_US(20)
#define LONGEST_PAUSE SLUICE_US(320)
/* Calls that arm channels as often as this are worth a wake of the helper, which dozes then. */
#define OFTEN SLUICE_US(100)
#define NANOSECONDS INT64_C(1000000000)

void slu_agent_unpark_helper(struct sluice_agent *agent)
{
    if (!agent->helper.parked)
        return;
    agent->helper.parked = false;
    pthread_cond_signal(&agent->helper.turn);
}

bool slu_agent_helper_polls(struct sluice_agent *agent)
{
    struct slu_agent_helper *helper = &agent->helper;
    int64_t now, last = helper->armed;

    if (!helper->sleeps || helper->woken)
        return helper->sleeps;
    now = slu_now();
    helper->armed = now;
    if (now - last > OFTEN)
        return false;
    helper->woken = true;
    slu_agent_wake_sleeper(agent);
    return true;
}

/* Until then at the latest; or, while a call sleeps on the set, until one gives up the lock. */
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

/* While the program calls. */
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

/* Until the program calls. */
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
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&agent->thread, NULL, serve, agent);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0)
        return slu_fail(ENOMEM, "no thread can be started for the agent: %s",
                        strerrordesc_np(error));
    slu_fd_name_thread(agent->thread, "sluice-agent");
    agent->has_thread = true;
    return 0;
}
