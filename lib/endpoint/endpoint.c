/* SPDX-License-Identifier: MIT */
/*
 * The wire format of an endpoint, 384 bytes in network byte order:
 *
 *     0  written by version (1 byte), readable from version (1), transport (2)
 *     4  queue pair number, packet sequence number, MTU, initiator depth,
 *        responder depth (4 each)
 *    24  largest message (8)
 *    32  the transport's part
 *    72  verbs: number of further queue pairs (1), number and packet sequence number
 *        of each of 7 (3 each)
 *   120  verbs: where the peer writes hints of its receives: address (8), rkey (4),
 *        and the word that it writes there when it closes the connection (8)
 *   140  verbs: number of GIDs of which both sides choose (1), prefix length of the first
 *        (1), and the further ones (16) with prefix lengths (1), of which 4 have room
 *   208  soft: further queue pairs as at 72, without packet sequence numbers
 *   230  soft: number of small messages that are spilled until a receive is posted (1), and
 *        the later additions to the protocol that it understands (1)
 *   232  identity (8), generation (8), access (4)
 *   380  checksum of all bytes before it: FNV-1a, against accidents, not attackers
 *
 * Unused bytes are zero; versions.h has the rules for using them. For any input, decoding
 * reads nothing outside the 384 bytes and checks every range that the engine relies on.
 */
#include "config.h"

#include <string.h>

#include <sluice/mr.h>

#include "base/base.h"
#include "base/bytes.h"
#include "endpoint/endpoint.h"
#include "endpoint/versions.h"

/* The version of 1.0. Those before it had 256 bytes. */
#define VERSION (9 + SLU_VERSIONS_NEXT)
#define READABLE 9
#define OLDEST 9
#define HEAD_BYTES 4
#define FURTHER_AT 72
#define FURTHER_AT_SOFT 208
#define HINT_AT 120
#define EARLY_AT_SOFT 230
#define FURTHER_MOST (SLU_QUEUE_PAIRS - 1)
#define IDENTITY_AT 232
#define CHECKSUM_AT (SLUICE_ENDPOINT_BYTES - 4)
#define ACCESS \
    (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)

_Static_assert(sizeof(struct sluice_endpoint) == 384, "programs send arrays of them");

/* A place in the bytes. Both directions walk them by the same functions. */
struct cursor {
    uint8_t *at;
    bool decodes;
};

/* Writes the value, or reads another one. Returns it. */
static uint64_t walk(struct cursor *cursor, uint64_t value, int bytes)
{
    if (cursor->decodes)
        slu_get(cursor->at, &value, bytes);
    else
        slu_put(cursor->at, value, bytes);
    cursor->at += bytes;
    return value;
}
#define WALK(cursor, field, bytes) ((field) = (__typeof__(field))walk(cursor, field, bytes))

static void walk_bytes(struct cursor *cursor, uint8_t *bytes, size_t count)
{
    if (cursor->decodes)
        memcpy(bytes, cursor->at, count);
    else
        memcpy(cursor->at, bytes, count);
    cursor->at += count;
}

static void walk_verbs(struct cursor *cursor, struct slu_endpoint *endpoint)
{
    WALK(cursor, endpoint->verbs.lid, 4);
    WALK(cursor, endpoint->verbs.link_layer, 4);
    WALK(cursor, endpoint->verbs.gid_type, 4);
    WALK(cursor, endpoint->verbs.port, 4);
    WALK(cursor, endpoint->verbs.pkey, 4);
    WALK(cursor, endpoint->verbs.global, 4);
    walk_bytes(cursor, endpoint->verbs.gid, sizeof endpoint->verbs.gid);
}

static void walk_soft(struct cursor *cursor, struct slu_endpoint *endpoint)
{
    struct slu_identity *who = &endpoint->soft.who;

    walk_bytes(cursor, who->host, sizeof who->host);
    WALK(cursor, who->network, 8);
    WALK(cursor, endpoint->soft.context, 8);
    WALK(cursor, endpoint->soft.generation, 8);
    WALK(cursor, who->pid, 4);
    walk_bytes(cursor, endpoint->soft.nonce, SLU_NONCE_BYTES);
    for (int i = 0; i < SLU_ENDPOINT_ADDRESSES; i++) {
        struct slu_address *address = &endpoint->soft.addresses[i];

        WALK(cursor, address->family, 2);
        WALK(cursor, address->port, 2);
        walk_bytes(cursor, address->ip, sizeof address->ip);
    }
    WALK(cursor, who->users, 8);
    WALK(cursor, who->processes, 8);
    WALK(cursor, who->start, 8);
    WALK(cursor, who->uid, 4);
    WALK(cursor, endpoint->soft.everywhere, 4);
    WALK(cursor, endpoint->soft.shares, 4);
}

