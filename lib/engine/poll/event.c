/* SPDX-License-Identifier: MIT */
/*
 * Calls of an event loop before it sleeps on the file descriptor. No sleep misses an event: arming
 * finds what came before, and what comes later ends the sleep.
 */
#include "config.h"

#include <poll.h>

#include "engine/list/list.h"
#include "engine/poll/poll.h"
#include "engine/progress/progress.h"
#include "engine/progress/wait.h"

static bool has_unseen(const struct slu_engine *engine, enum slu_owner owner)
{
    if (slu_unseen(engine, owner) > 0)
        return true;
    for (uint32_t i = 0; i < SLU_FAILURES && engine->failure_count > 0; i++)
        if (engine->failures[i].id != 0 && engine->failures[i].owner == owner)
            return true;
    return false;
}

/*
 * Returns whether nothing can complete any more. The queue of a dead device asks to be polled for
 * ever.
 */
static bool is_over(const struct slu_engine *engine)
{
    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (!slu_peer_over(&engine->peers[i]))
            return false;
    return slu_nothing_pends(engine);
}

/*
 * Returns whether an event loop should poll. The file descriptor is checked for edge-triggered
 * loops: what made it readable before, and was not consumed by a poll, makes no further edge.
 */
static bool has_something(struct slu_engine *engine)
{
    struct pollfd fd = {.fd = slu_fd(engine), .events = POLLIN};
    enum slu_owner owner = engine->scope.open ? SLU_OWNER_SCOPE : SLU_OWNER_PROGRAM;

    if (has_unseen(engine, owner) || (!engine->scope.open && slu_lists_done(engine)))
        return true;
    if (engine->transport->cq_arm(engine->cq) != 0 && !is_over(engine))
        return true;
    if (engine->arrivals != NULL && engine->arrivals->unseen)
        return true;
    return slu_is_woken(engine) || SLU_UNCANCELLED(poll(&fd, 1, 0)) > 0;
}

int slu_arm(struct slu_engine *engine, int64_t *due)
{
    int64_t left;
    bool busy;

    slu_engine_enter(engine);
    slu_end_regions(engine);
    /* next_deadline may be that of a request that is complete, and so may next_drain. */
    if (slu_nothing_pends(engine)) {
        engine->next_deadline = SLUICE_FOREVER;
        if (engine->arrivals == NULL)
            engine->next_drain = SLUICE_FOREVER;
    }
    busy = has_something(engine);
    /* Arming may take time, so the clock is read afterwards. */
    left = slu_next_due(engine);
    if (left != SLUICE_FOREVER)
        left -= slu_now();
    busy = busy || left <= 0;
    engine->armed_in = busy ? 0 : engine->call_number;
    slu_engine_leave(engine);
    if (due != NULL)
        *due = busy ? 0 : left;
    return busy;
}

bool slu_query_enter(struct slu_engine *engine)
{
    bool armed = engine->armed_in == engine->call_number;

    slu_engine_enter(engine);
    slu_progress_all(engine);
    return armed;
}

void slu_query_leave(struct slu_engine *engine, bool armed)
{
    if (armed) {
        /* A completion that the query has taken from the transport would not end the sleep. */
        if (has_something(engine))
            engine->transport->cq_wake(engine->cq);
        engine->armed_in = engine->call_number;
    }
    slu_engine_leave(engine);
}
