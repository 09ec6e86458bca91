/* SPDX-License-Identifier: MIT */
#include "fuzz.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice.h>

unsigned fuzz_taken;

/* Lines of the log are made and dropped, as there would be too many. */
static void drop_line(uint32_t level, const char *line, void *user)
{
    (void)level;
    (void)line;
    (void)user;
}

static __attribute__((constructor)) void drop_log(void)
{
    hold(sluice_log_set(SLUICE_LOG_DEBUG, drop_line, NULL) == 0, "%s", sluice_last_error());
}

void fuzz_fail(const char *file, int line, const char *condition, const char *format, ...)
{
    va_list arguments;
    fprintf(stderr, "%s:%d: does not hold: %s: ", file, line, condition);
    va_start(arguments, format);
    vfprintf(stderr, format, arguments);
    va_end(arguments);
    fputc('\n', stderr);
    abort();
}

uint64_t fuzz_number(struct fuzz_input *input, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value = value << 8 | (input->left > 0 ? *input->at : 0);
        if (input->left > 0) {
            input->at++;
            input->left--;
        }
    }
    return value;
}

const uint8_t *fuzz_bytes(struct fuzz_input *input, size_t *count)
{
    const uint8_t *at = input->at;
    if (*count > input->left) {
        *count = input->left;
    }
    input->at += *count;
    input->left -= *count;
    return at;
}

int fuzz_free_descriptor(void)
{
    int fd = fcntl(0, F_DUPFD, 3);
    hold(fd >= 3, "%s", strerror(errno));
    close(fd);
    return fd;
}

void fuzz_explained(void)
{
    hold(sluice_last_error()[0] != '\0', "it failed without a word");
}
