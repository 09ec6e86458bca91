/* SPDX-License-Identifier: MIT */
/*
 * The wire format of an endpoint, 256 bytes in network byte order:
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
 *   208  soft: further queue pairs as at 72, without packet sequence numbers
 *   230  soft: number of small messages that are spilled until a receive is posted (1), and
 *        the later additions to the protocol that it understands (1)
 *   232  identity (8), generation (8), access (4)
 *   252  checksum of all bytes before it: FNV-1a, against accidents, not attackers
 *
 * Unused bytes are zero; versions.h has the rules for using them. For any input, decoding
 * reads nothing outside the 256 bytes and checks every range that the engine relies on.
 */
#include "config.h"

#include <string.h>

#include <sluice/mr.h>

#include "base/base.h"
#include "base/bytes.h"
#include "endpoint/endpoint.h"
#include "endpoint/versions.h"

/*
 * 8: verbs: the word that a peer writes when it closes the connection.
 * 7: soft: lists the later additions that the peer understands; others are not used with it.
 * 6: soft: number of messages that the peer spills until they have a receive. verbs: where the
 * peer writes hints of its receives.
 * 5: further queue pairs, which older libraries do not use.
 * 4: soft: peers prove that they know each other's endpoints, and identify their processes.
 * Older libraries cannot connect to them. Endpoints of verbs did not change.
 */
#define VERSION 8
#define READABLE 3
#define READABLE_SOFT 4
#define OLDEST 3
#define OLDEST_SOFT 4
#define FURTHER_AT 72
#define FURTHER_AT_SOFT 208
#define HINT_AT 120
#define EARLY_AT_SOFT 230
#define KNOWS_AT_SOFT 231
#define FURTHER_MOST (SLU_QUEUE_PAIRS - 1)
#define IDENTITY_AT 232
#define CHECKSUM_AT (SLUICE_ENDPOINT_BYTES - 4)
#define ACCESS \
    (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)

/* Both directions walk the bytes in the same order. */
struct cursor {
    uint8_t *out;
    const uint8_t *in;
};

static void put(struct cursor *at, uint64_t value, int bytes)
{
    at->out = slu_put(at->out, value, bytes);
}

static uint64_t get(struct cursor *at, int bytes)
{
    uint64_t value;

    at->in = slu_get(at->in, &value, bytes);
    return value;
}

static void put_bytes(struct cursor *at, const uint8_t *bytes, size_t count)
{
    memcpy(at->out, bytes, count);
    at->out += count;
}

static void get_bytes(struct cursor *at, uint8_t *bytes, size_t count)
{
    memcpy(bytes, at->in, count);
    at->in += count;
}

static void put_verbs(struct cursor *at, const struct slu_endpoint *endpoint)
{
    put(at, endpoint->verbs.lid, 4);
    put(at, endpoint->verbs.link_layer, 4);
    put(at, endpoint->verbs.gid_type, 4);
    put(at, endpoint->verbs.port, 4);
    put(at, endpoint->verbs.pkey, 4);
    put(at, endpoint->verbs.global, 4);
    put_bytes(at, endpoint->verbs.gid, sizeof endpoint->verbs.gid);
}

static void get_verbs(struct cursor *at, struct slu_endpoint *endpoint)
{
    endpoint->verbs.lid = (uint32_t)get(at, 4);
    endpoint->verbs.link_layer = (uint32_t)get(at, 4);
    endpoint->verbs.gid_type = (uint32_t)get(at, 4);
    endpoint->verbs.port = (uint32_t)get(at, 4);
    endpoint->verbs.pkey = (uint32_t)get(at, 4);
    endpoint->verbs.global = (uint32_t)get(at, 4);
    get_bytes(at, endpoint->verbs.gid, sizeof endpoint->verbs.gid);
}

