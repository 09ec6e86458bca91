/* SPDX-License-Identifier: MIT */
/*
 * Launchers that this one starts: by ssh on other hosts, or on this host if the ranks need more
 * descriptors than one process may have.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "launch.h"

#define MOST_WORDS 64
/* A link in which more than this waits has no need of a sign of life. */
#define BUSY_BYTES 4096

/* Words of a command that has no quotes. */
struct words {
    char *list[MOST_WORDS + 1];
    uint32_t count;
};

static void split(struct words *words, char *text)
{
    char *rest = NULL;

    for (char *word = strtok_r(text, " \t", &rest); word != NULL && words->count < MOST_WORDS - 4;
         word = strtok_r(NULL, " \t", &rest))
        words->list[words->count++] = word;
}

/* Writes the command for the shell of the host, in which the path may have any character. */
static char *make_command(const char *path)
{
    struct buffer text = {0};

    buffer_add(&text, "exec '", 6);
    for (; *path != '\0'; path++)
        buffer_add(&text, *path == '\'' ? "'\\''" : path, *path == '\'' ? 4 : 1);
    buffer_add(&text, "' --remote", 11);
    return buffer_front(&text);
}

/* In the process of the child. */
static void run_child(const struct launcher *launcher, const struct child *child, int fd)
{
    const struct job *job = &launcher->job;
    struct words words = {0};

    dup2(fd, STDIN_FILENO);
    dup2(fd, STDOUT_FILENO);
    limits_restore();
    signals_restore();
    if (child->places[0].host[0] == '\0') {
        execl("/proc/self/exe", "sluice-launch", "--remote", (char *)NULL);
    } else {
        split(&words, strdup(job->ssh));
        words.list[words.count++] = strdup(child->places[0].host);
        words.list[words.count++] = make_command(job->path);
        execvp(words.list[0], words.list);
    }
    fprintf(stderr, "sluice-launch: cannot execute %s: %s\n",
            words.count > 0 ? words.list[0] : "/proc/self/exe", strerror(errno));
    _exit(STATUS_NO_PROGRAM);
}

static void start_child(struct launcher *launcher, struct child *child)
{
    const struct place *last = &child->places[child->place_count - 1];
    int fds[2];

    child->first = child->places[0].first;
    child->count = last->first + last->count - child->first;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
        die(STATUS_ARGUMENTS, "no socket for host %s: %s", child->places[0].host, strerror(errno));
    child->id = process_start(launcher);
    if (child->id == 0)
        run_child(launcher, child, fds[1]);
    if (child->id < 0)
        die(STATUS_ARGUMENTS, "no process for host %s: %s", child->places[0].host, strerror(errno));
    close(fds[1]);
    link_open(&child->link, fds[0], fds[0]);
}

/* Divides the ranks of this host, if their pipes need more descriptors than there are. */
static uint32_t plan_parts(struct launcher *launcher, const struct place *own, uint32_t left)
{
    bool direct = launcher->job.plain && !launcher->remote;
    uint32_t each = left / 2 > 0 ? left / 2 : 1, parts, share;

    launcher->first = own->first;
    launcher->local = own->local;
    launcher->count = own->count;
    if (direct || own->count <= each)
        return 0;
    launcher->count = 0;
    parts = (own->count + each - 1) / each;
    parts = parts < left ? parts : left;
    if (parts < 2)
        die(STATUS_ARGUMENTS, "the limit of descriptors is too low: set ulimit -n to 32 or more");
    launcher->parts = calloc(parts, sizeof *launcher->parts);
    if (launcher->parts == NULL)
        die(STATUS_ARGUMENTS, "no memory for %u launchers", parts);
    share = (own->count + parts - 1) / parts;
    parts = (own->count + share - 1) / share;
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t before = i * share;

        launcher->parts[i] = *own;
        launcher->parts[i].host = "";
        launcher->parts[i].first = own->first + before;
        launcher->parts[i].local = own->local + before;
        launcher->parts[i].count = own->count - before < share ? own->count - before : share;
    }
    return parts;
}

void children_start(struct launcher *launcher)
{
    const struct job *job = &launcher->job;
    bool here = launcher->remote || job->places[0].host[0] == '\0';
    const struct place *rest = job->places + here;
    uint32_t hosts = job->place_count - here, left = limits_left(), parts = 0, direct = hosts;

    if (job->fan > 0 && direct > job->fan)
        direct = job->fan;
    if (direct > left / 2)
        direct = left / 2 > 0 ? left / 2 : 1;
    if (here)
        parts = plan_parts(launcher, &job->places[0], hosts > 0 ? left - direct : left);
    if (hosts == 0 && parts == 0)
        return;
    launcher->children = calloc(direct + parts, sizeof *launcher->children);
    if (launcher->children == NULL)
        die(STATUS_ARGUMENTS, "no memory for %u hosts", direct);
    for (uint32_t i = 0; i < parts; i++) {
        struct child *child = &launcher->children[launcher->child_count++];

        child->places = &launcher->parts[i];
        child->place_count = 1;
        start_child(launcher, child);
    }
    for (uint32_t i = 0; i < direct && hosts > 0; i++) {
        struct child *child = &launcher->children[launcher->child_count++];

        child->places = rest;
        child->place_count = (hosts + direct - i - 1) / (direct - i);
        rest += child->place_count;
        hosts -= child->place_count;
        start_child(launcher, child);
    }
}

