/* SPDX-License-Identifier: MIT */
/* Signals are noted, and end a poll; at all other times they are blocked. */
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <time.h>

#include "launch.h"

static const int caught[] = {SIGHUP, SIGINT, SIGTERM, SIGCHLD};
#define CAUGHT (sizeof caught / sizeof caught[0])

static volatile sig_atomic_t pending[NSIG];
static sigset_t original, open_mask;
static struct sigaction original_pipe;

static void note(int number)
{
    pending[number] = 1;
}

/* A signal that was ignored from the begin, as by nohup(1), stays so. */
static bool is_ignored(int number)
{
    struct sigaction action;

    return number != SIGCHLD && sigaction(number, NULL, &action) == 0 &&
           action.sa_handler == SIG_IGN;
}

void signals_init(void)
{
    struct sigaction action = {.sa_handler = note};
    sigset_t mask;

    sigemptyset(&mask);
    for (size_t i = 0; i < CAUGHT; i++)
        sigaddset(&mask, caught[i]);
    sigprocmask(SIG_BLOCK, &mask, &original);
    open_mask = original;
    for (size_t i = 0; i < CAUGHT; i++) {
        sigdelset(&open_mask, caught[i]);
        if (!is_ignored(caught[i]))
            sigaction(caught[i], &action, NULL);
    }
    action.sa_handler = SIG_IGN;
    sigaction(SIGPIPE, &action, &original_pipe);
}

void signals_poll(struct pollfd *fds, nfds_t count, int64_t timeout)
{
    struct timespec time = {.tv_sec = (time_t)(timeout / SECOND),
                            .tv_nsec = (long)(timeout % SECOND)};

    if (ppoll(fds, count, timeout < 0 ? NULL : &time, &open_mask) < 0)
        for (nfds_t i = 0; i < count; i++)
            fds[i].revents = 0;
}

bool signals_take(int number)
{
    bool taken = pending[number] != 0;

    pending[number] = 0;
    return taken;
}

/* A shell without job control has background processes ignore SIGINT: ranks do not. */
void signals_restore(void)
{
    struct sigaction action = {.sa_handler = SIG_DFL};

    for (size_t i = 0; i < CAUGHT; i++)
        if (caught[i] == SIGINT || !is_ignored(caught[i]))
            sigaction(caught[i], &action, NULL);
    sigaction(SIGQUIT, &action, NULL);
    sigaction(SIGPIPE, &original_pipe, NULL);
    sigprocmask(SIG_SETMASK, &original, NULL);
}

int64_t clock_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * SECOND + now.tv_nsec;
}
