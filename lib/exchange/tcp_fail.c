/* SPDX-License-Identifier: MIT */
/*
 * How rank 0 fails: whatever the reason, it tells all ranks that it still
 * reaches, so that nobody waits for a deadline that is further off.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "exchange/tcp.h"

#define EVENTS 64
/* Of the ranks that a text names. */
#define NAMES 160

static void set_present(struct tcp *tcp, uint32_t rank, bool present)
{
    uint64_t bit = UINT64_C(1) << (rank % 64);

    if (present)
        tcp->present[rank / 64] |= bit;
    else
        tcp->present[rank / 64] &= ~bit;
}

static bool is_present(const struct tcp *tcp, uint32_t rank)
{
    return (tcp->present[rank / 64] >> (rank % 64) & 1) != 0;
}

static void all_present(struct tcp *tcp)
{
    for (uint32_t i = 0; i < tcp->ranks; i++)
        set_present(tcp, i, true);
}

static uint32_t queue_verdict(struct tcp *tcp, size_t bytes)
{
    uint32_t left = 0;

    for (uint32_t i = 0; i < tcp->ranks; i++) {
        struct tcp_link *link = &tcp->peers[i].link;

        if (link->fd < 0)
            continue;
        link->want = 0;
        slu_tcp_link_queue(link, tcp->verdict, bytes);
        if (slu_tcp_link_send(link) < 0 || slu_tcp_link_watch(link, tcp->epoll, i) < 0)
            slu_tcp_link_close(link);
        left += link->out_count > 0;
    }
    return left;
}

/* Who does not take it within the grace is left to itself. */
static void send_verdict(struct tcp *tcp, size_t bytes)
{
    int64_t until = slu_after(TCP_GRACE_TIME);
    uint32_t left = queue_verdict(tcp, bytes);

    while (left > 0 && slu_now() < until) {
        struct epoll_event events[EVENTS];
        int count = epoll_wait(tcp->epoll, events, EVENTS, slu_tcp_milliseconds(until));

        for (int i = 0; i < count; i++) {
            struct tcp_link *link;

            if (events[i].data.u64 >= tcp->ranks)
                continue;
            link = &tcp->peers[events[i].data.u64].link;
            if (link->fd < 0 || link->out_count == 0)
                continue;
            if (slu_tcp_link_send(link) < 0)
                slu_tcp_link_close(link);
            left -= link->out_count == 0;
            if (link->fd >= 0)
                (void)slu_tcp_link_watch(link, tcp->epoll, events[i].data.u64);
        }
    }
    for (uint32_t i = 0; i < tcp->ranks && left > 0; i++)
        if (tcp->peers[i].link.fd >= 0 && tcp->peers[i].link.out_count > 0)
            slu_tcp_link_close(&tcp->peers[i].link);
}

/* Without memory to say why: that it is over can be seen. */
static void hang_up(struct tcp *tcp)
{
    for (uint32_t i = 0; i < tcp->ranks; i++)
        slu_tcp_link_close(&tcp->peers[i].link);
}

/* The thread's text stays. */
static int fail_all(struct sluice_exchange *exchange, int error)
{
    struct tcp *tcp = exchange->state;
    struct slu_text text;
    size_t bytes;

    slu_text_save(&text);
    tcp->verdict = slu_tcp_verdict_make(error, tcp->sequence, tcp->present, tcp->ranks, &bytes);
    if (tcp->verdict != NULL)
        send_verdict(tcp, bytes);
    else
        hang_up(tcp);
    slu_exchange_set_missing(exchange, tcp->present);
    slu_text_restore(&text);
    return error;
}

int slu_tcp_fail(struct sluice_exchange *exchange, int error)
{
    all_present(exchange->state);
    return fail_all(exchange, error);
}

