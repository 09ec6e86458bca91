/* SPDX-License-Identifier: MIT */
/*
 * sluice_accept() and doors: wait for connections and let them in. Many are let in side by side, so
 * that a peer that stops answering holds up no other peer. The first one that is connected is the
 * result. The others stay with the listener, and the next call continues with them. A failure of
 * one peer, whatever the cause, refuses only that peer.
 */
#include "config.h"

#include <string.h>

#include "engine/engine.h"
#include "listener/admission.h"
#include "listener/door.h"
#include "listener/rdmacm.h"

/* A call of sluice_accept(), or of a door. */
struct accept {
    struct sluice_listener *listener;
    struct slu_door *door; /* NULL: a channel is wanted, by the next three */
    struct sluice_pd *pd;
    const struct sluice_channel_attr *given;
    struct sluice_channel_attr attr;
    int64_t until;
};

static struct slu_admission_plan plan_of(const struct accept *accept,
                                         const struct slu_welcome *welcome)
{
    struct slu_admission_plan plan = {.owner = SLU_OF_ACCEPT,
                                      .pd = accept->pd,
                                      .attr = accept->given,
                                      .wanted = &accept->attr,
                                      .until = SLUICE_FOREVER};

    if (accept->door != NULL)
        plan = (struct slu_admission_plan){.owner = SLU_OF_DOOR,
                                           .door = accept->door,
                                           .pd = welcome->pd,
                                           .attr = welcome->attr,
                                           .multichannel = welcome->multichannel,
                                           .own = &welcome->own,
                                           .until = SLUICE_FOREVER};
    return plan;
}

/* Begins to let a connection in. Returns an error only if this side cannot prepare for it. */
static int begin(const struct accept *accept, struct sluice_incoming *incoming,
                 const struct slu_welcome *welcome)
{
    const struct slu_admission_plan plan = plan_of(accept, welcome);
    struct slu_admission *admission = slu_admission_make(incoming, &plan);
    char who[SLU_ADDRESS_TEXT];

    if (admission == NULL)
        return -errno;
    memcpy(who, admission->passage.who, sizeof who);
    if (slu_admission_start(admission, &plan) < 0)
        slu_log(SLUICE_LOG_INFO, "%s was not let in: %s", who, sluice_last_error());
    return 0;
}

/*
 * Decides about a connection. Only one channel can be let in, and the owner of the door has to
 * agree.
 */
static int judge(const struct accept *accept, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome)
{
    int error = slu_incoming_check(incoming);

    *welcome = (struct slu_welcome){.multichannel = NULL};
    if (error == 0 && accept->door != NULL)
        error = accept->door->judge(accept->door, incoming, welcome);
    return error;
}

/* Returns the admission whose last step is the oldest. At least one is under way. */
static struct slu_admission *find_oldest(const struct sluice_listener *listener)
{
    struct slu_admission *oldest = NULL, *admission;

    for (admission = TAILQ_FIRST(&listener->under_way); admission != NULL;
         admission = TAILQ_NEXT(admission, link))
        if (slu_admission_is_let_in(admission->owner) &&
            (oldest == NULL || admission->since < oldest->since))
            oldest = admission;
    return oldest;
}

/* Returns whether there is a place for one more, after a silent peer was refused if need be. */
static bool make_room(struct sluice_listener *listener)
{
    struct slu_admission *oldest;
    int64_t due;

    if (listener->let_in_count < listener->let_in_most)
        return true;
    oldest = find_oldest(listener);
    due = oldest->since + SLU_SILENT_TIME;
    if (slu_now() < due) {
        listener->next_due = slu_earlier(listener->next_due, due);
        return false;
    }
    slu_admission_fail(oldest, slu_fail(ETIMEDOUT, "%s did not go on, and others wait to be let in",
                                        oldest->passage.who));
    return true;
}

static int begin_all(const struct accept *accept)
{
    int error = 0;

    while (error == 0 && accept->listener->first != NULL && make_room(accept->listener)) {
        struct sluice_incoming *incoming = slu_listener_take(accept->listener);
        struct slu_welcome welcome;
        int judged;

        if (incoming == NULL)
            break;
        judged = judge(accept, incoming, &welcome);
        if (judged < 0)
            (void)slu_incoming_give_up(incoming, judged, NULL);
        else
            error = begin(accept, incoming, &welcome);
    }
    return error;
}

/*
 * Returns whether the call may take this admission: a different call may have begun it, if that
 * call wanted the same.
 */
