/* SPDX-License-Identifier: MIT */
/* A client waits here until the server listens, and reports what it waits for. */
#include <errno.h>
#include <netdb.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "perf.h"

/* The pause between two tries, and between two messages. */
#define PAUSE_MS 200
#define SAY_EACH SLUICE_S(5)

/* Tries to connect to each address. Returns 0 if one accepts, or the last errno value. */
static int try_all(const struct addrinfo *list)
{
    int error = ECONNREFUSED;

    for (const struct addrinfo *at = list; at != NULL; at = at->ai_next) {
        int fd = socket(at->ai_family, at->ai_socktype | SOCK_CLOEXEC, at->ai_protocol);

        if (fd < 0)
            return errno;
        error = connect(fd, at->ai_addr, at->ai_addrlen) == 0 ? 0 : errno;
        close(fd);
        if (error == 0)
            return 0;
    }
    return error;
}

/* Returns whether the server refuses. The exchange reports all other failures. */
static bool is_refused(const struct options *options)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *list;
    char port[16];
    bool refused;

    snprintf(port, sizeof port, "%u", options->port);
    if (getaddrinfo(options->host, port, &hints, &list) != 0)
        return false;
    refused = try_all(list) == ECONNREFUSED;
    freeaddrinfo(list);
    return refused;
}

int await_server(const struct team *team, const struct options *options)
{
    int64_t begun = clock_nanoseconds(), said = begun;

    if (!is_refused(options))
        return 0;
    (void)team_complain(
        team,
        "%s refused the connection at port %u: is 'sluice-perf --server' running there? "
        "Trying again for %lld s",
        options->host, options->port, (long long)(options->plan.deadline / SLUICE_S(1)));
    do {
        int64_t now = clock_nanoseconds();

        if (now - begun >= options->plan.deadline)
            return team_complain(team, "%s has refused the connection at port %u for %lld s",
                                 options->host, options->port,
                                 (long long)((now - begun) / SLUICE_S(1)));
        if (now - said >= SAY_EACH) {
            (void)team_complain(team, "still refused after %lld s",
                                (long long)((now - begun) / SLUICE_S(1)));
            said = now;
        }
        (void)!poll(NULL, 0, PAUSE_MS);
    } while (is_refused(options));
    return 0;
}
