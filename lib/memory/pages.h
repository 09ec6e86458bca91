/* SPDX-License-Identifier: MIT */
/*
 * Pages for memory that the library allocates. There are several ways to get them. The
 * caller tries one after the other, because some fail only when the memory is registered.
 */
#ifndef SLU_PAGES_H
#define SLU_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Maximum number of ways: sizes of reserved pages, transparent pages, plain pages. */
#define SLU_PAGE_WAYS 8

enum slu_page_kind {
    SLU_PAGES_RESERVED,    /* huge pages set aside by the administrator: all of them, or failure */
    SLU_PAGES_TRANSPARENT, /* the kernel makes huge pages if it can */
    SLU_PAGES_PLAIN
};

struct slu_page_way {
    enum slu_page_kind kind;
    size_t page;   /* bytes, a power of two */
    size_t length; /* bytes to map: a multiple of page */
    int32_t node;  /* preferred NUMA node, or SLU_ANY_NODE */
};
#define SLU_ANY_NODE (-1)

/* Mapped memory. addr is aligned to the page of the way. */
struct slu_pages {
    void *addr;
    void *map; /* NULL: nothing is mapped */
    size_t mapped;
};

/*
 * Lists the ways to get length bytes, the best first and plain pages last. Returns their
 * number, at least 1. shared: the memory is that of a memfd.
 */
uint32_t slu_page_ways(size_t length, bool huge, bool shared, int32_t node,
                       struct slu_page_way ways[SLU_PAGE_WAYS]);

/* Returns the flags of memfd_create(2) for this way. */
unsigned slu_pages_memfd_flags(const struct slu_page_way *way);

/*
 * Maps memory of the memfd, or private memory if memfd is -1. A child of fork(2) does not
 * inherit it. Huge pages are populated at once, so that none is missing later. Returns 0,
 * or a positive errno value without a text.
 */
int slu_pages_map(const struct slu_page_way *way, int memfd, struct slu_pages *pages);
void slu_pages_unmap(const struct slu_pages *pages);

/*
 * Makes pages that these addresses get from now on come from the node, or from another one if
 * that has none left. Returns 0, or a positive errno value without a text; EINVAL: no such node.
 */
int slu_pages_bind(void *addr, size_t length, int32_t node);

/*
 * Returns whether a range has no unmapped holes, by one system call; access rights are not
 * checked. Used before copies on behalf of a peer, so that its request cannot kill a program that
 * has unmapped registered memory. Keeps errno.
 */
bool slu_is_mapped(const void *addr, size_t length);
/*
 * Returns whether memory can be accessed without a signal, and populates it: pages of a file are
 * read or allocated. Needs Linux 5.14; on older kernels it checks only for holes. Keeps errno.
 */
bool slu_can_touch(const void *addr, size_t length, bool write);

/* Returns the smallest page behind mapped memory, in bytes; 0 if unknown. */
size_t slu_page_size(const void *addr, size_t length);

#endif
