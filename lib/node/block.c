/* SPDX-License-Identifier: MIT */
/*
 * The words of blocks: what this rank publishes in its own memory for others to read, and
 * what it writes into its block at another rank. Waiting for words is in notify.c.
 */
#include "config.h"

#include <endian.h>

#include "node/node.h"

#define WORD_BYTES 8

/* Stores a word in the block of a rank here, for that rank to read. */
static void publish(const struct sluice_node *node, uint32_t rank, uint32_t at, uint32_t low)
{
    char *blocks = sluice_mr_addr(node->blocks);
    void *word = blocks + (size_t)rank * slu_block_bytes(node) + at;

    __atomic_store_n((uint64_t *)word, htobe64(slu_node_word(node, low)), __ATOMIC_RELEASE);
}

void slu_node_publish_state(struct sluice_node *node, enum slu_node_state state)
{
    publish(node, node->rank, SLU_STATE_AT,
            (uint32_t)node->last.tag << 16 | (uint32_t)node->last.count << 2 | state);
}

/*
 * Counts barriers by tag, for the first SLU_TALLIES tags: most programs use one or two. Returns 0
 * for any other tag.
 */
static uint16_t count_barrier(struct sluice_node *node, uint16_t tag)
{
    for (uint32_t i = 0; i < SLU_TALLIES; i++) {
        struct slu_tally *tally = &node->tallies[i];

        if (tally->count == 0 || tally->tag == tag) {
            tally->tag = tag;
            return tally->count = (uint16_t)(tally->count % SLU_TALLY_MOST + 1);
        }
    }
    return 0;
}

void slu_node_publish_entry(const struct slu_group *group)
{
    struct sluice_node *node = group->node;
    uint16_t round = (uint16_t)(node->round % SLU_TALLY_MOST + 1);

    node->last = (struct slu_tally){
        .tag = group->tag, .count = group->gathering ? round : count_barrier(node, group->tag)};
    slu_node_publish_state(node, SLU_NODE_INSIDE);
}

void slu_node_publish_sent(const struct sluice_node *node, uint32_t rank)
{
    const struct slu_rank *peer = &node->peers[rank];
    uint32_t piece = node->by_tree ? peer->given : node->round;

    publish(node, rank, SLU_PUBLISHED_AT, (uint32_t)peer->notified << 16 | (uint16_t)piece);
}

/* Returns which of the SLU_BLOCK_WORDS words is at an offset. */
static size_t index_word(const struct sluice_node *node, uint32_t at)
{
    if (at == SLU_TAKEN_AT)
        return SLU_BLOCK_WORDS - 3;
    return at < SLU_SLOTS_AT ? at / WORD_BYTES
                             : SLU_BLOCK_WORDS - 2 + (at != slu_number_at(node, 0));
}

/*
 * If words cannot be sent inline, the device reads the word from memory, and may find that of the
 * next barrier there already. That does no harm: this rank has entered that barrier, so what it
 * wrote before has arrived.
 */
uint64_t slu_node_word_write(struct sluice_node *node, uint32_t rank, uint32_t at, uint64_t word)
{
    const struct slu_place *place = &node->places[rank];
    uint64_t value = htobe64(word);
    struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE,
        .peer = rank,
        .flags = SLUICE_INLINE,
        .sge = {.addr = (uintptr_t)&value, .length = WORD_BYTES},
        .sge_count = 1,
        .remote = {.addr = place->addr + at, .length = WORD_BYTES, .rkey = place->rkey}};

    if (node->words != NULL) {
        uint64_t *words = sluice_mr_addr(node->words);
        uint64_t *from = &words[index_word(node, at) * node->ranks + rank];

        __atomic_store_n(from, value, __ATOMIC_RELEASE);
        request.flags = 0;
        request.sge.addr = (uintptr_t)from;
        request.sge.lkey = sluice_mr_lkey(node->words);
    }
    return slu_post_detached(slu_node_engine(node), &request);
}

uint32_t slu_node_lost_by(const struct sluice_node *node, uint32_t rank)
{
    uint64_t word = slu_node_word_read(node, rank, SLU_FAREWELL_AT);
    uint32_t lost = (uint32_t)word;

    return word >> 32 == node->generation && lost < node->ranks ? lost : rank;
}
