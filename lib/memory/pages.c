/* SPDX-License-Identifier: MIT */
/*
 * Mapping memory for regions, in huge pages if they are requested and available. Guarantee:
 * mapped memory has all its reserved huge pages, so that a later access cannot raise SIGBUS
 * because none is left.
 */
#include "config.h"

#include "memory/pages.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/uncancelled.h"

#define HUGE_FOLDER "/sys/kernel/mm/hugepages"
#define TRANSPARENT_FOLDER "/sys/kernel/mm/transparent_hugepage/"

/* Since Linux 5.14; older C libraries lack them. */
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_READ 22
#define MADV_POPULATE_WRITE 23
#endif
/* From linux/mempolicy.h; and the maximum number of nodes, to which mbind(2) wants 1 added. */
#define POLICY_PREFERRED 1
#define NODES 1024
#define NODE_WORDS (NODES / 8 / sizeof(unsigned long))
/* mmap(2) and memfd_create(2) take the logarithm of the page size from this bit of the flags on. */
#define SIZE_SHIFT 26

static size_t round_up(size_t length, size_t page)
{
    return (length + page - 1) & ~(page - 1);
}

static size_t base_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Returns the size of a transparent huge page; 0 if the kernel has none. */
static size_t transparent_page(void)
{
    char line[32];
    size_t page;

    slu_fd_read_text(TRANSPARENT_FOLDER "hpage_pmd_size", line, sizeof line);
    page = (size_t)strtoull(line, NULL, 10);
    return (page & (page - 1)) == 0 && page > base_page() ? page : 0;
}

static bool transparent_allowed(bool shared)
{
    char line[128];

    slu_fd_read_text(shared ? TRANSPARENT_FOLDER "shmem_enabled" : TRANSPARENT_FOLDER "enabled",
                     line, sizeof line);
    return line[0] != '\0' && !strstr(line, "[never]") && !strstr(line, "[deny]");
}

static void add_way(struct slu_page_way *ways, uint32_t *count, enum slu_page_kind kind,
                    size_t page, size_t length)
{
    ways[(*count)++] = (struct slu_page_way){
        .kind = kind, .page = page, .length = round_up(length, page), .node = SLU_ANY_NODE};
}

/* Lists the sizes of reserved pages that the kernel has, descending, and at most room of them. */
static uint32_t reserved_sizes(size_t *sizes, uint32_t room)
{
    DIR *folder = slu_fd_read_folder(HUGE_FOLDER);
    const struct dirent *entry;
    uint32_t count = 0;

    while (folder && count < room && (entry = readdir(folder)) != NULL) {
        size_t size = 0;
        uint32_t at = count;

        if (sscanf(entry->d_name, "hugepages-%zukB", &size) != 1 || size == 0 ||
            (size & (size - 1)) != 0 || size > SIZE_MAX / 4096)
            continue;
        size *= 1024;
        for (; at > 0 && sizes[at - 1] < size; at--)
            sizes[at] = sizes[at - 1];
        sizes[at] = size;
        count++;
    }
    if (folder)
        closedir(folder);
    return count;
}

/* Adds reserved pages. They are scarce: only for the smallest may rounding waste above 1/8. */
static void add_reserved(struct slu_page_way *ways, uint32_t *count, size_t length)
{
    size_t sizes[SLU_PAGE_WAYS - 2];
    uint32_t known = reserved_sizes(sizes, SLU_PAGE_WAYS - 2);

    for (uint32_t i = 0; i < known; i++) {
        if (i == known - 1 || round_up(length, sizes[i]) - length <= length / 8)
            add_way(ways, count, SLU_PAGES_RESERVED, sizes[i], length);
    }
}

uint32_t slu_page_ways(size_t length, bool huge, bool shared, int32_t node,
                       struct slu_page_way ways[SLU_PAGE_WAYS])
{
    uint32_t count = 0;
    size_t page;

