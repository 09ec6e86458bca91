/* SPDX-License-Identifier: MIT */
/*
 * Descriptions of memory for error texts: whose pages it has, and how much of it may be locked. All
 * is read from /proc when it is asked for; nothing fails, and errno is kept.
 */
#include "config.h"

#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/base.h"
#include "base/descriptor.h"
#include "memory/kind.h"

/* capabilities(7) */
#define CAP_IPC_LOCK_BIT 14

/*
 * Mappings are read for this many failures in each period. For smaps the kernel visits all pages of
 * the process, and a program may try to register memory again and again.
 */
#define READS 8
#define PERIOD SLUICE_S(1)

/* A mapping as smaps describes it. */
struct mapping {
    char file[PATH_MAX]; /* "", "[heap]", or the path of a file */
    size_t page;         /* KiB */
    bool device;
};

/* Reads the mapping of an address. Returns false if there is none. */
static bool read_mapping(FILE *smaps, uintptr_t addr, struct mapping *mapping)
{
    char *line = NULL;
    size_t size = 0, start, end;
    bool found = false;
    int path;

    while (getline(&line, &size, smaps) > 0) {
        if (sscanf(line, "%zx-%zx %*s %*s %*s %*s %n", &start, &end, &path) == 2) {
            if (found)
                break;
            found = start <= addr && addr < end;
            if (found)
                snprintf(mapping->file, sizeof mapping->file, "%.*s",
                         (int)strcspn(line + path, "\n"), line + path);
        } else if (found && strncmp(line, "VmFlags:", 8) == 0) {
            mapping->device = strstr(line, " io") != NULL || strstr(line, " pf") != NULL;
        } else if (found) {
            (void)!sscanf(line, "KernelPageSize: %zu kB", &mapping->page);
        }
    }
    free(line);
    return found;
}

static bool may_read(void)
{
    static _Atomic uint64_t state; /* the number of the period, and of its reads in 8 bits */
    uint64_t period = (uint64_t)(slu_now() / PERIOD);
    uint64_t seen = atomic_load(&state), next;

    do {
        next = (seen >> 8 == period ? seen : period << 8) + 1;
        if ((next & 0xff) > READS)
            return false;
    } while (!atomic_compare_exchange_weak(&state, &seen, next));
    return true;
}

void slu_memory_kind(const void *addr, char text[SLU_MEMORY_KIND])
{
    SLU_KEEP_ERRNO;
    struct mapping mapping = {.page = 0};
    FILE *smaps = may_read() ? slu_fd_read_file("/proc/self/smaps") : NULL;
    bool found = smaps != NULL && read_mapping(smaps, (uintptr_t)addr, &mapping);

    if (smaps != NULL)
        fclose(smaps);
    snprintf(text, SLU_MEMORY_KIND, "memory");
    if (!found)
        return;
    if (mapping.device)
        snprintf(text, SLU_MEMORY_KIND, "memory of the device %.100s", mapping.file);
    else if (mapping.page * 1024 > (size_t)sysconf(_SC_PAGESIZE))
        snprintf(text, SLU_MEMORY_KIND, "memory in huge pages of %zu KiB", mapping.page);
    else if (mapping.file[0] == '/')
        snprintf(text, SLU_MEMORY_KIND, "memory of the file %.100s, in pages of %zu KiB",
                 mapping.file, mapping.page);
    else
        snprintf(text, SLU_MEMORY_KIND, "memory in pages of %zu KiB", mapping.page);
}

void slu_locked_read(struct slu_locked *locked)
{
    SLU_KEEP_ERRNO;
    FILE *status = slu_fd_read_file("/proc/self/status");
    unsigned long long value;
    struct rlimit limit;
    char line[256];

    *locked = (struct slu_locked){.limit = RLIM_INFINITY};
    if (getrlimit(RLIMIT_MEMLOCK, &limit) == 0)
        locked->limit = limit.rlim_cur;
    while (status != NULL && fgets(line, sizeof line, status) != NULL) {
        if (sscanf(line, "VmPin: %llu kB", &value) == 1)
            locked->pinned = value * 1024;
        else if (sscanf(line, "CapEff: %llx", &value) == 1)
            locked->exempt = (value >> CAP_IPC_LOCK_BIT & 1) != 0;
    }
    if (status != NULL)
        fclose(status);
    locked->exempt |= locked->limit == RLIM_INFINITY;
}
