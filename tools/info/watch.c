/* SPDX-License-Identifier: MIT */
/*
 * The work is done in a child process, so that a driver that hangs in the kernel does not hang
 * the tool or a script that calls it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "info.h"

/* The current step of the child, in shared memory for its parent. NULL: there is no child. */
static const char *volatile *step;

void watch_step(const char *what)
{
    if (step != NULL)
        *step = what; /* a string constant: it has the same address in the parent */
}

static int fail(const char *what)
{
    fprintf(stderr, "sluice-info: cannot %s: %s\n", what, strerror(errno));
    return STATUS_FAILED;
}

static int64_t milliseconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* Waits until the child has ended, which closes the pipe. Returns false on a timeout. */
static bool wait_for_end(int pipe, uint32_t seconds)
{
    struct pollfd end = {.fd = pipe};
    int64_t until = milliseconds() + (int64_t)seconds * 1000;
    int64_t left;

    while ((left = until - milliseconds()) > 0) {
        int found = poll(&end, 1, left < 60000 ? (int)left : 60000);

        if (found > 0 || (found < 0 && errno != EINTR))
            return true;
    }
    return false;
}

/* Kills the child without waiting for it, because it may hang in the kernel. */
static int give_up(pid_t child, uint32_t seconds)
{
    kill(child, SIGKILL);
    fprintf(stderr,
            "sluice-info: %s took longer than %u s and was given up: if a driver hangs, see "
            "dmesg; --timeout allows more time, and sections that do not need the step, such as "
            "'host environment', can be printed alone\n",
            *step, seconds);
    return STATUS_FAILED;
}

static int result_of(int status)
{
    int number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;

    if (number == 0)
        return WEXITSTATUS(status);
    if (number != SIGPIPE && number != SIGINT && number != SIGTERM)
        fprintf(stderr, "sluice-info: %s ended by signal %d, %s\n", *step, number,
                strsignal(number));
    /* End by the same signal as the child. */
    if (number == SIGPIPE || number == SIGINT || number == SIGTERM) {
        signal(number, SIG_DFL);
        raise(number);
    }
    return STATUS_FAILED;
}

static void be_child(int (*work)(const struct options *options), const struct options *options,
                     pid_t parent)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(STATUS_FAILED);
    exit(work(options));
}

int watch(int (*work)(const struct options *options), const struct options *options)
{
    pid_t parent = getpid(), child;
    int ends[2], status;

    step = mmap(NULL, sizeof *step, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (step == MAP_FAILED) {
        step = NULL;
        return fail("map a page");
    }
    *step = "starting";
    if (pipe2(ends, O_CLOEXEC) != 0)
        return fail("make a pipe");
    child = fork();
    if (child < 0)
        return fail("start a process");
    if (child == 0) {
        close(ends[0]);
        be_child(work, options, parent);
    }
    close(ends[1]);
    if (!wait_for_end(ends[0], options->timeout))
        return give_up(child, options->timeout);
    close(ends[0]);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return fail("wait for a process");
    return result_of(status);
}
