/* SPDX-License-Identifier: MIT */
#include "workers.h"

#include <errno.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

int give(int socket, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t sent = send(socket, (const char *)bytes + done, count - done, MSG_NOSIGNAL);

        if (sent < 0 && errno != EINTR)
            return -1;
        done += sent > 0 ? (size_t)sent : 0;
    }
    return 0;
}

int take(int socket, void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t got = recv(socket, (char *)bytes + done, count - done, 0);

        if (got == 0 || (got < 0 && errno != EINTR))
            return -1;
        done += got > 0 ? (size_t)got : 0;
    }
    return 0;
}

static int complain_of(const char *what, const char *why)
{
    fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, what, why);
    return -1;
}

int complain(const char *who, const char *what)
{
    fprintf(stderr, "%s: %s: %s: %s\n", program_invocation_short_name, who, what,
            sluice_last_error());
    return -1;
}

int complain_as(uint32_t rank, const char *what)
{
    char who[24];

    snprintf(who, sizeof(who), "rank %u", rank);
    return complain(who, what);
}

int workers_send(const struct workers *workers, char what)
{
    for (uint32_t rank = 1; rank < workers->count; rank++)
        if (give(workers->sockets[rank], &what, 1) != 0)
            return complain_of("tell a worker", strerror(errno));
    return 0;
}

int workers_receive(const struct workers *workers)
{
    char what;

    for (uint32_t rank = 1; rank < workers->count; rank++)
        if (take(workers->sockets[rank], &what, 1) != 0) {
            fprintf(stderr, "%s: worker %u is gone\n", program_invocation_short_name, rank);
            return -1;
        }
    return 0;
}

static void be_patient(int socket)
{
    const struct timeval limit = {.tv_sec = PATIENCE};

    setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
    setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
}

static void add_worker(struct workers *workers, int socket, pid_t pid)
{
    be_patient(socket);
    workers->sockets[workers->count] = socket;
    workers->pids[workers->count++] = pid;
}

static int start_worker(struct workers *workers, int (*life)(int socket))
{
    pid_t pid, parent = getpid();
    int pair[2];

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0 || (pid = fork()) < 0)
        return complain_of("start a process", strerror(errno));
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL); /* do not outlive rank 0 */
        if (getppid() != parent)
            exit(EXIT_FAILURE);
        close(pair[0]);
        for (uint32_t rank = 1; rank < workers->count; rank++)
            close(workers->sockets[rank]);
        exit(life(pair[1]) == 0 ? EXIT_SUCCESS : EXIT_FAILURE);
    }
    close(pair[1]);
    add_worker(workers, pair[0], pid);
    return 0;
}

int workers_start(struct workers *workers, uint32_t count, int (*life)(int socket))
{
    workers->count = 1;
    while (workers->count < count)
        if (start_worker(workers, life) != 0)
            return -1;
    return 0;
}

int workers_end(struct workers *workers, int result)
{
    for (uint32_t rank = 1; rank < workers->count; rank++) {
        pid_t pid = workers->pids[rank];
        int status = 0;

        if (result == 0)
            give(workers->sockets[rank], "", 1);
        close(workers->sockets[rank]);
        if (pid == 0)
            continue;
        if (result != 0)
            kill(pid, SIGKILL);
        if (waitpid(pid, &status, 0) == pid && status != 0 && result == 0) {
            fprintf(stderr, "%s: rank %u failed\n", program_invocation_short_name, rank);
            result = -1;
        }
    }
    workers->count = 0;
    return result;
}

static int listen_at(int socket, const struct sockaddr *address, socklen_t length)
{
    const int yes = 1;

    setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    return bind(socket, address, length) != 0 ? -1 : listen(socket, MAX_PROCESSES);
}

static int connect_to(int socket, const struct sockaddr *address, socklen_t length)
{
    const struct timespec pause = {.tv_nsec = 100000000};
    const time_t end = time(NULL) + PATIENCE;

    while (connect(socket, address, length) != 0) {
        if ((errno != ECONNREFUSED && errno != EHOSTUNREACH && errno != EINTR) || time(NULL) > end)
            return -1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* Opens a socket and attaches it to ADDRESS:PORT, by one of the two functions above. */
static int open_socket(const char *where,
                       int (*attach)(int, const struct sockaddr *, socklen_t length))
{
    const struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
    struct addrinfo *list = NULL;
    const char *colon = strrchr(where, ':');
    char *address = strndup(where, colon != NULL ? (size_t)(colon - where) : 0);
    int error = EAI_NONAME, fd;

    if (colon != NULL && address != NULL)
        error = getaddrinfo(address, colon + 1, &hints, &list);
    free(address);
    if (error != 0)
        return complain_of(where, colon == NULL ? "not ADDRESS:PORT" : gai_strerror(error));
    fd = socket(list->ai_family, list->ai_socktype, 0);
    if (fd >= 0)
        be_patient(fd);
    if (fd < 0 || attach(fd, list->ai_addr, list->ai_addrlen) != 0) {
        complain_of(where, strerror(errno));
        if (fd >= 0)
            close(fd);
        fd = -1;
    }
    freeaddrinfo(list);
    return fd;
}

int worker_connect(const char *where)
{
    return open_socket(where, connect_to);
}

static void print_address(int socket)
{
    struct sockaddr_storage bound;
    socklen_t length = sizeof(bound);
    char address[NI_MAXHOST], port[NI_MAXSERV];

    if (getsockname(socket, (struct sockaddr *)&bound, &length) == 0 &&
        getnameinfo((struct sockaddr *)&bound, length, address, sizeof(address), port, sizeof(port),
                    NI_NUMERICHOST | NI_NUMERICSERV) == 0)
        printf("waiting at %s:%s\n", address, port);
    fflush(stdout);
}

int workers_accept(struct workers *workers, uint32_t count, const char *where)
{
    int listener = open_socket(where, listen_at), result = 0;

    if (listener < 0)
        return -1;
    print_address(listener);
    workers->count = 1;
    while (result == 0 && workers->count < count) {
        int socket = accept(listener, NULL, NULL);

        if (socket >= 0)
            add_worker(workers, socket, 0);
        else if (errno != EINTR && errno != ECONNABORTED)
            result = complain_of("wait for a process",
                                 errno == EAGAIN ? "none has come in time" : strerror(errno));
    }
    close(listener);
    return result;
}