static bool is_known(const struct launcher *launcher)
{
    return launcher->job.root != NULL;
}

static void begin_child(const struct launcher *launcher, struct child *child)
{
    struct job job = launcher->job;

    job.places = (struct place *)child->places;
    job.place_count = child->place_count;
    frame_add_start(&child->link.unsent, &job);
    child->state = CHILD_STARTED;
    for (uint32_t stream = 0; stream < 2; stream++)
        if (launcher->streams[stream]->broken)
            frame_add_close(&child->link.unsent, stream);
}

void children_begin(struct launcher *launcher)
{
    for (uint32_t i = 0; i < launcher->child_count && is_known(launcher); i++)
        if (launcher->children[i].state == CHILD_READY)
            begin_child(launcher, &launcher->children[i]);
}

/* why: "" if it is not needed any more. */
static void lose_child(struct launcher *launcher, struct child *child, const char *why)
{
    const char *host = child->places[0].host;
    char text[512] = "";
    struct frame_failed failed = {
        .code = why[0] != '\0' && child->state < CHILD_STARTED ? STATUS_ARGUMENTS : 0,
        .first = child->first,
        .count = child->count,
        .text = text,
    };

    if (why[0] != '\0')
        snprintf(text, sizeof text, "%s%.255s: %s",
                 host[0] != '\0' ? "host " : "a part of this host", host, why);
    child->state = CHILD_LOST;
    link_close(&child->link);
    if (child->id > 0)
        process_signal(child->id, SIGKILL);
    event_failed(launcher, &failed);
}

