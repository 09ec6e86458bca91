/* SPDX-License-Identifier: MIT */
/*
 * Checks in the kernel's list of mappings whether memory is mapped with the rights it needs, and
 * whether it belongs to a file. Touching the memory could kill the program, writing to it would
 * race with its other threads, and mincore(2) reports no rights.
 *
 * Linux 6.11 answers for the mapping at an address (PROCMAP_QUERY): one system call for each
 * mapping of the range. If the range is not covered, or the kernel cannot answer, the whole list is
 * read as text. That takes time in proportion to the number of mappings of the process.
 */
#include "transport/soft/core/soft.h"

#include <fcntl.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/fork.h"

#define MAPPINGS "/proc/self/maps"

/* A file, as the kernel identifies it. */
struct identity {
    uint64_t inode; /* 0: no file */
    uint32_t device[2];
};

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
    struct identity file;
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
    bool nobodys;
    struct identity file;
};

/*
 * Anonymous shared memory is listed as a file of the kernel's own. No process can open that file,
 * so none can truncate it.
 */
#define NOBODYS_FILE "/dev/zero (deleted)"

/*
 * Returns an address in the file of the running program, which has its static variables. The kernel
 * lets no process write to that file or truncate it. 0: there is none. A program that was given to
 * the dynamic loader as an argument is a file like any other; the kernel has run the loader then.
 */
static uintptr_t program_address(void)
{
    uintptr_t address = getauxval(AT_PHDR);
    const ElfW(Phdr) *headers = (const void *)address;
    bool named_loader = false;
    for (unsigned long i = 0; i < getauxval(AT_PHNUM); i++)
        named_loader = named_loader || headers[i].p_type == PT_INTERP;
    return named_loader && getauxval(AT_BASE) == 0 ? 0 : address;
}

static bool is_same(const struct identity *a, const struct identity *b)
{
    return a->inode == b->inode && a->device[0] == b->device[0] && a->device[1] == b->device[1];
}

/* Parses "start-end rwxp offset device inode name", terminated. Only files have an inode. */
static bool parse_mapping(const char *line, struct mapping *mapping)
{
    const char *name = strchr(line, '/');
    struct identity *file = &mapping->file;
    char readable, writable;
    if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %c%c%*s %*s %" SCNx32 ":%" SCNx32 " %" SCNu64,
               &mapping->start, &mapping->end, &readable, &writable, &file->device[0],
               &file->device[1], &file->inode) != 7)
        return false;
    mapping->readable = readable == 'r';
    mapping->writable = writable == 'w';
    mapping->nobodys = name != NULL && strcmp(name, NOBODYS_FILE) == 0;
    return true;
}

/* How far a range is known to be good, and whether some of that belongs to a file. */
struct progress {
    uintptr_t next;
    bool file;
    struct identity program; /* its file, listed before its variables */
};

static void cover(struct progress *progress, const struct mapping *mapping, bool write)
{
    if (mapping->start <= progress->next && progress->next < mapping->end && mapping->readable &&
        (mapping->writable || !write)) {
        progress->next = mapping->end;
        progress->file = progress->file || (mapping->file.inode != 0 && !mapping->nobodys &&
                                            !is_same(&mapping->file, &progress->program));
    }
}

/* Covers the mappings in the complete lines of the buffer; returns the length of these lines. */
static size_t cover_lines(char *buffer, size_t filled, struct progress *progress, bool write)
{
    uintptr_t program = program_address();
    size_t used = 0;
    char *end;
    while ((end = memchr(buffer + used, '\n', filled - used)) != NULL) {
        struct mapping mapping;
        *end = '\0';
        if (parse_mapping(buffer + used, &mapping)) {
            if (mapping.start <= program && program < mapping.end)
                progress->program = mapping.file;
            cover(progress, &mapping, write);
        }
        used = (size_t)(end - buffer) + 1;
    }
    return used;
}

