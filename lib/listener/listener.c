/* SPDX-License-Identifier: MIT */
/* Driving a listener: its events, waiting, and closing it. */
#include "config.h"

#include "listener/admission.h"
#include "listener/rdmacm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/descriptor.h"

#define EVENTS 64
#define OFFER_TAG (UINT64_C(1) << 32)
#define INCOMING_TAG (UINT64_C(2) << 32)
#define EVENT_TAG (UINT64_C(3) << 32)
#define TIMER_TAG (UINT64_C(4) << 32)

static bool read_hello(const uint8_t *body, uint32_t count, struct sluice_incoming *incoming)
{
    uint64_t version, channels;

    if (count < SLU_CONNECT_HEAD || count > SLU_CONNECT_HEAD + SLUICE_PRIVATE_DATA_BYTES)
        return false;
    slu_get(slu_get(body, &version, 4), &channels, 4);
    incoming->version = (uint32_t)version;
    incoming->channels = (uint32_t)channels;
    incoming->private_data.bytes = count - SLU_CONNECT_HEAD;
    memcpy(incoming->private_data.data, body + SLU_CONNECT_HEAD, count - SLU_CONNECT_HEAD);
    return channels >= 1 && channels <= SLUICE_MAX_CONNECT_CHANNELS;
}

static void stands(struct slu_negotiations *offers, const struct slu_negotiation *offer,
                   const struct slu_session *session, int fd)
{
    struct sluice_listener *listener = slu_container_of(offers, struct sluice_listener, offers);
    struct sluice_incoming *incoming = NULL;

    if (listener->waiting < listener->backlog)
        incoming = calloc(1, sizeof *incoming);
    else
        slu_negotiation_reply(fd, session, SLU_REPLY_BUSY, NULL, 0);
    /* The peer may have sent everything and left before its connection was accepted. */
    if (incoming == NULL ||
        !read_hello(slu_negotiation_body(offer), offer->hello.bytes, incoming) ||
        slu_stream_ended(fd) || !slu_negotiation_reply(fd, session, SLU_REPLY_PENDING, NULL, 0) ||
        slu_listener_watch(listener, fd, EPOLLIN | EPOLLRDHUP, INCOMING_TAG + ++listener->last_id) <
            0) {
        slu_fd_close(fd);
        free(incoming);
        return;
    }
    incoming->id = listener->last_id;
    incoming->fd = fd;
    incoming->session = *session;
    incoming->address = slu_address_of_peer(fd);
    slu_listener_add(listener, incoming);
}

static void log_refusal(int fd, const char *why)
{
    struct slu_address address = slu_address_of_peer(fd);
    char text[SLU_ADDRESS_TEXT];

    slu_log(SLUICE_LOG_INFO, "a listener denied %s: %s", slu_address_text(&address, text), why);
}

static void denied(struct slu_negotiations *offers, const struct slu_negotiation *offer, int fd)
{
    log_refusal(fd, offer->hello.means != offers->means
                        ? "one of the two has no secret"
                        : "it did not prove that it knows the secret");
}

static void foreign(struct slu_negotiations *offers, const struct slu_head *head, int fd)
{
    char text[SLU_HEAD_TEXT];

    (void)offers;
    log_refusal(fd, slu_head_text(head, text));
}

int slu_listener_start(struct sluice_listener *listener)
{
    struct slu_negotiations *offers = &listener->offers;
    int error;

    slu_negotiations_init(offers, listener->epoll, OFFER_TAG);
    offers->purpose = SLU_PURPOSE_CONNECT;
    offers->means = listener->secret.bytes != NULL ? SLU_MEANS_SECRET : SLU_MEANS_NONE;
    offers->secret = listener->secret.bytes;
    offers->secret_bytes = listener->secret.count;
    offers->proven = stands;
    offers->denied = denied;
    offers->foreign = foreign;
    error = slu_listener_watch(listener, listener->event, EPOLLIN, EVENT_TAG);
    return error < 0 ? error : slu_listener_watch(listener, listener->timer, EPOLLIN, TIMER_TAG);
}

static void handle(struct sluice_listener *listener, uint64_t data)
{
    uint64_t ignored;

    switch (data & ~(uint64_t)UINT32_MAX) {
    case OFFER_TAG:
        slu_acceptor_event(&listener->offers.acceptor, (uint32_t)data);
        break;
    case INCOMING_TAG:
        slu_listener_drop_incoming(listener, (uint32_t)data);
        break;
    case TIMER_TAG:
        (void)!read(listener->timer, &ignored, sizeof ignored);
        listener->timer_at = SLUICE_FOREVER;
        break;
    case SLU_GATE_TAG:
        slu_rdmacm_read(listener->gate);
        slu_admissions_rdmacm(listener);
        break;
    case SLU_ADMISSION_TAG:
        slu_admissions_event(listener, (uint32_t)data);
        break;
    default:
        break;
    }
}