/* Explains why the connection has ended, by the status of ssh. */
static void lose_closed_child(struct launcher *launcher, struct child *child)
{
    const char *what = child->state == CHILD_LOGIN ? "it cannot be reached" : "connection lost";
    int status = child->status;
    char why[128];

    if (child->id == 0)
        snprintf(why, sizeof why, "%s: its %s %d", what,
                 WIFSIGNALED(status) ? "ssh was killed by signal" : "ssh ended with exit status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    else
        snprintf(why, sizeof why, "%s: the connection was closed", what);
    lose_child(launcher, child, why);
}

/* The port of rank 0 is known once its host has answered. */
static void take_hello(struct launcher *launcher, struct child *child, uint32_t port)
{
    static char root[320];
    char host[256];

    child->state = CHILD_READY;
    if (!is_known(launcher) && child->first == 0) {
        if (launcher->root_host != NULL)
            snprintf(host, sizeof host, "%s", launcher->root_host);
        else
            place_address(&child->places[0], host, sizeof host);
        snprintf(root, sizeof root, strchr(host, ':') != NULL ? "[%s]:" : "%s:", host);
        if (launcher->root_port != NULL)
            snprintf(root + strlen(root), sizeof root - strlen(root), "%s", launcher->root_port);
        else
            snprintf(root + strlen(root), sizeof root - strlen(root), "%u", port);
        launcher->job.root = root;
    }
    children_begin(launcher);
}

static bool is_of_child(const struct child *child, uint32_t first, uint32_t count)
{
    return first >= child->first && count <= child->count &&
           first - child->first <= child->count - count;
}

/* Returns false if the frame is not one that this child may send now. */
static bool take_frame(struct launcher *launcher, struct child *child, const struct frame *frame)
{
    struct frame_hello hello;
    struct frame_ended ended;
    struct frame_failed failed;
    const char *bytes;
    uint32_t stream;
    size_t count;

    if (frame->type == FRAME_BEAT)
        return true;
    if (child->state == CHILD_MARKED) {
        if (frame->type != FRAME_HELLO || !frame_read_hello(frame, &hello))
            return false;
        if (!frame_fits(&hello)) {
            snprintf(child->why, sizeof child->why,
                     "the sluice-launch there speaks version %u, readable from version %u on; this "
                     "one speaks version %d, and reads from %d on",
                     hello.written, hello.readable, FRAME_VERSION, FRAME_OLDEST);
            return false;
        }
        take_hello(launcher, child, hello.port);
        return true;
    }
    if (child->state != CHILD_STARTED)
        return false;
    switch (frame->type) {
    case FRAME_OUTPUT:
        if (!frame_read_output(frame, &stream, &bytes, &count))
            return false;
        output_take(launcher, stream, bytes, count);
        return true;
    case FRAME_ENDED:
        if (!frame_read_ended(frame, &ended) || !is_of_child(child, ended.rank, 1))
            return false;
        event_ended(launcher, &ended);
        return true;
    case FRAME_FAILED:
        if (!frame_read_failed(frame, &failed) || !is_of_child(child, failed.first, failed.count))
            return false;
        event_failed(launcher, &failed);
        return true;
    case FRAME_DONE:
        child->state = CHILD_DONE;
        return true;
    default:
        return false;
    }
}

/* Drops what the shell of the host printed before the mark. */
static void find_mark(struct child *child)
{
    struct buffer *received = &child->link.received;
    size_t length = strlen(FRAME_MARK), count = buffer_count(received);
    const char *at = count > 0 ? memmem(buffer_front(received), count, FRAME_MARK, length) : NULL;

    if (at != NULL) {
        child->state = CHILD_MARKED;
        buffer_drop(received, (size_t)(at - buffer_front(received)) + length);
    } else if (count > length) {
        buffer_drop(received, count - length);
    }
}

void child_receive(struct launcher *launcher, struct child *child)
{
    struct buffer *received = &child->link.received;
    bool open = link_receive(&child->link);
    struct frame frame;
    int found = 0;

    if (child->state == CHILD_LOGIN)
        find_mark(child);
    while (child->state > CHILD_LOGIN && child->state < CHILD_DONE && buffer_count(received) > 0) {
        found = frame_next(buffer_front(received), buffer_count(received), &frame);
        if (found <= 0 || !take_frame(launcher, child, &frame))
            break;
        buffer_drop(received, FRAME_HEAD + frame.bytes);
        found = 0;
    }
    if (child->state == CHILD_DONE) {
        link_close(&child->link);
        if (child->id > 0)
            process_signal(child->id, SIGTERM);
    } else if (found != 0) {
        lose_child(launcher, child,
                   child->why[0] != '\0' ? child->why
                                         : "something that is not sluice-launch answers");
    } else if (!open) {
        child->closed = true;
        if (child->id == 0)
            lose_closed_child(launcher, child);
    }
}

bool children_reap(struct launcher *launcher, pid_t id, int status)
{
    for (uint32_t i = 0; i < launcher->child_count; i++) {
        struct child *child = &launcher->children[i];

        if (child->id != id)
            continue;
        child->id = 0;
        child->status = status;
        watcher_forget(launcher, id);
        if (child->closed && child->state < CHILD_DONE)
            lose_closed_child(launcher, child);
        return true;
    }
    return false;
}

static void tick_child(struct launcher *launcher, struct child *child)
{
    bool paused = output_is_full(launcher, 0) || output_is_full(launcher, 1);
    char why[96];

    if (child->state >= CHILD_READY && buffer_count(&child->link.unsent) < BUSY_BYTES)
        frame_add(&child->link.unsent, FRAME_BEAT, NULL, 0);
    if (child->closed && child->closed_ticks++ > 0) {
        lose_closed_child(launcher, child);
        return;
    }
    /* A launcher of this host cannot be lost in silence, but both may be stopped. */
    if (child->closed || paused || child->places[0].host[0] == '\0')
        return;
    child->link.silent++;
    if (child->state == CHILD_LOGIN && child->link.silent >= LOGIN_TICKS) {
        snprintf(why, sizeof why, "no sluice-launch answered within %d s", LOGIN_TICKS);
        lose_child(launcher, child, why);
    } else if (child->state > CHILD_LOGIN && child->link.silent >= SILENCE_TICKS) {
        snprintf(why, sizeof why, "nothing was received for %d s", SILENCE_TICKS);
        lose_child(launcher, child, why);
    }
}

void children_tick(struct launcher *launcher)
{
    for (uint32_t i = 0; i < launcher->child_count; i++)
        if (launcher->children[i].state < CHILD_DONE)
            tick_child(launcher, &launcher->children[i]);
}

void children_signal(struct launcher *launcher, int number)
{
    for (uint32_t i = 0; i < launcher->child_count; i++) {
        struct child *child = &launcher->children[i];

        if (child->state == CHILD_STARTED)
            frame_add_signal(&child->link.unsent, (uint32_t)number);
        else if (child->state < CHILD_STARTED && number != SIGHUP)
            lose_child(launcher, child, "");
    }
}

void children_close(struct launcher *launcher, uint32_t stream)
{
    for (uint32_t i = 0; i < launcher->child_count; i++)
        if (launcher->children[i].state == CHILD_STARTED)
            frame_add_close(&launcher->children[i].link.unsent, stream);
}

bool children_done(const struct launcher *launcher)
{
    for (uint32_t i = 0; i < launcher->child_count; i++)
        if (launcher->children[i].state < CHILD_DONE)
            return false;
    return true;
}