static int scan(int fd, struct progress *progress, uintptr_t end, bool write)
{
    char buffer[8192];
    size_t filled = 0;
    while (progress->next < end) {
        ssize_t got = read(fd, buffer + filled, sizeof(buffer) - filled);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return -EFAULT;
        filled += (size_t)got;
        size_t used = cover_lines(buffer, filled, progress, write);
        if (used == 0 && filled == sizeof(buffer))
            return -EFAULT;
        memmove(buffer, buffer + used, filled - used);
        filled -= used;
    }
    return 0;
}

/* Queries the mapping at an address. False: none has the rights, or the kernel cannot answer. */
static bool ask(int maps, uintptr_t address, bool write, struct query *query)
{
    *query = (struct query){.size = sizeof(*query),
                            .flags = QUERY_READABLE | (write ? QUERY_WRITABLE : 0),
                            .address = address};
    return ioctl(maps, MAPPING_QUERY, query) == 0;
}

/* Queries with the name of the mapping, which takes longer. */
static bool is_nobodys_file(int maps, uintptr_t address)
{
    char name[sizeof(NOBODYS_FILE)] = "";
    struct query query = {.size = sizeof(query),
                          .address = address,
                          .name_size = sizeof(name),
                          .name = (uintptr_t)name};
    return ioctl(maps, MAPPING_QUERY, &query) == 0 && strcmp(name, NOBODYS_FILE) == 0;
}

static bool is_program(int maps, const struct identity *file)
{
    struct query query;
    return ask(maps, program_address(), false, &query) && is_same(&query.file, file);
}

/*
 * Queries mapping by mapping, each as it is at that instant. False: the range is not covered, or
 * the kernel cannot answer.
 */
static bool query_range(int maps, struct progress *progress, uintptr_t end, bool write)
{
    struct query query;
    while (maps >= 0 && progress->next < end) {
        if (!ask(maps, progress->next, write, &query) || query.end <= progress->next)
            return false;
        progress->file =
            progress->file || (query.file.inode != 0 && !is_program(maps, &query.file) &&
                               !is_nobodys_file(maps, progress->next));
        progress->next = (uintptr_t)query.end;
    }
    return progress->next >= end;
}

static int read_range(struct progress *progress, uintptr_t end, bool write)
{
    uintptr_t start = progress->next;
    SLU_UNCANCELLED_BLOCK;
    int err = -EFAULT;
    /* Other threads map and unmap while the list is read: a gap counts if it is seen twice. */
    for (int tries = 0; err != 0 && tries < 2; tries++) {
        int fd = slu_fd_open(MAPPINGS, O_RDONLY);
        if (fd < 0) {
            slu_log(SLUICE_LOG_DEBUG, "cannot check memory before registering it: no /proc");
            return 0;
        }
        progress->next = start;
        err = scan(fd, progress, end, write);
        close(fd);
    }
    return err;
}

int slu_soft_probe_open(void)
{
    SLU_KEEP_ERRNO;
    struct query query;
    int maps = slu_fd_open(MAPPINGS, O_RDONLY);
    if (maps >= 0 && (!ask(maps, (uintptr_t)&query, true, &query) || slu_fd_adopt(maps) != 0)) {
        close(maps);
        maps = -1;
    }
    return maps;
}

int slu_soft_probe_range(const struct soft_context *context, const void *addr, size_t length,
                         bool write, bool *file)
{
    SLU_KEEP_ERRNO;
    uintptr_t start = (uintptr_t)addr;
    struct progress progress = {.next = start};
    /* The descriptor reports the mappings of the process that opened the context. */
    int maps = context->process == slu_fork_generation() ? context->maps : -1;
    int err = 0;
    if (!query_range(maps, &progress, start + length, write)) {
        progress = (struct progress){.next = start};
        err = read_range(&progress, start + length, write);
    }
    if (file != NULL)
        *file = progress.file;
    return err;
}