static size_t further_at(uint32_t transport)
{
    return transport == SLU_TRANSPORT_SOFT ? FURTHER_AT_SOFT : FURTHER_AT;
}

/* Reads as many as there is room for; check_further() refuses more, unless of a later version. */
static void walk_further(struct cursor *cursor, struct slu_endpoint *endpoint)
{
    WALK(cursor, endpoint->further_count, 1);
    for (uint32_t i = 0; i < endpoint->further_count && i < FURTHER_MOST; i++) {
        WALK(cursor, endpoint->further[i].qpn, 3);
        if (endpoint->transport != SLU_TRANSPORT_SOFT)
            WALK(cursor, endpoint->further[i].psn, 3);
    }
}

/* Reads as many as there is room for; check_gids() refuses more, unless of a later version. */
static void walk_gids(struct cursor *cursor, struct slu_endpoint *endpoint)
{
    WALK(cursor, endpoint->verbs.gids, 1);
    WALK(cursor, endpoint->verbs.gid_prefix, 1);
    for (uint32_t i = 0; i + 1 < endpoint->verbs.gids && i < SLU_ENDPOINT_GIDS; i++) {
        walk_bytes(cursor, endpoint->verbs.others[i].gid, sizeof endpoint->verbs.others[i].gid);
        WALK(cursor, endpoint->verbs.others[i].prefix, 1);
    }
}

/* Walks all behind the head, of a known transport. */
static void walk_fields(uint8_t *bytes, bool decodes, struct slu_endpoint *endpoint)
{
    struct cursor cursor = {bytes + HEAD_BYTES, decodes};

    WALK(&cursor, endpoint->qpn, 4);
    WALK(&cursor, endpoint->psn, 4);
    WALK(&cursor, endpoint->mtu, 4);
    WALK(&cursor, endpoint->initiator_depth, 4);
    WALK(&cursor, endpoint->responder_depth, 4);
    WALK(&cursor, endpoint->max_message, 8);
    if (endpoint->transport == SLU_TRANSPORT_VERBS)
        walk_verbs(&cursor, endpoint);
    else
        walk_soft(&cursor, endpoint);
    cursor.at = bytes + further_at(endpoint->transport);
    walk_further(&cursor, endpoint);
    if (endpoint->transport == SLU_TRANSPORT_SOFT) {
        cursor.at = bytes + EARLY_AT_SOFT;
        WALK(&cursor, endpoint->soft.early, 1);
        WALK(&cursor, endpoint->soft.knows, 1);
    } else {
        cursor.at = bytes + HINT_AT;
        WALK(&cursor, endpoint->verbs.hint_addr, 8);
        WALK(&cursor, endpoint->verbs.hint_rkey, 4);
        WALK(&cursor, endpoint->verbs.farewell, 8);
        walk_gids(&cursor, endpoint);
    }
    cursor.at = bytes + IDENTITY_AT;
    WALK(&cursor, endpoint->identity, 8);
    WALK(&cursor, endpoint->generation, 8);
    WALK(&cursor, endpoint->access, 4);
}

void slu_endpoint_encode(const struct slu_endpoint *endpoint, struct sluice_endpoint *wire)
{
    struct slu_endpoint copy = *endpoint;
    uint8_t *at = wire->bytes;

    memset(wire, 0, sizeof *wire);
    at = slu_put(at, VERSION, 1);
    at = slu_put(at, READABLE, 1);
    slu_put(at, endpoint->transport, 2);
    walk_fields(wire->bytes, false, &copy);
    slu_put(wire->bytes + CHECKSUM_AT, slu_checksum(wire->bytes, CHECKSUM_AT), 4);
}

static int check_common(const struct slu_endpoint *endpoint)
{
    if (endpoint->psn >= UINT32_C(1) << 24)
        return slu_fail(EPROTO, "endpoint has packet sequence number %#x, above 24 bits",
                        endpoint->psn);
    if (endpoint->qpn == 0 || endpoint->qpn >= UINT32_C(1) << 24)
        return slu_fail(EPROTO, "endpoint has queue pair number %#x, not in 1..0xffffff",
                        endpoint->qpn);
    if (endpoint->responder_depth > 255 || endpoint->initiator_depth > 255)
        return slu_fail(EPROTO, "endpoint has read depths %u and %u, not in 0..255",
                        endpoint->initiator_depth, endpoint->responder_depth);
    if (endpoint->max_message == 0)
        return slu_fail(EPROTO, "endpoint has a largest message of 0 bytes");
    if (endpoint->identity == 0 || endpoint->generation == 0)
        return slu_fail(EPROTO, "endpoint has identity %llu and generation %llu, neither may be 0",
                        (unsigned long long)endpoint->identity,
                        (unsigned long long)endpoint->generation);
    if ((endpoint->access & ~ACCESS) != 0)
        return slu_fail(EPROTO, "endpoint has access rights %#x, must be of %#x", endpoint->access,
                        ACCESS);
    return 0;
}

