/* SPDX-License-Identifier: MIT */
/*
 * The wire form of what a rank needs of another one, 320 bytes in network byte
 * order:
 *
 *     0  version, maker, rank it is for, number of ranks, the maker's algorithm of
 *        barriers (4 each)
 *    20  remote key (4) and address (8) of the line for that rank
 *    32  the endpoint of the connection (256)
 *   288  bytes from one line to the next (4)
 *   316  checksum of all before it: FNV-1a, against accidents, not attackers
 *
 * What is not used is zero. A rank that could not open its node sends instead:
 *
 *     0  version with its highest bit set, and a positive errno value (4 each)
 *     8  the reason in words (280), perhaps without a zero at their end
 *   316  checksum
 */
#include "config.h"

#include <string.h>

#include "../bytes.h"
#include "node.h"

#define VERSION 2
#define FAILURE_VERSION (UINT32_C(1) << 31 | 1)
#define FAILURE_TEXT_AT 8
/* Of errno. */
#define LARGEST_ERROR 4095
#define CONNECTION_AT 32
#define LINE_BYTES_AT (CONNECTION_AT + SLUICE_ENDPOINT_BYTES)
#define CHECKSUM_AT (sizeof(struct sluice_node_endpoint) - 4)

static uint32_t checksum(const uint8_t *bytes)
{
    uint32_t hash = UINT32_C(2166136261);

    for (size_t i = 0; i < CHECKSUM_AT; i++)
        hash = (hash ^ bytes[i]) * UINT32_C(16777619);
    return hash;
}

void slu_node_endpoint_encode(const struct slu_node_endpoint *endpoint,
                              struct sluice_node_endpoint *wire)
{
    uint8_t *at = wire->bytes;

    memset(wire, 0, sizeof *wire);
    at = slu_put(at, VERSION, 4);
    at = slu_put(at, endpoint->from, 4);
    at = slu_put(at, endpoint->to, 4);
    at = slu_put(at, endpoint->ranks, 4);
    at = slu_put(at, endpoint->algorithm, 4);
    at = slu_put(at, endpoint->rkey, 4);
    slu_put(at, endpoint->addr, 8);
    memcpy(wire->bytes + CONNECTION_AT, endpoint->connection.bytes,
           sizeof endpoint->connection.bytes);
    slu_put(wire->bytes + LINE_BYTES_AT, endpoint->line_bytes, 4);
    slu_put(wire->bytes + CHECKSUM_AT, checksum(wire->bytes), 4);
}

static uint32_t get32(const uint8_t **at)
{
    uint64_t value;

    *at = slu_get(*at, &value, 4);
    return (uint32_t)value;
}

int slu_node_endpoint_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_endpoint *endpoint)
{
    const uint8_t *at = wire->bytes, *sum = wire->bytes + CHECKSUM_AT;
    struct slu_node_endpoint decoded;
    uint32_t version = get32(&at);

    if (get32(&sum) != checksum(wire->bytes))
        return slu_fail(EPROTO, "these 320 bytes are not the endpoint of a node, or were damaged "
                                "on the way (checksum differs)");
    if (version != VERSION)
        return slu_fail(EPROTO, "endpoint has version %u, this library speaks version %d", version,
                        VERSION);
    decoded.from = get32(&at);
    decoded.to = get32(&at);
    decoded.ranks = get32(&at);
    decoded.algorithm = get32(&at);
    decoded.rkey = get32(&at);
    slu_get(at, &decoded.addr, 8);
    at = wire->bytes + LINE_BYTES_AT;
    decoded.line_bytes = get32(&at);
    if (decoded.line_bytes < SLU_LINE_BYTES || decoded.line_bytes % 8 != 0)
        return slu_fail(EPROTO,
                        "endpoint has lines of %u bytes, must be a multiple of 8 from %d on",
                        decoded.line_bytes, SLU_LINE_BYTES);
    if (decoded.addr == 0 || decoded.addr % 8 != 0 ||
        decoded.addr + (decoded.line_bytes - 1) < decoded.addr)
        return slu_fail(EPROTO, "endpoint has its words at address %#llx",
                        (unsigned long long)decoded.addr);
    memcpy(decoded.connection.bytes, wire->bytes + CONNECTION_AT, sizeof decoded.connection.bytes);
    *endpoint = decoded;
    return 0;
}

void slu_node_failure_encode(const struct slu_node_failure *failure,
                             struct sluice_node_endpoint *wire)
{
    uint8_t *at = wire->bytes;

    memset(wire, 0, sizeof *wire);
    at = slu_put(at, FAILURE_VERSION, 4);
    slu_put(at, (uint32_t)failure->error, 4);
    memcpy(wire->bytes + FAILURE_TEXT_AT, failure->text, strlen(failure->text));
    slu_put(wire->bytes + CHECKSUM_AT, checksum(wire->bytes), 4);
}

bool slu_node_failure_decode(const struct sluice_node_endpoint *wire,
                             struct slu_node_failure *failure)
{
    const uint8_t *at = wire->bytes, *sum = wire->bytes + CHECKSUM_AT;
    uint32_t version = get32(&at);
    uint32_t error = get32(&at);

    if (version != FAILURE_VERSION || get32(&sum) != checksum(wire->bytes) || error == 0 ||
        error > LARGEST_ERROR)
        return false;
    failure->error = (int)error;
    memcpy(failure->text, wire->bytes + FAILURE_TEXT_AT, sizeof failure->text);
    failure->text[sizeof failure->text - 1] = '\0';
    for (char *c = failure->text; *c != '\0'; c++)
        if (*c < ' ' || *c > '~')
            *c = '?';
    return true;
}
