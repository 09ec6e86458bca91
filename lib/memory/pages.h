/* SPDX-License-Identifier: MIT */
/*
 * Pages for memory that the library allocates. There are several ways to get
 * them: the caller tries one after the other, as what the kernel promises is
 * sometimes refused only when the memory is registered.
 */
#ifndef SLU_PAGES_H
#define SLU_PAGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most ways there are: some sizes of reserved pages, transparent ones, plain ones. */
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
    int32_t node;  /* whose memory it is to be, or SLU_ANY_NODE */
};
#define SLU_ANY_NODE (-1)

/* Memory that was mapped. addr is aligned to the page of the way. */
struct slu_pages {
    void *addr;
    void *map; /* NULL: nothing was */
    size_t mapped;
};

/*
 * The ways to get length bytes, the best first and plain pages last: their
 * number, at least 1. shared: the memory is that of a memfd.
 */
uint32_t slu_page_ways(size_t length, bool huge, bool shared, int32_t node,
                       struct slu_page_way ways[SLU_PAGE_WAYS]);

/* Flags of memfd_create(2) for this way. */
unsigned slu_pages_memfd_flags(const struct slu_page_way *way);

/*
 * Maps memory of the memfd, or private memory if memfd is -1. A child of fork(2)
 * does not have it. Huge pages are taken at once, so that none is missing later.
 * 0, or a positive errno value without a text.
 */
int slu_pages_map(const struct slu_page_way *way, int memfd, struct slu_pages *pages);
void slu_pages_unmap(const struct slu_pages *pages);

/*
 * Pages that these addresses get from now on are of the node, or of another one if that has
 * none left. 0, or a positive errno value without a text: EINVAL: there is no such node.
 */
int slu_pages_bind(void *addr, size_t length, int32_t node);

/*
 * Whether memory has no holes, as far as one system call tells; its rights are not asked for.
 * Keeps errno. For what is copied on behalf of a peer, whose request must not kill a program that
 * has unmapped what it had registered.
 */
bool slu_is_mapped(const void *addr, size_t length);
/*
 * Whether memory can be touched without a signal, and makes it be there: whatever of a file is to
 * be had is read, or allocated. Linux 5.14; an older kernel tells of holes alone. Keeps errno.
 */
bool slu_can_touch(const void *addr, size_t length, bool write);

/* The smallest page behind mapped memory, bytes; 0 if it is not known. */
size_t slu_page_size(const void *addr, size_t length);

#endif
