/* SPDX-License-Identifier: MIT */
/*
 * The watcher is a process that survives if the launcher is killed, and then kills what that has
 * started, with all processes of the same groups. Only the launcher, and new processes before their
 * exec, hold the write end of its pipe: a record of 4 bytes, a process that was started, or with a
 * minus one that was reaped. At the end of the pipe the launcher has ended.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

struct started {
    int32_t *ids;
    size_t count, room;
};

static void record(struct started *started, int32_t id)
{
    if (id > 0 && started->count == started->room) {
        size_t room = started->room == 0 ? 64 : 2 * started->room;
        int32_t *ids = realloc(started->ids, room * sizeof *ids);

        if (ids == NULL)
            return;
        started->ids = ids;
        started->room = room;
    }
    if (id > 0) {
        started->ids[started->count++] = id;
        return;
    }
    for (size_t i = 0; i < started->count; i++) {
        if (started->ids[i] != -id)
            continue;
        started->ids[i] = started->ids[--started->count];
        return;
    }
}

static void watch(int fd)
{
    struct started started = {0};
    int32_t ids[256];
    size_t held = 0;
    ssize_t got;

    while ((got = read(fd, (char *)ids + held, sizeof ids - held)) != 0) {
        if (got < 0 && errno != EINTR)
            break;
        held += got > 0 ? (size_t)got : 0;
        for (size_t i = 0; i < held / sizeof *ids; i++)
            record(&started, ids[i]);
        memmove(ids, (char *)ids + held / sizeof *ids * sizeof *ids, held % sizeof *ids);
        held %= sizeof *ids;
    }
    for (size_t i = 0; i < started.count; i++)
        process_signal(started.ids[i], SIGKILL);
    free(started.ids);
}

int watcher_start(void)
{
    int fds[2], null;
    pid_t id;

    if (pipe2(fds, O_CLOEXEC) != 0)
        die(STATUS_ARGUMENTS, "cannot open a pipe: %s", strerror(errno));
    id = fork();
    if (id < 0)
        die(STATUS_ARGUMENTS, "cannot start a process: %s", strerror(errno));
    if (id > 0) {
        close(fds[0]);
        return fds[1];
    }
    setsid();
    signal(SIGHUP, SIG_IGN);
    signal(SIGINT, SIG_IGN);
    signal(SIGTERM, SIG_IGN);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (int fd = 0; fd <= 2; fd++)
        dup2(null, fd);
    close(null);
    close(fds[1]);
    watch(fds[0]);
    _exit(0);
}

static void send_record(const struct launcher *launcher, int32_t id)
{
    ssize_t written;

    do {
        written = write(launcher->watcher, &id, sizeof id);
    } while (written < 0 && errno == EINTR);
}

void watcher_join(const struct launcher *launcher)
{
    send_record(launcher, (int32_t)getpid());
}

void watcher_forget(const struct launcher *launcher, pid_t id)
{
    send_record(launcher, -(int32_t)id);
}
