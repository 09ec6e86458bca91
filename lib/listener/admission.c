/* SPDX-License-Identifier: MIT */
/* An admission, from the first reply to its end. */
#include "config.h"

#include "listener/admission.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "listener/door.h"
#include "listener/rdmacm.h"
#include "multichannel/multichannel.h"

/*
 * If no event comes earlier, a connecting channel is polled again after this fraction of the time
 * it has taken so far. So a silent peer is polled less and less often.
 */
#define LOOK_PART 8
#define LOOK_LEAST SLUICE_MS(1)
#define LOOK_MOST SLUICE_MS(50)
/* The least interval for a channel whose events the set of the listener reports. */
#define WATCHED_LEAST SLUICE_MS(10)
/* Interval of checks whether the program has closed its scope of the multichannel. */
#define SCOPE_TIME SLUICE_MS(10)
/*
 * Length of the one short wait for a watched channel, and of each of the TURNS waits for another.
 */
#define SPIN_TIME SLUICE_US(50)
#define TURN_TIME SLUICE_MS(2)
#define TURNS 10

static void set_due(struct slu_admission *admission, int64_t due)
{
    admission->due = slu_earlier(due, admission->until);
    admission->listener->next_due = slu_earlier(admission->due, admission->listener->next_due);
}

/* Slots: the table from the data of an event to its admission, which may have ended since. */

static bool take_slot(struct sluice_listener *listener, struct slu_admission *admission)
{
    uint32_t count = listener->slot_count;
    struct slu_admission **slots;
    uint32_t slot = 0;

    while (slot < count && listener->slots[slot] != NULL)
        slot++;
    if (slot == count) {
        slots = realloc(listener->slots, (2 * (size_t)count + 1) * sizeof *slots);
        if (slots == NULL)
            return false;
        memset(slots + count, 0, ((size_t)count + 1) * sizeof *slots);
        listener->slots = slots;
        listener->slot_count = 2 * count + 1;
    }
    listener->slots[slot] = admission;
    admission->slot = slot;
    return true;
}

static void mark_ready(struct slu_admission *admission)
{
    if (admission->is_ready || admission->finished)
        return;
    admission->is_ready = true;
    TAILQ_INSERT_TAIL(&admission->listener->ready, admission, ready);
}

static void unmark_ready(struct slu_admission *admission)
{
    if (admission->is_ready)
        TAILQ_REMOVE(&admission->listener->ready, admission, ready);
    admission->is_ready = false;
}

/* Remove a descriptor from the set before it is closed: another process may share it. */
static void unwatch_channel(struct slu_admission *admission)
{
    if (admission->watched)
        (void)epoll_ctl(admission->listener->epoll, EPOLL_CTL_DEL,
                        sluice_channel_fd(admission->joint.channel), NULL);
    admission->watched = false;
}

static void unwatch_socket(struct slu_admission *admission)
{
    if (admission->incoming->fd >= 0)
        (void)epoll_ctl(admission->listener->epoll, EPOLL_CTL_DEL, admission->incoming->fd, NULL);
}

static void leave_multichannel(struct slu_admission *admission)
{
    if (admission->user.closed != NULL)
        LIST_REMOVE(&admission->user, link);
    admission->user.closed = NULL;
}

/* Finishes an admission: its result is kept until the owner takes it. */
static void finish(struct slu_admission *admission, int error)
{
    struct sluice_listener *listener = admission->listener;

    unwatch_channel(admission);
    unwatch_socket(admission);
    unmark_ready(admission);
    listener->slots[admission->slot] = NULL;
    if (listener->fresh == admission)
        listener->fresh = NULL;
    TAILQ_REMOVE(&listener->under_way, admission, link);
    TAILQ_INSERT_TAIL(&listener->finished, admission, link);
    listener->let_in_count -= slu_admission_is_let_in(admission->owner);
    slu_incoming_free(admission->incoming);
    admission->incoming = NULL;
    slu_proof_forget(&admission->passage.session, sizeof admission->passage.session);
    admission->finished = true;
    admission->error = error;
    if (error < 0)
        snprintf(admission->text, sizeof admission->text, "%s", sluice_last_error());
}

