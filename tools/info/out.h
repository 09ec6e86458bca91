/* SPDX-License-Identifier: MIT */
/*
 * What is told, as text for people or as one JSON document. Each call is one value with its
 * key, for JSON, and its label, for people; NULL for what is not for the one of them.
 */
#ifndef INFO_OUT_H
#define INFO_OUT_H

#include <stdbool.h>
#include <stdint.h>

#define OUT_DEPTH 8

struct out {
    bool json;
    uint32_t columns;         /* of the terminal, at which lines are broken; 0: it is none */
    uint32_t indent;          /* of lines, in steps */
    bool indented[OUT_DEPTH]; /* what is open has a line of its own, and is indented */
    uint32_t depth;           /* of what is open */
    void *open[OUT_DEPTH];    /* of JSON */
};

/* False: this build has no JSON. */
bool out_has_json(void);
void out_begin(struct out *out, bool json);
/* Prints what is left: false, it could not be written. */
bool out_finish(struct out *out);

/* An object or a list, up to its end; key NULL: the next element of a list. */
void out_object(struct out *out, const char *key, const char *label);
void out_list(struct out *out, const char *key, const char *label);
void out_end(struct out *out);

/* For people alone: a line of its own, or one with a label. */
void out_line(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_words(struct out *out, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Empty: null, and nothing for people. */
void out_text(struct out *out, const char *key, const char *label, const char *text);
/* For people in these words. */
void out_number(struct out *out, const char *key, const char *label, int64_t number,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
void out_flag(struct out *out, const char *key, const char *label, bool flag, const char *format,
              ...) __attribute__((format(printf, 5, 6)));
void out_null(struct out *out, const char *key, const char *label, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A number of bytes or pieces; UINT64_MAX is null. */
void out_limit(struct out *out, const char *key, const char *label, uint64_t count,
               const char *words);

#endif
