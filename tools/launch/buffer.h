/* SPDX-License-Identifier: MIT */
/* Bytes that are added at the end and taken from the front. */
#ifndef LAUNCH_BUFFER_H
#define LAUNCH_BUFFER_H

#include <stddef.h>
#include <stdint.h>

struct buffer {
    char *bytes;
    size_t at, end, room; /* the content is bytes[at] to bytes[end - 1] */
};

/* Adds room for more bytes, and returns where these begin. Without memory the program ends. */
char *buffer_extend(struct buffer *buffer, size_t count);
void buffer_add(struct buffer *buffer, const void *bytes, size_t count);
void buffer_drop(struct buffer *buffer, size_t count);
void buffer_free(struct buffer *buffer);

static inline size_t buffer_count(const struct buffer *buffer)
{
    return buffer->end - buffer->at;
}

static inline char *buffer_front(const struct buffer *buffer)
{
    return buffer->bytes + buffer->at;
}

#endif
