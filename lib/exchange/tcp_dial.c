/* SPDX-License-Identifier: MIT */
/*
 * Connects a rank to rank 0, which may start late: dials until rank 0 admits or refuses this rank.
 */
#include "config.h"

#include <netdb.h>
#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "connect/target.h"
#include "exchange/tcp.h"

/* A name may resolve, or resolve differently, only once the host of rank 0 is up. */
#define NO_ADDRESS_TIME SLUICE_MS(500)
#define NAME_TIME SLUICE_S(2)

/* Not an error: rank 0 is not there yet. */
#define AGAIN 1

struct search {
    struct tcp *tcp;
    int64_t until, names_at; /* names_at: when names are resolved again */
    const char *unknown;     /* why there is no address; static */
    uint8_t hello[TCP_HELLO_BYTES];
    struct slu_target target;
};

static int find_addresses(struct search *search)
{
    struct slu_address addresses[SLU_DIAL_MOST];
    struct slu_dial *dial = &search->target.dial;

    for (uint32_t i = 0; i < search->tcp->place_count; i++) {
        int64_t late = dial->count == 0 ? search->until : slu_after(SLUICE_S(1));
        struct addrinfo *list = NULL;
        const char *why;
        int error;

        if (slu_host_port_is_unix(&search->tcp->places[i], &addresses[0])) {
            slu_dial_add(dial, &addresses[0]);
            continue;
        }
        error = slu_host_port_resolve(&search->tcp->places[i], slu_earlier(late, search->until),
                                      &list, &why);

        if (error < 0 && why == NULL)
            return error;
        search->unknown = why;
        if (error < 0)
            continue;
        for (uint32_t count = slu_addresses_of(list, addresses, SLU_DIAL_MOST), k = 0; k < count;
             k++)
            slu_dial_add(dial, &addresses[k]);
        freeaddrinfo(list);
    }
    search->names_at = slu_after(dial->count == 0 ? NO_ADDRESS_TIME : NAME_TIME);
    return 0;
}

/* The error if an address denied this rank, or is not rank 0, and no other address is left. */
static int fail_refused(const struct search *search, uint32_t index)
{
    const struct slu_target *target = &search->target;
    const struct slu_target_talk *talk = target->talks[index];
    const struct tcp *tcp = search->tcp;
    uint32_t other = talk->answer.means, count;

    if (target->dial.attempts[index].error == EPROTO && target->foreign)
        return slu_fail(EPROTO, "rank 0 at %s: %s", tcp->root, target->text);
    if (target->dial.attempts[index].error == EPROTO)
        return slu_fail(EPROTO, "what answers at %s is not rank 0 of an exchange", tcp->root);
    if (other != tcp->means && other == SLU_MEANS_NONE)
        return slu_fail(EACCES, "rank %u has %s, and rank 0 at %s has none", tcp->rank,
                        slu_tcp_means(tcp->means), tcp->root);
    if (other != tcp->means)
        return slu_fail(EACCES, "rank 0 at %s has %s, and rank %u has %s", tcp->root,
                        slu_tcp_means(other), tcp->rank, slu_tcp_means(tcp->means));
    if (talk->answer.word == SLU_REPLY_DENIED)
        return slu_fail(EACCES, "rank 0 at %s refused the secret of rank %u", tcp->root, tcp->rank);
    if (slu_reply_read(talk->bytes, &count) == SLU_REPLY_DENIED)
        return slu_fail(EACCES, "rank 0 at %s has another secret than rank %u", tcp->root,
                        tcp->rank);
    return slu_fail(EACCES, "what answers at %s does not know the secret of rank %u", tcp->root,
                    tcp->rank);
}

/*
 * If there are several places, some may belong to other hosts here: then any other may still
 * answer.
 */
static int check_attempts(const struct search *search)
{
    const struct slu_dial *dial = &search->target.dial;
    uint32_t wrong = dial->count;

    for (uint32_t i = 0; i < dial->count; i++) {
        const struct slu_dial_attempt *attempt = &dial->attempts[i];

        if (slu_is_shortage(attempt->error))
            return slu_fail(attempt->error, "no socket to rank 0 at %s: %s", search->tcp->root,
                            strerrordesc_np(attempt->error));
        if (attempt->failures == 0)
            return AGAIN;
        if (attempt->error == EACCES || attempt->error == EPROTO)
            wrong = i;
    }
    return wrong < dial->count && search->tcp->place_count == 1 ? fail_refused(search, wrong)
                                                                : AGAIN;
}

/* Opens the credential of rank 0, which works if that is of the same user. */
static int open_credential(struct search *search)
{
    struct tcp *tcp = search->tcp;
    uint8_t secret[SLU_SECRET_BYTES];
    uint32_t count;
    const uint8_t *credential = slu_target_answer(&search->target, &count);
    int error;

    if (count != TCP_CREDENTIAL_BYTES)
        return slu_fail(EPROTO, "what answers at %s is not rank 0 of an exchange", tcp->root);
    memcpy(tcp->credential, credential, count);
    error = slu_munge_unseal(tcp->credential, secret, search->until);
    slu_secret_forget(&tcp->secret);
    if (error == 0)
        error = slu_secret_copy(secret, sizeof secret, &tcp->secret);
    explicit_bzero(secret, sizeof secret);
    search->target.secret = tcp->secret.bytes;
    search->target.secret_bytes = tcp->secret.count;
    return error;
}

