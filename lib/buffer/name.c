/* SPDX-License-Identifier: MIT */
/*
 * The wire form of a handle, 256 bytes in network byte order:
 *
 *     0  magic (4), written by version (1), readable from version (1), zero (2)
 *     8  owner (16), its key (32)
 *    56  id, address, length (8 each), access (4)
 *    84  number of ways (1), of addresses (1), zero (2)
 *    88  ways: transport, remote key (4 each); 4 places
 *   120  addresses: family (1), zero (1), port (2), IP (16); 4 places
 *   200  zero
 *   252  checksum of all before it: FNV-1a, against accidents, not attackers
 *
 * Unused bytes are zero: if a later version uses them, this version can still read its handles.
 * Decoding reads nothing outside the bytes, whatever they are, and checks every range that others
 * rely on.
 */
#include "config.h"

#include "buffer/name.h"

#include <string.h>

#include "base/base.h"
#include "base/bytes.h"
#include "endpoint/versions.h"

#define MAGIC UINT32_C(0x736c7562) /* "slub" */
#define VERSION (1 + SLU_VERSIONS_NEXT)
#define READABLE 1
#define OLDEST 1
#define WAYS_AT 88
#define ADDRESSES_AT 120
#define CHECKSUM_AT (SLUICE_BUFFER_HANDLE_BYTES - 4)
#define ACCESS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)

const char *slu_buffer_transport_name(uint32_t transport)
{
    return transport == SLU_TRANSPORT_VERBS ? "verbs" : "soft";
}

static void encode_ways(const struct slu_buffer_name *name, uint8_t *at)
{
    for (uint32_t i = 0; i < name->way_count; i++)
        at = slu_put(slu_put(at, name->ways[i].transport, 4), name->ways[i].rkey, 4);
}

static void encode_addresses(const struct slu_buffer_name *name, uint8_t *at)
{
    for (uint32_t i = 0; i < name->address_count; i++) {
        const struct slu_address *address = &name->addresses[i];

        at = slu_put(slu_put(slu_put(at, address->family, 1), 0, 1), address->port, 2);
        memcpy(at, address->ip, sizeof address->ip);
        at += sizeof address->ip;
    }
}

void slu_buffer_name_encode(const struct slu_buffer_name *name, struct sluice_buffer_handle *handle)
{
    uint8_t *at = handle->bytes;

    memset(handle, 0, sizeof *handle);
    at = slu_put(at, MAGIC, 4);
    at = slu_put(slu_put(slu_put(at, VERSION, 1), READABLE, 1), 0, 2);
    memcpy(at, name->owner, sizeof name->owner);
    at += sizeof name->owner;
    memcpy(at, name->key, sizeof name->key);
    at += sizeof name->key;
    at = slu_put(slu_put(slu_put(at, name->id, 8), name->addr, 8), name->length, 8);
    slu_put(slu_put(slu_put(at, name->access, 4), name->way_count, 1), name->address_count, 1);
    encode_ways(name, handle->bytes + WAYS_AT);
    encode_addresses(name, handle->bytes + ADDRESSES_AT);
    slu_put(handle->bytes + CHECKSUM_AT, slu_checksum(handle->bytes, CHECKSUM_AT), 4);
}

/*
 * Checks that this library wrote the handle, in a version it can read, and that it is undamaged.
 * Sets whether a later version wrote it.
 */
static int check_whole(const uint8_t *bytes, bool *later)
{
    static const struct slu_versions known = {"a handle of a buffer", VERSION, OLDEST};
    uint64_t magic, written, readable, sum;

    slu_get(slu_get(slu_get(bytes, &magic, 4), &written, 1), &readable, 1);
    slu_get(bytes + CHECKSUM_AT, &sum, 4);
    if (magic != MAGIC)
        return slu_fail(EPROTO, "this is no handle of a buffer: it begins with %08llx",
                        (unsigned long long)magic);
    if (sum != slu_checksum(bytes, CHECKSUM_AT))
        return slu_fail(EPROTO, "a handle of a buffer was damaged on its way, or cut short");
    *later = written > VERSION;
    return slu_versions_check(&known, (uint32_t)written, (uint32_t)readable);
}

