/* SPDX-License-Identifier: MIT */
/*
 * Checks whether memory is mapped with the rights it needs, by the kernel's own
 * list of mappings. Touching the memory could kill the program, writing to it
 * would race with its other threads, and mincore(2) reports no rights.
 *
 * Linux 6.11 answers for the mapping at an address (PROCMAP_QUERY): one system call
 * for each mapping of the range. If it denies, or cannot answer, the whole list is read
 * as text, which takes time in proportion to the number of mappings of the process.
 */
#include "transport/soft/soft.h"

#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fork.h"

#define MAPPINGS "/proc/self/maps"

/* PROCMAP_QUERY, as the kernel defines it: headers of C libraries got it later. */
struct query {
    uint64_t size;
    uint64_t flags; /* the rights that the mapping must have */
    uint64_t address;
    uint64_t start; /* from here on: of the mapping that has the address */
    uint64_t end;
    uint64_t rights;
    uint64_t page_size;
    uint64_t offset;
    uint64_t inode;
    uint32_t device[2];
    uint32_t name_size; /* 0: neither the name nor the build id is wanted */
    uint32_t build_id_size;
    uint64_t name;
    uint64_t build_id;
};
#define MAPPING_QUERY _IOWR('f', 17, struct query)
#define QUERY_READABLE 1
#define QUERY_WRITABLE 2

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

/* Returns the end of the mapping that has the address; 0: it lacks the rights, or is not there. */
static uintptr_t query_end(int maps, uintptr_t address, bool write)
{
    struct query query = {.size = sizeof(query),
                          .flags = QUERY_READABLE | (write ? QUERY_WRITABLE : 0),
                          .address = address};
    return ioctl(maps, MAPPING_QUERY, &query) == 0 ? (uintptr_t)query.end : 0;
}

/* Each step is a mapping as it is at that instant. False: it is not so, or nobody knows. */
static bool query_range(int maps, uintptr_t start, uintptr_t end, bool write)
{
    uintptr_t next = start;
    while (maps >= 0 && next < end) {
        uintptr_t reached = query_end(maps, next, write);
        if (reached <= next)
            return false;
        next = reached;
    }
    return next >= end;
}

static int read_range(uintptr_t start, uintptr_t end, bool write)
{
    SLU_UNCANCELLED_BLOCK;
    int err = -EFAULT;
    /* Other threads map and unmap while we read: a gap counts if it is seen twice. */
    for (int tries = 0; err != 0 && tries < 2; tries++) {
        int fd = slu_fd_open(MAPPINGS, O_RDONLY);
        if (fd < 0) {
            slu_log(SLUICE_LOG_DEBUG, "cannot check memory before registering it: no /proc");
            return 0;
        }
        err = scan(fd, start, end, write);
        close(fd);
    }
    return err;
}

int slu_soft_probe_open(void)
{
    int saved = errno;
    int maps = slu_fd_open(MAPPINGS, O_RDONLY);
    if (maps >= 0 && (query_end(maps, (uintptr_t)&saved, true) == 0 || slu_fd_adopt(maps) != 0)) {
        close(maps);
        maps = -1;
    }
    errno = saved;
    return maps;
}

int slu_soft_probe_range(const struct soft_context *context, const void *addr, size_t length,
                         bool write)
{
    int saved = errno;
    uintptr_t start = (uintptr_t)addr;
    /* The descriptor is about the process that has opened the context. */
    int maps = context->process == slu_fork_generation() ? context->maps : -1;
    int err = query_range(maps, start, start + length, write)
                  ? 0
                  : read_range(start, start + length, write);
    errno = saved;
    return err;
}
