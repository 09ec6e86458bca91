/* SPDX-License-Identifier: MIT */
/*
 * The wire format of a card, in network byte order:
 *
 *     0  version of the writer (1 byte), oldest version that can read it (1), kind (2)
 *     4  rank, number of ranks (4 each), the barrier algorithm, rights of peers (2 each), number of
 *        the host, remote key of the blocks, bytes from one block to the next (4 each)
 *    28  address of the first block (8)
 *    36  port (2), number of addresses (2)
 *    40  key (32)
 *    72  addresses: family (2), zeros (2), IP (16) each; a later version may use the zeros
 *   152  generation of the maker's barriers, which are broken until a reset; 0: they have not
 *        begun (4)
 *   156  checksum of all before it: FNV-1a, against accidents, not attackers
 *
 * Unused bytes are zero; versions.h has the rule for new fields. A rank that could not open its
 * node sends a failure instead: the same head, a positive errno value (4), and the reason as text.
 */
#include "config.h"

#include "node/card.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "endpoint/versions.h"
#include "node/node.h"

/*
 * The version of 1.0; before it, a tree had two branches. It stands for all that ranks of a lazy
 * node write to each other as well: the tree, marks, words and chunks. If one of these changes, so
 * does the version, and READABLE if older ones fail.
 */
#define VERSION (3 + SLU_VERSIONS_NEXT)
#define READABLE 3
#define OLDEST 3
/* Kinds. */
#define CARD 0
#define FAILURE 1
#define HOST_AT 16
#define KEY_AT 40
#define ADDRESSES_AT 72
#define GENERATION_AT (SLU_CARD_BYTES - 8)
#define CHECKSUM_AT (SLU_CARD_BYTES - 4)
/* The highest bit of a generation is used by marks. */
#define LARGEST_GENERATION INT32_MAX
#define FAILURE_TEXT_AT 8
/* The largest errno value. */
#define LARGEST_ERROR 4095

_Static_assert(ADDRESSES_AT + 20 * SLU_CARD_ADDRESSES <= GENERATION_AT, "a card has room for it");
_Static_assert(FAILURE_TEXT_AT + SLU_CARD_TEXT <= CHECKSUM_AT, "and for a text");

static uint8_t *put_head(uint8_t *wire, uint32_t kind)
{
    memset(wire, 0, SLU_CARD_BYTES);
    return slu_put(slu_put(slu_put(wire, VERSION, 1), READABLE, 1), kind, 2);
}

static void put_sum(uint8_t *wire)
{
    slu_put(wire + CHECKSUM_AT, slu_checksum(wire, CHECKSUM_AT), 4);
}

void slu_card_encode(const struct slu_card *card, uint8_t wire[SLU_CARD_BYTES])
{
    uint8_t *at = put_head(wire, CARD);

    at = slu_put(at, card->rank, 4);
    at = slu_put(at, card->ranks, 4);
    at = slu_put(at, card->algorithm, 2);
    at = slu_put(at, card->access, 2);
    at = slu_put(at, card->host, 4);
    at = slu_put(at, card->rkey, 4);
    at = slu_put(at, card->block_bytes, 4);
    at = slu_put(at, card->addr, 8);
    at = slu_put(at, card->addresses[0].port, 2);
    slu_put(at, card->address_count, 2);
    memcpy(wire + KEY_AT, card->key, sizeof card->key);
    at = wire + ADDRESSES_AT;
    for (uint32_t i = 0; i < card->address_count; i++) {
        at = slu_put(at, (uint64_t)card->addresses[i].family << 16, 4);
        memcpy(at, card->addresses[i].ip, sizeof card->addresses[i].ip);
        at += sizeof card->addresses[i].ip;
    }
    slu_put(wire + GENERATION_AT, card->generation, 4);
    put_sum(wire);
}

void slu_card_encode_failure(int error, uint8_t wire[SLU_CARD_BYTES])
{
    const char *text = sluice_last_error();

    slu_put(put_head(wire, FAILURE), (uint64_t)-error, 4);
    memcpy(wire + FAILURE_TEXT_AT, text, strnlen(text, SLU_CARD_TEXT));
    put_sum(wire);
}

