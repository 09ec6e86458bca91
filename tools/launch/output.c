/* SPDX-License-Identifier: MIT */
/* Output of ranks: read as lines, marked with the rank, and written by the root. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "launch.h"

#define READ_BYTES 65536
/* A longer line is passed on in parts, each as a line of its own. */
#define MOST_LINE ((size_t)65536)
/* A pipe that is ready for writing has room for so many bytes. */
#define WRITE_BYTES 4096

void sinks_init(struct launcher *launcher)
{
    struct stat status[2];

    for (int i = 0; i < 2; i++) {
        launcher->sinks[i].fd = STDOUT_FILENO + i;
        launcher->streams[i] = &launcher->sinks[i];
        if (fstat(STDOUT_FILENO + i, &status[i]) != 0)
            status[i] = (struct stat){0};
        launcher->sinks[i].regular = S_ISREG(status[i].st_mode);
    }
    /* One queue for both streams keeps lines whole on a terminal, and in a pipe. */
    if (status[0].st_dev == status[1].st_dev && status[0].st_ino == status[1].st_ino &&
        !launcher->sinks[0].regular)
        launcher->streams[1] = &launcher->sinks[0];
}

void output_close(struct launcher *launcher, uint32_t stream)
{
    for (uint32_t i = 0; i < launcher->count && launcher->ranks != NULL; i++) {
        struct source *source = &launcher->ranks[i].sources[stream];

        if (source->fd < 0)
            continue;
        close(source->fd);
        source->fd = -1;
        buffer_free(&source->line);
    }
    children_close(launcher, stream);
}

/* If the reader of the output has closed it, that is no loss. */
static void fail_sink(struct launcher *launcher, struct sink *sink, int error)
{
    sink->broken = true;
    buffer_free(&sink->unwritten);
    for (uint32_t stream = 0; stream < 2 && error == EPIPE; stream++)
        if (launcher->streams[stream] == sink)
            output_close(launcher, stream);
    if (error != EPIPE && !launcher->lost) {
        launcher->lost = true;
        if (sink != launcher->streams[1])
            say(launcher, "output of the ranks is lost: it could not be written");
    }
}

void sink_write(struct launcher *launcher, struct sink *sink)
{
    do {
        size_t count = buffer_count(&sink->unwritten);
        ssize_t written;

        if (count > WRITE_BYTES && !sink->regular)
            count = WRITE_BYTES;
        if (count == 0)
            return;
        written = write(sink->fd, buffer_front(&sink->unwritten), count);
        if (written < 0 && (errno == EINTR || errno == EAGAIN))
            return;
        if (written < 0) {
            fail_sink(launcher, sink, errno);
            return;
        }
        buffer_drop(&sink->unwritten, (size_t)written);
    } while (sink->regular);
}

void output_take(struct launcher *launcher, uint32_t stream, const char *bytes, size_t count)
{
    struct sink *sink = launcher->streams[stream];

    if (launcher->remote && !launcher->orphan)
        frame_add_output(&launcher->up.unsent, stream, bytes, count);
    else if (!launcher->remote && !sink->broken)
        buffer_add(&sink->unwritten, bytes, count);
}

bool output_is_full(const struct launcher *launcher, uint32_t stream)
{
    const struct buffer *waiting =
        launcher->remote ? &launcher->up.unsent : &launcher->streams[stream]->unwritten;

    return buffer_count(waiting) > MOST_UNWRITTEN;
}

/* Adds a line, with its mark, to the output of a round. */
static void add_line(const struct launcher *launcher, uint32_t index, struct buffer *lines,
                     const char *line, size_t count)
{
    char mark[16];

    if (!launcher->job.plain)
        buffer_add(lines, mark,
                   (size_t)snprintf(mark, sizeof mark, "[%u] ", launcher->first + index));
    buffer_add(lines, line, count);
    if (line[count - 1] != '\n')
        buffer_add(lines, "\n", 1);
}

static void close_source(struct launcher *launcher, uint32_t index, uint32_t stream)
{
    struct source *source = &launcher->ranks[index].sources[stream];
    struct buffer lines = {0};

    close(source->fd);
    source->fd = -1;
    if (buffer_count(&source->line) > 0) {
        add_line(launcher, index, &lines, buffer_front(&source->line), buffer_count(&source->line));
        output_take(launcher, stream, buffer_front(&lines), buffer_count(&lines));
    }
    buffer_free(&lines);
    buffer_free(&source->line);
}

/* Passes on all whole lines of the source, together. */
static void take_lines(struct launcher *launcher, uint32_t index, uint32_t stream)
{
    struct buffer *line = &launcher->ranks[index].sources[stream].line, lines = {0};

    while (buffer_count(line) > 0) {
        const char *begin = buffer_front(line), *end = memchr(begin, '\n', buffer_count(line));
        size_t count = end != NULL ? (size_t)(end - begin) + 1 : buffer_count(line);

        if (end == NULL && count < MOST_LINE)
            break;
        add_line(launcher, index, &lines, begin, count);
        buffer_drop(line, count);
    }
    if (buffer_count(&lines) > 0)
        output_take(launcher, stream, buffer_front(&lines), buffer_count(&lines));
    buffer_free(&lines);
}

void source_read(struct launcher *launcher, uint32_t index, uint32_t stream)
{
    struct source *source = &launcher->ranks[index].sources[stream];
    static char bytes[READ_BYTES];
    ssize_t got = read(source->fd, bytes, sizeof bytes);

    if (got < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (got <= 0) {
        close_source(launcher, index, stream);
        return;
    }
    buffer_add(&source->line, bytes, (size_t)got);
    take_lines(launcher, index, stream);
}

bool sources_open(const struct launcher *launcher)
{
    for (uint32_t i = 0; i < launcher->count && launcher->ranks != NULL; i++)
        if (launcher->ranks[i].sources[0].fd >= 0 || launcher->ranks[i].sources[1].fd >= 0)
            return true;
    return false;
}

void sources_finish(struct launcher *launcher)
{
    for (uint32_t i = 0; i < launcher->count && launcher->ranks != NULL; i++) {
        for (uint32_t stream = 0; stream < 2; stream++) {
            struct source *source = &launcher->ranks[i].sources[stream];
            struct pollfd ready = {.fd = source->fd, .events = POLLIN};

            while (source->fd >= 0 && poll(&ready, 1, 0) == 1)
                source_read(launcher, i, stream);
            if (source->fd >= 0)
                close_source(launcher, i, stream);
        }
    }
}
