/* SPDX-License-Identifier: MIT */
/*
 * The root of an exchange over TCP: an address that rank 0 cannot listen at, or a name that a host
 * cannot resolve, or for which no name server answers.
 */
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../support/process.h"
#include "parties.h"

#define LONG SLUICE_S(30)
/* Time of calls that must end long before a deadline of LONG. */
#define SOON SLUICE_S(10)

/* The errno that accept4(2) of this process fails with, as it may in a sandbox; 0 if it works. */
static atomic_int refusal;

int accept4(int fd, struct sockaddr *address, socklen_t *length, int flags)
{
    static int (*accept_it)(int, struct sockaddr *, socklen_t *, int);
    if (refusal != 0) {
        errno = refusal;
        return -1;
    }
    if (!accept_it) {
        *(void **)&accept_it = dlsym(RTLD_NEXT, "accept4");
    }
    return accept_it(fd, address, length, flags);
}

/* Rank 0 waits without using its processor, and logs the cause; the others are told to wait. */
TEST(accept_that_fails, .times = 2)
{
    static const int errors[] = {EPERM, ECONNABORTED};
    struct parties parties;
    int64_t used = cpu_used();
    refusal = errors[_i];
    parties_make(&parties, 2, SLUICE_S(2));
    parties_run(&parties, NULL);
    refusal = 0;
    require(cpu_used() - used < SLUICE_S(1), "%lld ms of processors",
            (long long)(cpu_used() - used) / 1000000);
    party_require(&parties.party[0], -ETIMEDOUT,
                  _i == 0 ? "could not accept not permitted" : "could not accept abort");
    party_require(&parties.party[1], -ETIMEDOUT, "rank 0");
}

TEST(a_port_in_use, .times = 2)
{
    struct parties parties, others;
    parties_make(&parties, 2, SLUICE_S(2));
    parties.party[1].absent = true;
    others = parties;
    others.party[0].attr.root = _i == 0 ? others.root : NULL;
    others.party[0].delay = SLUICE_MS(500);
    if (_i == 1) {
        setenv("SLUICE_ROOT", others.root, 1);
    }
    parties_start(&parties, NULL);
    parties_run(&others, NULL);
    parties_join(&parties);
    unsetenv("SLUICE_ROOT");
    party_require(&others.party[0], -EADDRINUSE,
                  _i == 0 ? "port in use another port in sluice_exchange_attr.root"
                          : "port in use another port in SLUICE_ROOT");
    party_require(&parties.party[0], -ETIMEDOUT, "rank 1");
}

/* No host has this address: the error says which setting it comes from. */
TEST(a_root_of_another_host, .times = 2)
{
    struct parties parties;
    parties_make(&parties, 2, SLUICE_S(2));
    parties.party[1].absent = true;
    parties.party[0].attr.root = _i == 0 ? "192.0.2.1:20000" : NULL;
    if (_i == 1) {
        setenv("SLUICE_ROOT", "192.0.2.1:20000", 1);
    }
    parties_run(&parties, NULL);
    unsetenv("SLUICE_ROOT");
    party_require(&parties.party[0], -EINVAL,
                  _i == 0 ? "cannot listen at 192.0.2.1 20000 sluice_exchange_attr.root"
                          : "cannot listen at 192.0.2.1 20000 SLUICE_ROOT");
}

/* The error blames the name and the setting it comes from, not the ranks that cannot resolve it. */
TEST(root_that_no_host_resolves, .times = 2)
{
    struct parties parties;
    parties_make(&parties, 3, SLUICE_S(1));
    for (uint32_t i = 0; i < 3; i++) {
        parties.party[i].attr.root = _i == 0 ? "no-such-host.invalid:20000" : NULL;
    }
    setenv("SLUICE_ROOT", "no-such-host.invalid:20000", 1);
    parties_run(&parties, NULL);
    unsetenv("SLUICE_ROOT");
    for (uint32_t i = 0; i < 3; i++) {
        const char *words[] = {
            "host of rank 0 cannot resolve root no-such-host.invalid of sluice_exchange_attr.root:",
            "host of rank 0 cannot resolve root no-such-host.invalid:20000, of SLUICE_ROOT:",
            "cannot find rank 0: no-such-host.invalid:20000, of sluice_exchange_attr.root:",
            "cannot find rank 0: no-such-host.invalid:20000, of SLUICE_ROOT:"};
        party_require(&parties.party[i], -ETIMEDOUT, words[(i > 0 ? 2 : 0) + _i]);
    }
}

