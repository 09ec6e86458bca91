/* SPDX-License-Identifier: MIT */
/*
 * A system that refuses a call, as sandboxes do: the text of the failure has the reason, in the
 * system's words, and the advice that fits it.
 */
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "../exchange/parties.h"
#include "../support/pair.h"

/* The call that fails now, by name, and with what; NULL: none. */
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

/* Of a socket of the internet alone. */
int bind(int fd, const struct sockaddr *address, socklen_t length)
{
    int (*call)(int, const struct sockaddr *, socklen_t);
    *(void **)&call = address->sa_family == AF_UNIX ? dlsym(RTLD_NEXT, "bind") : real("bind");
    return call ? call(fd, address, length) : -1;
}

static void refuse(const char *name, int error)
{
    refused = name;
    reason = error;
}

/* A channel needs a context with a listener, and that all of these. */
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

TEST(random_bytes)
{
    refuse("getrandom", EPERM);
    require_no_channel(EACCES, "getrandom not permitted");
}

TEST(descriptors_to_watch, .times = 2)
{
    refuse(_i == 0 ? "epoll_create1" : "epoll_ctl", _i == 0 ? EMFILE : ENOSPC);
    require_no_channel(_i == 0 ? EMFILE : ENOMEM, _i == 0 ? "open files" : "No space left");
}

/* The kernel chooses it, and the address is not to blame. */
TEST(a_port)
{
    refuse("bind", EADDRINUSE);
    require_no_channel(EADDRNOTAVAIL, "no port is free ip_local_port_range");
    require(!strstr(sluice_last_error(), "address of this host"), "%s", sluice_last_error());
}

TEST(rank_0, .times = 2)
{
    struct parties parties;
    parties_make(&parties, 2, SLUICE_S(2));
    refuse(_i == 0 ? "epoll_create1" : "epoll_ctl", _i == 0 ? EMFILE : ENOSPC);
    require(!sluice_exchange_open(&parties.party[0].attr, SLUICE_S(2)), "it was opened");
    refuse(NULL, 0);
    check_text(__FILE__, __LINE__, "sluice_exchange_open",
               _i == 0 ? "rank 0 open files" : "rank 0 No space left");
}

int main(void)
{
    const struct tests tests[] = {{.name = "soft", .wire = WIRE_SELF, .seconds = 20}};
    if (!device_is_soft()) {
        return run_groups("refused", tests, 0);
    }
    return run_groups("refused", tests, COUNT(tests));
}
