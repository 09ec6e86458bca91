/* SPDX-License-Identifier: MIT */
/*
 * Waiting for whoever comes and letting it in: several at a time, so that one that falls
 * silent amid it holds up nobody. The first that is connected is the result; those that are
 * not yet stay with the listener, and the next call goes on with them. One that fails, whatever
 * it did, is refused alone.
 */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "engine/engine.h"
#include "listener/door.h"
#include "listener/rdmacm.h"

/* Who has been silent for so long makes room for one that waits. */
#define SILENT_TIME SLUICE_S(10)
/* A channel that has just begun to connect is waited for shortly, and then reported by the set. */
#define SPIN_TIME SLUICE_US(50)
/* One that cannot be reported is waited for in turns; others are looked at. */
#define FRESH_TIME SLUICE_MS(20)
#define TURN_TIME SLUICE_MS(2)
#define LOOK_TIME SLUICE_MS(10)

struct slu_admission {
    struct sluice_incoming *incoming;
    struct sluice_channel_attr attr;
    struct slu_joint joint;
    struct slu_passage passage;
    int64_t since; /* its last step */
    bool answered; /* its endpoint is here, and the channel connects */
    bool connected;
    bool watched; /* the set of the listener reports what its channel has */
    bool spun;    /* and it was waited for shortly before that */
    bool heard;   /* it says that its channel is connected */
};