static void put_soft(struct cursor *at, const struct slu_endpoint *endpoint)
{
    put_bytes(at, endpoint->soft.who.host, sizeof endpoint->soft.who.host);
    put(at, endpoint->soft.who.network, 8);
    put(at, endpoint->soft.context, 8);
    put(at, endpoint->soft.generation, 8);
    put(at, endpoint->soft.who.pid, 4);
    put_bytes(at, endpoint->soft.nonce, SLU_NONCE_BYTES);
    for (int i = 0; i < SLU_ENDPOINT_ADDRESSES; i++) {
        put(at, endpoint->soft.addresses[i].family, 2);
        put(at, endpoint->soft.addresses[i].port, 2);
        put_bytes(at, endpoint->soft.addresses[i].ip, sizeof endpoint->soft.addresses[i].ip);
    }
    put(at, endpoint->soft.who.users, 8);
    put(at, endpoint->soft.who.processes, 8);
    put(at, endpoint->soft.who.start, 8);
    put(at, endpoint->soft.who.uid, 4);
    put(at, endpoint->soft.everywhere, 4);
    put(at, endpoint->soft.shares, 4);
}

static void get_soft(struct cursor *at, struct slu_endpoint *endpoint)
{
    get_bytes(at, endpoint->soft.who.host, sizeof endpoint->soft.who.host);
    endpoint->soft.who.network = get(at, 8);
    endpoint->soft.context = get(at, 8);
    endpoint->soft.generation = get(at, 8);
    endpoint->soft.who.pid = (uint32_t)get(at, 4);
    get_bytes(at, endpoint->soft.nonce, SLU_NONCE_BYTES);
    for (int i = 0; i < SLU_ENDPOINT_ADDRESSES; i++) {
        endpoint->soft.addresses[i].family = (uint16_t)get(at, 2);
        endpoint->soft.addresses[i].port = (uint16_t)get(at, 2);
        get_bytes(at, endpoint->soft.addresses[i].ip, sizeof endpoint->soft.addresses[i].ip);
    }
    endpoint->soft.who.users = get(at, 8);
    endpoint->soft.who.processes = get(at, 8);
    endpoint->soft.who.start = get(at, 8);
    endpoint->soft.who.uid = (uint32_t)get(at, 4);
    endpoint->soft.everywhere = (uint32_t)get(at, 4);
    endpoint->soft.shares = (uint32_t)get(at, 4);
}

static size_t further_at(uint32_t transport)
{
    return transport == SLU_TRANSPORT_SOFT ? FURTHER_AT_SOFT : FURTHER_AT;
}

static void put_further(struct cursor *at, const struct slu_endpoint *endpoint)
{
    put(at, endpoint->further_count, 1);
    for (uint32_t i = 0; i < endpoint->further_count; i++) {
        put(at, endpoint->further[i].qpn, 3);
        if (endpoint->transport != SLU_TRANSPORT_SOFT)
            put(at, endpoint->further[i].psn, 3);
    }
}

/* Reads as many as there is room for; check_further() refuses more, unless of a later version. */
static void get_further(struct cursor *at, struct slu_endpoint *endpoint)
{
    endpoint->further_count = (uint32_t)get(at, 1);
    for (uint32_t i = 0; i < endpoint->further_count && i < FURTHER_MOST; i++) {
        endpoint->further[i].qpn = (uint32_t)get(at, 3);
        if (endpoint->transport != SLU_TRANSPORT_SOFT)
            endpoint->further[i].psn = (uint32_t)get(at, 3);
    }
}

