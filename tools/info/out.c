/* SPDX-License-Identifier: MIT */
/*
 * Text and JSON output. Text is printed at once; JSON is one document, printed at the end.
 */
#include "config.h"

#include "info.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

/* The column of values, and the narrowest width at which lines are wrapped. */
#define LABEL_COLUMNS 24
#define COLUMNS_LEAST 60

#ifdef HAVE_JANSSON

#include <jansson.h>

bool out_has_json(void)
{
    return true;
}

static void *check(void *value)
{
    if (value == NULL) {
        fputs("sluice-info: no memory for the JSON document\n", stderr);
        exit(STATUS_FAILED);
    }
    return value;
}

/* Adds a value to the innermost open object or list. */
static void put(struct out *out, const char *key, void *value)
{
    json_t *parent = out->open[out->depth - 1];

    check(value);
    if ((key != NULL ? json_object_set_new(parent, key, value)
                     : json_array_append_new(parent, value)) != 0)
        check(NULL);
}

static void *new_object(void)
{
    return check(json_object());
}

static void *new_list(void)
{
    return check(json_array());
}

/* Makes a text. Texts of the kernel or a user may not be UTF-8: then such bytes become '?'. */
static void *new_text(const char *text)
{
    json_t *value = json_string(text);
    char *copy;

    if (value != NULL)
        return value;
    copy = check(strdup(text));
    for (char *at = copy; *at != '\0'; at++)
        if ((*at & 0x80) != 0)
            *at = '?';
    value = json_string(copy);
    free(copy);
    return check(value);
}

static void *new_number(int64_t number)
{
    return json_integer(number);
}

static void *new_flag(bool flag)
{
    return json_boolean(flag);
}

static void *new_null(void)
{
    return json_null();
}

static void print_json(void *document)
{
    char *text = check(json_dumps(document, JSON_INDENT(1)));

    puts(text);
    free(text);
    json_decref(document);
}

#else

bool out_has_json(void)
{
    return false;
}

#define put(out, key, value) ((void)(out), (void)(key), (void)(value))
#define new_object() NULL
#define new_list() NULL
#define new_text(text) ((void)(text), NULL)
#define new_number(number) ((void)(number), NULL)
#define new_flag(flag) ((void)(flag), NULL)
#define new_null() NULL
#define print_json(document) ((void)(document))

#endif

void out_begin(struct out *out, bool json)
{
    struct winsize size;

    *out = (struct out){.json = json};
    if (json)
        out->open[out->depth++] = new_object();
    else if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
        out->columns = size.ws_col >= COLUMNS_LEAST ? size.ws_col : COLUMNS_LEAST;
}

bool out_finish(struct out *out)
{
    if (out->json)
        print_json(out->open[0]);
    return fflush(stdout) == 0 && ferror(stdout) == 0;
}

/* Prints a text. Control characters become '?', because a terminal would obey them. */
static void put_plain(const char *text, size_t length)
{
    for (; length > 0; length--, text++)
        putchar((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text);
}

/* Prints the rest of a line from that column on; on a terminal, wraps it between words. */
static void put_rest(const struct out *out, uint32_t column, const char *text)
{
    uint32_t at = column;

    while (*text != '\0') {
        size_t word = strcspn(text + 1, " ") + 1;

        if (out->columns != 0 && at + word >= out->columns && at > column) {
            printf("\n%*s", (int)column, "");
            at = column;
            text += *text == ' ';
            word = strcspn(text, " ");
        }
        put_plain(text, word);
        text += word;
        at += (uint32_t)word;
    }
    putchar('\n');
}

static void print_line(const struct out *out, const char *text)
{
    printf("%*s", (int)(2 * out->indent), "");
    put_rest(out, 2 * out->indent, text);
}

static void print_labelled(const struct out *out, const char *label, const char *text)
{
    int width = LABEL_COLUMNS - 2 * (int)out->indent;
    int length = (int)strlen(label);

    if (width < length)
        width = length;
    printf("%*s%-*s  ", (int)(2 * out->indent), "", width, label);
    put_rest(out, 2 * out->indent + (uint32_t)width + 2, text);
}

static void print_formatted(const struct out *out, const char *label, const char *format,
                            va_list arguments)
{
    char text[1024];

    vsnprintf(text, sizeof text, format, arguments);
    if (label != NULL)
        print_labelled(out, label, text);
    else
        print_line(out, text);
}

static void open_one(struct out *out, const char *key, const char *label, void *value)
{
    if (out->json) {
        put(out, key, value);
        if (out->depth < OUT_DEPTH)
            out->open[out->depth] = value;
    } else if (label != NULL) {
        print_line(out, label);
    }
    if (out->depth < OUT_DEPTH)
        out->indented[out->depth] = label != NULL;
    out->indent += label != NULL;
    out->depth++;
}

void out_object(struct out *out, const char *key, const char *label)
{
    open_one(out, key, label, out->json ? new_object() : NULL);
}

void out_list(struct out *out, const char *key, const char *label)
{
    open_one(out, key, label, out->json ? new_list() : NULL);
}

void out_end(struct out *out)
{
    out->depth--;
    if (out->depth < OUT_DEPTH)
        out->indent -= out->indented[out->depth];
}

void out_line(struct out *out, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!out->json)
        print_formatted(out, NULL, format, arguments);
    va_end(arguments);
}

void out_words(struct out *out, const char *label, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!out->json)
        print_formatted(out, label, format, arguments);
    va_end(arguments);
}

void out_text(struct out *out, const char *key, const char *label, const char *text)
{
    if (!out->json && label != NULL && *text != '\0')
        print_labelled(out, label, text);
    else if (out->json)
        put(out, key, *text != '\0' ? new_text(text) : new_null());
}

void out_number(struct out *out, const char *key, const char *label, int64_t number,
                const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!out->json && label != NULL)
        print_formatted(out, label, format, arguments);
    else if (out->json)
        put(out, key, new_number(number));
    va_end(arguments);
}

void out_flag(struct out *out, const char *key, const char *label, bool flag, const char *format,
              ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!out->json && label != NULL)
        print_formatted(out, label, format, arguments);
    else if (out->json)
        put(out, key, new_flag(flag));
    va_end(arguments);
}

void out_null(struct out *out, const char *key, const char *label, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    if (!out->json && label != NULL)
        print_formatted(out, label, format, arguments);
    else if (out->json)
        put(out, key, new_null());
    va_end(arguments);
}

void out_limit(struct out *out, const char *key, const char *label, uint64_t count,
               const char *words)
{
    /* No limit; or too large for a signed 64-bit number, which is all that some readers have. */
    if (count > INT64_MAX)
        out_null(out, key, label, "%s", words);
    else
        out_number(out, key, label, (int64_t)count, "%s", words);
}