/* A call of the program, or of who has a door. */
struct accept {
    struct sluice_listener *listener;
    struct slu_door *door; /* NULL: a channel is wanted, of the next three */
    struct sluice_pd *pd;
    const struct sluice_channel_attr *given;
    struct sluice_channel_attr attr;
    int64_t until;
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Its socket leaves the set of the listener before it is closed: a process may share it. */
static void free_admission(struct slu_admission *admission)
{
    if (admission->incoming->fd >= 0)
        (void)epoll_ctl(admission->incoming->listener->epoll, EPOLL_CTL_DEL,
                        admission->incoming->fd, NULL);
    slu_incoming_free(admission->incoming);
    slu_proof_forget(&admission->passage.session, sizeof admission->passage.session);
    free(admission);
}

static void leave_list(struct sluice_listener *listener, uint32_t index)
{
    struct slu_admission **at = &listener->admissions[index];

    memmove(at, at + 1, (--listener->admission_count - index) * sizeof *at);
}

/* Refused alone: it hears the thread's text, unless it said itself why. */
static void drop(struct sluice_listener *listener, uint32_t index, int error)
{
    struct slu_admission *admission = listener->admissions[index];
    char text[SLU_ADDRESS_TEXT];

    slu_log(SLUICE_LOG_INFO, "%s was not let in: %s",
            slu_address_text(&admission->incoming->address, text), sluice_last_error());
    if (admission->passage.fd < 0)
        slu_rdmacm_reject(admission->incoming, sluice_last_error());
    else if (error != -ECONNABORTED)
        slu_passage_fail(&admission->passage, error);
    slu_joint_undo(&admission->joint);
    leave_list(listener, index);
    free_admission(admission);
}

void slu_accept_end(struct sluice_listener *listener)
{
    while (listener->admission_count > 0)
        drop(listener, 0, slu_fail(ECANCELED, "the listener was closed"));
}

static struct slu_admission *make_admission(const struct accept *accept,
                                            struct sluice_incoming *incoming,
                                            const struct slu_welcome *welcome)
{
    struct slu_admission *admission = calloc(1, sizeof *admission);

    if (admission == NULL)
        return NULL;
    admission->incoming = incoming;
    admission->attr = accept->attr;
    admission->joint = (struct slu_joint){
        .pd = accept->pd, .attr = accept->given, .multichannel = welcome->multichannel, .count = 1};
    /* Nothing of it waits: it has whole steps, and says what fits its socket. */
    admission->passage = (struct slu_passage){.fd = incoming->fd, .session = incoming->session};
    slu_address_text(&incoming->address, admission->passage.who);
    admission->since = slu_now();
    return admission;
}

/* What it hears first: that it is let in, and our endpoint; or all, over rdma_cm. */
static int answer(struct slu_admission *admission, const struct slu_welcome *welcome)
{
    struct sluice_incoming *incoming = admission->incoming;

    if (incoming->fd < 0)
        return slu_rdmacm_answer(incoming, &admission->joint, &welcome->own);
    slu_passage_await(&admission->passage, SLUICE_ENDPOINT_BYTES);
    return slu_offer_say(incoming->fd, &incoming->session, SLU_WORD_ADMITTED, welcome->own.data,
                         welcome->own.bytes)
               ? slu_joint_offer(&admission->joint, &admission->passage)
               : slu_fail(ECONNRESET, "%s left before it was let in", admission->passage.who);
}

/* It is let in, step by step. An error is ours. */
static int begin(const struct accept *accept, struct sluice_incoming *incoming,
                 const struct slu_welcome *welcome)
{
    struct sluice_listener *listener = accept->listener;
    struct slu_admission *admission = make_admission(accept, incoming, welcome);
    int error;

    if (admission == NULL)
        return slu_incoming_give_up(incoming, slu_fail(ENOMEM, "no memory to let a peer in"), NULL);
    error = slu_joint_prepare_for(&admission->joint, incoming);
    if (error == 0 && incoming->fd < 0)
        error = slu_rdmacm_expect(&admission->joint);
    if (error < 0) {
        slu_joint_undo(&admission->joint);
        free(admission);
        return slu_incoming_give_up(incoming, error, NULL);
    }
    listener->admissions[listener->admission_count++] = admission;
    /* The set of the listener reports each step that arrives, once. */
    if (incoming->fd >= 0)
        error = slu_listener_watch(listener, incoming->fd, EPOLLIN | EPOLLRDHUP | EPOLLET,
                                   SLU_ADMISSION_TAG);
    error = error == 0
                ? answer(admission, welcome)
                : slu_fail(-error, "a connection cannot be watched: %s", strerrordesc_np(-error));
    if (error < 0)
        drop(listener, listener->admission_count - 1, error);
    return 0;
}

/* What one is told that has come for a single channel, if whoever is behind the door agrees. */
static int judge(const struct accept *accept, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome)
{
    int error = slu_incoming_check(incoming);

    *welcome = (struct slu_welcome){.multichannel = NULL};
    if (error == 0 && accept->door != NULL)
        error = accept->door->judge(accept->door, incoming, welcome);
    return error;
}

/* One more has a place, though it be that of one that is silent. */
static bool make_room(struct sluice_listener *listener)
{
    uint32_t first = 0;

    if (listener->admission_count < SLU_ADMISSIONS)
        return true;
    for (uint32_t i = 1; i < listener->admission_count; i++)
        if (listener->admissions[i]->since < listener->admissions[first]->since)
            first = i;
    if (slu_now() - listener->admissions[first]->since < SILENT_TIME)
        return false;
    drop(listener, first,
         slu_fail(ETIMEDOUT, "%s did not go on, and others wait to be let in",
                  listener->admissions[first]->passage.who));
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

/* What one call began, another one goes on with if it wants the same. */
static bool is_wanted(const struct accept *accept, const struct slu_admission *admission)
{
    return accept->door != NULL ||
           (admission->joint.pd == accept->pd &&
            memcmp(&admission->attr, &accept->attr, sizeof accept->attr) == 0);
}

static int hear_endpoint(struct slu_admission *admission)
{
    int error = slu_joint_answer(&admission->joint, &admission->passage);

    admission->answered = error == 0;
    admission->since = slu_now();
    slu_passage_await(&admission->passage, 0);
    return error;
}

/* Once: the set reports it from then on, whenever the channel is armed. */
static void watch_channel(struct slu_admission *admission)
{
    struct slu_joint *joint = &admission->joint;

    if (!admission->watched && joint->channel != NULL)
        admission->watched =
            slu_listener_watch(admission->incoming->listener, sluice_channel_fd(joint->channel),
                               EPOLLIN | EPOLLET, SLU_ADMISSION_TAG) == 0;
}

static void unwatch_channel(struct slu_admission *admission)
{
    if (admission->watched)
        (void)epoll_ctl(admission->incoming->listener->epoll, EPOLL_CTL_DEL,
                        sluice_channel_fd(admission->joint.channel), NULL);
    admission->watched = false;
}

/* 0: it is connected, or not yet; or an error. */
static int look(struct slu_admission *admission)
{
    int error = slu_joint_look(&admission->joint, &admission->passage, 0, 0, &admission->heard);

    watch_channel(admission);
    /* What came before it was armed is found by one more look. */
    if (error == -ETIMEDOUT && admission->watched &&
        sluice_channel_arm(admission->joint.channel, NULL) > 0)
        error = slu_joint_look(&admission->joint, &admission->passage, 0, 0, &admission->heard);
    admission->connected = error == 0;
    return error == -ETIMEDOUT || error == -EINTR ? 0 : error;
}

/* 1: it is in; 0: not yet; or the error of which it is refused. */
static int step(struct slu_admission *admission)
{
    struct slu_passage *passage = &admission->passage;
    bool news = passage->fd >= 0 && !admission->heard && slu_passage_has_news(passage);
    int error = 0;

    if (passage->fd < 0)
        return slu_rdmacm_look(admission->incoming, &admission->joint);
    if (!admission->answered) {
        error = news ? hear_endpoint(admission) : 0;
        if (error < 0 || !news)
            return error;
        /* The next step may have arrived meanwhile, and the set reports it no more. */
        news = slu_passage_has_news(passage);
    }
    if (!admission->connected)
        error = look(admission);
    if (error == 0 && news) {
        error = slu_passage_hear(passage, NULL, 0);
        admission->heard = true;
        admission->since = slu_now();
    }
    if (error < 0 || !admission->connected || !admission->heard)
        return error;
    error = slu_passage_send(passage, NULL, 0);
    return error < 0 ? error : 1;
}

/* The first that is in, which is the caller's; NULL: none yet. */
static struct slu_admission *step_all(const struct accept *accept)
{
    struct sluice_listener *listener = accept->listener;

    for (uint32_t i = 0; i < listener->admission_count;) {
        struct slu_admission *admission = listener->admissions[i];
        int state = is_wanted(accept, admission) ? step(admission) : 0;

        if (state == 1) {
            unwatch_channel(admission);
            leave_list(listener, i);
            return admission;
        }
        if (state < 0)
            drop(listener, i, state);
        else
            i++;
    }
    return NULL;
}

/* The newest that is to be waited for by itself; NULL: there is none. */
static struct slu_admission *watch(const struct accept *accept, struct pollfd fds[SLU_DOOR_FDS],
                                   int64_t *until)
{
    struct sluice_listener *listener = accept->listener;
    struct slu_admission *newest = NULL;
    int64_t now = slu_now();

    fds[0] = (struct pollfd){.fd = listener->epoll, .events = POLLIN};
    /* There is no room for who waits. */
    if (listener->first != NULL)
        *until = earlier(*until, now + LOOK_TIME);
    for (uint32_t i = 0; i < listener->admission_count; i++) {
        struct slu_admission *admission = listener->admissions[i];
        bool wanted = is_wanted(accept, admission);

        fds[1 + i] = (struct pollfd){.fd = -1, .events = POLLIN};
        if (wanted && !admission->heard)
            fds[1 + i].fd = admission->passage.fd;
        if (!wanted || !admission->answered || admission->connected)
            continue;
        *until = earlier(*until, now + LOOK_TIME);
        if (admission->watched ? !admission->spun : now - admission->since < FRESH_TIME)
            newest = admission;
    }
    return newest;
}

/* For any of them, and for others. */
static void await(const struct accept *accept)
{
    struct pollfd fds[SLU_DOOR_FDS];
    int64_t until = accept->until;
    struct slu_admission *newest = watch(accept, fds, &until);

    if (newest == NULL) {
        (void)!poll(fds, 1 + accept->listener->admission_count, slu_milliseconds(until));
        return;
    }
    (void)!sluice_channel_wait_connected(newest->joint.channel,
                                         newest->watched ? SPIN_TIME : TURN_TIME);
    newest->spun = true;
}

static void *fail_late(const struct sluice_listener *listener)
{
    if (listener->admission_count == 0)
        return slu_fail_null(ETIMEDOUT, "nobody wants to connect yet");
    return slu_fail_null(ETIMEDOUT, "nobody is connected yet; the next call goes on with %u",
                         listener->admission_count);
}

static int check(struct accept *accept, int64_t timeout)
{
    const struct sluice_listener *listener = accept->listener;
    int error;

    if (listener == NULL || listener->magic != SLU_MAGIC_LISTENER)
        return slu_misuse(EINVAL, "not a listener%s", slu_none_hint(listener));
    if (timeout < 0)
        return slu_misuse(EINVAL, "timeout %lld is negative", (long long)timeout);
    error = slu_channel_check(accept->pd, accept->given);
    if (error == 0)
        error = slu_attr_copy(&accept->attr, sizeof accept->attr, sizeof accept->attr.size,
                              accept->given, "sluice_channel_attr");
    accept->attr.size = sizeof accept->attr;
    return error;
}

struct sluice_channel *sluice_accept(struct sluice_listener *listener, struct sluice_pd *pd,
                                     const struct sluice_channel_attr *attr, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    struct accept accept = {.listener = listener, .pd = pd, .given = attr};
    int error = check(&accept, timeout);

    if (error < 0)
        return slu_none(error);
    accept.until = slu_after(timeout);
    for (;;) {
        struct slu_admission *admission;

        slu_listener_progress(listener, 0);
        error = begin_all(&accept);
        if (error < 0)
            return slu_none(error);
        admission = step_all(&accept);
        if (admission != NULL) {
            struct sluice_channel *channel = admission->joint.channel;

            free_admission(admission);
            slu_made();
            return channel;
        }
        error = listener->admission_count == 0 ? slu_rdmacm_check_gate(listener->gate) : 0;
        if (error < 0)
            return slu_none(error);
        if (slu_listener_was_woken(listener))
            return slu_fail_null(EINTR, "the wait was ended by a wake; nothing was lost");
        if (slu_is_late(accept.until))
            return fail_late(listener);
        await(&accept);
    }
}

bool slu_door_step(struct slu_door *door, struct slu_entrant *entrant)
{
    struct accept accept = {.listener = door->listener, .door = door};
    struct slu_admission *admission;

    slu_listener_progress(door->listener, 0);
    /* Who cannot be let in for want of something has heard so. */
    (void)!begin_all(&accept);
    admission = step_all(&accept);
    if (admission == NULL)
        return false;
    *entrant = (struct slu_entrant){.multichannel = admission->joint.multichannel,
                                    .peer = admission->joint.peers[0]};
    free_admission(admission);
    return true;
}

uint32_t slu_door_watch(const struct slu_door *door, struct pollfd fds[SLU_DOOR_FDS],
                        int64_t *until)
{
    struct accept accept = {.listener = door->listener, .door = (struct slu_door *)door};

    if (watch(&accept, fds, until) != NULL)
        *until = earlier(*until, slu_now() + TURN_TIME);
    return 1 + door->listener->admission_count;
}
