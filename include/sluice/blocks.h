/* SPDX-License-Identifier: MIT */
/*
 * Blocks: a write or a read of many blocks that lie apart, in the memory of this side, of
 * the peer, or of both, as one request with one result; or a message that a send gathers from
 * many blocks, or a receive scatters to them. A struct sluice_request has a pointer to a
 * struct sluice_blocks, which says how they lie.
 *
 * The bytes go in the order of the blocks, the first byte of the one side to the first of
 * the other. Both sides have as many bytes together; their blocks need not be alike.
 * Neighbours that touch on both sides move as one, and what lies apart only here moves in
 * one piece as far as max_sge goes. Everything is checked before anything is posted. Nothing
 * is known of a peer's blocks when a request has failed: some may be written.
 *
 * A message is one, whatever blocks the peer has for it: each side says how its own bytes lie.
 * Pieces that touch count as one. Up to max_sge of them the device takes as they are. Of more,
 * all but the first max_sge - 1 are staged: the processor copies them, before a send is posted
 * or when a receive is complete, through a staging buffer that the channel has registered
 * (sluice_channel_attr.staging). Each peer has one for sends and one for receives. A send takes
 * the bytes that are staged, rounded up to 64; a receive takes 56 bytes more, with 4 for each
 * page that is staged, rounded up by themselves. While there is no room, blocking calls and
 * scopes wait, and unpolled calls are told -EAGAIN.
 *
 * A source may have a block twice, or blocks that overlap. Of a destination that has, it is
 * not said which of them stays.
 */
#ifndef SLUICE_BLOCKS_H
#define SLUICE_BLOCKS_H

#include <stdint.h>

#include <sluice/request.h>

#ifdef __cplusplus
extern "C" {
#endif

enum sluice_layout_kind {
    SLUICE_LAYOUT_CONTIGUOUS = 0, /* all from the first byte on, without gaps */
    SLUICE_LAYOUT_STRIDED = 1,    /* count blocks, each stride bytes behind the one before it */
    SLUICE_LAYOUT_PAGED = 2       /* count blocks, the pages that a list of indices names */
};

/* How the blocks of one side lie, from the first byte of its memory on. */
struct sluice_layout {
    uint32_t kind;           /* enum sluice_layout_kind; all else is 0 of a contiguous one */
    uint32_t count;          /* blocks; 0: none, and nothing moves */
    uint64_t bytes;          /* of a block, or of a page; at least 1 */
    uint64_t stride;         /* strided: from one block's first byte to that of the next; else 0 */
    const uint32_t *indices; /* paged: count of them: page i begins at byte i * bytes; else NULL */
};

/*
 * The blocks of a request, which is no atomic operation and not SLUICE_INLINE. Its one SGE is
 * the memory that the local blocks are in, and remote that of the remote ones; both may be
 * longer than what moves. With SLUICE_IMMEDIATE the peer's receive completes behind the last
 * block; SLUICE_FENCE is of the first. The struct and the indices are read before the call
 * returns. A zeroed one with its size is that of a request without blocks. Of a send or a
 * receive remote is all 0, and a receive that a message does not fill leaves the rest as it is.
 *
 * -EINVAL: an atomic operation, inline, not one SGE, a kind or flags that are unknown, blocks
 * of 0 bytes, a field that the kind has not, or sides of different length; -ERANGE: a block
 * is not within its memory; -EMSGSIZE: a message that is too long; -E2BIG: more of a later
 * version, or a message that must be staged and is longer than the staging buffer, or in a
 * dmabuf. An unpolled one that needs more work requests than the queue has is -E2BIG as well:
 * blocking calls and scopes take any.
 */
struct sluice_blocks {
    uint32_t size;               /* sizeof (struct sluice_blocks) */
    uint32_t flags;              /* must be 0 */
    struct sluice_layout local;  /* of the memory of the SGE */
    struct sluice_layout remote; /* of the memory of remote */
    uint64_t local_length;       /* bytes of that from sge.addr on, if they are more than a length
                                    of an SGE can say; 0: its length. The SGE's own is then
                                    not looked at */
};

#ifdef __cplusplus
}
#endif

#endif