void slu_admission_free(struct slu_admission *admission)
{
    leave_multichannel(admission);
    TAILQ_REMOVE(&admission->listener->finished, admission, link);
    free(admission);
}

/* Sends the thread's text to the other side, unless the other side itself sent the reason. */
static void tell_failure(struct slu_admission *admission, int error)
{
    if (admission->passage.fd < 0)
        slu_rdmacm_reject(admission->incoming, sluice_last_error());
    else if (error != -ECONNABORTED)
        slu_passage_fail(&admission->passage, error);
}

static void give_up(struct slu_admission *admission, int error)
{
    tell_failure(admission, error);
    unwatch_channel(admission);
    slu_joint_undo(&admission->joint);
    leave_multichannel(admission);
    finish(admission, error);
}

void slu_admission_fail(struct slu_admission *admission, int error)
{
    bool told = admission->owner == SLU_OF_CALL || admission->owner == SLU_OF_PROGRAM;

    give_up(admission, error);
    if (told)
        return;
    slu_log(SLUICE_LOG_INFO, "%s was not let in: %s", admission->passage.who, admission->text);
    slu_admission_free(admission);
}

/*
 * The multichannel is being closed, with its peers: ends the admission without undoing its joint.
 */
static void multichannel_closed(struct slu_channel_user *user)
{
    struct slu_admission *admission = slu_container_of(user, struct slu_admission, user);
    struct sluice_listener *listener = admission->listener;
    struct slu_text text;
    int error;

    slu_text_save(&text);
    error = slu_fail(ECANCELED, "the multichannel was closed before %s was let in",
                     admission->passage.who);
    admission->user.closed = NULL;
    admission->joint.added = 0;
    admission->joint.count = 0;
    if (!admission->finished) {
        slu_admission_fail(admission, error);
    } else if (admission->error == 0) {
        admission->error = error;
        snprintf(admission->text, sizeof admission->text, "%s", sluice_last_error());
    }
    slu_text_restore(&text);
    slu_listener_leave(listener);
}

/* Making an admission. */

static struct slu_admission *allocate(struct sluice_incoming *incoming,
                                      const struct slu_admission_plan *plan)
{
    uint32_t count = plan->multichannel != NULL ? incoming->channels : 1;
    struct slu_admission *admission =
        calloc(1, sizeof *admission + 2 * (size_t)count * sizeof(struct sluice_endpoint));

    if (admission == NULL)
        return NULL;
    admission->owner = plan->owner;
    admission->door = plan->door;
    admission->listener = incoming->listener;
    admission->incoming = incoming;
    admission->joint = (struct slu_joint){.pd = plan->pd,
                                          .attr = plan->attr,
                                          .multichannel = plan->multichannel,
                                          .count = count,
                                          .rdmacm = incoming->cm != NULL,
                                          .own = admission->endpoints,
                                          .remote = admission->endpoints + count};
    /* The passage never waits: it reads whole steps, and sends only what fits the socket. */
    admission->passage =
        (struct slu_passage){.fd = incoming->fd, .time = plan->time, .session = incoming->session};
    slu_address_text(&incoming->address, admission->passage.who);
    if (plan->wanted != NULL)
        admission->wanted = *plan->wanted;
    admission->user_data = plan->user_data;
    admission->until = plan->until;
    admission->since = slu_now();
    if (take_slot(incoming->listener, admission))
        return admission;
    free(admission);
    return NULL;
}

static int prepare(struct slu_admission *admission, const struct slu_admission_plan *plan)
{
    int error = slu_is_late(plan->until)
                    ? slu_fail(ETIMEDOUT, "the deadline of the accept has passed")
                    : slu_joint_prepare_for(&admission->joint, admission->incoming);

    if (error == 0 && admission->incoming->fd < 0)
        error = slu_rdmacm_expect(&admission->joint);
    return error;
}

