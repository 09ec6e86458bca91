/* SPDX-License-Identifier: MIT */
/*
 * Work requests, their completions and their handles, which submit, scatter, gather, post and poll
 * of channels and multichannels share.
 */
#ifndef SLUICE_REQUEST_H
#define SLUICE_REQUEST_H

#include <stdint.h>

#include <sluice/mr.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sluice_opcode {
    SLUICE_OP_NONE = 0,         /* in a list for a call of one operation */
    SLUICE_OP_SEND = 1,         /* consumes a receive of the peer */
    SLUICE_OP_RECEIVE = 2,      /* takes one send, or one write with immediate, of the peer */
    SLUICE_OP_WRITE = 3,        /* to the peer's memory, without action of the peer */
    SLUICE_OP_READ = 4,         /* from the peer's memory, without action of the peer */
    SLUICE_OP_COMPARE_SWAP = 5, /* atomic: 8 bytes of the peer's, if they are as expected */
    SLUICE_OP_FETCH_ADD = 6     /* atomic: adds to 8 bytes of the peer's */
};

/* Flags of a request; the first one of a completion as well. */
#define SLUICE_IMMEDIATE (UINT32_C(1) << 0) /* send, write: deliver immediate to a receive */
#define SLUICE_FENCE (UINT32_C(1) << 1)     /* start after earlier reads and atomics */
#define SLUICE_SOLICITED (UINT32_C(1) << 2) /* send, write: wake a peer that sleeps for it */
#define SLUICE_INLINE \
    (UINT32_C(1) << 3) /* send, write: the bytes are copied when it is posted; at most max_inline.
                          Their memory may be reused at once, and need not be registered: lkey is
                          ignored, and the program itself must be able to read the memory */

/* A flag of a completion: a write with immediate filled the receive, and is in local memory. */
#define SLUICE_WRITTEN (UINT32_C(1) << 4)

/* A flag of a completion: its peer was removed, and another peer may have the index by now. */
#define SLUICE_PEER_REMOVED (UINT32_C(1) << 5)

/*
 * A flag of a request of any kind: its elements name plain memory of the program, and their lkey is
 * ignored. Their regions are those of the cache of its channel (sluice_channel_attr.mr_cache): each
 * is found there, or registered, before anything of the call is posted, and stays at least until
 * the request is complete; for a prepared list, until the list is freed. An element of no bytes
 * needs no region, nor does a request that is SLUICE_INLINE. The memory that blocks are in is one
 * region.
 *
 * If a region is not available, nothing is posted, and the text names the request and the element.
 * -EINVAL: the channel has no cache; memory at NULL, or that wraps the address space; a receive,
 * read or atomic, and the cache's rights lack LOCAL_WRITE. -EFAULT, -ENOBUFS and -ENOMEM as
 * sluice_mr_cache_get().
 */
#define SLUICE_PLAIN_MEMORY (UINT32_C(1) << 6)

struct sluice_blocks;

/*
 * One request. A zeroed struct is a valid start. The local memory of a request is a list of SGEs
 * or, with sges NULL and sge_count 1, its field sge, so that a list of requests needs no separate
 * list of SGEs. The field must then not be all zeros (-EINVAL: it was forgotten); with a list it is
 * ignored. A message of no bytes has sges NULL, sge_count 0 and an sge of zeros; a list or an sge
 * with a count of 0 is a mistake (-EINVAL: the count was forgotten). SGEs together have at most
 * 2^32 - 1 bytes (-E2BIG).
 *
 * The SGE list and the struct are read before the call returns, and are not used afterwards; the
 * memory that the SGEs name is in use until the request completes.
 *
 * An atomic operation has exactly one SGE, of 8 bytes at an address that is a multiple of 8, which
 * receives the old value of the peer's word, in host byte order. remote.addr is a multiple of 8 as
 * well (-EINVAL), and remote.length at least 8 (-ERANGE). The only flag for atomic operations is
 * SLUICE_FENCE, besides those for any request. -EOPNOTSUPP: the device has no atomic operations,
 * see sluice_context_info.atomics.
 */
struct sluice_request {
    uint32_t opcode;                /* enum sluice_opcode */
    uint32_t peer;                  /* index in the multichannel; 0 on a channel */
    uint32_t flags;                 /* SLUICE_IMMEDIATE ... */
    uint32_t immediate;             /* host byte order; with SLUICE_IMMEDIATE only */
    const struct sluice_sge *sges;  /* local memory; NULL: sge, or none */
    uint32_t sge_count;             /* 0 (a message of no bytes) to max_sge of the channel */
    uint32_t reserved;              /* must be 0 */
    struct sluice_sge sge;          /* if sges is NULL and sge_count is 1 */
    struct sluice_remote_mr remote; /* write, read, atomics: at least as long as the SGEs
                                       together */
    uint64_t user_data;             /* given back in the completion */
    uint64_t operand[2];            /* compare-swap: expected, desired. Fetch-add: addend, 0.
                                       Else 0, 0 */
    const struct sluice_blocks
        *blocks;           /* not for atomics: many blocks, see sluice/blocks.h; NULL: one */
    uint64_t reserved2[2]; /* must be 0 */
};

/* Result of one request. */
struct sluice_completion {
    uint64_t user_data;   /* of the request */
    uint64_t bytes;       /* transferred; receive: length of the message; 0 on error, except for a
                             message that was dropped, whose length it is:
                             SLUICE_CHANNEL_DROP_LONG */
    uint32_t peer;        /* index in the multichannel; 0 on a channel */
    uint32_t opcode;      /* enum sluice_opcode of the request */
    uint32_t flags;       /* receive: SLUICE_IMMEDIATE: immediate is valid; SLUICE_WRITTEN.
                             Of any: SLUICE_PEER_REMOVED */
    uint32_t immediate;   /* host byte order */
    int32_t error;        /* 0, or the negative errno value of the class; -ENOTCONN if it was
                             refused because its peer was not connected */
    uint32_t error_class; /* enum sluice_error_class */
    uint32_t status;      /* enum sluice_status of this request */
    uint32_t cause;       /* status of the first error of this peer; if it had none, that of this
                             request */
    uint32_t vendor;      /* the device's own code, 0 if it gave none */
    uint32_t reserved[3]; /* written as 0 */
};

/* A handle names one posted request. It is a plain value: it may be copied and dropped. */
struct sluice_handle {
    uint64_t id;          /* opaque */
    uint64_t owner;       /* opaque: which channel or multichannel */
    uint64_t reserved[2]; /* written as 0 */
};

#ifdef __cplusplus
}
#endif

#endif
