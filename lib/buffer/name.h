/* SPDX-License-Identifier: MIT */
/* The decoded form of a handle. These functions depend only on the bytes of the handle. */
#ifndef SLU_BUFFER_NAME_H
#define SLU_BUFFER_NAME_H

#include <stdint.h>

#include <sluice/buffer.h>

#include "endpoint/endpoint.h"

#define SLU_BUFFER_OWNER_BYTES 16
#define SLU_BUFFER_OWNER_AT 8 /* in a handle */
#define SLU_BUFFER_KEY_BYTES 32
#define SLU_BUFFER_ADDRESSES 4

/* The key of a buffer on one transport. */
struct slu_buffer_way {
    uint32_t transport; /* SLU_TRANSPORT_* */
    uint32_t rkey;
};

struct slu_buffer_name {
    uint8_t owner[SLU_BUFFER_OWNER_BYTES]; /* of the service; random */
    uint8_t key[SLU_BUFFER_KEY_BYTES];     /* of the service; part of each of its handles */
    uint64_t id;
    uint64_t addr, length; /* as remote keys count addresses */
    uint32_t access;       /* SLUICE_ACCESS_REMOTE_READ, SLUICE_ACCESS_REMOTE_WRITE */
    uint32_t way_count, address_count;
    struct slu_buffer_way ways[SLUICE_MAX_BUFFER_PDS];
    struct slu_address addresses[SLU_BUFFER_ADDRESSES];
};

void slu_buffer_name_encode(const struct slu_buffer_name *name,
                            struct sluice_buffer_handle *handle);

/* Returns 0, or -EPROTO with a text that says what is wrong. Sets *name only on success. */
int slu_buffer_name_decode(const struct sluice_buffer_handle *handle, struct slu_buffer_name *name);

/* Returns "soft" or "verbs". */
const char *slu_buffer_transport_name(uint32_t transport);

#endif
