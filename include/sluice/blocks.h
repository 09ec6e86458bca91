/* SPDX-License-Identifier: MIT */
/*
 * Blocks: a write or a read of many blocks that lie apart, in the memory of this side, of the peer,
 * or of both, as one request with one result; or a message that a send gathers from many blocks, or
 * a receive scatters to them. A struct sluice_request has a pointer to a struct sluice_blocks,
 * which describes their layout.
 *
 * The bytes go in the order of the blocks, the first byte of one side to the first byte of the
 * other. Both sides have the same number of bytes in total; their blocks need not be alike.
 * Neighbouring blocks that touch on both sides move as one. Blocks that lie apart only on this side
 * move in one piece, up to max_sge of them. Everything is checked before anything is posted. When a
 * request has failed, some of the peer's blocks may be written.
 *
 * A message of blocks is one message, whatever blocks the peer has for it: each side describes its
 * own layout. Pieces that touch count as one. The device takes up to max_sge pieces directly. If
 * there are more, all but the first max_sge - 1 are staged: the processor copies them, before a
 * send is posted or when a receive is complete, through a staging buffer that the channel has
 * registered (sluice_channel_attr.staging). Each peer has one for sends and one for receives. A
 * send takes the bytes that are staged, rounded up to 64; a receive takes 56 bytes more, with 4 for
 * each page that is staged, rounded up by themselves. While there is no room, blocking calls and
 * scopes wait, and posted calls return -EAGAIN.
 *
 * A source may have a block twice, or blocks that overlap. If a destination has such blocks, it is
 * undefined which bytes remain.
 */
#ifndef SLUICE_BLOCKS_H
#define SLUICE_BLOCKS_H

#include <stdint.h>

#include <sluice/request.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sluice_layout_kind {
    SLUICE_LAYOUT_CONTIGUOUS = 0, /* all bytes from the first on, without gaps */
    SLUICE_LAYOUT_STRIDED = 1,    /* count blocks, each begins stride bytes after the one before */
    SLUICE_LAYOUT_PAGED = 2       /* count blocks: the pages in a list of indices */
};

/* Layout of the blocks of one side, from the first byte of its memory on. */
struct sluice_layout {
    uint32_t kind;           /* enum sluice_layout_kind; all other fields are 0 if contiguous */
    uint32_t count;          /* blocks; 0: none, and nothing moves */
    uint64_t bytes;          /* bytes of a block, or of a page; at least 1 */
    uint64_t stride;         /* strided: from one block's first byte to that of the next; else 0 */
    const uint32_t *indices; /* paged: count indices: page i begins at byte i * bytes; else NULL */
    uint64_t reserved[2];    /* must be 0 */
};

/*
 * The blocks of a request that is no atomic operation and not SLUICE_INLINE. The request has one
 * SGE, the memory that the local blocks are in; its remote is the memory of the remote blocks. Both
 * may be longer than the bytes that move. With SLUICE_IMMEDIATE the peer's receive completes after
 * the last block; SLUICE_FENCE acts on the first. The struct and the indices are read before the
 * call returns. A zeroed struct with its size set means a request without blocks. In a send or a
 * receive, remote is all 0. A receive that a message does not fill leaves the rest of its blocks as
 * it is.
 *
 * -EINVAL: an atomic operation, inline, not one SGE, a kind or flags that are unknown, blocks of 0
 * bytes, a field that the kind does not use, or sides of different length; -ERANGE: a block is not
 * within its memory; -E2BIG: a message that is too long, fields of a later version, or a message
 * that must be staged and is longer than the staging buffer, or in a dmabuf. A posted request
 * that needs more work requests than the queue has fails with -E2BIG as well; blocking calls and
 * scopes take any number.
 */
struct sluice_blocks {
    uint32_t size;               /* set to sizeof(struct sluice_blocks) */
    uint32_t flags;              /* must be 0 */
    struct sluice_layout local;  /* blocks in the memory of the SGE */
    struct sluice_layout remote; /* blocks in the memory of remote */
    uint64_t local_length;       /* bytes of local memory from sge.addr on, if they are more than
                                    the length of an SGE can hold; the length of the SGE is then
                                    ignored. 0: the length of the SGE holds */
};

#ifdef __cplusplus
}
#endif

#endif
