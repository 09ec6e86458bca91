/* SPDX-License-Identifier: MIT */
/*
 * Endpoints of queue pairs (384 bytes) and of nodes (448): decoded values are in their ranges, and
 * are encoded to the same bytes; a refused endpoint leaves no output. Each input is tried as it is
 * and with a right checksum.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include "base/bytes.h"
#include "endpoint/endpoint.h"
#include "fuzz.h"
#include "node/node.h"

const char fuzz_name[] = "endpoint";

/* The offset of further queue pairs, by transport; the rest behind them is unused. */
#define FURTHER_VERBS 72
#define FURTHER_SOFT 208
/*
 * The encoder adds two bytes of soft: the number of messages that may be spilled, and supported
 * features.
 */
#define HINT_VERBS 120
#define HINT_BYTES 20 /* and the word of a farewell */
#define EARLY_SOFT 230
#define KNOWS_SOFT 231
#define UNUSED_END 232
#define ACCESS_AT 248
#define UNUSED_TAIL 252
#define NODE_UNUSED 424

static void seal(uint8_t *bytes, size_t size)
{
    slu_put(bytes + size - 4, slu_checksum(bytes, size - 4), 4);
}

static bool is_filled(const void *object, size_t size)
{
    const uint8_t *bytes = object;
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] != 0xa5) {
            return false;
        }
    }
    return true;
}

static void check_ranges(const struct slu_endpoint *endpoint)
{
    hold(endpoint->transport == SLU_TRANSPORT_VERBS || endpoint->transport == SLU_TRANSPORT_SOFT,
         "%u", endpoint->transport);
    hold(endpoint->qpn > 0 && endpoint->qpn < 1U << 24, "%#x", endpoint->qpn);
    hold(endpoint->psn < 1U << 24, "%#x", endpoint->psn);
    hold(endpoint->initiator_depth <= 255 && endpoint->responder_depth <= 255, "%u, %u",
         endpoint->initiator_depth, endpoint->responder_depth);
    hold(endpoint->max_message > 0 && endpoint->identity > 0 && endpoint->generation > 0, "0");
    hold(endpoint->further_count < SLU_QUEUE_PAIRS, "%u", endpoint->further_count);
    hold(endpoint->transport != SLU_TRANSPORT_SOFT || endpoint->soft.early <= SLU_EARLY_MOST, "%u",
         endpoint->soft.early);
    hold((endpoint->access & ~(SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE |
                               SLUICE_ACCESS_REMOTE_ATOMIC)) == 0,
         "%#x", endpoint->access);
}

/* All bytes but unused ones and rights of later versions are the same. */
static void check_same(const struct sluice_endpoint *wire, const struct slu_endpoint *endpoint)
{
    struct sluice_endpoint again, wanted = *wire;
    bool soft = endpoint->transport == SLU_TRANSPORT_SOFT;
    size_t further = soft ? FURTHER_SOFT : FURTHER_VERBS;
    size_t unused = further + 1 + endpoint->further_count * (soft ? 3U : 6U);
    bool later;
    slu_endpoint_encode(endpoint, &again);
    later = wire->bytes[0] > again.bytes[0];
    hold(later || wire->bytes[0] >= again.bytes[1], "version %u", wire->bytes[0]);
    wanted.bytes[0] = again.bytes[0];
    wanted.bytes[1] = again.bytes[1];
    memset(wanted.bytes + unused, 0, UNUSED_END - unused);
    memset(wanted.bytes + UNUSED_TAIL, 0, sizeof(wanted.bytes) - UNUSED_TAIL);
    if (!soft) {
        memcpy(wanted.bytes + HINT_VERBS, wire->bytes + HINT_VERBS, HINT_BYTES);
    }
    if (soft) {
        wanted.bytes[EARLY_SOFT] = later ? endpoint->soft.early : wire->bytes[EARLY_SOFT];
        wanted.bytes[KNOWS_SOFT] = wire->bytes[KNOWS_SOFT];
    }
    wanted.bytes[further] = (uint8_t)endpoint->further_count;
    if (later) {
        slu_put(wanted.bytes + ACCESS_AT, endpoint->access, 4);
    }
    seal(wanted.bytes, sizeof(wanted.bytes));
    for (size_t i = 0; i < sizeof(wanted.bytes); i++) {
        hold(wanted.bytes[i] == again.bytes[i], "byte %zu is %u, was %u", i, again.bytes[i],
             wanted.bytes[i]);
    }
}