/* "rank 3", "ranks 3, 4 and 5", or "ranks 1, 2, ... and 17 others". */
static void name_missing(const struct tcp *tcp, char text[NAMES])
{
    uint32_t count = 0, named = 0;
    size_t length, size = NAMES;

    for (uint32_t i = 1; i < tcp->ranks; i++)
        count += !is_present(tcp, i);
    length = (size_t)snprintf(text, size, count == 1 ? "rank" : "ranks");
    for (uint32_t i = 1; i < tcp->ranks && named < SLU_NAMED; i++) {
        const char *before = named == 0 ? " " : named + 1 == count ? " and " : ", ";

        if (is_present(tcp, i))
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%u", before, i);
        named++;
    }
    if (count > named)
        snprintf(text + length, size - length, " and %u other%s", count - named,
                 SLU_S(count - named));
}

/* "allgather 3", or nothing while all come. */
static const char *name_call(const struct tcp *tcp, uint8_t type, char text[64])
{
    text[0] = '\0';
    if (type != TCP_STARTED)
        snprintf(text, 64, "%s, call %llu: ", slu_tcp_type_name(type),
                 (unsigned long long)tcp->sequence);
    return text;
}

/* The words for a rank that was let in, and is missing now; none if there is no such rank. */
static const char *name_left(const struct tcp *tcp, char text[128])
{
    char address[TCP_ADDRESS_TEXT];

    text[0] = '\0';
    for (uint32_t i = 1; i < tcp->ranks && text[0] == '\0'; i++)
        if (tcp->peers[i].left && !is_present(tcp, i))
            snprintf(text, 128, "; rank %u at %s was there and is gone", i,
                     slu_tcp_address_text(&tcp->peers[i].link.peer, address));
    return text;
}

/* Of all that have not come, one that was refused; 0: none. */
static uint32_t find_refused(const struct tcp *tcp)
{
    for (uint32_t i = 1; i < tcp->ranks; i++)
        if (tcp->peers[i].refused && !is_present(tcp, i))
            return i;
    return 0;
}

static int fail_refused(struct sluice_exchange *exchange, const char *names, uint32_t refused)
{
    const struct tcp *tcp = exchange->state;

    uint8_t means = tcp->peers[refused].means;

    if (means != TCP_NOTHING && means != tcp->means)
        return fail_all(exchange,
                        slu_fail(EACCES, "rank %u has %s, and rank 0 has %s; missing: %s", refused,
                                 slu_secret_means(means), slu_secret_means(tcp->means), names));
    if (means != tcp->means)
        return fail_all(exchange,
                        slu_fail(EACCES, "rank 0 has %s, and rank %u has none; missing: %s",
                                 slu_secret_means(tcp->means), refused, names));
    return fail_all(exchange, slu_fail(EACCES,
                                       "rank %u was refused, since it did not prove that it "
                                       "knows the secret of rank 0; missing: %s",
                                       refused, names));
}

static bool anybody_came(const struct tcp *tcp)
{
    for (uint32_t i = 1; i < tcp->ranks; i++)
        if (tcp->peers[i].left || is_present(tcp, i))
            return true;
    return false;
}

/* While all come. */
static int fail_start(struct sluice_exchange *exchange, const char *names, uint32_t whose)
{
    const struct tcp *tcp = exchange->state;
    uint32_t refused = find_refused(tcp);
    char left[128], root[TCP_ROOT_TEXT];
    const char *unknown = NULL;

    if (refused > 0)
        return fail_refused(exchange, names, refused);
    if (tcp->refusal_error != 0)
        return fail_all(exchange, slu_fail(tcp->refusal_error, "%s, and was refused; missing: %s",
                                           tcp->refusal, names));
    if (tcp->accept_error != 0)
        return fail_all(exchange, slu_fail(tcp->accept_error,
                                           "rank 0 could not accept all ranks: %s; missing: %s",
                                           strerrordesc_np(tcp->accept_error), names));
    /*
     * It is not the others who are to blame, if none of them could find us. Rank 0 itself does not
     * need its name, which may mean something on their hosts alone: it is not asked for before.
     */
    if (tcp->place_count == 1 && !anybody_came(tcp))
        unknown = slu_tcp_name_error(&tcp->places[0]);
    if (unknown != NULL)
        return fail_all(exchange, slu_fail(ETIMEDOUT,
                                           "the host of rank 0 cannot resolve its own root %s: %s; "
                                           "no rank came before the deadline",
                                           slu_tcp_root_text(tcp, root), unknown));
    return fail_all(exchange,
                    slu_fail(ETIMEDOUT, "%s did not come before the deadline of rank %u%s", names,
                             whose, name_left(tcp, left)));
}

