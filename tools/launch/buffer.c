/* SPDX-License-Identifier: MIT */
#include "buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_ROOM 512

/* Moves the content to the front, or to a larger place, once the end of the place is reached. */
static void make_room(struct buffer *buffer, size_t count)
{
    size_t used = buffer_count(buffer);

    if (buffer->room - buffer->end >= count)
        return;
    if (used + count > buffer->room / 2) {
        size_t room = buffer->room == 0 ? FIRST_ROOM : buffer->room;
        char *bytes;

        while (room < 2 * (used + count))
            room *= 2;
        bytes = malloc(room);
        if (bytes == NULL) {
            /* The watcher ends the ranks. */
            fprintf(stderr, "sluice-launch: no memory for %zu bytes\n", room);
            exit(1);
        }
        if (used > 0)
            memcpy(bytes, buffer_front(buffer), used);
        free(buffer->bytes);
        buffer->bytes = bytes;
        buffer->room = room;
    } else {
        memmove(buffer->bytes, buffer_front(buffer), used);
    }
    buffer->at = 0;
    buffer->end = used;
}

char *buffer_extend(struct buffer *buffer, size_t count)
{
    char *place;

    make_room(buffer, count);
    place = buffer->bytes + buffer->end;
    buffer->end += count;
    return place;
}

void buffer_add(struct buffer *buffer, const void *bytes, size_t count)
{
    if (count > 0)
        memcpy(buffer_extend(buffer, count), bytes, count);
}

void buffer_drop(struct buffer *buffer, size_t count)
{
    buffer->at += count;
    if (buffer->at == buffer->end)
        buffer_free(buffer);
}

void buffer_free(struct buffer *buffer)
{
    free(buffer->bytes);
    *buffer = (struct buffer){0};
}