static void try_endpoint(const struct sluice_endpoint *wire)
{
    struct slu_endpoint endpoint;
    int error;
    memset(&endpoint, 0xa5, sizeof(endpoint));
    error = slu_endpoint_decode(wire, &endpoint);
    if (error != 0) {
        hold(error == -EPROTO, "%d", error);
        hold(is_filled(&endpoint, sizeof(endpoint)), "something is left of it");
        fuzz_explained();
        return;
    }
    fuzz_taken++;
    check_ranges(&endpoint);
    check_same(wire, &endpoint);
}

static void check_failure(const struct slu_node_failure *failure)
{
    struct sluice_node_endpoint wire;
    struct slu_node_failure again;
    size_t length = strnlen(failure->text, sizeof(failure->text));
    hold(failure->error > 0 && failure->error <= 4095, "%d", failure->error);
    hold(length < sizeof(failure->text), "no end");
    for (size_t i = 0; i < length; i++) {
        hold(failure->text[i] >= ' ' && failure->text[i] <= '~', "%d", failure->text[i]);
    }
    slu_node_failure_encode(failure, &wire);
    hold(slu_node_failure_decode(&wire, &again), "it is not taken again");
    hold(again.error == failure->error && strcmp(again.text, failure->text) == 0, "%d: %s",
         again.error, again.text);
}

static void check_node(const struct sluice_node_endpoint *wire,
                       const struct slu_node_endpoint *endpoint)
{
    struct sluice_node_endpoint again, wanted = *wire;
    hold(endpoint->block_bytes >= SLU_BLOCK_BYTES && endpoint->block_bytes % 8 == 0, "%u",
         endpoint->block_bytes);
    hold(endpoint->addr != 0 && endpoint->addr % 8 == 0, "%#llx",
         (unsigned long long)endpoint->addr);
    hold(endpoint->addr + (endpoint->block_bytes - 1) > endpoint->addr, "it wraps");
    hold(endpoint->generation <= INT32_MAX, "%u", endpoint->generation);
    slu_node_endpoint_encode(endpoint, &again);
    wanted.bytes[0] = again.bytes[0];
    wanted.bytes[1] = again.bytes[1];
    memset(wanted.bytes + NODE_UNUSED, 0, sizeof(wanted.bytes) - NODE_UNUSED);
    seal(wanted.bytes, sizeof(wanted.bytes));
    hold(memcmp(wanted.bytes, again.bytes, sizeof(again.bytes)) == 0, "other bytes");
}

static void try_node(const struct sluice_node_endpoint *wire)
{
    struct slu_node_endpoint endpoint;
    struct slu_node_failure failure;
    int error;
    memset(&endpoint, 0xa5, sizeof(endpoint));
    memset(&failure, 0xa5, sizeof(failure));
    error = slu_node_endpoint_decode(wire, &endpoint);
    if (error != 0) {
        hold(error == -EPROTO, "%d", error);
        hold(is_filled(&endpoint, sizeof(endpoint)), "something is left of it");
        fuzz_explained();
    }
    if (slu_node_failure_decode(wire, &failure)) {
        hold(error != 0, "it is an endpoint as well");
        fuzz_taken++;
        check_failure(&failure);
    } else {
        hold(is_filled(&failure, sizeof(failure)), "something is left of it");
    }
    if (error == 0) {
        fuzz_taken++;
        check_node(wire, &endpoint);
        try_endpoint(&endpoint.connection);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sluice_endpoint endpoint = {{0}};
    struct sluice_node_endpoint node = {{0}};
    if (size <= sizeof(endpoint.bytes)) {
        memcpy(endpoint.bytes, data, size);
        try_endpoint(&endpoint);
        seal(endpoint.bytes, sizeof(endpoint.bytes));
        try_endpoint(&endpoint);
    } else if (size <= sizeof(node.bytes)) {
        memcpy(node.bytes, data, size);
        try_node(&node);
        seal(node.bytes, sizeof(node.bytes));
        try_node(&node);
    }
    return 0;
}