    if (huge) {
        add_reserved(ways, &count, length);
        page = transparent_page();
        if (page != 0 && transparent_allowed(shared))
            add_way(ways, &count, SLU_PAGES_TRANSPARENT, page, length);
    }
    add_way(ways, &count, SLU_PAGES_PLAIN, base_page(), length);
    for (uint32_t i = 0; i < count; i++)
        ways[i].node = node;
    return count;
}

static unsigned size_flags(size_t page)
{
    return (unsigned)__builtin_ctzll(page) << SIZE_SHIFT;
}

unsigned slu_pages_memfd_flags(const struct slu_page_way *way)
{
    return way->kind == SLU_PAGES_RESERVED ? MFD_HUGETLB | size_flags(way->page) : 0;
}

/* Maps reserved or plain pages, which the kernel aligns. */
static int map_simply(const struct slu_page_way *way, int memfd, struct slu_pages *pages)
{
    unsigned flags = memfd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;

    if (way->kind == SLU_PAGES_RESERVED && memfd < 0)
        flags |= MAP_HUGETLB | size_flags(way->page);
    pages->map = mmap(NULL, way->length, PROT_READ | PROT_WRITE, (int)flags, memfd, 0);
    if (pages->map == MAP_FAILED)
        return errno;
    pages->mapped = way->length;
    pages->addr = pages->map;
    return 0;
}

/*
 * Maps transparent huge pages, for which memory must be aligned. The address space that is
 * reserved for this before and after the memory stays reserved, so that the kernel does not
 * merge the mapping with its neighbours. slu_page_size() needs a mapping of its own.
 */
