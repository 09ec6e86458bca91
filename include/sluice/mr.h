/* SPDX-License-Identifier: MIT */
/*
 * Memory: regions, scatter/gather elements, and handles of remote regions. A region belongs to one
 * protection domain. Any thread may call these, but no thread may deregister a region while another
 * thread posts with it.
 */
#ifndef SLUICE_MR_H
#define SLUICE_MR_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/macros.h>
#include <sluice/pd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_mr;

/* Rights. The program itself may always read its region. */
#define SLUICE_ACCESS_LOCAL_WRITE (UINT32_C(1) << 0)  /* receives and reads may write here */
#define SLUICE_ACCESS_REMOTE_WRITE (UINT32_C(1) << 1) /* peers may write; needs LOCAL_WRITE */
#define SLUICE_ACCESS_REMOTE_READ (UINT32_C(1) << 2)  /* peers may read */
#define SLUICE_ACCESS_REMOTE_ATOMIC \
    (UINT32_C(1) << 3) /* peers may compare and swap, and add; needs LOCAL_WRITE */

/*
 * A flag beside the rights, for sluice_mr_alloc() only: memory in huge pages, as far as they are
 * available. sluice_mr_page_size() returns the size of the pages that it got.
 */
#define SLUICE_MR_HUGE_PAGES (UINT32_C(1) << 16)

/* Bytes of a packed remote handle. */
#define SLUICE_REMOTE_MR_BYTES 32

/*
 * A scatter/gather element: a piece of a region. The layout is that of struct ibv_sge, so that a
 * list is posted without a copy.
 */
struct sluice_sge {
    uint64_t addr;   /* address of the first byte */
    uint32_t length; /* bytes, 0 to 2^32 - 1 */
    uint32_t lkey;   /* sluice_mr_lkey() of the region */
}
#if defined(__GNUC__)
__attribute__((may_alias))
#endif
;

/* A piece of a peer's memory that we may read or write, as its rights allow. */
struct sluice_remote_mr {
    uint64_t addr;        /* remote address of the first byte */
    uint64_t length;      /* bytes; checked before anything is posted */
    uint32_t rkey;        /* remote key */
    uint32_t reserved[3]; /* must be 0 */
};

/*
 * A piece of a peer's memory, with the peer that owns it. generation distinguishes the peer from
 * earlier and later ones with its index; sluice_multichannel_peer_remote() fills it in. The first
 * peer of an index has generation 0, and so has each peer of a multichannel that removes none.
 */
struct sluice_peer_remote_mr {
    uint32_t peer;       /* index in the multichannel */
    uint32_t generation; /* of the index */
    struct sluice_remote_mr remote;
};

/*
 * Registers memory of the caller, which must stay mapped until it is deregistered. length is in
 * bytes, at least 1.
 *
 * NULL and errno on failure: EINVAL (NULL, zero length, wrapped range, unknown right, REMOTE_WRITE
 * or REMOTE_ATOMIC without LOCAL_WRITE), EOPNOTSUPP (REMOTE_ATOMIC, and the device has no atomic
 * operations), EFAULT (not mapped, or read-only and LOCAL_WRITE was requested), ENOMEM (memory, or
 * the limit on locked memory: the text says so).
 */
SLUICE_EXPORT SLUICE_NODISCARD struct sluice_mr *
sluice_mr_register(struct sluice_pd *pd, void *addr, size_t length, uint32_t access);

/*
 * Allocates and registers memory: page-aligned, zeroed, on a memfd if the transport can let peers
 * of this host map it. The memory is freed by sluice_mr_deregister(), and is not present in a child
 * of fork(2). Errors as sluice_mr_register().
 *
 * With SLUICE_MR_HUGE_PAGES in access the memory is in reserved huge pages, else in transparent
 * ones, else in plain pages: lack of huge pages is no error. The memory is rounded up to whole
 * pages, the region is not.
 */
SLUICE_EXPORT SLUICE_NODISCARD struct sluice_mr *sluice_mr_alloc(struct sluice_pd *pd,
                                                                 size_t length, uint32_t access);

/*
 * Registers length bytes from offset on of a dmabuf: memory of another device, such as a GPU. The
 * fd may be closed afterwards. The region has no address in the program: iova is the address by
 * which elements and peers name its first byte. It may be any number that equals offset modulo the
 * page size.
 *
 * NULL and errno on failure: EINVAL (zero length, a range that wraps, iova and offset that differ
 * within a page, access as in sluice_mr_register(), not a dmabuf, or one that is too short), EBADF
 * (fd is not open), EOPNOTSUPP (the device cannot; on soft the exporter does not let the processor
 * use it), ENOMEM, EMFILE, ENFILE (no descriptor left; each region has one); on soft EACCES (fd is
 * open for reading only, and LOCAL_WRITE was requested).
 */
SLUICE_EXPORT SLUICE_EXPERIMENTAL SLUICE_NODISCARD struct sluice_mr *
sluice_mr_register_dmabuf(struct sluice_pd *pd, int fd, uint64_t offset, size_t length,
                          uint64_t iova, uint32_t access);

