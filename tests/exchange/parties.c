/* SPDX-License-Identifier: MIT */
#include "parties.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../support/process.h"

/*
 * Keeps the socket open: the kernel then gives its port to no other program, while a listener that
 * asks to reuse addresses, as rank 0 does, may bind it beside a socket that does not listen.
 */
uint16_t find_port(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET};
    socklen_t length = sizeof(address);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    require(fd >= 0, "%m");
    require(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0, "%m");
    require(bind(fd, (struct sockaddr *)&address, sizeof(address)) == 0, "%m");
    require(getsockname(fd, (struct sockaddr *)&address, &length) == 0, "%m");
    return ntohs(address.sin_port);
}

void parties_make(struct parties *parties, uint32_t count, int64_t deadline)
{
    memset(parties, 0, sizeof(*parties));
    parties->count = count;
    parties->port = find_port();
    snprintf(parties->root, sizeof(parties->root), "127.0.0.1:%u", parties->port);
    for (uint32_t i = 0; i < count; i++) {
        struct party *party = &parties->party[i];
        party->attr.size = sizeof(party->attr);
        party->attr.kind = SLUICE_EXCHANGE_TCP;
        party->attr.rank = i;
        party->attr.ranks = count;
        party->attr.root = parties->root;
        party->deadline = deadline;
    }
}

bool party_failed(struct party *party, int error)
{
    if (error >= 0) {
        return false;
    }
    party->error = error;
    snprintf(party->text, sizeof(party->text), "%s", sluice_last_error());
    if (party->exchange) {
        party->missing_count = sluice_exchange_missing(party->exchange, party->missing, PARTIES);
        require(party->missing_count >= 0, "%d", party->missing_count);
    }
    return true;
}

static void *run_party(void *argument)
{
    struct party *party = argument;
    let_pass(party->delay);
    party->exchange = sluice_exchange_open(&party->attr, party->deadline);
    if (!party->exchange) {
        party_failed(party, -errno);
        return NULL;
    }
    if (party->function) {
        party->function(party);
    }
    sluice_exchange_close(party->exchange);
    party->exchange = NULL;
    return NULL;
}

void party_start(struct party *party, void (*function)(struct party *party))
{
    party->function = function;
    party->absent = false;
    int error = pthread_create(&party->thread, NULL, run_party, party);
    require(error == 0, "%s", strerror(error));
}

void parties_start(struct parties *parties, void (*function)(struct party *party))
{
    for (uint32_t i = 0; i < parties->count; i++) {
        if (!parties->party[i].absent) {
            party_start(&parties->party[i], function);
        }
    }
}

void parties_join(struct parties *parties)
{
    for (uint32_t i = 0; i < parties->count; i++) {
        if (!parties->party[i].absent) {
            pthread_join(parties->party[i].thread, NULL);
        }
    }
}

void parties_run(struct parties *parties, void (*function)(struct party *party))
{
    parties_start(parties, function);
    parties_join(parties);
}

void run_ranks(struct parties *parties, uint32_t count, int64_t deadline,
               void (*function)(struct party *party))
{
    parties_make(parties, count, deadline);
    parties_run(parties, function);
}

void require_all_ok(const struct parties *parties)
{
    for (uint32_t i = 0; i < parties->count; i++) {
        party_require(&parties->party[i], 0, "");
    }
}

void party_require(const struct party *party, int error, const char *words)
{
    char copy[200];
    char *rest = NULL;
    const char *at = party->text;
    require(party->error == error, "rank %u: %d (%s), not %d: %s", party->attr.rank, party->error,
            strerror(-party->error), error, party->text);
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        at = strstr(at, word);
        require(at, "rank %u: no '%s' (of '%s') in '%s'", party->attr.rank, word, words,
                party->text);
        at += strlen(word);
    }
}

void party_require_missing(const struct party *party, const uint32_t *ranks, uint32_t count)
{
    require(party->missing_count == (int)count, "rank %u: %d missing, not %u: %s", party->attr.rank,
            party->missing_count, count, party->text);
    for (uint32_t i = 0; i < count; i++) {
        require(party->missing[i] == ranks[i], "rank %u: %u is missing, not %u", party->attr.rank,
                party->missing[i], ranks[i]);
    }
}

/* Returns a byte of the data from one rank to another. */
static uint8_t byte_of(uint32_t from, uint32_t to, size_t offset)
{
    return (uint8_t)(from * 7 + to * 31 + offset * 13 + offset / 251);
}

void party_calls(struct party *party, size_t bytes)
{
    uint32_t rank = party->attr.rank;
    uint32_t ranks = party->attr.ranks;
    uint8_t *to = calloc(1, ranks * bytes + 1);
    uint8_t *from = calloc(1, ranks * bytes + 1);
    require(to && from, "no memory");
    for (size_t i = 0; i < ranks * bytes; i++) {
        to[i] = byte_of(rank, (uint32_t)(i / bytes), i % bytes);
    }
    memset(from, 0xee, ranks * bytes + 1);
    errno = 99;
    require_ok(sluice_exchange_allgather(party->exchange, to, from, bytes, party->deadline));
    for (size_t i = 0; i < ranks * bytes; i++) {
        require(from[i] == byte_of((uint32_t)(i / bytes), 0, i % bytes),
                "allgather of %zu: byte %zu", bytes, i);
    }
    require(from[ranks * bytes] == 0xee, "a byte behind the result");
    require_ok(sluice_exchange_barrier(party->exchange, party->deadline));
    memset(from, 0xee, ranks * bytes + 1);
    require_ok(sluice_exchange_alltoall(party->exchange, to, from, bytes, party->deadline));
    for (size_t i = 0; i < ranks * bytes; i++) {
        require(from[i] == byte_of((uint32_t)(i / bytes), rank, i % bytes),
                "alltoall of %zu: byte %zu", bytes, i);
    }
    require(from[ranks * bytes] == 0xee, "a byte behind the result");
    require(errno == 99, "errno was changed to %d", errno);
    free(to);
    free(from);
}