struct slu_admission *slu_admission_make(struct sluice_incoming *incoming,
                                         const struct slu_admission_plan *plan)
{
    struct sluice_listener *listener = incoming->listener;
    struct slu_admission *admission = allocate(incoming, plan);
    int error;

    if (admission == NULL) {
        error = slu_fail(ENOMEM, "no memory to let a peer in");
        return slu_none(slu_incoming_give_up(incoming, error, NULL));
    }
    error = prepare(admission, plan);
    if (error < 0) {
        slu_joint_undo(&admission->joint);
        listener->slots[admission->slot] = NULL;
        slu_proof_forget(&admission->passage.session, sizeof admission->passage.session);
        free(admission);
        return slu_none(slu_incoming_give_up(incoming, error, NULL));
    }
    if (plan->multichannel != NULL) {
        admission->user.closed = multichannel_closed;
        LIST_INSERT_HEAD(&plan->multichannel->base.users, &admission->user, link);
    }
    TAILQ_INSERT_TAIL(&listener->under_way, admission, link);
    listener->let_in_count += slu_admission_is_let_in(plan->owner);
    set_due(admission, SLUICE_FOREVER);
    return admission;
}

/* A part of the reply may have been sent, and then no step can be understood that follows it. */
static int fail_left(const struct slu_admission *admission)
{
    (void)!shutdown(admission->incoming->fd, SHUT_RDWR);
    return slu_fail(ECONNRESET, "%s left before it was let in", admission->passage.who);
}

/* Sends the first reply: the verdict and our endpoints or, over rdma_cm, the only answer. */
static int answer(struct slu_admission *admission, const struct sluice_private_data *own)
{
    struct sluice_incoming *incoming = admission->incoming;
    uint32_t bytes = admission->joint.count * SLUICE_ENDPOINT_BYTES;
    int error;

    if (incoming->fd < 0)
        return slu_rdmacm_answer(incoming, &admission->joint, own);
    slu_passage_make_room(&admission->passage, bytes);
    slu_passage_await(&admission->passage, bytes);
    /* Edge-triggered: the set reports each step once, when it arrives. */
    error = slu_listener_watch(admission->listener, incoming->fd, EPOLLIN | EPOLLRDHUP | EPOLLET,
                               SLU_ADMISSION_TAG + admission->slot);
    if (error < 0)
        return slu_fail(-error, "a connection cannot be watched: %s", strerrordesc_np(-error));
    return slu_negotiation_admit(incoming->fd, &incoming->session, own != NULL ? own->data : NULL,
                                 own != NULL ? own->bytes : 0)
               ? slu_joint_offer(&admission->joint, &admission->passage)
               : fail_left(admission);
}

int slu_admission_start(struct slu_admission *admission, const struct slu_admission_plan *plan)
{
    int error = answer(admission, plan->own);

    if (error == 0)
        return 0;
    give_up(admission, error);
    slu_admission_free(admission);
    return error;
}

/* Advancing an admission. */

static uint32_t bytes_of_step(const struct slu_admission *admission)
{
    return admission->answered ? 0 : admission->joint.count * SLUICE_ENDPOINT_BYTES;
}

static bool has_step(const struct slu_admission *admission)
{
    return !admission->heard && slu_passage_has_step(&admission->passage, bytes_of_step(admission));
}

static int hear_endpoints(struct slu_admission *admission)
{
    int error = slu_joint_answer(&admission->joint, &admission->passage);

    admission->answered = error == 0;
    admission->since = slu_now();
    admission->listener->fresh = admission;
    slu_passage_await(&admission->passage, 0);
    return error;
}

/*
 * Adds the channel to the set, once. From then on the set reports its events whenever it is armed.
 */
