/* SPDX-License-Identifier: MIT */
/* A launcher that another one has started: its job comes by its standard input. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "launch.h"

/* Moves a standard stream away, so that no rank inherits it. */
static int move(int fd)
{
    int moved = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);

    if (moved < 0 || null < 0)
        die(STATUS_ARGUMENTS, "no descriptor is left: %s", strerror(errno));
    dup2(null, fd);
    close(null);
    return moved;
}

void remote_begin(struct launcher *launcher)
{
    struct frame_hello hello = {
        .written = FRAME_VERSION, .readable = FRAME_READABLE, .port = find_port()};
    int in = move(STDIN_FILENO), out = move(STDOUT_FILENO);

    link_open(&launcher->up, in, out);
    buffer_add(&launcher->up.unsent, FRAME_MARK, strlen(FRAME_MARK));
    frame_add_hello(&launcher->up.unsent, &hello);
}

/* The ranks of this launcher, and of those that it would have started, cannot start. */
static void refuse(struct launcher *launcher, int status, const char *why)
{
    const struct job *job = &launcher->job;
    const struct place *first = &job->places[0], *last = &job->places[job->place_count - 1];
    char text[1024];
    struct frame_failed failed = {
        .code = (uint32_t)status,
        .first = first->first,
        .count = last->first + last->count - first->first,
        .text = text,
    };

    snprintf(text, sizeof text, "%s%.255s%s%s", first->host[0] != '\0' ? "host " : "", first->host,
             first->host[0] != '\0' ? ": " : "", why);
    event_failed(launcher, &failed);
}

static void start(struct launcher *launcher)
{
    const struct job *job = &launcher->job;
    char why[512];
    int status;

    launcher->started = true;
    for (uint32_t i = 0; job->environment[i] != NULL; i++) {
        const char *value = strchr(job->environment[i], '=') + 1;
        char *name = strndup(job->environment[i], (size_t)(value - job->environment[i] - 1));

        if (name == NULL || setenv(name, value, 1) != 0)
            die(STATUS_ARGUMENTS, "no memory for the environment");
        free(name);
    }
    publish_secret(launcher);
    status = ranks_check(launcher, why, sizeof why);
    if (status != 0) {
        refuse(launcher, status, why);
        return;
    }
    children_start(launcher);
    ranks_start(launcher);
}

/* Returns false if the frame is not one that may come now. */
static bool take_frame(struct launcher *launcher, const struct frame *frame)
{
    uint32_t stream;
    int number;

    switch (frame->type) {
    case FRAME_BEAT:
        return true;
    case FRAME_START:
        if (launcher->started || !frame_read_start(frame, &launcher->job))
            return false;
        start(launcher);
        return true;
    case FRAME_SIGNAL:
        if (!launcher->started || !frame_read_signal(frame, &number))
            return false;
        signal_all(launcher, number);
        return true;
    case FRAME_CLOSE:
        if (!launcher->started || !frame_read_close(frame, &stream))
            return false;
        output_close(launcher, stream);
        return true;
    default:
        return false;
    }
}

void remote_receive(struct launcher *launcher)
{
    struct link *up = &launcher->up;
    bool open = link_receive(up);
    struct frame frame;
    int found = 0;

    while (buffer_count(&up->received) > 0) {
        found = frame_next(buffer_front(&up->received), buffer_count(&up->received), &frame);
        if (found <= 0 || !take_frame(launcher, &frame))
            break;
        buffer_drop(&up->received, FRAME_HEAD + frame.bytes);
        found = 0;
    }
    if (found != 0)
        remote_lost(launcher, "what was received is not from sluice-launch");
    else if (!open)
        remote_lost(launcher, "the connection to the launcher is closed");
}

void remote_lost(struct launcher *launcher, const char *why)
{
    char host[256] = "";

    if (launcher->orphan)
        return;
    gethostname(host, sizeof host - 1);
    if (launcher->started && !launcher->done_sent)
        fprintf(stderr, "sluice-launch: host %s: %s: its ranks are ended\n", host, why);
    launcher->orphan = true;
    link_close(&launcher->up);
    signal_all(launcher, SIGTERM);
    for (uint32_t i = 0; i < launcher->child_count; i++)
        link_flush(&launcher->children[i].link);
    launcher->kill_at = clock_now() + LOST_PATIENCE;
}

void remote_tick(struct launcher *launcher)
{
    char why[64];

    if (launcher->orphan)
        return;
    if (buffer_count(&launcher->up.unsent) < FRAME_HEAD)
        frame_add(&launcher->up.unsent, FRAME_BEAT, NULL, 0);
    if (launcher->started && launcher->job.places[0].host[0] == '\0')
        return;
    if (++launcher->up.silent < SILENCE_TICKS)
        return;
    snprintf(why, sizeof why, "nothing was received from the launcher for %d s", SILENCE_TICKS);
    remote_lost(launcher, why);
}
