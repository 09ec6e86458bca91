/* SPDX-License-Identifier: MIT */
/* Waiting until peers have shown a sign of life: each is probed once. */
#include "config.h"

#include "engine/engine.h"
#include "engine/peer/probe.h"
#include "engine/progress/progress.h"

#include <stdio.h>

/* A wait for the peers from first to before end. Those before next were probed. */
struct wait {
    struct slu_engine *engine;
    uint32_t first, end, next;
    int64_t time; /* that the program gave */
};

static bool all_answered(void *argument)
{
    struct wait *wait = argument;
    struct slu_engine *engine = wait->engine;

    for (; wait->next < wait->end; wait->next++) {
        struct slu_peer *peer = &engine->peers[wait->next];

        if (peer->probe.awaited && !slu_probe_ask(engine, peer))
            return false;
    }
    return engine->awaited == 0;
}

/*
 * Marks the peers that have to answer. A peer that has once shown a sign of life is connected until
 * it fails.
 */
static int begin_wait(struct slu_engine *engine, const struct wait *wait)
{
    int error = 0;

    for (uint32_t i = wait->first; i < wait->end && error == 0; i++) {
        struct slu_peer *peer = &engine->peers[i];

        slu_peer_notice_loss(engine, peer);
        if (peer->state != SLUICE_STATE_READY)
            continue;
        if (slu_probe_heard(peer))
            continue;
        error = slu_probe_check(engine, i, peer->probe.access);
        peer->probe.awaited = true;
        engine->awaited++;
    }
    return error;
}

static int fail_late(const struct slu_engine *engine, const struct wait *wait)
{
    struct slu_stand stand = {.heard = -1};
    char time[SLU_DURATION_BYTES], when[SLU_DURATION_BYTES + 8] = "yet";
    const char *colon;
    uint32_t i = wait->first;

    while (!engine->peers[i].probe.awaited)
        i++;
    if (engine->transport->qp_stand != NULL)
        engine->transport->qp_stand(engine->peers[i].qp, &stand);
    colon = stand.waits != NULL ? ": " : "";
    if (stand.waits == NULL)
        stand.waits = "";
    if (wait->time > 0)
        snprintf(when, sizeof when, "within %s", slu_say_duration(wait->time, time));
    if (engine->awaited == 1)
        return slu_fail(ETIMEDOUT, "%s %u has not answered %s%s%s", engine->peer_word, i, when,
                        colon, stand.waits);
    return slu_fail(ETIMEDOUT, "%s %u has not answered %s; %u of %u have not%s%s",
                    engine->peer_word, i, when, engine->awaited, engine->present_count, colon,
                    stand.waits);
}

/* Returns the error of the first peer that has failed, or 0. */
static int find_failure(const struct slu_engine *engine, const struct wait *wait)
{
    struct sluice_error cause;

    for (uint32_t i = wait->first; i < wait->end; i++) {
        const struct slu_peer *peer = &engine->peers[i];

        if (!slu_peer_error(engine, peer, &cause))
            continue;
        if (peer->failed_in == engine->call_number && cause.error != -ECANCELED)
            return slu_fail(-cause.error, "%s", cause.text);
        return slu_fail(ENOTCONN, "%s %u had failed before: %.280s", engine->peer_word, i,
                        cause.text);
    }
    return 0;
}

static int wait_for(struct slu_engine *engine, struct wait *wait, bool interruptible, int64_t until)
{
    int error = begin_wait(engine, wait);
    int result;

    if (error < 0)
        return error;
    result = interruptible ? slu_wait_interruptible(engine, all_answered, wait, until)
                           : slu_wait(engine, all_answered, wait, until);
    error = result < 0 ? result : find_failure(engine, wait);
    return error == 0 && result == 0 ? fail_late(engine, wait) : error;
}

static int await_peers(struct slu_engine *engine, struct slu_peer *peer, bool interruptible,
                       int64_t timeout)
{
    uint32_t first = peer != NULL ? slu_peer_index(engine, peer) : 0;
    struct wait wait = {.engine = engine,
                        .first = first,
                        .end = peer != NULL ? first + 1 : engine->peer_count,
                        .next = first,
                        .time = timeout};
    int error;

    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    error = slu_scope_check(engine);
    if (error < 0)
        return error;
    if (peer != NULL && peer->state == SLUICE_STATE_PREPARED)
        return slu_fail(ENOTCONN, "%s %u is not connected: its handshake is still to come",
                        engine->peer_word, first);
    if (peer != NULL && peer->state == SLUICE_STATE_REMOVED)
        return slu_fail(ENOTCONN, "%s %u was removed", engine->peer_word, first);
    slu_engine_enter(engine);
    slu_progress_all(engine);
    if (peer != NULL && peer->state == SLU_PEER_ABSENT && !slu_peer_appear(engine, peer))
        error = slu_fail(ENOMEM, "no memory to connect %s %u", engine->peer_word, first);
    if (error == 0)
        error = wait_for(engine, &wait, interruptible, slu_after(timeout));
    for (uint32_t i = wait.first; i < wait.end; i++)
        slu_peer_stop_awaiting(engine, &engine->peers[i]);
    slu_engine_leave(engine);
    return error;
}

int slu_wait_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout)
{
    return await_peers(engine, peer, true, timeout);
}

int slu_await_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout)
{
    return await_peers(engine, peer, false, timeout);
}