/* Rank 0 listens on all its addresses, so a name that only others know is no mistake of it. */
TEST(a_root_that_others_know)
{
    struct parties parties;
    char other[64];
    parties_make(&parties, 3, SLUICE_S(20));
    snprintf(other, sizeof(other), "no-such-host.invalid:%u", parties.port);
    parties.party[0].attr.root = other;
    parties_run(&parties, NULL);
    require_all_ok(&parties);
}

static void call_all(struct party *party)
{
    party_calls(party, 1000);
}

/* Ranks of one host need no network: they meet at a Unix socket. */
TEST(a_unix_socket)
{
    struct parties parties, others;
    char root[24];
    snprintf(root, sizeof(root), "@%016llx", (unsigned long long)clock_now() << 20 | getpid());
    parties_make(&parties, 3, LONG);
    for (int i = 0; i < 3; i++) {
        parties.party[i].attr.root = root;
    }
    parties.party[0].delay = SLUICE_MS(100);
    parties_run(&parties, call_all);
    require_all_ok(&parties);
    parties_make(&parties, 2, SLUICE_S(2));
    parties.party[0].attr.root = parties.party[1].attr.root = root;
    parties.party[1].absent = true;
    others = parties;
    others.party[0].delay = SLUICE_MS(500);
    parties_start(&parties, NULL);
    parties_run(&others, NULL);
    parties_join(&parties);
    party_require(&others.party[0], -EADDRINUSE, "Unix socket @ in use");
    party_require(&parties.party[0], -ETIMEDOUT, "rank 1");
}

static atomic_bool answered;

/* Replaces getaddrinfo() of the C library: the name server of one name does not answer. */
int getaddrinfo(const char *host, const char *port, const struct addrinfo *hints,
                struct addrinfo **list)
{
    int (*real)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    void *found = dlsym(RTLD_NEXT, "getaddrinfo");
    int64_t until = clock_now() + LONG;
    memcpy(&real, &found, sizeof(real));
    if (!host || strcmp(host, "no-answer.invalid") != 0 ||
        (hints && hints->ai_flags & AI_NUMERICHOST)) {
        return real(host, port, hints, list);
    }
    while (!atomic_load(&answered) && clock_now() < until) {
        usleep(1000);
    }
    return EAI_AGAIN;
}

/* Rank 0 does not need its own name: it waits for no resolver, whether all ranks come or none. */
TEST(root_whose_resolver_never_answers)
{
    struct parties parties;
    char root[64];
    parties_make(&parties, 3, LONG);
    snprintf(root, sizeof(root), "no-answer.invalid:%u", parties.port);
    parties.party[0].attr.root = root;
    int64_t start = fair_now();
    parties_run(&parties, NULL);
    require_all_ok(&parties);
    require(fair_now() - start < SOON, "%lld ns", (long long)(fair_now() - start));
    start = fair_now();
    require_null(sluice_exchange_open(&parties.party[0].attr, SLUICE_MS(50)), ETIMEDOUT,
                 "ranks 1 and 2 did not come");
    require(fair_now() - start < SOON, "%lld ns", (long long)(fair_now() - start));
    atomic_store(&answered, true);
}

/* The other ranks need the name: they fail at their deadlines, and abandon the query. */
TEST(a_root_of_which_others_get_no_answer)
{
    struct parties parties;
    parties_make(&parties, 2, SLUICE_MS(300));
    parties.party[0].absent = true;
    parties.party[1].attr.root = "no-answer.invalid:20000";
    int64_t start = clock_now();
    parties_run(&parties, NULL);
    int64_t taken = clock_now() - start;
    require(taken >= SLUICE_MS(300) && taken < SOON, "%lld ns", (long long)taken);
    party_require(&parties.party[1], -ETIMEDOUT,
                  "rank 1 cannot find rank 0: deadline no-answer.invalid:20000, of "
                  "sluice_exchange_attr.root: no name server has answered in time");
    /* The resolver answers late, and its answer is dropped. */
    atomic_store(&answered, true);
}

int main(void)
{
    return RUN_GROUPS("exchange_root", {"root", WIRE_TCP, 60});
}