static void watch_channel(struct slu_admission *admission)
{
    struct slu_joint *joint = &admission->joint;

    if (!admission->watched && joint->channel != NULL)
        admission->watched =
            slu_listener_watch(admission->listener, sluice_channel_fd(joint->channel),
                               EPOLLIN | EPOLLET, SLU_ADMISSION_TAG + admission->slot) == 0;
}

/* Polls the channels, and waits for the first that is not connected. 0, -ETIMEDOUT, or an error. */
static int look_at_channels(struct slu_admission *admission, int64_t timeout)
{
    struct slu_joint *joint = &admission->joint;

    for (uint32_t i = admission->connected; i < joint->count; i++) {
        int looked = slu_joint_look(joint, &admission->passage, i,
                                    i == admission->connected ? timeout : 0, &admission->heard);

        if (looked < 0 && looked != -ETIMEDOUT)
            return looked;
        admission->connected += looked == 0 && i == admission->connected;
    }
    return admission->connected == joint->count ? 0 : -ETIMEDOUT;
}

/* Polls the channels and arms them. Returns 0, whether they are connected or not; or an error. */
static int look(struct slu_admission *admission)
{
    int error = look_at_channels(admission, 0);

    if (error == -ETIMEDOUT)
        watch_channel(admission);
    /* An event may have come before the channel was armed: poll once more. */
    if (error == -ETIMEDOUT && admission->watched &&
        sluice_channel_arm(admission->joint.channel, NULL) > 0)
        error = look_at_channels(admission, 0);
    return error == -ETIMEDOUT ? 0 : error;
}

/*
 * Takes the next step. Returns 1 if the peer is let in, 0 if not yet, or the error to refuse it
 * with.
 */
static int step(struct slu_admission *admission)
{
    struct slu_passage *passage = &admission->passage;
    bool all, news;
    int error = 0;

    if (passage->fd < 0)
        return slu_rdmacm_look(admission->incoming, &admission->joint);
    if (!admission->answered) {
        if (!has_step(admission))
            return 0;
        error = hear_endpoints(admission);
        if (error < 0)
            return error;
    }
    /* The next step may have arrived meanwhile; the set will not report it again. */
    news = has_step(admission);
    error = look(admission);
    if (error == 0 && news && !admission->heard) {
        error = slu_passage_receive(passage, NULL, 0);
        admission->heard = true;
        admission->since = slu_now();
    }
    all = admission->connected == admission->joint.count;
    if (error < 0 || !all || !admission->heard)
        return error;
    if (admission->door != NULL)
        error = admission->door->admit(admission->door, admission->joint.multichannel);
    if (error == 0)
        error = slu_passage_send(passage, NULL, 0);
    return error < 0 ? error : 1;
}

static int fail_late(struct slu_admission *admission)
{
    struct slu_joint *joint = &admission->joint;

    if (admission->answered && admission->connected < joint->count)
        return slu_joint_fail_late(joint, &admission->passage, admission->connected);
    return slu_passage_fail_late(&admission->passage);
}

static int fail_cancelled(const struct slu_admission *admission)
{
    return slu_fail(ECANCELED, "the admission of %s was cancelled", admission->passage.who);
}

/* Sets the time of the next poll if no event comes. */
static void set_next_due(struct slu_admission *admission, int64_t now)
{
    int64_t pause = (now - admission->since) / LOOK_PART;
    int64_t least = admission->watched ? WATCHED_LEAST : LOOK_LEAST;

    if (!admission->answered || admission->connected == admission->joint.count) {
        set_due(admission, SLUICE_FOREVER);
        return;
    }
    pause = pause < least ? least : pause;
    set_due(admission, now + slu_earlier(pause, LOOK_MOST));
}

