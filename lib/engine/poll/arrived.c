/* SPDX-License-Identifier: MIT */
/* Calls about arrivals: how many of a tag have come, and waiting for more. */
#include "config.h"

#include "engine/peer/words.h"
#include "engine/poll/poll.h"
#include "engine/progress/progress.h"
#include "engine/progress/wait.h"

static int check_tag(const struct slu_engine *engine, uint32_t tag)
{
    if (engine->arrivals == NULL)
        return slu_misuse(EINVAL,
                          "arrivals are not counted: sluice_channel_attr.arrival_tags is 0");
    if (tag >= engine->arrival_tags)
        return slu_misuse(EINVAL, "tag %u: there are tags 0..%u", tag, engine->arrival_tags - 1);
    return 0;
}

int slu_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t *count)
{
    int error = check_tag(engine, tag);

    if (error < 0)
        return error;
    if (count == NULL)
        return slu_misuse(EINVAL, "count must not be NULL");
    slu_engine_enter(engine);
    slu_wake_seen(engine);
    slu_progress(engine);
    engine->arrivals->unseen = false;
    slu_engine_leave(engine);
    *count = engine->arrivals->counts[tag];
    return 0;
}

/*
 * A wait for arrivals. epoch is the engine's from before the peers were last checked for failures.
 */
struct expected {
    struct slu_engine *engine;
    const uint64_t *count;
    uint64_t least;
    uint64_t epoch;
};

static bool has_arrived(void *argument)
{
    const struct expected *expected = argument;

    return *expected->count >= expected->least || expected->engine->epoch != expected->epoch;
}

/*
 * Returns why no more arrivals can come: the error of a peer that was lost during this call, or
 * -ENOTCONN if no peer is connected; else 0.
 */
static int find_loss(struct slu_engine *engine)
{
    struct sluice_error cause;
    bool connected = false;

    for (uint32_t i = 0; i < engine->peer_count; i++) {
        struct slu_peer *peer = &engine->peers[i];

        slu_peer_notice_loss(engine, peer);
        if (peer->failed_in == engine->call_number && slu_peer_error(engine, peer, &cause))
            return slu_fail(-cause.error, "%s", cause.text);
        connected |= peer->state == SLUICE_STATE_READY;
    }
    return connected ? 0 : slu_fail(ENOTCONN, "no peer is connected that could send more");
}

static int wait_for(struct expected *expected, int64_t until)
{
    struct slu_engine *engine = expected->engine;
    int result = 0;

    slu_progress_all(engine);
    while (*expected->count < expected->least) {
        expected->epoch = engine->epoch;
        result = find_loss(engine);
        if (result == 0 && expected->epoch == engine->epoch)
            result = slu_wait_interruptible(engine, has_arrived, expected, until);
        if (result < 0 || (result == 0 && expected->epoch == engine->epoch))
            break;
    }
    return result;
}

int slu_wait_arrivals(struct slu_engine *engine, uint32_t tag, uint64_t least, int64_t timeout)
{
    int result = check_tag(engine, tag);
    struct expected expected = {.engine = engine, .least = least};

    if (result < 0)
        return result;
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    expected.count = &engine->arrivals->counts[tag];
    slu_engine_enter(engine);
    engine->arrivals->unseen = false;
    result = wait_for(&expected, slu_after(timeout));
    slu_engine_leave(engine);
    if (*expected.count >= least)
        return 0;
    return result < 0
               ? result
               : slu_fail(ETIMEDOUT, "%llu of %llu arrivals of tag %u have come",
                          (unsigned long long)*expected.count, (unsigned long long)least, tag);
}