static bool is_wanted(const struct accept *accept, const struct slu_admission *admission)
{
    if (accept->door != NULL)
        return admission->owner == SLU_OF_DOOR;
    return admission->owner == SLU_OF_ACCEPT && admission->joint.pd == accept->pd &&
           memcmp(&admission->wanted, &accept->attr, sizeof accept->attr) == 0;
}

/*
 * Returns the first connected admission that the call may take, or NULL. Frees those that failed
 * because their multichannel was closed.
 */
static struct slu_admission *find_finished(const struct accept *accept)
{
    struct slu_admission *admission = TAILQ_FIRST(&accept->listener->finished), *next;

    for (; admission != NULL; admission = next) {
        next = TAILQ_NEXT(admission, link);
        if (!is_wanted(accept, admission))
            continue;
        if (admission->error == 0)
            return admission;
        slu_admission_free(admission);
    }
    return NULL;
}

/* Waits for an event, but first, shortly, for the channel that was the last to begin to connect. */
static void await(const struct accept *accept)
{
    struct slu_admission *fresh = accept->listener->fresh;

    if (fresh == NULL || !slu_admission_spin(fresh))
        slu_listener_progress(accept->listener, accept->until);
}

static void *fail_late(const struct sluice_listener *listener)
{
    if (listener->let_in_count == 0)
        return slu_fail_null(ETIMEDOUT, "nobody wants to connect yet");
    return slu_fail_null(ETIMEDOUT, "nobody is connected yet; the next call goes on with %u",
                         listener->let_in_count);
}

static int check(struct accept *accept, int64_t timeout)
{
    const struct sluice_listener *listener = accept->listener;
    int error;

    if (!slu_is_listener(listener))
        return slu_not_a_listener(listener);
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    error = slu_channel_check(accept->pd, accept->given);
    if (error == 0)
        error = SLU_ATTR_COPY(sluice_channel_attr, &accept->attr, accept->given);
    accept->attr.size = sizeof accept->attr;
    return error;
}

static struct sluice_channel *accept_next(const struct accept *accept)
{
    struct sluice_listener *listener = accept->listener;

    for (;;) {
        struct slu_admission *admission;
        int error;

        slu_listener_progress(listener, 0);
        error = begin_all(accept);
        if (error < 0)
            return slu_none(error);
        admission = find_finished(accept);
        if (admission != NULL) {
            struct sluice_channel *channel = admission->joint.channel;

            slu_admission_free(admission);
            slu_made();
            return channel;
        }
        error = listener->let_in_count == 0 ? slu_rdmacm_check_gate(listener->gate) : 0;
        if (error < 0)
            return slu_none(error);
        if (slu_listener_was_woken(listener))
            return slu_fail_null(EINTR, "the wait was ended by a wake; nothing was lost");
        if (slu_is_late(accept->until))
            return fail_late(listener);
        await(accept);
    }
}

struct sluice_channel *sluice_accept(struct sluice_listener *listener, struct sluice_pd *pd,
                                     const struct sluice_channel_attr *attr, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    struct accept accept = {.listener = listener, .pd = pd, .given = attr};
    struct sluice_channel *channel;
    int error = check(&accept, timeout);

    if (error < 0)
        return slu_none(error);
    accept.until = slu_after(timeout);
    channel = accept_next(&accept);
    slu_listener_leave(listener);
    return channel;
}

bool slu_door_step(struct slu_door *door, struct slu_entrant *entrant)
{
    struct accept accept = {.listener = door->listener, .door = door};
    struct slu_admission *admission;

    slu_listener_progress(door->listener, 0);
    /* An error refused its peer with the reason; the door goes on. */
    if (begin_all(&accept) < 0)
        slu_log(SLUICE_LOG_WARN, "a peer cannot be let in: %s", sluice_last_error());
    admission = find_finished(&accept);
    if (admission != NULL) {
        *entrant = (struct slu_entrant){.multichannel = admission->joint.multichannel,
                                        .peer = admission->joint.peers[0],
                                        .channel = admission->joint.channel};
        slu_admission_free(admission);
    }
    slu_listener_leave(door->listener);
    return admission != NULL;
}

uint32_t slu_door_count(const struct slu_door *door, const struct sluice_multichannel *multichannel)
{
    const struct slu_admission *admission = TAILQ_FIRST(&door->listener->finished);
    uint32_t count = 0;

    for (; admission != NULL; admission = TAILQ_NEXT(admission, link))
        count += admission->owner == SLU_OF_DOOR && admission->error == 0 &&
                 admission->joint.multichannel == multichannel;
    return count;
}