static int read_refusal(struct search *search)
{
    const struct tcp *tcp = search->tcp;
    uint32_t count;
    const uint8_t *body = slu_target_verdict(&search->target, &count);
    char text[TCP_TEXT_MAX + 1];
    uint64_t code;

    if (count < TCP_REFUSAL_HEAD || count > TCP_REFUSAL_HEAD + TCP_TEXT_MAX)
        return slu_fail(EPROTO, "what answers at %s is not rank 0 of an exchange", tcp->root);
    slu_tcp_read_text(slu_get(body, &code, TCP_REFUSAL_HEAD), count - TCP_REFUSAL_HEAD, text);
    if (code == TCP_REFUSED_VERSION)
        return slu_fail(EPROTO,
                        "rank 0 at %s speaks another version of the exchange: %s; this library "
                        "speaks version %d, readable from version %d on",
                        tcp->root, text, TCP_VERSION, TCP_READABLE);
    if (code != TCP_REFUSED_JOB)
        return slu_fail(slu_tcp_decode_error((uint32_t)code), "%s",
                        text[0] != '\0' ? text : "rank 0 refused this rank, and does not say why");
    if (tcp->place_count == 1)
        return slu_fail(EPROTO, "rank 0 at %s is of job \"%s\", not \"%s\"", tcp->root, text,
                        tcp->job);
    slu_target_pass(&search->target, EPROTO, "what answers is not rank 0 of this job");
    return AGAIN;
}

static int take_root(struct search *search)
{
    struct slu_target *target = &search->target;
    struct slu_address address = target->dial.attempts[target->chosen].address;
    struct slu_session session;
    int fd = slu_target_take(target, &session);

    explicit_bzero(&session, sizeof session);
    slu_tcp_set_options(fd);
    slu_tcp_link_open(&search->tcp->link, fd, &address);
    return 0;
}

/* Returns 0, AGAIN, or an error. */
static int handle_state(struct search *search, enum slu_target_state state)
{
    switch (state) {
    case SLU_TARGET_CHALLENGED: {
        int error = open_credential(search);

        return error < 0 ? error : handle_state(search, slu_target_prove(&search->target));
    }
    case SLU_TARGET_ADMITTED:
        return take_root(search);
    case SLU_TARGET_REFUSED:
        return read_refusal(search);
    default:
        return check_attempts(search);
    }
}

static int fail_late(const struct search *search)
{
    const struct tcp *tcp = search->tcp;
    const struct slu_dial_attempt *first = &search->target.dial.attempts[0];
    char root[TCP_ROOT_TEXT], text[160];
    const char *why = text;

    slu_tcp_root_text(tcp, root);
    if (search->target.dial.count == 0)
        return slu_fail(ETIMEDOUT,
                        "rank %u cannot find rank 0: until the deadline this host could not "
                        "resolve the root %s: %s",
                        tcp->rank, root, search->unknown);
    slu_dial_explain(&search->target.dial, text, sizeof text);
    if (search->target.dial.count == 1 && first->error != 0)
        why = first->why != NULL ? first->why : strerrordesc_np(first->error);
    return slu_fail(ETIMEDOUT, "rank 0 did not come to %s%s before the deadline of rank %u: %s",
                    root, tcp->root_source != NULL ? "," : "", tcp->rank, why);
}

static int dial(struct search *search)
{
    struct slu_target *target = &search->target;

    for (;;) {
        int64_t now = slu_now(), next = search->until;
        int result;

        if (now >= search->names_at && target->chosen == SLU_DIAL_MOST) {
            result = find_addresses(search);
            if (result < 0)
                return result;
        }
        result = handle_state(search, slu_target_tick(target, now, &next));
        if (result == AGAIN && target->chosen == SLU_DIAL_MOST)
            slu_dial_tick(&target->dial, now, &next); /* dial again, until the deadline */
        if (result == AGAIN && slu_is_late(search->until))
            return slu_tcp_fail_without_root(search->tcp, fail_late(search));
        if (result <= 0)
            return result;
        next = target->chosen == SLU_DIAL_MOST ? slu_earlier(next, search->names_at) : next;
        result = handle_state(search, slu_target_wait(target, next));
        if (result <= 0)
            return result;
    }
}

int slu_tcp_find_root(struct tcp *tcp, int64_t until)
{
    struct tcp_hello hello = {
        .written = TCP_VERSION, .readable = TCP_READABLE, .ranks = tcp->ranks, .rank = tcp->rank};
    struct search search = {.tcp = tcp, .until = until};
    struct slu_target *target = &search.target;
    int error;

    memcpy(hello.job, tcp->job, sizeof hello.job);
    slu_tcp_hello_encode(&hello, search.hello);
    slu_target_init(target);
    target->purpose = SLU_PURPOSE_EXCHANGE;
    target->means = tcp->means;
    target->ask = tcp->means == TCP_MEANS_MUNGE;
    target->secret = tcp->secret.bytes;
    target->secret_bytes = tcp->secret.count;
    target->body = search.hello;
    target->body_bytes = sizeof search.hello;
    error = dial(&search);
    slu_target_end(target);
    return error;
}
