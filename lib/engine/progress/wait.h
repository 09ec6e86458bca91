/* SPDX-License-Identifier: MIT */
/* Polling once, and waiting. */
#ifndef SLU_ENGINE_PROGRESS_WAIT_H
#define SLU_ENGINE_PROGRESS_WAIT_H

#include "engine/state/engine.h"

/* Polls once, without waiting. Returns whether anything completed. */
bool slu_progress(struct slu_engine *engine);
/*
 * Makes progress until ready(argument) or the absolute time. Returns whether it is ready. The
 * caller has entered the engine.
 */
bool slu_wait(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
              int64_t until);
/*
 * Does the same as slu_wait(), for calls that a wake ends. Returns 1 if ready, 0 if the time is up,
 * and -EINTR, with its text, if woken. A wait that is ready is never interrupted.
 */
int slu_wait_interruptible(struct slu_engine *engine, bool (*ready)(void *argument), void *argument,
                           int64_t until);
/* Waits until the request is not pending. */
void slu_wait_entry(struct slu_engine *engine, const struct slu_entry *entry);
/*
 * Does the same for a request whose result is wanted, as slu_wait_interruptible(). If the request
 * is the program's, and ends as most do, it is seen already on return. The timeout counts from the
 * first reading of the clock.
 */
int slu_wait_result(struct slu_engine *engine, const struct slu_entry *entry, uint64_t id,
                    int64_t timeout);
/* Waits until the work of a failed peer has ended, for at most the drain bound. */
void slu_peer_await_idle(struct slu_engine *engine, struct slu_peer *peer);

/*
 * The state of a spin. It begins on the first slu_spin() with until == 0, so a zeroed one has not
 * begun.
 */
struct slu_spin {
    int64_t hot; /* no yield before this time */
    int64_t until;
    int64_t patience; /* the spin lasts (patience + 1) times the spin time */
    int64_t turn;     /* for how long the last yield let others run */
    bool slow;        /* the time without yields is over, and the transport was notified */
};

/*
 * For callers that wait for something that raises no event. slu_spin() returns whether to go on
 * spinning, and yields first if the spin is already long; slu_nap() sleeps until the given time at
 * most. The caller has entered the engine.
 */
bool slu_spin(struct slu_engine *engine, struct slu_spin *spin, int64_t now);
void slu_nap(struct slu_engine *engine, int64_t until);

/* For event loops, which have not entered the engine: see sluice_channel_fd(). */
static inline int slu_fd(const struct slu_engine *engine)
{
    return engine->transport->cq_fd(engine->cq);
}

/* Returns when the engine has something to do even if nothing completes. */
static inline int64_t slu_next_due(const struct slu_engine *engine)
{
    int64_t due =
        engine->next_deadline < engine->next_drain ? engine->next_deadline : engine->next_drain;

    return engine->next_probe < due ? engine->next_probe : due;
}

/* Wakes a wait. Any thread and any signal handler may call it, without entering the engine. */
void slu_wake(struct slu_engine *engine);

static inline bool slu_is_woken(const struct slu_engine *engine)
{
    return SLU_UNLIKELY(atomic_load(&engine->woken));
}

/* Takes the wake, because the program polls now. */
void slu_wake_take(struct slu_engine *engine);

static inline void slu_wake_seen(struct slu_engine *engine)
{
    if (slu_is_woken(engine))
        slu_wake_take(engine);
}

#endif
