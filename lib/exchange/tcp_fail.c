/* SPDX-License-Identifier: MIT */
/*
 * Fails a call of rank 0, and tells all ranks that can still be reached, so that none waits for a
 * later deadline.
 */
#include "config.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "exchange/tcp.h"

/* Bytes for the ranks that a text names. */
#define NAMES 160

/* Ranks that do not take the verdict within TCP_GRACE_TIME are given up. */
static void send_verdict(struct tcp *tcp, const uint8_t *verdict, size_t bytes)
{
    int64_t until = slu_after(TCP_GRACE_TIME);

    for (uint32_t i = 1; i < tcp->ranks; i++) {
        struct tcp_link *link = &tcp->peers[i].link;

        if (link->fd < 0)
            continue;
        link->want = 0;
        slu_tcp_link_queue(link, verdict, bytes);
        if (slu_tcp_link_send(link) < 0)
            slu_tcp_link_close(link);
    }
    for (uint32_t i = 1; i < tcp->ranks; i++) {
        struct tcp_link *link = &tcp->peers[i].link;

        if (link->fd >= 0 && slu_tcp_transfer(link, until) < 0)
            slu_tcp_link_close(link);
    }
}

/* Keeps the thread's text. Without memory for a verdict, closes the connections. */
static int fail_all(struct tcp *tcp, int error)
{
    struct slu_text text;
    uint8_t *verdict;
    size_t bytes;

    slu_exchange_say_time(tcp->exchange, error);
    slu_text_save(&text);
    verdict = slu_tcp_verdict_make(error, tcp->sequence, tcp->missing, tcp->ranks, &bytes);
    if (verdict != NULL)
        send_verdict(tcp, verdict, bytes);
    for (uint32_t i = 1; i < tcp->ranks && verdict == NULL; i++)
        slu_tcp_link_close(&tcp->peers[i].link);
    free(verdict);
    slu_exchange_set_missing(tcp->exchange, tcp->missing);
    slu_text_restore(&text);
    return error;
}

int slu_tcp_fail(struct tcp *tcp, int error)
{
    memset(tcp->missing, 0, tcp->ranks);
    return fail_all(tcp, error);
}

int slu_tcp_fail_wait(struct tcp *tcp)
{
    return slu_tcp_fail(tcp,
                        slu_fail(errno, "rank 0 cannot wait for its connections: epoll_wait(2): %s",
                                 strerrordesc_np(errno)));
}

int slu_tcp_fail_without_root(struct tcp *tcp, int error)
{
    memset(tcp->missing, 0, tcp->ranks);
    tcp->missing[0] = true;
    slu_exchange_set_missing(tcp->exchange, tcp->missing);
    return error;
}

/*
 * Writes "rank 3", "ranks 3, 4 and 5", or "ranks 1, 2, ... and 17 others"; returns how many they
 * are.
 */
static uint32_t name_missing(const struct tcp *tcp, char text[NAMES])
{
    uint32_t count = 0, named = 0;
    size_t length, size = NAMES;

    for (uint32_t i = 1; i < tcp->ranks; i++)
        count += tcp->missing[i];
    length = (size_t)snprintf(text, size, count == 1 ? "rank" : "ranks");
    for (uint32_t i = 1; i < tcp->ranks && named < SLU_NAMED; i++) {
        const char *before = named == 0 ? " " : named + 1 == count ? " and " : ", ";

        if (!tcp->missing[i])
            continue;
        length += (size_t)snprintf(text + length, size - length, "%s%u", before, i);
        named++;
    }
    if (count > named)
        snprintf(text + length, size - length, " and %u other%s", count - named,
                 SLU_S(count - named));
    return count;
}

/* Writes "allgather 3", or nothing at the start. */
static const char *name_call(const struct tcp *tcp, char text[64])
{
    text[0] = '\0';
    if (tcp->type != TCP_STARTED)
        snprintf(text, 64, "%s, call %llu: ", slu_tcp_type_name(tcp->type),
                 (unsigned long long)tcp->sequence);
    return text;
}

int slu_tcp_fail_rank(struct tcp *tcp, uint32_t rank, int error, const char *words)
{
    char address[SLU_ADDRESS_TEXT], call[64];

    memset(tcp->missing, 0, tcp->ranks);
    /* A rank that sent something wrong is not missing. */
    tcp->missing[rank] = error != EPROTO;
    return fail_all(tcp, slu_fail(error, "%srank %u at %s %s", name_call(tcp, call), rank,
                                  slu_address_text(&tcp->peers[rank].link.peer, address), words));
}

int slu_tcp_fail_lost(struct tcp *tcp, uint32_t rank)
{
    slu_tcp_link_close(&tcp->peers[rank].link);
    return slu_tcp_fail_rank(tcp, rank, ECONNRESET, "was there and is gone");
}

