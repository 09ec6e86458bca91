/* SPDX-License-Identifier: MIT */
/*
 * The wire format of the endpoint of a node, which a rank makes for another one: 448 bytes in
 * network byte order.
 *
 *     0  version of the writer (1 byte), oldest version that can read it (1), kind (2)
 *     4  maker, rank it is for, number of ranks, the maker's barrier algorithm (4 each)
 *    20  remote key (4) and address (8) of the block for that rank
 *    32  the endpoint of the connection (384)
 *   416  bytes from one block to the next (4)
 *   420  generation of the maker's barriers, which are broken until a reset; 0: they have not
 *        begun (4)
 *   444  checksum of all before it: FNV-1a, against accidents, not attackers
 *
 * Unused bytes are zero; versions.h has the rule for new fields. A rank that could not open its
 * node sends a failure instead:
 *
 *     0  the same, and a positive errno value (4)
 *     8  the reason as text (280), zero-terminated only if it is shorter
 *   444  checksum
 */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "endpoint/versions.h"
#include "node/node.h"

/* The version of 1.0. Those before it had 320 bytes. */
#define VERSION (5 + SLU_VERSIONS_NEXT)
#define READABLE 5
#define OLDEST 5
/* Kinds. */
#define ENDPOINT 0
#define FAILURE 1
#define FAILURE_TEXT_AT 8
/* The largest errno value. */
#define LARGEST_ERROR 4095
#define CONNECTION_AT 32
#define BLOCK_BYTES_AT (CONNECTION_AT + SLUICE_ENDPOINT_BYTES)
/* The highest bit of a generation is used by marks. */
#define LARGEST_GENERATION INT32_MAX
#define CHECKSUM_AT (sizeof(struct sluice_node_endpoint) - 4)

_Static_assert(sizeof(struct sluice_node_endpoint) == 448, "programs send arrays of them");

static uint8_t *put_head(uint8_t *at, uint32_t what)
{
    at = slu_put(at, VERSION, 1);
    at = slu_put(at, READABLE, 1);
    return slu_put(at, what, 2);
}

void slu_node_endpoint_encode(const struct slu_node_endpoint *endpoint,
                              struct sluice_node_endpoint *wire)
{
    uint8_t *at = wire->bytes;

    memset(wire, 0, sizeof *wire);
    at = put_head(at, ENDPOINT);
    at = slu_put(at, endpoint->from, 4);
    at = slu_put(at, endpoint->to, 4);
    at = slu_put(at, endpoint->ranks, 4);
    at = slu_put(at, endpoint->algorithm, 4);
    at = slu_put(at, endpoint->rkey, 4);
    slu_put(at, endpoint->addr, 8);
    memcpy(wire->bytes + CONNECTION_AT, endpoint->connection.bytes,
           sizeof endpoint->connection.bytes);
    at = slu_put(wire->bytes + BLOCK_BYTES_AT, endpoint->block_bytes, 4);
    slu_put(at, endpoint->generation, 4);
    slu_put(wire->bytes + CHECKSUM_AT, slu_checksum(wire->bytes, CHECKSUM_AT), 4);
}

static uint32_t get(const uint8_t **at, int bytes)
{
    uint64_t value;

    *at = slu_get(*at, &value, bytes);
    return (uint32_t)value;
}

static uint32_t get32(const uint8_t **at)
{
    return get(at, 4);
}

/* Checks that the bytes are whole and of a version that can be read; sets the kind. */
static int read_head(const uint8_t **at, uint32_t *what)
{
    static const struct slu_versions known = {"the endpoint of a node", VERSION, OLDEST};
    const uint8_t *bytes = *at, *sum = bytes + CHECKSUM_AT;
    uint32_t written, readable;

    if (get32(&sum) != slu_checksum(bytes, CHECKSUM_AT))
        return slu_fail(EPROTO,
                        "these %d bytes are not the endpoint of a node, or were damaged on "
                        "the way (checksum differs)",
                        SLUICE_NODE_ENDPOINT_BYTES);
    written = get(at, 1);
    readable = get(at, 1);
    *what = get(at, 2);
    return slu_versions_check(&known, written, readable);
}

int slu_node_endpoint_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_endpoint *endpoint)
{
    const uint8_t *at = wire->bytes;
    struct slu_node_endpoint decoded;
    uint32_t what;
    int error = read_head(&at, &what);

    if (error < 0)
        return error;
    if (what != ENDPOINT)
        return slu_fail(EPROTO, "what should be the endpoint of a node is of kind %u", what);
    decoded.from = get32(&at);
    decoded.to = get32(&at);
    decoded.ranks = get32(&at);
    decoded.algorithm = get32(&at);
    decoded.rkey = get32(&at);
    slu_get(at, &decoded.addr, 8);
    at = wire->bytes + BLOCK_BYTES_AT;
    decoded.block_bytes = get32(&at);
    decoded.generation = get32(&at);
    if (decoded.block_bytes < SLU_BLOCK_BYTES || decoded.block_bytes % 8 != 0)
        return slu_fail(
            EPROTO,
            "endpoint has notification blocks of %u bytes, must be a multiple of 8 and at least %d",
            decoded.block_bytes, SLU_BLOCK_BYTES);
    if (decoded.addr == 0 || decoded.addr % 8 != 0 ||
        decoded.addr + (decoded.block_bytes - 1) < decoded.addr)
        return slu_fail(EPROTO, "endpoint has its notification words at address %#llx",
                        (unsigned long long)decoded.addr);
    if (decoded.generation > LARGEST_GENERATION)
        return slu_fail(EPROTO, "endpoint has barriers of generation %u, can be 0 to %d",
                        decoded.generation, LARGEST_GENERATION);
    memcpy(decoded.connection.bytes, wire->bytes + CONNECTION_AT, sizeof decoded.connection.bytes);
    *endpoint = decoded;
    return 0;
}

void slu_node_failure_encode(const struct slu_node_failure *failure,
                             struct sluice_node_endpoint *wire)
{
    uint8_t *at = wire->bytes;

    memset(wire, 0, sizeof *wire);
    at = put_head(at, FAILURE);
    slu_put(at, (uint32_t)failure->error, 4);
    memcpy(wire->bytes + FAILURE_TEXT_AT, failure->text, strlen(failure->text));
    slu_put(wire->bytes + CHECKSUM_AT, slu_checksum(wire->bytes, CHECKSUM_AT), 4);
}

void slu_node_failure_encode_error(int error, struct sluice_node_endpoint *wire)
{
    struct slu_node_failure failure = {.error = -error};

    if (error < 0)
        snprintf(failure.text, sizeof failure.text, "%s", sluice_last_error());
    slu_node_failure_encode(&failure, wire);
}

bool slu_node_failure_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_failure *failure)
{
    const uint8_t *at = wire->bytes;
    uint32_t what, error;

    if (read_head(&at, &what) < 0 || what != FAILURE)
        return false;
    error = get32(&at);
    if (error == 0 || error > LARGEST_ERROR)
        return false;
    failure->error = (int)error;
    memcpy(failure->text, wire->bytes + FAILURE_TEXT_AT, sizeof failure->text);
    failure->text[sizeof failure->text - 1] = '\0';
    for (char *c = failure->text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return true;
}
