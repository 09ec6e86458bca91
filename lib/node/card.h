/* SPDX-License-Identifier: MIT */
/*
 * The card of a rank: all that others need to connect to it, and what its barriers need. A lazy
 * node opens with one card a rank, where a node that connects all has an endpoint for each pair.
 */
#ifndef SLU_NODE_CARD_H
#define SLU_NODE_CARD_H

#include <stdbool.h>

#include "endpoint/endpoint.h"

#define SLU_CARD_BYTES 160
/* Where a card has its rank, 4 bytes in network byte order. */
#define SLU_CARD_RANK_AT 4
#define SLU_CARD_KEY_BYTES 32
#define SLU_CARD_ADDRESSES 4
#define SLU_CARD_TEXT 148

struct slu_card {
    uint32_t rank, ranks;
    uint32_t algorithm;              /* enum sluice_barrier of the node */
    uint32_t access;                 /* rights of peers: SLUICE_ACCESS_REMOTE_* */
    uint32_t rkey;                   /* of its blocks, */
    uint32_t block_bytes;            /* from one to the next, */
    uint64_t addr;                   /* and the address of the first */
    uint32_t host;                   /* equal for ranks of one host, and seldom for others */
    uint8_t key[SLU_CARD_KEY_BYTES]; /* a rank that connects proves that it knows it */
    uint32_t generation;             /* of its barriers, which need a reset; 0: not begun */
    uint32_t address_count;          /* where it listens */
    struct slu_address addresses[SLU_CARD_ADDRESSES];
};

void slu_card_encode(const struct slu_card *card, uint8_t wire[SLU_CARD_BYTES]);
/* Encodes why this rank has no card: a negative errno value, with the thread's text. */
void slu_card_encode_failure(int error, uint8_t wire[SLU_CARD_BYTES]);
/*
 * Returns 0; -EPROTO with a text; or -ECANCELED, with the text of a rank that has no card, which
 * is named by the number given.
 */
int slu_card_decode(const uint8_t wire[SLU_CARD_BYTES], uint32_t rank, struct slu_card *card);

/* Returns the key of a card that was decoded before. */
const uint8_t *slu_card_key(const uint8_t wire[SLU_CARD_BYTES]);
/* Returns a number that tells the process of a card from others. It reveals 4 bytes of the key. */
uint32_t slu_card_id(const uint8_t wire[SLU_CARD_BYTES]);
/* Returns the number of the host in a card. */
uint32_t slu_card_host(const uint8_t wire[SLU_CARD_BYTES]);
/* Tells whether there is a card, of a kind that was decoded before, or only zeros. */
bool slu_card_is_there(const uint8_t wire[SLU_CARD_BYTES]);

#endif