/* Writes what is said of a rank that was admitted and is missing now, or nothing. */
static const char *name_left(const struct tcp *tcp, char text[128])
{
    char address[SLU_ADDRESS_TEXT];

    text[0] = '\0';
    for (uint32_t i = 1; i < tcp->ranks && text[0] == '\0'; i++)
        if (tcp->peers[i].left && tcp->missing[i])
            snprintf(text, 128, "; rank %u at %s was there and is gone", i,
                     slu_address_text(&tcp->peers[i].link.peer, address));
    return text;
}

/* Fails because a missing rank was refused for not having the secret. */
static int fail_refused(const struct tcp *tcp, const char *names, uint32_t rank)
{
    uint32_t means = tcp->peers[rank].means;

    if (means == tcp->means)
        return slu_fail(EACCES,
                        "rank %u was refused, since it did not prove that it knows the secret of "
                        "rank 0; missing: %s",
                        rank, names);
    if (means == SLU_MEANS_NONE)
        return slu_fail(EACCES, "rank 0 has %s, and rank %u has none; missing: %s",
                        slu_tcp_means(tcp->means), rank, names);
    return slu_fail(EACCES, "rank %u has %s, and rank 0 has %s; missing: %s", rank,
                    slu_tcp_means(means), slu_tcp_means(tcp->means), names);
}

/* Fails at the start. */
static int fail_start(const struct tcp *tcp, const char *names, uint32_t whose)
{
    char left[128], root[TCP_ROOT_TEXT];
    const char *unknown = NULL;
    bool anybody = false;

    for (uint32_t i = 1; i < tcp->ranks; i++) {
        if (tcp->peers[i].refused && tcp->missing[i])
            return fail_refused(tcp, names, i);
        anybody |= tcp->peers[i].left || !tcp->missing[i];
    }
    if (tcp->refusal_error != 0)
        return slu_fail(tcp->refusal_error, "%s, and was refused; missing: %s", tcp->refusal,
                        names);
    if (tcp->accept_error != 0)
        return slu_fail(slu_is_shortage(tcp->accept_error) ? tcp->accept_error : ETIMEDOUT,
                        "rank 0 could not accept all ranks: %s; missing: %s",
                        strerrordesc_np(tcp->accept_error), names);
    /*
     * If no rank came at all, the name of the root may be to blame. Rank 0 itself does not need it,
     * and it may resolve on their hosts alone, so it is resolved only now.
     */
    if (tcp->place_count == 1 && !anybody)
        unknown = slu_tcp_name_error(&tcp->places[0]);
    if (unknown != NULL)
        return slu_fail(ETIMEDOUT,
                        "the host of rank 0 cannot resolve its own root %s: %s; no rank came "
                        "before the deadline",
                        slu_tcp_root_text(tcp, root), unknown);
    return slu_fail(ETIMEDOUT, "%s did not come before the deadline of rank %u%s", names, whose,
                    name_left(tcp, left));
}

int slu_tcp_fail_deadline(struct tcp *tcp, uint32_t whose)
{
    char names[NAMES], call[64];

    memset(tcp->missing, 0, tcp->ranks);
    /* A rank that has given what was due so far, and has taken its result, is not missing. */
    for (uint32_t i = 1; i < tcp->ranks; i++) {
        const struct tcp_peer *peer = &tcp->peers[i];

        tcp->missing[i] = (!peer->done && peer->stage != TCP_WAITING) || peer->link.out_count > 0 ||
                          (tcp->relaying && !peer->taken);
    }
    if (name_missing(tcp, names) == 0)
        return fail_all(tcp, slu_fail(ETIMEDOUT,
                                      "%sthe deadline of rank %u passed before it had its result",
                                      name_call(tcp, call), whose));
    if (tcp->type == TCP_STARTED)
        return fail_all(tcp, fail_start(tcp, names, whose));
    return fail_all(
        tcp,
        slu_fail(ETIMEDOUT, "%s%s %s before the deadline of rank %u", name_call(tcp, call), names,
                 tcp->given == tcp->ranks - 1 ? "did not take the result" : "did not come", whose));
}

/* The rank had given up before rank 0 came. Ranks that have not called yet were missing, too. */
static int fail_late(struct tcp *tcp, uint32_t rank)
{
    char names[NAMES], call[64];
    bool more;

    tcp->missing[0] = true;
    for (uint32_t i = 1; i < tcp->ranks; i++)
        tcp->missing[i] = !tcp->peers[i].called;
    more = name_missing(tcp, names) > 0;
    return fail_all(tcp, slu_fail(ETIMEDOUT, "%srank 0 came after the deadline of rank %u%s%s",
                                  name_call(tcp, call), rank, more ? "; missing too: " : "",
                                  more ? names : ""));
}

int slu_tcp_fail_interrupted(struct tcp *tcp, bool late)
{
    struct tcp_frame frame;

    if (slu_tcp_frame_decode(tcp->peers[tcp->interrupted].header, &frame) < 0 ||
        frame.type != TCP_GAVE_UP)
        return slu_tcp_fail_rank(tcp, tcp->interrupted, EPROTO, "sent something unexpected");
    return late ? fail_late(tcp, tcp->interrupted) : slu_tcp_fail_deadline(tcp, tcp->interrupted);
}