static const uint8_t *decode_head(const uint8_t *at, struct slu_buffer_name *name)
{
    uint64_t access, ways, addresses;

    memcpy(name->owner, at, sizeof name->owner);
    at += sizeof name->owner;
    memcpy(name->key, at, sizeof name->key);
    at += sizeof name->key;
    at = slu_get(slu_get(slu_get(at, &name->id, 8), &name->addr, 8), &name->length, 8);
    at = slu_get(slu_get(slu_get(at, &access, 4), &ways, 1), &addresses, 1);
    name->access = (uint32_t)access;
    name->way_count = (uint32_t)ways;
    name->address_count = (uint32_t)addresses;
    return at;
}

static int check_head(const struct slu_buffer_name *name)
{
    if (name->length == 0 || name->addr + (name->length - 1) < name->addr)
        return slu_fail(EPROTO, "a handle of %llu bytes at %#llx: such a buffer cannot be",
                        (unsigned long long)name->length, (unsigned long long)name->addr);
    if ((name->access & ACCESS) == 0 || (name->access & ~ACCESS) != 0)
        return slu_fail(EPROTO, "a handle of a buffer with access %#x", name->access);
    if (name->way_count == 0 || name->way_count > SLUICE_MAX_BUFFER_PDS ||
        name->address_count == 0 || name->address_count > SLU_BUFFER_ADDRESSES)
        return slu_fail(EPROTO, "a handle with %u transports and %u addresses", name->way_count,
                        name->address_count);
    return 0;
}

static int decode_ways(const uint8_t *at, struct slu_buffer_name *name)
{
    for (uint32_t i = 0; i < name->way_count; i++) {
        uint64_t transport, rkey;

        at = slu_get(slu_get(at, &transport, 4), &rkey, 4);
        if (transport != SLU_TRANSPORT_VERBS && transport != SLU_TRANSPORT_SOFT)
            return slu_fail(EPROTO, "a handle with transport %llu, which is not known",
                            (unsigned long long)transport);
        name->ways[i] =
            (struct slu_buffer_way){.transport = (uint32_t)transport, .rkey = (uint32_t)rkey};
    }
    return 0;
}

static int decode_addresses(const uint8_t *at, struct slu_buffer_name *name)
{
    for (uint32_t i = 0; i < name->address_count; i++) {
        uint64_t family, zero, port;

        at = slu_get(slu_get(slu_get(at, &family, 1), &zero, 1), &port, 2);
        if ((family != 4 && family != 6) || port == 0)
            return slu_fail(EPROTO, "a handle with an address of family %llu and port %llu",
                            (unsigned long long)family, (unsigned long long)port);
        name->addresses[i] =
            (struct slu_address){.family = (uint16_t)family, .port = (uint16_t)port};
        memcpy(name->addresses[i].ip, at, sizeof name->addresses[i].ip);
        at += sizeof name->addresses[i].ip;
    }
    return 0;
}

int slu_buffer_name_decode(const struct sluice_buffer_handle *handle, struct slu_buffer_name *name)
{
    struct slu_buffer_name read = {.id = 0};
    bool later = false;
    int error = check_whole(handle->bytes, &later);

    if (error < 0)
        return error;
    decode_head(handle->bytes + 8, &read);
    /* Ignore rights that this version does not know. */
    if (later)
        read.access &= ACCESS;
    error = check_head(&read);
    if (error == 0)
        error = decode_ways(handle->bytes + WAYS_AT, &read);
    if (error == 0)
        error = decode_addresses(handle->bytes + ADDRESSES_AT, &read);
    if (error == 0)
        *name = read;
    return error;
}