int slu_tcp_fail_deadline(struct sluice_exchange *exchange, uint8_t type, uint32_t whose)
{
    struct tcp *tcp = exchange->state;
    char names[NAMES], call[64];
    uint32_t missing = 0;

    set_present(tcp, 0, true);
    for (uint32_t i = 1; i < tcp->ranks; i++) {
        missing += !tcp->peers[i].done;
        set_present(tcp, i, tcp->peers[i].done);
    }
    name_missing(tcp, names);
    if (missing == 0)
        return fail_all(exchange, slu_fail(ETIMEDOUT,
                                           "%sthe deadline of rank %u passed before it had its "
                                           "result",
                                           name_call(tcp, type, call), whose));
    if (type == TCP_STARTED)
        return fail_start(exchange, names, whose);
    return fail_all(
        exchange,
        slu_fail(ETIMEDOUT, "%s%s %s before the deadline of rank %u", name_call(tcp, type, call),
                 names, tcp->given == tcp->ranks - 1 ? "did not take the result" : "did not come",
                 whose));
}

int slu_tcp_fail_late(struct sluice_exchange *exchange, uint8_t type, uint32_t rank)
{
    struct tcp *tcp = exchange->state;
    char names[NAMES], call[64];
    uint32_t missing = 0;
    struct tcp_frame frame;

    if (slu_tcp_frame_decode(tcp->peers[rank].header, &frame) < 0 || frame.type != TCP_GAVE_UP)
        return slu_tcp_fail_interrupted(exchange, type, rank);
    set_present(tcp, 0, false);
    for (uint32_t i = 1; i < tcp->ranks; i++) {
        missing += !tcp->peers[i].called;
        set_present(tcp, i, tcp->peers[i].called);
    }
    name_missing(tcp, names);
    return fail_all(exchange,
                    slu_fail(ETIMEDOUT, "%srank 0 came after the deadline of rank %u%s%s",
                             name_call(tcp, type, call), rank, missing > 0 ? "; missing too: " : "",
                             missing > 0 ? names : ""));
}

int slu_tcp_fail_lost(struct sluice_exchange *exchange, uint8_t type, uint32_t rank)
{
    struct tcp *tcp = exchange->state;
    struct tcp_peer *peer = &tcp->peers[rank];
    char address[TCP_ADDRESS_TEXT], call[64];

    slu_tcp_link_close(&peer->link);
    all_present(tcp);
    set_present(tcp, rank, false);
    return fail_all(exchange, slu_fail(ECONNRESET, "%srank %u at %s was there and is gone",
                                       name_call(tcp, type, call), rank,
                                       slu_tcp_address_text(&peer->link.peer, address)));
}

int slu_tcp_fail_memory(struct sluice_exchange *exchange, uint8_t type, uint32_t rank)
{
    struct tcp *tcp = exchange->state;
    char address[TCP_ADDRESS_TEXT], call[64];

    all_present(tcp);
    set_present(tcp, rank, false);
    return fail_all(exchange, slu_fail(ENOMEM, "%srank %u at %s has no memory to take part",
                                       name_call(tcp, type, call), rank,
                                       slu_tcp_address_text(&tcp->peers[rank].link.peer, address)));
}

int slu_tcp_fail_interrupted(struct sluice_exchange *exchange, uint8_t type, uint32_t rank)
{
    struct tcp *tcp = exchange->state;
    struct tcp_peer *peer = &tcp->peers[rank];
    char address[TCP_ADDRESS_TEXT], call[64];
    struct tcp_frame frame;

    if (slu_tcp_frame_decode(peer->header, &frame) == 0 && frame.type == TCP_GAVE_UP)
        return slu_tcp_fail_deadline(exchange, type, rank);
    return slu_tcp_fail(exchange, slu_fail(EPROTO, "%srank %u at %s sent something unexpected",
                                           name_call(tcp, type, call), rank,
                                           slu_tcp_address_text(&peer->link.peer, address)));
}