static int map_aligned(const struct slu_page_way *way, int memfd, struct slu_pages *pages)
{
    size_t mapped = way->length + 2 * way->page;
    uint8_t *map =
        mmap(NULL, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    int flags = MAP_FIXED | (memfd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS);
    uint8_t *addr;

    if (map == MAP_FAILED)
        return errno;
    addr = map + (way->page - (uintptr_t)map % way->page);
    if (mmap(addr, way->length, PROT_READ | PROT_WRITE, flags, memfd, 0) == MAP_FAILED ||
        madvise(addr, way->length, MADV_HUGEPAGE)) {
        int err = errno;

        munmap(map, mapped);
        return err;
    }
    *pages = (struct slu_pages){.addr = addr, .map = map, .mapped = mapped};
    return 0;
}

/* Populates pages. Kernels before 5.14 cannot; then the file system or registering does it. */
static int populate(const struct slu_page_way *way, int memfd, const struct slu_pages *pages)
{
    if (madvise(pages->addr, way->length, MADV_POPULATE_WRITE) == 0 ||
        way->kind == SLU_PAGES_TRANSPARENT)
        return 0;
    if (errno != EINVAL)
        return errno;
    return memfd >= 0 && fallocate(memfd, 0, 0, (off_t)way->length) ? errno : 0;
}

int slu_pages_bind(void *addr, size_t length, int32_t node)
{
    unsigned long nodes[NODE_WORDS] = {0};
    const unsigned bits = 8 * sizeof nodes[0];

    if (node < 0 || node >= NODES)
        return EINVAL;
    nodes[(unsigned)node / bits] = 1UL << (unsigned)node % bits;
    return syscall(SYS_mbind, addr, length, POLICY_PREFERRED, nodes, (unsigned long)NODES + 1, 0U)
               ? errno
               : 0;
}

int slu_pages_map(const struct slu_page_way *way, int memfd, struct slu_pages *pages)
{
    struct slu_pages made;
    int err = way->kind == SLU_PAGES_TRANSPARENT ? map_aligned(way, memfd, &made)
                                                 : map_simply(way, memfd, &made);

    if (err)
        return err;
    /* A child would share the memory and keep it alive. If refused, a private copy does no harm. */
    if (madvise(made.map, made.mapped, MADV_DONTFORK) && !(memfd < 0 && slu_is_refusal(errno)))
        err = errno;
    if (err == 0 && way->node != SLU_ANY_NODE)
        err = slu_pages_bind(made.addr, way->length, way->node);
    if (err == 0 && way->kind != SLU_PAGES_PLAIN)
        err = populate(way, memfd, &made);
    if (err)
        slu_pages_unmap(&made);
    if (err == 0)
        *pages = made;
    return err;
}

void slu_pages_unmap(const struct slu_pages *pages)
{
    if (pages->map)
        munmap(pages->map, pages->mapped);
}

/* A mapping in /proc/self/smaps. */
struct mapping {
    uintptr_t start;
    uintptr_t end;
    size_t page;
    size_t huge; /* bytes in transparent huge pages */
};

/* The search through the mappings: the range not found yet, and the smallest page so far. */
struct question {
    uintptr_t next;
    uintptr_t end;
    size_t transparent;
    size_t smallest;
};

/* Takes a mapping that has the next byte. It counts as huge only if all of its pages are huge. */
static void take_mapping(struct question *question, const struct mapping *mapping)
{
    size_t page = mapping->page;

    if (question->next >= question->end || mapping->start > question->next ||
        mapping->end <= question->next)
        return;
    if (question->transparent != 0 && mapping->huge == mapping->end - mapping->start)
        page = question->transparent;
    if (page < question->smallest)
        question->smallest = page;
    question->next = mapping->end;
}

static void read_mappings(FILE *smaps, struct question *question)
{
    struct mapping mapping = {0};
    size_t size = 0, start, end, bytes;
    char *line = NULL;

    while (question->next < question->end && getline(&line, &size, smaps) > 0) {
        if (sscanf(line, "%zx-%zx ", &start, &end) == 2) {
            take_mapping(question, &mapping);
            mapping = (struct mapping){.start = start, .end = end};
        } else if (sscanf(line, "KernelPageSize: %zu kB", &bytes) == 1) {
            mapping.page = bytes * 1024;
        } else if (sscanf(line, "AnonHugePages: %zu kB", &bytes) == 1 ||
                   sscanf(line, "ShmemPmdMapped: %zu kB", &bytes) == 1 ||
                   sscanf(line, "FilePmdMapped: %zu kB", &bytes) == 1) {
            mapping.huge += bytes * 1024;
        }
    }
    take_mapping(question, &mapping);
    free(line);
}

bool slu_is_mapped(const void *addr, size_t length)
{
    uintptr_t start = (uintptr_t)addr & ~((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    int saved = errno;
    bool mapped = true;

    /* With MS_ASYNC, msync(2) only checks for holes. */
    if (SLU_UNCANCELLED(msync((void *)start, (uintptr_t)addr + length - start, MS_ASYNC)) != 0)
        mapped = errno != ENOMEM;
    errno = saved;
    return mapped;
}

bool slu_can_touch(const void *addr, size_t length, bool write)
{
    uintptr_t start = (uintptr_t)addr & ~(base_page() - 1);
    size_t whole = (uintptr_t)addr + length - start;
    int saved = errno;
    int advice = write ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    int err;

    do
        err = madvise((void *)start, whole, advice) == 0 ? 0 : errno;
    while (err == EINTR);
    errno = saved;
    if (err == EFAULT || err == EHWPOISON || err == ENOMEM)
        return false;
    return err == 0 || slu_is_mapped(addr, length);
}

size_t slu_page_size(const void *addr, size_t length)
{
    struct question question = {
        .next = (uintptr_t)addr,
        .end = (uintptr_t)addr + length,
        .transparent = transparent_page(),
        .smallest = SIZE_MAX,
    };
    FILE *smaps = slu_fd_read_file("/proc/self/smaps");

    if (smaps == NULL)
        return 0;
    read_mappings(smaps, &question);
    fclose(smaps);
    return question.next >= question.end ? question.smallest : 0;
}
