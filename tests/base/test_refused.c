/* SPDX-License-Identifier: MIT */
/*
 * A system that refuses a call, as sandboxes do: the text of the failure has the reason, in the
 * system's words, and matching advice.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "../exchange/parties.h"
#include "../support/pair.h"
#include "../support/ranks.h"

/* The name of the call that fails now, and its errno; NULL: none. */
static const char *refused;
static int reason;

/* The function of the C library, unless it is refused. */
static void *real(const char *name)
{
    if (refused && strcmp(refused, name) == 0) {
        errno = reason;
        return NULL;
    }
    return dlsym(RTLD_NEXT, name);
}

ssize_t getrandom(void *bytes, size_t count, unsigned flags)
{
    ssize_t (*call)(void *, size_t, unsigned);
    *(void **)&call = real("getrandom");
    return call ? call(bytes, count, flags) : -1;
}

int epoll_create1(int flags)
{
    int (*call)(int);
    *(void **)&call = real("epoll_create1");
    return call ? call(flags) : -1;
}

int epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    int (*call)(int, int, int, struct epoll_event *);
    *(void **)&call = real("epoll_ctl");
    return call ? call(epoll, operation, fd, event) : -1;
}

/* Refuses sockets of the internet only. */
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*call)(int, const struct sockaddr *, socklen_t);
    *(void **)&call = address->sa_family == AF_UNIX ? dlsym(RTLD_NEXT, "bind") : real("bind");
    return call ? call(fd, address, length) : -1;
}

int memfd_create(const char *name, unsigned flags)
{
    int (*call)(const char *, unsigned);
    *(void **)&call = real("memfd_create");
    return call ? call(name, flags) : -1;
}

int fallocate(int fd, int mode, off_t offset, off_t length)
{
    int (*call)(int, int, off_t, off_t);
    *(void **)&call = real("fallocate");
    return call ? call(fd, mode, offset, length) : -1;
}

int madvise(void *addr, size_t length, int advice)
{
    int (*call)(void *, size_t, int);
    *(void **)&call = real("madvise");
    return call ? call(addr, length, advice) : -1;
}

int fcntl(int fd, int command, ...)
{
    int (*call)(int, int, ...);
    va_list arguments;
    va_start(arguments, command);
    long argument = va_arg(arguments, long);
    va_end(arguments);
    *(void **)&call = real("fcntl");
    return call ? call(fd, command, argument) : -1;
}

static void refuse(const char *name, int error)
{
    refused = name;
    reason = error;
}

/* A channel needs a context with a listener, and the listener needs all of these. */
static void require_no_channel(int error, const char *words)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context ? sluice_pd_alloc(context) : NULL;
    struct sluice_prepared_channel *prepared = pd ? sluice_channel_prepare(pd, NULL) : NULL;
    int got = errno;
    require(!prepared, "it was made");
    check_text(__FILE__, __LINE__, "sluice_channel_prepare", words);
    require(got == error, "%s", strerror(got));
    refuse(NULL, 0);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(random_bytes, .group = "soft")
{
    refuse("getrandom", EPERM);
    require_no_channel(EACCES, "getrandom not permitted");
}

TEST(descriptors_to_watch, .times = 2, .group = "soft")
{
    refuse(_i == 0 ? "epoll_create1" : "epoll_ctl", _i == 0 ? EMFILE : ENOSPC);
    require_no_channel(_i == 0 ? EMFILE : ENOMEM, _i == 0 ? "open files" : "No space left");
}

/* The kernel chooses the port, so the text does not blame the address. */
TEST(a_port, .group = "soft")
{
    refuse("bind", EADDRINUSE);
    require_no_channel(EADDRNOTAVAIL, "no port is free ip_local_port_range");
    require(!strstr(sluice_last_error(), "address of this host"), "%s", sluice_last_error());
}

TEST(rank_0, .times = 2, .group = "soft")
{
    struct parties parties;
    parties_make(&parties, 2, SLUICE_S(2));
    refuse(_i == 0 ? "epoll_create1" : "epoll_ctl", _i == 0 ? EMFILE : ENOSPC);
    require(!sluice_exchange_open(&parties.party[0].attr, SLUICE_S(2)), "it was opened");
    refuse(NULL, 0);
    check_text(__FILE__, __LINE__, "sluice_exchange_open",
               _i == 0 ? "rank 0 open files" : "rank 0 No space left");
}

/* The library's own memory then has no file, and everything works. */
static const char *const memory_calls[] = {"memfd_create", "fallocate", "madvise", "fcntl"};
static const int memory_errors[] = {EPERM, ENOSYS};

static void work(struct ranks *ranks, uint32_t rank)
{
    node_works(ranks->nodes[rank], ranks->pds[rank]);
}

TEST(memory, .times = (int)(COUNT(memory_calls) * COUNT(memory_errors)))
{
    refuse(memory_calls[_i / 2], memory_errors[_i % 2]);
    struct pair pair;
    pair_open(&pair, NULL);
    struct sluice_mr *mrs[2];
    struct sluice_sge sges[2];
    struct sluice_remote_mr remote;
    uint64_t key = pattern_key(0, 1, (uint32_t)_i);
    const size_t bytes = 300000;
    for (uint32_t i = 0; i < 2; i++) {
        mrs[i] = made(sluice_mr_alloc(pair.sides.pds[i], bytes, ACCESS_ALL));
        require_ok(sluice_mr_sge(mrs[i], 0, bytes, &sges[i]));
    }
    require_ok(sluice_mr_remote(mrs[1], &remote));
    pattern_fill(sluice_mr_addr(mrs[0]), bytes, key);
    require_ok(sluice_channel_write(pair.channels[0], sges, 1, &remote, DEADLINE));
    pattern_check(sluice_mr_addr(mrs[1]), bytes, key);
    memset(sluice_mr_addr(mrs[0]), 0, bytes);
    require_ok(sluice_channel_read(pair.channels[0], sges, 1, &remote, DEADLINE));
    pattern_check(sluice_mr_addr(mrs[0]), bytes, key);
    pair_works(&pair);
    for (uint32_t i = 0; i < 2; i++) {
        require_ok(sluice_mr_deregister(mrs[i]));
    }
    pair_close(&pair);
    ranks_try(3, NULL, work);
    refuse(NULL, 0);
}

/* The memory of rings is mapped without large pages, which a kernel may not have. */
TEST(errno_is_kept, .group = "soft")
{
    const struct sluice_channel_attr attr = {
        .size = sizeof(attr), .send_depth = 1024, .receive_depth = 1024};
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    struct sluice_prepared_channel *prepared;
    refuse("madvise", EPERM);
    errno = 99;
    prepared = made(sluice_channel_prepare(pd, &attr));
    require(errno == 99, "errno is %d", errno);
    refuse(NULL, 0);
    sluice_prepared_channel_free(prepared);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

int main(void)
{
    const struct tests tests[] = {{.name = "soft", .wire = WIRE_SELF, .seconds = 20},
                                  {.name = "self", .wire = WIRE_SELF, .seconds = 20},
                                  {.name = "tcp", .wire = WIRE_TCP, .seconds = 20},
                                  {.name = "shm", .wire = WIRE_SHM, .seconds = 20}};
    if (!device_is_soft()) {
        puts("1..0 # SKIP it is soft that has memory of its own");
        return 0;
    }
    return run_groups("refused", tests, COUNT(tests));
}