void slu_listener_progress(struct sluice_listener *listener, int64_t until)
{
    struct epoll_event events[EVENTS];
    int count;

    /* The caller of a wait may have set an earlier time since the timer was set. */
    if (until != 0)
        slu_listener_set_timer(listener);
    count = epoll_wait(listener->epoll, events, EVENTS, slu_milliseconds(until));
    for (int i = 0; i < count; i++)
        handle(listener, events[i].data.u64);
    slu_acceptor_tick(&listener->offers.acceptor, slu_now());
    slu_admissions_step(listener);
    slu_listener_set_timer(listener);
}

static bool is_listening(const struct sluice_listener *listener)
{
    return listener->magic == SLU_MAGIC_LISTENER;
}

void slu_admission_await(struct slu_admission *admission)
{
    struct sluice_listener *listener = admission->listener;

    slu_listener_progress(listener, 0);
    while (!admission->finished) {
        int64_t late = admission->since + SLU_SILENT_TIME;
        bool crowded = is_listening(listener) && listener->first != NULL;

        if (is_listening(listener) && slu_listener_was_woken(listener))
            slu_admission_fail(admission, slu_fail(EINTR, "a wake of the listener ended it"));
        else if (crowded && slu_is_late(late))
            slu_admission_fail(admission,
                               slu_fail(ETIMEDOUT, "%s did not go on, and others wait to be let in",
                                        admission->passage.who));
        else if (slu_admission_spin(admission))
            slu_listener_progress(listener, 0);
        else
            slu_listener_progress(listener, crowded ? late : SLUICE_FOREVER);
    }
}

int sluice_listener_wake(struct sluice_listener *listener)
{
    SLU_KEEP_ERRNO;
    uint64_t one = 1;

    if (!slu_is_listener(listener))
        return slu_not_a_listener(listener);
    atomic_store(&listener->woken, true);
    (void)!write(listener->event, &one, sizeof one);
    return 0;
}

int sluice_listener_fd(const struct sluice_listener *listener)
{
    SLU_KEEP_ERRNO;

    return slu_is_listener(listener) ? listener->epoll : slu_not_a_listener(listener);
}

int sluice_listener_address(const struct sluice_listener *listener, char *text, size_t size)
{
    SLU_KEEP_ERRNO;
    char address[SLU_ADDRESS_TEXT];

    if (!slu_is_listener(listener))
        return slu_not_a_listener(listener);
    slu_address_text(&listener->address, address);
    if (text != NULL && strlen(address) >= size)
        return slu_fail(ERANGE, "an address of %zu characters in %zu bytes", strlen(address), size);
    if (text != NULL)
        memcpy(text, address, strlen(address) + 1);
    return listener->address.port;
}

static struct sluice_incoming *await_incoming(struct sluice_listener *listener, int64_t until)
{
    struct sluice_incoming *incoming;

    slu_listener_progress(listener, 0);
    while ((incoming = slu_listener_take(listener)) == NULL) {
        int error = slu_rdmacm_check_gate(listener->gate);

        if (error < 0)
            return slu_none(error);
        if (slu_listener_was_woken(listener))
            return slu_fail_null(EINTR, "the wait was ended by a wake; nothing was lost");
        if (slu_is_late(until))
            return slu_fail_null(ETIMEDOUT, "nobody wants to connect yet");
        slu_listener_progress(listener, until);
    }
    slu_made();
    return incoming;
}

struct sluice_incoming *sluice_listener_next(struct sluice_listener *listener, int64_t timeout)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_incoming *incoming;

    if (!slu_is_listener(listener))
        return slu_none(slu_not_a_listener(listener));
    if (timeout < 0)
        return slu_misuse_null(EINVAL, "timeout %lld is negative", (long long)timeout);
    incoming = await_incoming(listener, slu_after(timeout));
    slu_listener_leave(listener);
    return incoming;
}

void sluice_listener_close(struct sluice_listener *listener)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct slu_text text;

    if (!slu_may_end(listener, SLU_MAGIC_LISTENER, "listener"))
        return;
    listener->magic = SLU_MAGIC_DEAD;
    slu_text_save(&text);
    slu_admissions_end(listener, ~0U, ECANCELED, "the listener was closed");
    slu_text_restore(&text);
    for (struct sluice_incoming *incoming; (incoming = slu_listener_take(listener)) != NULL;)
        slu_incoming_refuse(incoming, "the listener was closed");
    slu_acceptor_close(&listener->offers.acceptor);
    slu_rdmacm_unlisten(listener->gate);
    slu_listener_drop(listener);
}
