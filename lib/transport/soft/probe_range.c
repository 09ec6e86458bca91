/* SPDX-License-Identifier: MIT */
/*
 * Tells whether memory is mapped with the rights it needs, by the kernel's own
 * list of mappings. Touching the memory could kill the program, writing to it
 * would race with its other threads, and mincore(2) knows nothing of rights.
 */
#include "transport/soft/soft.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct mapping {
    uintptr_t start;
    uintptr_t end;
    bool readable;
    bool writable;
};

/* Reads lower-case hexadecimal; NULL if there is none. */
static const char *parse_hex(const char *text, uintptr_t *value)
{
    const char *start = text;
    *value = 0;
    for (;; text++) {
        if (*text >= '0' && *text <= '9')
            *value = *value * 16 + (uintptr_t)(*text - '0');
        else if (*text >= 'a' && *text <= 'f')
            *value = *value * 16 + (uintptr_t)(*text - 'a' + 10);
        else
            return text == start ? NULL : text;
    }
}

/* "start-end rwxp ...", terminated. */
static bool parse_mapping(const char *line, struct mapping *mapping)
{
    line = parse_hex(line, &mapping->start);
    if (line == NULL || *line++ != '-')
        return false;
    line = parse_hex(line, &mapping->end);
    if (line == NULL || line[0] != ' ' || line[1] == '\0' || line[2] == '\0')
        return false;
    mapping->readable = line[1] == 'r';
    mapping->writable = line[2] == 'w';
    return true;
}

/* Moves *next, the first byte not known to be good, past the mapping. */
static void cover(uintptr_t *next, const struct mapping *mapping, bool write)
{
    if (mapping->start <= *next && *next < mapping->end && mapping->readable &&
        (mapping->writable || !write))
        *next = mapping->end;
}

/* Covers what the complete lines of the buffer say; returns how many bytes they are. */
static size_t cover_lines(char *buffer, size_t filled, uintptr_t *next, bool write)
{
    size_t used = 0;
    char *end;
    while ((end = memchr(buffer + used, '\n', filled - used)) != NULL) {
        struct mapping mapping;
        *end = '\0';
        if (parse_mapping(buffer + used, &mapping))
            cover(next, &mapping, write);
        used = (size_t)(end - buffer) + 1;
    }
    return used;
}

static int scan(int fd, uintptr_t start, uintptr_t end, bool write)
{
    char buffer[8192];
    size_t filled = 0;
    uintptr_t next = start;
    while (next < end) {
        ssize_t got = read(fd, buffer + filled, sizeof(buffer) - filled);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EFAULT;
        filled += (size_t)got;
        size_t used = cover_lines(buffer, filled, &next, write);
        if (used == 0 && filled == sizeof(buffer))
            return -EFAULT;
        memmove(buffer, buffer + used, filled - used);
        filled -= used;
    }
    return 0;
}

int slu_soft_probe_range(const void *addr, size_t length, bool write)
{
    int saved = errno;
    int err = -EFAULT;
    uintptr_t start = (uintptr_t)addr;
    /* Other threads map and unmap while we read: a gap counts if it is seen twice. */
    for (int tries = 0; err != 0 && tries < 2; tries++) {
        int fd = slu_fd_open("/proc/self/maps", O_RDONLY);
        if (fd < 0) {
            slu_log(SLUICE_LOG_DEBUG, "cannot check memory before registering it: no /proc");
            err = 0;
            break;
        }
        err = scan(fd, start, start + length, write);
        close(fd);
    }
    errno = saved;
    return err;
}

bool slu_soft_is_mapped(const void *addr, size_t length)
{
    uintptr_t start = (uintptr_t)addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    int saved = errno;
    bool mapped = true;
    /* With this flag it does nothing but to look for holes. */
    if (msync((void *)start, (uintptr_t)addr + length - start, MS_ASYNC) != 0)
        mapped = errno != ENOMEM;
    errno = saved;
    return mapped;
}
