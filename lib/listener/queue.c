/* SPDX-License-Identifier: MIT */
/*
 * The queue of a listener: connections that have proven themselves and are neither let in nor
 * refused. Also what keeps the descriptor of the listener readable: its timer.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "listener/admission.h"
#include "listener/rdmacm.h"

#define TICK_TIME SLUICE_MS(50)

int slu_listener_watch(const struct sluice_listener *listener, int fd, uint32_t events,
                       uint64_t data)
{
    struct epoll_event event = {.events = events, .data.u64 = data};

    return epoll_ctl(listener->epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : -errno;
}

void slu_listener_drop(struct sluice_listener *listener)
{
    const int fds[] = {listener->epoll, listener->event, listener->timer};

    /* Incoming connections that the program still has keep the listener. */
    if (--listener->holds > 0)
        return;
    slu_rdmacm_forget(listener);
    for (int i = 0; i < 3; i++)
        if (fds[i] >= 0)
            slu_fd_close(fds[i]);
    free(listener->slots);
    slu_secret_forget(&listener->secret);
    free(listener);
}

void slu_incoming_free(struct sluice_incoming *incoming)
{
    incoming->magic = SLU_MAGIC_DEAD;
    if (incoming->fd >= 0)
        slu_fd_close(incoming->fd);
    slu_rdmacm_drop(incoming);
    slu_listener_drop(incoming->listener);
    slu_proof_forget(&incoming->session, sizeof incoming->session);
    free(incoming);
}

void slu_listener_add(struct sluice_listener *listener, struct sluice_incoming *incoming)
{
    incoming->magic = SLU_MAGIC_INCOMING;
    incoming->listener = listener;
    if (listener->last != NULL)
        listener->last->next = incoming;
    else
        listener->first = incoming;
    listener->last = incoming;
    listener->waiting++;
    listener->holds++;
}

/* Unlinks the connection behind this one from the queue. NULL: unlinks the first. */
static void unlink_incoming(struct sluice_listener *listener, struct sluice_incoming *before)
{
    struct sluice_incoming **at = before != NULL ? &before->next : &listener->first;
    struct sluice_incoming *incoming = *at;

    *at = incoming->next;
    if (listener->last == incoming)
        listener->last = before;
    incoming->next = NULL;
    listener->waiting--;
    if (incoming->fd >= 0)
        epoll_ctl(listener->epoll, EPOLL_CTL_DEL, incoming->fd, NULL);
}

/* A queued connection sends nothing before its verdict, so its event is the end. */
void slu_listener_drop_incoming(struct sluice_listener *listener, uint32_t id)
{
    struct sluice_incoming *before = NULL;
    struct sluice_incoming *incoming = listener->first;

    for (; incoming != NULL && incoming->id != id; incoming = incoming->next)
        before = incoming;
    if (incoming == NULL)
        return;
    unlink_incoming(listener, before);
    slu_incoming_free(incoming);
}

void slu_listener_drop_left(struct sluice_listener *listener)
{
    struct sluice_incoming *before = NULL, *incoming = listener->first;

    while (incoming != NULL) {
        struct sluice_incoming *next = incoming->next;

        if (slu_rdmacm_has_left(incoming)) {
            unlink_incoming(listener, before);
            slu_incoming_free(incoming);
        } else {
            before = incoming;
        }
        incoming = next;
    }
}

/* A time in the past: the timer is readable until a different time is set. */
#define AT_ONCE 1

static void set_timer_at(struct sluice_listener *listener, int64_t at)
{
    struct itimerspec spec = {.it_value = {.tv_nsec = 0}};

    if (at != SLUICE_FOREVER) {
        spec.it_value.tv_sec = at / SLUICE_S(1);
        spec.it_value.tv_nsec = at % SLUICE_S(1);
    }
    if (timerfd_settime(listener->timer, TFD_TIMER_ABSTIME, &spec, NULL) == 0)
        listener->timer_at = at;
}

void slu_listener_set_timer(struct sluice_listener *listener)
{
    int64_t due = listener->next_due;

    if (slu_acceptor_is_busy(&listener->offers.acceptor) && slu_now() + TICK_TIME < due)
        due = slu_now() + TICK_TIME;
    if (due < listener->timer_at)
        set_timer_at(listener, due > AT_ONCE ? due : AT_ONCE);
}

/*
 * Returns whether a call of the program could proceed at once. While as many connections as allowed
 * are being let in, a queued one does not count, because it has to wait longer.
 */
static bool has_result(const struct sluice_listener *listener)
{
    return !TAILQ_EMPTY(&listener->finished) ||
           (listener->first != NULL && listener->let_in_count < listener->let_in_most);
}

void slu_listener_leave(struct sluice_listener *listener)
{
    if (has_result(listener)) {
        if (listener->timer_at != AT_ONCE)
            set_timer_at(listener, AT_ONCE);
    } else if (listener->timer_at == AT_ONCE) {
        set_timer_at(listener, SLUICE_FOREVER);
        slu_listener_set_timer(listener);
    } else {
        slu_listener_set_timer(listener);
    }
}

bool slu_listener_was_woken(struct sluice_listener *listener)
{
    uint64_t ignored;

    if (!atomic_exchange(&listener->woken, false))
        return false;
    (void)!read(listener->event, &ignored, sizeof ignored);
    return true;
}

struct sluice_incoming *slu_listener_take(struct sluice_listener *listener)
{
    struct sluice_incoming *incoming;

    while ((incoming = listener->first) != NULL) {
        unlink_incoming(listener, NULL);
        if (!slu_rdmacm_has_left(incoming))
            return incoming;
        slu_incoming_free(incoming);
    }
    return NULL;
}

void slu_listener_hang_up(struct sluice_listener *listener)
{
    struct sluice_incoming *incoming;

    while ((incoming = slu_listener_take(listener)) != NULL)
        slu_incoming_free(incoming);
}

void slu_incoming_refuse(struct sluice_incoming *incoming, const char *reason)
{
    SLU_PROBE1(refused, reason);
    if (incoming->fd < 0)
        slu_rdmacm_reject(incoming, reason);
    else
        slu_negotiation_reply(incoming->fd, &incoming->session, SLU_REPLY_REFUSED, reason,
                              (uint32_t)strnlen(reason, SLU_PASSAGE_TEXT - 1));
    slu_incoming_free(incoming);
}

int slu_incoming_give_up(struct sluice_incoming *incoming, int error, const char *reason)
{
    struct slu_text text;

    slu_text_save(&text);
    slu_incoming_refuse(incoming, reason != NULL ? reason : text.bytes);
    slu_text_restore(&text);
    return error;
}
