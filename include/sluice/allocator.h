/* SPDX-License-Identifier: MIT */
/*
 * An allocator of registered memory. It registers large slabs and gives out blocks of them, as
 * malloc(3) does: nothing is registered for a block, and threads keep some for themselves.
 *
 * Peers reach no block of a slab, whatever the rights of the allocator are. What a peer is to
 * read or write is a shared block, which has a registration of its own: its key leads nowhere
 * else, and is gone before the memory is.
 *
 * Any thread may call these, several at once, but for the end of the allocator; a block is freed
 * by any.
 */
#ifndef SLUICE_ALLOCATOR_H
#define SLUICE_ALLOCATOR_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/macros.h>
#include <sluice/mr.h>
#include <sluice/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_allocator;

/* Flags of an allocator. */
#define SLUICE_ALLOCATOR_HUGE_PAGES (UINT32_C(1) << 0) /* as SLUICE_MR_HUGE_PAGES */
#define SLUICE_ALLOCATOR_NUMA_NODE (UINT32_C(1) << 1)  /* numa_node is given */

/* The greatest alignment of a block, bytes. */
#define SLUICE_ALLOCATOR_MAX_ALIGN 65536

/* Zero: the default. */
struct sluice_allocator_attr {
    uint32_t size;          /* sizeof(struct sluice_allocator_attr); at least that of 0.1 */
    uint32_t flags;         /* SLUICE_ALLOCATOR_* */
    uint32_t numa_node;     /* whose memory it is, while that has any; 0..1023, with
                               SLUICE_ALLOCATOR_NUMA_NODE; else that of who touches it first */
    uint32_t thread_blocks; /* free blocks of each size that a thread keeps for itself, and of
                               these at most 128 KiB but 2 blocks at least; 2..1024, default 64,
                               SLUICE_ZERO: none */
    uint64_t slab_bytes;    /* of a slab, in steps of 64 KiB; 1 MiB..1 GiB, default 4 MiB. A block
                               longer than half of it has a region of its own */
    uint64_t max_bytes;     /* registered at a time; default 0: no limit */
};

/* What it has now, and has done. */
struct sluice_allocator_info {
    uint32_t size;             /* set to sizeof(struct sluice_allocator_info) by the caller */
    uint32_t slabs;            /* registered now */
    uint32_t regions;          /* blocks in regions of their own: shared ones, and long ones */
    uint32_t released;         /* blocks that were released, and are named by posted work still */
    uint64_t registered_bytes; /* of slabs and regions */
    uint64_t blocks;           /* given out, and neither freed nor released */
    uint64_t block_bytes;      /* of these, as they were rounded up */
    uint64_t kept_bytes;       /* free, and kept by threads for themselves */
    uint64_t registrations;    /* since it was made */
};

SLUICE_REDECLARE_BEGIN
/*
 * Ends an allocator, and all its memory; NULL is allowed. -EBUSY: a block was not freed; it
 * stays as it is. -EINVAL: not an allocator.
 */
SLUICE_EXPORT int sluice_allocator_destroy(struct sluice_allocator *allocator);

/*
 * Makes an allocator of memory of a protection domain, which registers nothing yet. access is as
 * in sluice_mr_register(): of slabs it is SLUICE_ACCESS_LOCAL_WRITE alone, or nothing, of shared
 * blocks all of it. attr is NULL or zeroes for the defaults.
 *
 * NULL and errno on failure: EINVAL (no domain, rights, flags, a number out of range, no such
 * node, a size), E2BIG (size), EOPNOTSUPP (the device has no atomic operations, the kernel places
 * no memory), ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_allocator_destroy)
struct sluice_allocator *sluice_allocator_create(struct sluice_pd *pd, uint32_t access,
                                                 const struct sluice_allocator_attr *attr);
SLUICE_REDECLARE_END

/*
 * Gives a block up, which is free as soon as no posted work names it; then released(argument) is
 * called, unless it is NULL: when and in which thread sluice_mr_release() tells. 0: that was now.
 * 1: it will be. -EINVAL: not a block, one that is free, an address within one, or NULL. It needs
 * no memory, and does not fail for a block.
 *
 * So it is the end of a block that compilers know, and warn of what is used or given up behind it.
 * They are not told of sluice_allocator_free(): a block that posted work names stays, and may be
 * freed again.
 */
