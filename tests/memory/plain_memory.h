/* SPDX-License-Identifier: MIT */
/* A connection with a cache on one side, and plain memory that its requests use. */
#ifndef MEMORY_PLAIN_MEMORY_H
#define MEMORY_PLAIN_MEMORY_H

#include "../support/pair.h"

#define PAGES 16
#define BYTES 4096

/* The first channel has a cache, and memory beside it; the peer has a region. */
struct plain {
    struct pair pair;
    struct sluice_mr_cache *cache;
    uint8_t *bytes; /* PAGES pages, of at least BYTES bytes each */
    struct memory far;
};

/* The attributes are those of both channels, except for the cache. */
void plain_open(struct plain *work, uint32_t access, const struct sluice_mr_cache_attr *cache,
                struct sluice_channel_attr attr);
void plain_open_usual(struct plain *work);
/* Channels may be closed already; requires that no memory is pinned any more. */
void plain_close(struct plain *work);
/* Connects channels in place of the present ones. */
void plain_connect(struct plain *work, struct sluice_channel_attr attr);

uint8_t *plain_page(const struct plain *work, uint32_t page);
/* Returns an element whose key is that of no region. */
struct sluice_sge plain_sge(const struct plain *work, uint32_t page, uint32_t length);
/* Makes a request with a page of plain memory and the same page of the peer. */
struct sluice_request plain_request(const struct plain *work, uint32_t opcode, uint32_t page,
                                    uint32_t length);

struct sluice_mr_cache_info plain_query(const struct plain *work);
/* Returns the result of sluice_mr_cache_forget() for a page. */
int plain_forget(const struct plain *work, uint32_t page);

#endif
