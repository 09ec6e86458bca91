/* SPDX-License-Identifier: MIT */
/*
 * An allocator of registered memory. It registers large slabs and hands out blocks of them, as
 * malloc(3) does: no block is registered by itself, and each thread keeps some free blocks for
 * itself.
 *
 * Peers cannot reach a block of a slab, whatever the rights of the allocator are. Memory that a
 * peer is to read or write is a shared block, which has a registration of its own: its key opens no
 * other memory, and is revoked before the memory is freed.
 *
 * Any thread may call these, several at once, but the allocator must not be in use when it is
 * destroyed. Any thread may free a block.
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
    uint32_t size;          /* set to sizeof(struct sluice_allocator_attr) */
    uint32_t flags;         /* SLUICE_ALLOCATOR_* */
    uint32_t numa_node;     /* NUMA node of the memory, as long as it has any left; 0..1023, with
                               SLUICE_ALLOCATOR_NUMA_NODE; else that of the thread that touches it
                               first */
    uint32_t thread_blocks; /* free blocks of each size that a thread keeps for itself: at most 512
                               KiB of them, but at least 2 blocks; 2..1024, default 64, SLUICE_ZERO:
                               none */
    uint64_t slab_bytes;    /* size of a slab, in steps of 64 KiB; 1 MiB..1 GiB, default 4 MiB. A
                               block longer than half a slab has a region of its own */
    uint64_t max_bytes;     /* bytes registered at a time; default 0: no limit */
};

/* State of an allocator now, and a count since it was made. */
struct sluice_allocator_info {
    uint32_t size;             /* set to sizeof(struct sluice_allocator_info) by the caller */
    uint32_t slabs;            /* registered now */
    uint32_t regions;          /* blocks in regions of their own: shared ones, and long ones */
    uint32_t released;         /* blocks that were released, and that posted work still names */
    uint64_t registered_bytes; /* of slabs and regions */
    uint64_t blocks;           /* blocks handed out, and neither freed nor released */
    uint64_t block_bytes;      /* of these blocks, as they were rounded up */
    uint64_t kept_bytes;       /* bytes of free blocks that threads keep for themselves */
    uint64_t registrations;    /* so far */
};

SLUICE_REDECLARE_BEGIN
/*
 * Destroys an allocator, and all its memory; NULL is allowed. -EBUSY: a block was not freed; the
 * allocator stays as it is. -EINVAL: not an allocator.
 */
SLUICE_EXPORT int sluice_allocator_destroy(struct sluice_allocator *allocator);

/*
 * Makes an allocator in a protection domain; nothing is registered yet. access is as in
 * sluice_mr_register(). Shared blocks have all these rights; slabs have at most
 * SLUICE_ACCESS_LOCAL_WRITE. attr is NULL or zeroes for the defaults.
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
 * Gives a block up: it is freed as soon as no posted work names it. Then released(argument) is
 * called, unless it is NULL, at the time and in the thread that sluice_mr_release() describes. 0:
 * the block is free now. 1: it will be later. -EINVAL: not a block, one that is free, an address
 * within one, or NULL. The call needs no memory, and does not fail for a block that is handed out.
 *
 * Compilers therefore know this call as the end of a block, and warn if the block is used or given
 * up afterwards. sluice_allocator_free() is not declared so, because it leaves a block that posted
 * work names, and the program may free it again.
 */
SLUICE_EXPORT int sluice_allocator_release(struct sluice_allocator *allocator, void *block,
                                           void (*released)(void *argument), void *argument);

/*
 * Returns a block of at least size bytes, at least 1, at a multiple of align, a power of two up to
 * SLUICE_ALLOCATOR_MAX_ALIGN; 0: 64. No two blocks share a cache line. NULL and errno: EINVAL (not
 * an allocator, size, align), ENOBUFS (max_bytes), EMFILE, ENFILE, ENOMEM or an errno value of the
 * driver (as of sluice_mr_alloc()).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(2)
void *sluice_allocator_alloc(struct sluice_allocator *allocator, size_t size, size_t align);
/* Returns a block as sluice_allocator_alloc() does, filled with zeros. */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(2)
void *sluice_allocator_alloc_zeroed(struct sluice_allocator *allocator, size_t size, size_t align);

/*
 * Resizes a block: returns the same block, or a new one with its bytes, as far as both are that
 * long, and frees the old one. If block is NULL, a new block is returned. NULL and errno: as above,
 * EBUSY (it would move, and posted work names it), EINVAL (not a block, a shared one); nothing
 * happened.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(3)
void *sluice_allocator_realloc(struct sluice_allocator *allocator, void *block, size_t size,
                               size_t align);

/*
 * Returns a block of zeros for peers, in a region of its own: whole pages, with all rights of the
 * allocator. The call writes the handle of the block to remote; peers may use the handle until the
 * block is freed. NULL and errno: as sluice_allocator_alloc(), EINVAL (remote is NULL, the
 * allocator has no remote rights).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_AS(sluice_allocator_release, 2)
SLUICE_SIZED_BY(2)
void *sluice_allocator_alloc_shared(struct sluice_allocator *allocator, size_t size,
                                    struct sluice_remote_mr *remote);

/*
 * Frees a block; NULL is allowed. When the call returns for a shared block, no peer touches its
 * memory any more. -EBUSY: posted work names the block; nothing happened. -EINVAL: not a block, one
 * that is free, or an address within one.
 */
SLUICE_EXPORT int sluice_allocator_free(struct sluice_allocator *allocator, void *block);
/*
 * Frees a block as sluice_allocator_free() does, but waits at most timeout nanoseconds while other
 * threads drive the channels whose work names it. -ETIMEDOUT: posted work still names the block,
 * and it stays. -EINVAL: as above, or a negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_allocator_free_wait(struct sluice_allocator *allocator,
                                                              void *block, int64_t timeout);
/*
 * Makes a checked element of length bytes from pointer on, which must be in one block. An element
 * counts as naming a block only if this call has made it, or if it is a piece of such an element:
 * the calls that free a block look for no others. Length 0 is allowed, and names memory as well.
 * -EINVAL: not in a block that is handed out, NULL. -ERANGE: beyond its end. -EMSGSIZE: longer than
 * 2^32 - 1 bytes. *sge is then untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_allocator_sge(struct sluice_allocator *allocator,
                                                        const void *pointer, size_t length,
                                                        struct sluice_sge *sge);

/*
 * Returns the region that a block is in, for calls that take a region: sluice_buffer_publish_mr()
 * of a shared block, an action on buffers, or sluice_mr_sge_at(). The region belongs to the
 * allocator, is valid until the block is freed, and is longer than the block; that of a slab has no
 * remote rights. pointer is an address in the block. The call counts as naming the block, as
 * sluice_allocator_sge() does. NULL and EINVAL: not in a block that is handed out, NULL.
 */
SLUICE_EXPORT SLUICE_NODISCARD struct sluice_mr *
sluice_allocator_mr(struct sluice_allocator *allocator, const void *pointer);

/*
 * Deregisters slabs of which no block is handed out. The free blocks that this thread keeps are
 * given back first; other threads give theirs back when they next need more. -EINVAL: not an
 * allocator.
 */
SLUICE_EXPORT int sluice_allocator_trim(struct sluice_allocator *allocator);

/*
 * Describes an allocator; set info->size first. -EINVAL: not an allocator, NULL or too small a
 * size. -E2BIG: a size above 4096.
 */
SLUICE_EXPORT int sluice_allocator_query(struct sluice_allocator *allocator,
                                         struct sluice_allocator_info *info);

#ifdef __cplusplus
}
#endif

#endif