SLUICE_EXPORT int sluice_allocator_release(struct sluice_allocator *allocator, void *block,
                                           void (*released)(void *argument), void *argument);

/*
 * A block of at least so many bytes, at least 1, at a multiple of align, a power of two up to
 * SLUICE_ALLOCATOR_MAX_ALIGN; 0: 64. No two blocks share a line of the cache. NULL and errno:
 * EINVAL (not an allocator, size, align), ENOBUFS (max_bytes), EMFILE, ENFILE, ENOMEM or an errno
 * value of the driver (as of sluice_mr_alloc()).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(2)
void *sluice_allocator_alloc(struct sluice_allocator *allocator, size_t size, size_t align);
/* The same, of zeros. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(2)
void *sluice_allocator_alloc_zeroed(struct sluice_allocator *allocator, size_t size, size_t align);

/*
 * A block with the bytes of another one, as far as it is that long, which is freed, or it is that
 * one. NULL for that one: a new one. NULL and errno: as above, EBUSY (it would move, and posted
 * work names it), EINVAL (not a block, a shared one); nothing happened.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(3)
void *sluice_allocator_realloc(struct sluice_allocator *allocator, void *block, size_t size,
                               size_t align);

/*
 * A block of zeros for peers, in a region of its own: whole pages, with all rights of the
 * allocator. remote is its handle; it is the peers' until the block is freed. NULL and errno: as
 * sluice_allocator_alloc(), EINVAL (remote is NULL, the allocator has no remote rights).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(2)
void *sluice_allocator_alloc_shared(struct sluice_allocator *allocator, size_t size,
                                    struct sluice_remote_mr *remote);

/*
 * Frees a block; NULL is allowed. Of a shared one no peer touches the memory any more on return.
 * -EBUSY: posted work names it; nothing happened. -EINVAL: not a block, one that is free, or an
 * address within one.
 */
SLUICE_EXPORT int sluice_allocator_free(struct sluice_allocator *allocator, void *block);
/*
 * The same, but it waits while other threads drive the channels whose work names it, for at most
 * timeout nanoseconds. -ETIMEDOUT: it is named still, and stays. -EINVAL: as above, or negative.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_allocator_free_wait(struct sluice_allocator *allocator,
                                                              void *block, int64_t timeout);
/*
 * Makes a checked element of length bytes from pointer on, which are in one block. An element
 * names a block only if this call has made it, or it is a piece of such a one: freeing looks for no
 * others. Length 0 is allowed, and names memory as well. -EINVAL: not in a block that is given out,
 * NULL. -ERANGE: beyond its end. -EMSGSIZE: longer than 2^32 - 1 bytes. *sge is then untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_allocator_sge(struct sluice_allocator *allocator,
                                                        const void *pointer, size_t length,
                                                        struct sluice_sge *sge);

/*
 * The region that a block is in, for calls that take one: sluice_buffer_publish_mr() of a shared
 * block, an action on buffers, or sluice_mr_sge_at(). It is the allocator's, valid until the block
 * is freed, and longer than it; a slab's has no remote rights. pointer is in the block, and names
 * it, as sluice_allocator_sge() does. NULL and EINVAL: not in a block that is given out, NULL.
 */
SLUICE_EXPORT SLUICE_NODISCARD struct sluice_mr *
sluice_allocator_mr(struct sluice_allocator *allocator, const void *pointer);

/*
 * Deregisters slabs of which nothing is given out. What this thread keeps for itself goes first;
 * other threads give back what they keep when they next look for more. -EINVAL: not an allocator.
 */
SLUICE_EXPORT int sluice_allocator_trim(struct sluice_allocator *allocator);

/* -EINVAL: not an allocator, NULL or too small a size. -E2BIG: a size above 4096. */
SLUICE_EXPORT int sluice_allocator_query(struct sluice_allocator *allocator,
                                         struct sluice_allocator_info *info);

#ifdef __cplusplus
}
#endif

#endif
