/* SPDX-License-Identifier: MIT */
/* Reading small files of the kernel. */
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "info.h"

static bool read_path(char *text, size_t size, const char *format, va_list arguments)
{
    char path[PATH_MAX];
    FILE *file;
    size_t used;

    text[0] = '\0';
    if (vsnprintf(path, sizeof path, format, arguments) >= (int)sizeof path)
        return false;
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    used = fread(text, 1, size - 1, file);
    fclose(file);
    text[used] = '\0';
    while (used > 0 && (text[used - 1] == '\n' || text[used - 1] == ' '))
        text[--used] = '\0';
    return true;
}

bool file_text(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    bool found;

    va_start(arguments, format);
    found = read_path(text, size, format, arguments);
    va_end(arguments);
    return found;
}

bool file_number(uint64_t *number, const char *format, ...)
{
    va_list arguments;
    char text[64], *rest = text;
    bool found;

    va_start(arguments, format);
    found = read_path(text, sizeof text, format, arguments);
    va_end(arguments);
    *number = found && text[0] >= '0' && text[0] <= '9' ? strtoull(text, &rest, 10) : 0;
    return rest != text && (*rest == '\0' || *rest == ' ' || *rest == '\n');
}

void file_link(char *text, size_t size, const char *format, ...)
{
    char path[PATH_MAX], target[PATH_MAX];
    va_list arguments;
    ssize_t length;
    const char *slash;

    text[0] = '\0';
    va_start(arguments, format);
    vsnprintf(path, sizeof path, format, arguments);
    va_end(arguments);
    length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return;
    target[length] = '\0';
    slash = strrchr(target, '/');
    snprintf(text, size, "%s", slash != NULL ? slash + 1 : target);
}
