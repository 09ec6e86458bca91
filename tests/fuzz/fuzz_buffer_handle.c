/* SPDX-License-Identifier: MIT */
/*
 * Handles of buffers: decoded values are in their ranges, are returned by the public call, and are
 * encoded to the same bytes except for unused ones; a refused handle leaves no output. Each input
 * is tried as it is and with a right checksum.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <sluice.h>

#include "base/bytes.h"
#include "buffer/name.h"
#include "fuzz.h"

const char fuzz_name[] = "buffer_handle";

#define WAYS_AT 88
#define ADDRESSES_AT 120
#define ADDRESS_BYTES 20
#define CHECKSUM_AT (SLUICE_BUFFER_HANDLE_BYTES - 4)

static void seal(struct sluice_buffer_handle *handle)
{
    slu_put(handle->bytes + CHECKSUM_AT, slu_checksum(handle->bytes, CHECKSUM_AT), 4);
}

static void check_ranges(const struct slu_buffer_name *name)
{
    hold(name->length > 0 && name->addr + (name->length - 1) >= name->addr, "it wraps");
    hold((name->access & (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)) != 0 &&
             (name->access & ~(SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)) == 0,
         "%#x", name->access);
    hold(name->way_count > 0 && name->way_count <= SLUICE_MAX_BUFFER_PDS, "%u", name->way_count);
    hold(name->address_count > 0 && name->address_count <= SLU_BUFFER_ADDRESSES, "%u",
         name->address_count);
    for (uint32_t i = 0; i < name->address_count; i++) {
        hold(name->addresses[i].family == 4 || name->addresses[i].family == 6, "%u",
             name->addresses[i].family);
        hold(name->addresses[i].port != 0, "no port");
    }
}

/* All bytes but the version and unused ones are the same. */
static void check_same(const struct sluice_buffer_handle *handle,
                       const struct slu_buffer_name *name)
{
    struct sluice_buffer_handle again, wanted = *handle;
    size_t ways = WAYS_AT + 8 * name->way_count;
    size_t addresses = ADDRESSES_AT + ADDRESS_BYTES * (size_t)name->address_count;
    slu_buffer_name_encode(name, &again);
    if (wanted.bytes[4] > again.bytes[4]) { /* rights that only a later version knows */
        memcpy(wanted.bytes + 80, again.bytes + 80, 4);
    }
    memcpy(wanted.bytes + 4, again.bytes + 4, 4);
    memset(wanted.bytes + 86, 0, 2);
    memset(wanted.bytes + ways, 0, ADDRESSES_AT - ways);
    for (uint32_t i = 0; i < name->address_count; i++) {
        wanted.bytes[ADDRESSES_AT + ADDRESS_BYTES * i + 1] = 0;
    }
    memset(wanted.bytes + addresses, 0, CHECKSUM_AT - addresses);
    seal(&wanted);
    for (size_t i = 0; i < sizeof(wanted.bytes); i++) {
        hold(wanted.bytes[i] == again.bytes[i], "byte %zu is %u, was %u", i, again.bytes[i],
             wanted.bytes[i]);
    }
}

/* The public information agrees, and its strings are terminated. */
static void check_info(const struct slu_buffer_name *name, const struct sluice_buffer_info *info)
{
    hold(info->id == name->id && info->length == name->length && info->access == name->access,
         "another one");
    hold(memcmp(info->owner, name->owner, sizeof(info->owner)) == 0, "another owner");
    hold(info->address[0] != '\0' &&
             strnlen(info->address, sizeof(info->address)) < sizeof(info->address),
         "its address");
    hold(info->transports[0] != '\0' &&
             strnlen(info->transports, sizeof(info->transports)) < sizeof(info->transports),
         "its transports");
}

static void try_handle(const struct sluice_buffer_handle *handle)
{
    struct sluice_buffer_info info = {.size = sizeof(info), .id = 0xa5};
    struct slu_buffer_name name, before;
    int told = sluice_buffer_handle_query(handle, &info);
    int error;
    memset(&name, 0xa5, sizeof(name));
    memcpy(&before, &name, sizeof(name));
    error = slu_buffer_name_decode(handle, &name);
    hold(told == error, "%d and %d", told, error);
    if (error != 0) {
        hold(error == -EPROTO, "%d", error);
        hold(memcmp(&name, &before, sizeof(name)) == 0 && info.id == 0xa5, "something is left");
        fuzz_explained();
        return;
    }
    fuzz_taken++;
    check_ranges(&name);
    check_info(&name, &info);
    check_same(handle, &name);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct sluice_buffer_handle handle = {{0}};
    memcpy(handle.bytes, data, size < sizeof(handle.bytes) ? size : sizeof(handle.bytes));
    try_handle(&handle);
    seal(&handle);
    try_handle(&handle);
    return 0;
}