static bool is_named_twice(const struct slu_endpoint *endpoint, uint32_t at)
{
    uint32_t qpn = endpoint->further[at].qpn;
    bool twice = qpn == endpoint->qpn;

    for (uint32_t i = 0; i < at; i++)
        twice |= qpn == endpoint->further[i].qpn;
    return twice;
}

static int check_further(struct slu_endpoint *endpoint, uint32_t version)
{
    if (endpoint->further_count > FURTHER_MOST && version <= VERSION)
        return slu_fail(EPROTO, "endpoint has %u queue pairs, at most %d are possible",
                        endpoint->further_count + 1, SLU_QUEUE_PAIRS);
    if (endpoint->further_count > FURTHER_MOST)
        endpoint->further_count = FURTHER_MOST;
    for (uint32_t i = 0; i < endpoint->further_count; i++) {
        if (endpoint->further[i].qpn == 0)
            return slu_fail(EPROTO, "endpoint has no number of its queue pair %u of %u", i + 2,
                            endpoint->further_count + 1);
        if (is_named_twice(endpoint, i))
            return slu_fail(EPROTO, "endpoint has two queue pairs of number %#x",
                            endpoint->further[i].qpn);
    }
    return 0;
}

/* Limits the number of spilled messages to ours; more are an error, unless of a later version. */
static int check_early(struct slu_endpoint *endpoint, uint32_t version)
{
    if (endpoint->transport != SLU_TRANSPORT_SOFT || endpoint->soft.early <= SLU_EARLY_MOST)
        return 0;
    if (version <= VERSION)
        return slu_fail(EPROTO,
                        "endpoint spills %u messages without a receive, at most %d are possible",
                        endpoint->soft.early, SLU_EARLY_MOST);
    endpoint->soft.early = SLU_EARLY_MOST;
    return 0;
}

/* Limits the number of GIDs to those there is room for; a later version may have more. */
static int check_gids(struct slu_endpoint *endpoint, uint32_t version)
{
    if (endpoint->transport != SLU_TRANSPORT_VERBS || endpoint->verbs.gids <= 1 + SLU_ENDPOINT_GIDS)
        return 0;
    if (version <= VERSION)
        return slu_fail(EPROTO, "endpoint has %u addresses, at most %d are possible",
                        endpoint->verbs.gids, 1 + SLU_ENDPOINT_GIDS);
    endpoint->verbs.gids = 1 + SLU_ENDPOINT_GIDS;
    return 0;
}

int slu_endpoint_decode(const struct sluice_endpoint *wire, struct slu_endpoint *endpoint)
{
    static const struct slu_versions known = {"an endpoint", VERSION, OLDEST};
    struct sluice_endpoint copy = *wire;
    struct slu_endpoint decoded = {0};
    uint64_t version, readable, transport, sum;
    int error;

    slu_get(slu_get(slu_get(copy.bytes, &version, 1), &readable, 1), &transport, 2);
    slu_get(copy.bytes + CHECKSUM_AT, &sum, 4);
    if (sum != slu_checksum(copy.bytes, CHECKSUM_AT))
        return slu_fail(EPROTO,
                        "these %d bytes are not an endpoint, or were damaged in transfer "
                        "(checksum differs)",
                        SLUICE_ENDPOINT_BYTES);
    decoded.transport = (uint32_t)transport;
    error = slu_versions_check(&known, (uint32_t)version, (uint32_t)readable);
    if (error < 0)
        return error;
    if (decoded.transport != SLU_TRANSPORT_VERBS && decoded.transport != SLU_TRANSPORT_SOFT)
        return slu_fail(EPROTO, "endpoint is of unknown transport %u", decoded.transport);
    walk_fields(copy.bytes, true, &decoded);
    /* Ignore rights that this version does not know. */
    if (version > VERSION)
        decoded.access &= ACCESS;
    error = check_common(&decoded);
    if (error == 0)
        error = check_further(&decoded, (uint32_t)version);
    if (error == 0)
        error = check_early(&decoded, (uint32_t)version);
    if (error == 0)
        error = check_gids(&decoded, (uint32_t)version);
    if (error == 0)
        *endpoint = decoded;
    return error;
}
