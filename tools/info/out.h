/* SPDX-License-Identifier: MIT */
/*
 * The output, as text for people or as one JSON document. Each call writes one value, with its
 * key in JSON or its label in text. NULL leaves the value out of that form.
 */
#ifndef INFO_OUT_H
#define INFO_OUT_H

#include <stdbool.h>
#include <stdint.h>

#define OUT_DEPTH 8

struct out {
    bool json;
    uint32_t columns;         /* of the terminal, where lines are wrapped; 0: no terminal */
    uint32_t indent;          /* of lines, in steps */
    bool indented[OUT_DEPTH]; /* whether each open object or list has a title and is indented */
    uint32_t depth;           /* open objects and lists */
    void *open[OUT_DEPTH];    /* these, of JSON */
};

/* Returns whether this build has JSON. */
bool out_has_json(void);
void out_begin(struct out *out, bool json);
/* Prints the rest of the output. Returns false if it cannot be written. */
bool out_finish(struct out *out);

/* Begin and end an object or a list; key NULL: the next element of a list. */
void out_object(struct out *out, const char *key, const char *label);
void out_list(struct out *out, const char *key, const char *label);
void out_end(struct out *out);

/* Print a line in text only, without a label or with one. */
void out_line(struct out *out, const char *format, ...) __attribute__((format(printf, 2, 3)));
void out_words(struct out *out, const char *label, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes a text. An empty one is null in JSON, and nothing in text. */
void out_text(struct out *out, const char *key, const char *label, const char *text);
/* Write a value; the format is for text only. */
void out_number(struct out *out, const char *key, const char *label, int64_t number,
                const char *format, ...) __attribute__((format(printf, 5, 6)));
void out_flag(struct out *out, const char *key, const char *label, bool flag, const char *format,
              ...) __attribute__((format(printf, 5, 6)));
void out_null(struct out *out, const char *key, const char *label, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Writes a count; UINT64_MAX is null. */
void out_limit(struct out *out, const char *key, const char *label, uint64_t count,
               const char *words);

#endif
