/* SPDX-License-Identifier: MIT */
/*
 * Frames that launchers send each other (tools/launch/frame.h): the input is a stream of them. A
 * frame that is taken is within its limits, and is encoded to the same bytes again; nothing is read
 * beyond its body, which has a place of its own for this.
 */
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "../../tools/launch/frame.h"
#include "fuzz.h"

const char fuzz_name[] = "launch";

/* Requires that these bytes are the frame, and releases them. */
static void check_same(const struct frame *frame, struct buffer *again)
{
    hold(buffer_count(again) == FRAME_HEAD + frame->bytes, "%zu bytes, not %zu",
         buffer_count(again), FRAME_HEAD + frame->bytes);
    hold(memcmp(buffer_front(again) + FRAME_HEAD, frame->body, frame->bytes) == 0, "other bytes");
    buffer_free(again);
    fuzz_taken++;
}

static void try_hello(const struct frame *frame)
{
    struct frame_hello hello;
    struct buffer again = {0};
    if (!frame_read_hello(frame, &hello)) {
        return;
    }
    hold(hello.port <= 65535, "port %u", hello.port);
    if (frame->body[0] == 0 && frame->body[1] == 0 && frame_fits(&hello)) {
        frame_add_hello(&again, &hello);
        check_same(frame, &again);
    }
}

static void try_signal(const struct frame *frame)
{
    struct buffer again = {0};
    int number;
    if (!frame_read_signal(frame, &number)) {
        return;
    }
    hold(number == SIGHUP || number == SIGINT || number == SIGTERM || number == SIGKILL,
         "signal %d", number);
    frame_add_signal(&again, (uint32_t)number);
    check_same(frame, &again);
}

static void try_close(const struct frame *frame)
{
    struct buffer again = {0};
    uint32_t stream;
    if (!frame_read_close(frame, &stream)) {
        return;
    }
    hold(stream <= 1, "stream %u", stream);
    frame_add_close(&again, stream);
    check_same(frame, &again);
}

static void try_output(const struct frame *frame)
{
    struct buffer again = {0};
    const char *bytes;
    uint32_t stream;
    size_t count;
    if (!frame_read_output(frame, &stream, &bytes, &count)) {
        return;
    }
    hold(stream <= 1, "stream %u", stream);
    hold(bytes + count == frame->body + frame->bytes, "it does not end with the frame");
    frame_add_output(&again, stream, bytes, count);
    check_same(frame, &again);
}

static void try_ended(const struct frame *frame)
{
    struct buffer again = {0};
    struct frame_ended ended;
    if (!frame_read_ended(frame, &ended)) {
        return;
    }
    hold(ended.rank < MOST_RANKS && ended.status <= 255, "rank %u, %u", ended.rank, ended.status);
    frame_add_ended(&again, &ended);
    check_same(frame, &again);
}

static void try_failed(const struct frame *frame)
{
    struct buffer again = {0};
    struct frame_failed failed;
    if (!frame_read_failed(frame, &failed)) {
        return;
    }
    hold(failed.first + failed.count <= MOST_RANKS, "ranks %u and %u", failed.first, failed.count);
    frame_add_failed(&again, &failed);
    check_same(frame, &again);
}

static void try_start(const struct frame *frame)
{
    struct buffer again = {0};
    struct job job;
    if (!frame_read_start(frame, &job)) {
        hold(job.store == NULL && job.places == NULL && job.command == NULL, "something is left");
        return;
    }
    hold(job.ranks >= 1 && job.ranks <= MOST_RANKS, "%u ranks", job.ranks);
    hold(job.command[0] != NULL && job.place_count > 0, "no command or no place");
    for (uint32_t i = 0; i < job.place_count; i++) {
        const struct place *place = &job.places[i];
        hold(place->host[0] != '-', "an option is no host");
        hold(place->count > 0 && place->first + place->count <= job.ranks, "ranks %u and %u",
             place->first, place->count);
    }
    frame_add_start(&again, &job);
    check_same(frame, &again);
    job_free(&job);
}

static void try_frame(const struct frame *frame)
{
    static void (*const tries[FRAME_TYPES])(const struct frame *) = {
        [FRAME_HELLO] = try_hello,   [FRAME_START] = try_start, [FRAME_SIGNAL] = try_signal,
        [FRAME_OUTPUT] = try_output, [FRAME_ENDED] = try_ended, [FRAME_FAILED] = try_failed,
        [FRAME_CLOSE] = try_close,
    };
    /* A place of exactly that size, so that reading one byte too many is noticed. */
    char *body = malloc(frame->bytes > 0 ? frame->bytes : 1);
    struct frame copy = {frame->type, body, frame->bytes};
    hold(body != NULL, "no memory");
    memcpy(body, frame->body, frame->bytes);
    if (tries[frame->type] != NULL) {
        tries[frame->type](&copy);
    }
    free(body);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    const char *at = (const char *)data;
    struct frame frame;
    while (frame_next(at, size, &frame) == 1) {
        hold(frame.type >= 1 && frame.type < FRAME_TYPES, "type %d", frame.type);
        hold(frame.bytes <= FRAME_MOST && frame.bytes + FRAME_HEAD <= size, "%zu", frame.bytes);
        try_frame(&frame);
        at += FRAME_HEAD + frame.bytes;
        size -= FRAME_HEAD + frame.bytes;
    }
    return 0;
}