static int decode_failure(const uint8_t *wire, uint32_t rank)
{
    char text[SLU_CARD_TEXT + 1];
    uint64_t error;

    slu_get(wire + 4, &error, 4);
    if (error == 0 || error > LARGEST_ERROR)
        return slu_fail(EPROTO, "the card of rank %u is a failure without a reason", rank);
    memcpy(text, wire + FAILURE_TEXT_AT, SLU_CARD_TEXT);
    text[SLU_CARD_TEXT] = '\0';
    for (char *c = text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return slu_fail(ECANCELED, "rank %u could not open its node (%s): %s", rank,
                    strerror((int)error), text);
}

static uint32_t get(const uint8_t **at, int bytes)
{
    uint64_t value;

    *at = slu_get(*at, &value, bytes);
    return (uint32_t)value;
}

const uint8_t *slu_card_key(const uint8_t wire[SLU_CARD_BYTES])
{
    return wire + KEY_AT;
}

uint32_t slu_card_id(const uint8_t wire[SLU_CARD_BYTES])
{
    return slu_checksum(wire + KEY_AT, SLU_CARD_KEY_BYTES);
}

uint32_t slu_card_host(const uint8_t wire[SLU_CARD_BYTES])
{
    const uint8_t *at = wire + HOST_AT;

    return get(&at, 4);
}

bool slu_card_is_there(const uint8_t wire[SLU_CARD_BYTES])
{
    return wire[0] != 0;
}

static int read_addresses(const uint8_t *at, uint16_t port, struct slu_card *card)
{
    if (card->address_count == 0 || card->address_count > SLU_CARD_ADDRESSES)
        return slu_fail(EPROTO, "the card of rank %u has %u addresses, can have 1 to %d",
                        card->rank, card->address_count, SLU_CARD_ADDRESSES);
    for (uint32_t i = 0; i < card->address_count; i++) {
        struct slu_address *address = &card->addresses[i];

        *address = (struct slu_address){.family = (uint16_t)get(&at, 2), .port = port};
        at += 2;
        memcpy(address->ip, at, sizeof address->ip);
        at += sizeof address->ip;
        if (address->family != 4 && address->family != 6)
            return slu_fail(EPROTO, "the card of rank %u has an address of family %u", card->rank,
                            address->family);
    }
    return 0;
}

static int decode_card(const uint8_t *wire, uint32_t rank, struct slu_card *card)
{
    const uint8_t *at = wire + 4;
    uint16_t port;

    card->rank = get(&at, 4);
    card->ranks = get(&at, 4);
    card->algorithm = get(&at, 2);
    card->access = get(&at, 2);
    card->host = get(&at, 4);
    card->rkey = get(&at, 4);
    card->block_bytes = get(&at, 4);
    at = slu_get(at, &card->addr, 8);
    port = (uint16_t)get(&at, 2);
    card->address_count = get(&at, 2);
    memcpy(card->key, wire + KEY_AT, sizeof card->key);
    at = wire + GENERATION_AT;
    card->generation = get(&at, 4);
    if (card->rank != rank)
        return slu_fail(EPROTO, "card %u was made by rank %u", rank, card->rank);
    if (card->block_bytes < SLU_TREE_BLOCK_BYTES || card->block_bytes % 8 != 0 || card->addr == 0 ||
        card->addr % 8 != 0 || card->addr + (uint64_t)card->ranks * card->block_bytes < card->addr)
        return slu_fail(EPROTO, "the card of rank %u has blocks of %u bytes at %#llx", rank,
                        card->block_bytes, (unsigned long long)card->addr);
    if (card->generation > LARGEST_GENERATION)
        return slu_fail(EPROTO, "the card of rank %u has barriers of generation %u", rank,
                        card->generation);
    return read_addresses(wire + ADDRESSES_AT, port, card);
}

/* A name is printed only for a card that cannot be read: a rank reads the cards of all. */
static int check_versions(uint32_t rank, uint32_t written, uint32_t readable)
{
    char what[40];
    const struct slu_versions known = {what, VERSION, OLDEST};

    if (slu_versions_fit(&known, written, readable))
        return 0;
    snprintf(what, sizeof what, "the card of rank %u", rank);
    return slu_versions_check(&known, written, readable);
}

int slu_card_decode(const uint8_t wire[SLU_CARD_BYTES], uint32_t rank, struct slu_card *card)
{
    const uint8_t *at = wire, *sum = wire + CHECKSUM_AT;
    struct slu_card decoded = {0};
    uint32_t written, readable, kind;
    int error;

    if (get(&sum, 4) != slu_checksum(wire, CHECKSUM_AT))
        return slu_fail(EPROTO, "the %d bytes of rank %u are no card (checksum differs)",
                        SLU_CARD_BYTES, rank);
    written = get(&at, 1);
    readable = get(&at, 1);
    kind = get(&at, 2);
    error = check_versions(rank, written, readable);
    if (error < 0)
        return error;
    if (kind == FAILURE)
        return decode_failure(wire, rank);
    if (kind != CARD)
        return slu_fail(EPROTO, "the card of rank %u is of kind %u", rank, kind);
    error = decode_card(wire, rank, &decoded);
    if (error == 0)
        *card = decoded;
    return error;
}