static void advance(struct slu_admission *admission)
{
    int64_t now;
    int state;

    if (slu_joint_is_busy(&admission->joint)) {
        set_due(admission, slu_now() + SCOPE_TIME);
        return;
    }
    state = admission->cancelled ? fail_cancelled(admission) : step(admission);
    now = slu_now();
    if (state == 0 && slu_is_late_at(now, admission->until))
        state = fail_late(admission);
    if (state == 1)
        finish(admission, 0);
    else if (state < 0)
        slu_admission_fail(admission, state);
    else
        set_next_due(admission, now);
}

/* All admissions of a listener. */

void slu_admissions_init(struct sluice_listener *listener)
{
    TAILQ_INIT(&listener->under_way);
    TAILQ_INIT(&listener->finished);
    TAILQ_INIT(&listener->ready);
    listener->next_due = SLUICE_FOREVER;
}

void slu_admissions_event(struct sluice_listener *listener, uint32_t slot)
{
    if (slot < listener->slot_count && listener->slots[slot] != NULL)
        mark_ready(listener->slots[slot]);
}

void slu_admissions_rdmacm(struct sluice_listener *listener)
{
    struct slu_admission *admission;

    TAILQ_FOREACH(admission, &listener->under_way, link)
    if (admission->passage.fd < 0)
        mark_ready(admission);
}

static void mark_due(struct sluice_listener *listener, int64_t now)
{
    struct slu_admission *admission;

    listener->next_due = SLUICE_FOREVER;
    TAILQ_FOREACH(admission, &listener->under_way, link)
    {
        if (admission->due <= now)
            mark_ready(admission);
        else
            listener->next_due = slu_earlier(listener->next_due, admission->due);
    }
}

void slu_admissions_step(struct sluice_listener *listener)
{
    struct slu_admission *admission;
    struct slu_text text;
    int64_t now;

    if (TAILQ_EMPTY(&listener->under_way)) {
        listener->next_due = SLUICE_FOREVER;
        return;
    }
    slu_text_save(&text);
    now = slu_now();
    if (now >= listener->next_due)
        mark_due(listener, now);
    while ((admission = TAILQ_FIRST(&listener->ready)) != NULL) {
        unmark_ready(admission);
        advance(admission);
    }
    slu_text_restore(&text);
}

struct slu_admission *slu_admissions_finished(const struct sluice_listener *listener,
                                              enum slu_admission_owner owner)
{
    struct slu_admission *admission;

    TAILQ_FOREACH(admission, &listener->finished, link)
    if (admission->owner == owner)
        return admission;
    return NULL;
}

uint32_t slu_admissions_end(struct sluice_listener *listener, unsigned owners, int error,
                            const char *why)
{
    struct slu_admission *admission, *next;
    uint32_t count = 0;

    for (admission = TAILQ_FIRST(&listener->under_way); admission != NULL; admission = next) {
        next = TAILQ_NEXT(admission, link);
        if ((owners & 1U << admission->owner) == 0)
            continue;
        slu_admission_fail(admission, slu_fail(error, "%s", why));
        count++;
    }
    for (admission = TAILQ_FIRST(&listener->finished); admission != NULL; admission = next) {
        next = TAILQ_NEXT(admission, link);
        if ((owners & 1U << admission->owner) == 0)
            continue;
        if (admission->error == 0) {
            slu_joint_undo(&admission->joint);
            count++;
        }
        slu_admission_free(admission);
    }
    return count;
}

/* Waiting calls. */

bool slu_admission_spin(struct slu_admission *admission)
{
    uint32_t turns = admission->watched ? 1 : TURNS;
    struct slu_text text;
    int error;

    if (!admission->answered || admission->connected == admission->joint.count ||
        admission->spins >= turns || slu_joint_is_busy(&admission->joint))
        return false;
    admission->spins++;
    slu_text_save(&text);
    error = look_at_channels(admission, turns == 1 ? SPIN_TIME : TURN_TIME);
    if (error < 0 && error != -ETIMEDOUT)
        slu_admission_fail(admission, error);
    else
        mark_ready(admission);
    slu_text_restore(&text);
    return true;
}