void slu_endpoint_encode(const struct slu_endpoint *endpoint, struct sluice_endpoint *wire)
{
    struct cursor at = {.out = wire->bytes};

    memset(wire, 0, sizeof *wire);
    put(&at, VERSION, 1);
    put(&at, endpoint->transport == SLU_TRANSPORT_SOFT ? READABLE_SOFT : READABLE, 1);
    put(&at, endpoint->transport, 2);
    put(&at, endpoint->qpn, 4);
    put(&at, endpoint->psn, 4);
    put(&at, endpoint->mtu, 4);
    put(&at, endpoint->initiator_depth, 4);
    put(&at, endpoint->responder_depth, 4);
    put(&at, endpoint->max_message, 8);
    if (endpoint->transport == SLU_TRANSPORT_VERBS)
        put_verbs(&at, endpoint);
    else
        put_soft(&at, endpoint);
    at.out = wire->bytes + further_at(endpoint->transport);
    put_further(&at, endpoint);
    if (endpoint->transport == SLU_TRANSPORT_SOFT) {
        wire->bytes[EARLY_AT_SOFT] = endpoint->soft.early;
        wire->bytes[KNOWS_AT_SOFT] = endpoint->soft.knows;
    } else {
        at.out = wire->bytes + HINT_AT;
        put(&at, endpoint->verbs.hint_addr, 8);
        put(&at, endpoint->verbs.hint_rkey, 4);
        put(&at, endpoint->verbs.farewell, 8);
    }
    at.out = wire->bytes + IDENTITY_AT;
    put(&at, endpoint->identity, 8);
    put(&at, endpoint->generation, 8);
    put(&at, endpoint->access, 4);
    at.out = wire->bytes + CHECKSUM_AT;
    put(&at, slu_checksum(wire->bytes, CHECKSUM_AT), 4);
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

int slu_endpoint_decode(const struct sluice_endpoint *wire, struct slu_endpoint *endpoint)
{
    struct cursor at = {.in = wire->bytes};
    struct cursor sum = {.in = wire->bytes + CHECKSUM_AT};
    struct slu_versions known = {"an endpoint", VERSION, OLDEST};
    struct slu_endpoint decoded = {0};
    uint32_t version = (uint32_t)get(&at, 1), readable = (uint32_t)get(&at, 1);
    int error;

    if (get(&sum, 4) != slu_checksum(wire->bytes, CHECKSUM_AT))
        return slu_fail(EPROTO, "these 256 bytes are not an endpoint, or were damaged in transfer "
                                "(checksum differs)");
    decoded.transport = (uint32_t)get(&at, 2);
    if (decoded.transport == SLU_TRANSPORT_SOFT)
        known.oldest = OLDEST_SOFT;
    error = slu_versions_check(&known, version, readable);
    if (error < 0)
        return error;
    decoded.qpn = (uint32_t)get(&at, 4);
    decoded.psn = (uint32_t)get(&at, 4);
    decoded.mtu = (uint32_t)get(&at, 4);
    decoded.initiator_depth = (uint32_t)get(&at, 4);
    decoded.responder_depth = (uint32_t)get(&at, 4);
    decoded.max_message = get(&at, 8);
    if (decoded.transport == SLU_TRANSPORT_VERBS)
        get_verbs(&at, &decoded);
    else if (decoded.transport == SLU_TRANSPORT_SOFT)
        get_soft(&at, &decoded);
    else
        return slu_fail(EPROTO, "endpoint is of unknown transport %u", decoded.transport);
    at.in = wire->bytes + further_at(decoded.transport);
    get_further(&at, &decoded);
    if (decoded.transport == SLU_TRANSPORT_SOFT) {
        decoded.soft.early = wire->bytes[EARLY_AT_SOFT];
        decoded.soft.knows = wire->bytes[KNOWS_AT_SOFT];
    } else {
        at.in = wire->bytes + HINT_AT;
        decoded.verbs.hint_addr = get(&at, 8);
        decoded.verbs.hint_rkey = (uint32_t)get(&at, 4);
        decoded.verbs.farewell = get(&at, 8);
    }
    at.in = wire->bytes + IDENTITY_AT;
    decoded.identity = get(&at, 8);
    decoded.generation = get(&at, 8);
    decoded.access = (uint32_t)get(&at, 4);
    /* Ignore rights that this version does not know. */
    if (version > VERSION)
        decoded.access &= ACCESS;
    error = check_common(&decoded);
    if (error == 0)
        error = check_further(&decoded, version);
    if (error == 0)
        error = check_early(&decoded, version);
    if (error == 0)
        *endpoint = decoded;
    return error;
}