/*
 * Deregisters a region; NULL is allowed. When the call returns no peer touches the memory any more,
 * and memory of sluice_mr_alloc() is freed. -EBUSY: posted work still refers to the region, or a
 * buffer of sluice_buffer_publish_mr() has not been released; nothing happened, and the region
 * stays valid. -EINVAL: not a region, or one of a cache or an allocator.
 */
SLUICE_EXPORT int sluice_mr_deregister(struct sluice_mr *mr);

/*
 * Deregisters a region as sluice_mr_deregister() does, but waits at most timeout nanoseconds while
 * other threads drive the channels whose work names the region, or release the buffers that publish
 * it. Work of channels that this thread drives does not proceed meanwhile. -ETIMEDOUT: the region
 * is still named, and stays valid. -EINVAL: as above, or a negative timeout.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_mr_deregister_wait(struct sluice_mr *mr, int64_t timeout);

/*
 * Gives a region up: it is no longer valid for the program, and ends as soon as no posted work
 * names it and no buffer publishes it. Then released(argument) is called, once, unless it is NULL:
 * no peer touches the memory any more, and memory of sluice_mr_alloc() is freed. 0: the region has
 * ended. 1: it will end later, in a call on a channel that has nothing more to do or waits (a poll
 * that returns 0, an arm, a flush), or that closes the channel, frees a prepared list, or releases
 * a buffer; released is called in that thread. The function may free the memory and make and end
 * regions; it must not use channels. -EINVAL: not a region, or one of a cache or an allocator.
 */
SLUICE_EXPORT int sluice_mr_release(struct sluice_mr *mr, void (*released)(void *argument),
                                    void *argument);

/*
 * Returns the address of the first byte (NULL for a dmabuf, which the program cannot access), the
 * length in bytes, or the local key. NULL and 0: not a region, which is misuse.
 */
SLUICE_EXPORT void *sluice_mr_addr(const struct sluice_mr *mr);
SLUICE_EXPORT size_t sluice_mr_length(const struct sluice_mr *mr);
SLUICE_EXPORT uint32_t sluice_mr_lkey(const struct sluice_mr *mr);

/*
 * Returns the bytes of the smallest page of the region now; 0 if that is not known, as for a
 * dmabuf. The call reads a list of all mappings of the process: do not use it in loops.
 */
SLUICE_EXPORT size_t sluice_mr_page_size(const struct sluice_mr *mr);

/*
 * Makes a checked element of the bytes offset to offset + length - 1. Length 0
 * is allowed up to and including the end. -ERANGE: outside the region.
 * -EMSGSIZE: longer than 2^32 - 1 bytes. *sge is then untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_mr_sge(const struct sluice_mr *mr, size_t offset,
                                                 size_t length, struct sluice_sge *sge);

/*
 * Makes a checked element as sluice_mr_sge() does, of length bytes from pointer on. pointer is an
 * address in the region, as the program accesses it or, for a dmabuf, counted from its iova.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_mr_sge_at(const struct sluice_mr *mr, const void *pointer,
                                                    size_t length, struct sluice_sge *sge);

/* Writes the handle of the whole region, to be passed to peers. -EINVAL: NULL. */
SLUICE_EXPORT int sluice_mr_remote(const struct sluice_mr *mr, struct sluice_remote_mr *remote);

/*
 * Writes a handle in its wire form: versioned, network byte order. -EINVAL: NULL, or a reserved
 * field that is not 0; bytes are then zeros, which are not a valid handle. A program that sets the
 * reserved fields to 0 may ignore the result.
 */
SLUICE_EXPORT int sluice_remote_mr_pack(const struct sluice_remote_mr *remote,
                                        uint8_t bytes[SLUICE_REMOTE_MR_BYTES]);

/*
 * Reads a handle from its wire form. -EPROTO: not a handle, of another version, or its range wraps;
 * -EINVAL: NULL; *remote is then untouched.
 */
SLUICE_EXPORT SLUICE_NODISCARD int
sluice_remote_mr_unpack(const uint8_t bytes[SLUICE_REMOTE_MR_BYTES],
                        struct sluice_remote_mr *remote);

/*
 * Writes the handle of the bytes offset to offset + length - 1 of a remote region. Length 0 is
 * allowed up to and including the end. -ERANGE: outside; -EINVAL: NULL, or a reserved field that is
 * not 0; *slice is then untouched. slice may be the same object as remote.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_remote_mr_slice(const struct sluice_remote_mr *remote,
                                                          uint64_t offset, uint64_t length,
                                                          struct sluice_remote_mr *slice);

/*
 * Loads an aligned 8-byte word that a peer may write. A remote write of 8
 * aligned bytes appears whole, and after all earlier writes of its channel.
 */
static inline uint64_t sluice_load_acquire64(const uint64_t *address)
{
    return __atomic_load_n(address, __ATOMIC_ACQUIRE);
}

#ifdef __cplusplus
}
#endif

#endif
