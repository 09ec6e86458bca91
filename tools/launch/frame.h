/* SPDX-License-Identifier: MIT */
/*
 * The frames that two launchers send each other over ssh. Down go START, SIGNAL, CLOSE and BEAT; up
 * go HELLO, OUTPUT, ENDED, FAILED, DONE and BEAT. A frame is 4 bytes with the length of its body,
 * most significant first, 1 byte with its type, 3 bytes of 0, and the body. Numbers are 4 bytes; a
 * text ends with a byte of 0.
 *
 * Decoding trusts no byte: nothing is read beyond the body, and no allocation is larger than a
 * multiple of its length.
 */
#ifndef LAUNCH_FRAME_H
#define LAUNCH_FRAME_H

#include <stdbool.h>
#include <stdint.h>

#include "buffer.h"

/*
 * These versions cover all frames. The launcher that starts another one reads the hello of that
 * one, and sends frames that it understands. The hello has the version that wrote it and the one
 * from which it can be read, 2 bytes each, and the first is 0 if the two are equal. A later version
 * may append to it.
 */
#ifndef FRAME_NEXT
#define FRAME_NEXT 0 /* 1: see SLU_VERSIONS_NEXT of lib/endpoint/versions.h */
#endif
#define FRAME_VERSION (1 + FRAME_NEXT)
#define FRAME_READABLE 1
#define FRAME_OLDEST 1
#define FRAME_HEAD 8
#define FRAME_MOST ((size_t)8 << 20)
#define SECRET_BYTES 32
#define MOST_RANKS 65536

/*
 * A launcher on another host begins with this line, because the shell there may have printed
 * something before.
 */
#define FRAME_MARK "sluice-launch: frames follow\n"

enum frame_type {
    FRAME_BEAT = 1, /* the sender lives */
    FRAME_HELLO,    /* this launcher can be used */
    FRAME_START,    /* starts ranks */
    FRAME_SIGNAL,   /* is for all ranks */
    FRAME_OUTPUT,   /* of ranks: whole lines, marked */
    FRAME_ENDED,    /* one rank */
    FRAME_FAILED,   /* several ranks that could not be started, or whose host was lost */
    FRAME_DONE,     /* nothing follows */
    FRAME_CLOSE,    /* a stream of the ranks has no reader any more */
    FRAME_TYPES
};

struct frame {
    enum frame_type type;
    const char *body;
    size_t bytes;
};

struct frame_hello {
    uint32_t written, readable; /* by and from version */
    uint32_t port;              /* free at this moment, for rank 0 */
};

struct frame_ended {
    uint32_t rank;
    bool killed;     /* by a signal */
    uint32_t status; /* of its exit, or the signal */
};

struct frame_failed {
    uint32_t code; /* the exit status; 0: the host was lost */
    uint32_t first, count;
    const char *text; /* in the body */
};

/* The ranks of a host, or a part of them. */
struct place {
    const char *host; /* empty: this one */
    uint32_t first, count;
    uint32_t local; /* number of the first one among those of its host */
};

/* The job, as all launchers know it. Places are those of the receiver, which has the first one. */
struct job {
    uint32_t ranks;
    uint32_t fan; /* the most hosts that one launcher starts others on; 0: no limit */
    bool bind, plain;
    bool has_secret;
    uint8_t secret[SECRET_BYTES];
    const char *root, *name;
    const char *directory; /* NULL or empty: the current one */
    const char *ssh, *path;
    const char **environment, **command; /* each ends with NULL */
    struct place *places;
    uint32_t place_count;
    char *store; /* of a decoded job: all its texts */
};

/* Adds a frame with this body. */
void frame_add(struct buffer *out, enum frame_type type, const void *body, size_t bytes);
void frame_add_hello(struct buffer *out, const struct frame_hello *hello);
void frame_add_signal(struct buffer *out, uint32_t number);
void frame_add_close(struct buffer *out, uint32_t stream);
void frame_add_output(struct buffer *out, uint32_t stream, const char *bytes, size_t count);
void frame_add_ended(struct buffer *out, const struct frame_ended *ended);
void frame_add_failed(struct buffer *out, const struct frame_failed *failed);
void frame_add_start(struct buffer *out, const struct job *job);

/* Returns 1 and the first frame of these bytes; 0 if it is not complete; -1 if it is none. */
int frame_next(const char *bytes, size_t count, struct frame *frame);

/*
 * Each returns false if the body is not as it must be. If the versions of a hello do not fit, they
 * alone are read.
 */
bool frame_fits(const struct frame_hello *hello);
bool frame_read_hello(const struct frame *frame, struct frame_hello *hello);
bool frame_read_signal(const struct frame *frame, int *number);
bool frame_read_close(const struct frame *frame, uint32_t *stream);
bool frame_read_output(const struct frame *frame, uint32_t *stream, const char **bytes,
                       size_t *count);
bool frame_read_ended(const struct frame *frame, struct frame_ended *ended);
bool frame_read_failed(const struct frame *frame, struct frame_failed *failed);
/* job_free() releases it; after false there is nothing to release. */
bool frame_read_start(const struct frame *frame, struct job *job);
void job_free(struct job *job);

#endif
