/* SPDX-License-Identifier: MIT */
/*
 * Handles of remote memory. Wire format, 32 bytes in network byte order: "SLMR",
 * written by version (2 bytes), readable from version (2), address (8), length (8),
 * rkey (4), zero (4). See endpoint/versions.h for changes of it.
 */
#include "config.h"

#include <string.h>

#include <sluice/mr.h>

#include "base/base.h"
#include "base/bytes.h"
#include "endpoint/versions.h"

#define TAG UINT32_C(0x534c4d52)
#define VERSION (2 + SLU_VERSIONS_NEXT)
#define READABLE 2
#define OLDEST 2

static uint64_t read_at(const uint8_t *bytes, int offset, int count)
{
    uint64_t value;

    slu_get(bytes + offset, &value, count);
    return value;
}

/*
 * Checks that the reserved fields are 0. If a later version has a value in
 * them, it would be lost, and the handle would name other memory.
 */
static int check_reserved(const struct sluice_remote_mr *remote)
{
    if ((remote->reserved[0] | remote->reserved[1] | remote->reserved[2]) == 0)
        return 0;
    return slu_misuse(EINVAL, "remote.reserved is {%u, %u, %u}, must be 0", remote->reserved[0],
                      remote->reserved[1], remote->reserved[2]);
}

int sluice_remote_mr_pack(const struct sluice_remote_mr *remote,
                          uint8_t bytes[SLUICE_REMOTE_MR_BYTES])
{
    uint8_t *at;
    int error;

    if (bytes != NULL)
        memset(bytes, 0, SLUICE_REMOTE_MR_BYTES);
    if (bytes == NULL || remote == NULL)
        return slu_misuse(EINVAL, "%s must not be NULL", bytes == NULL ? "bytes" : "remote");
    error = check_reserved(remote);
    if (error < 0)
        return error;
    at = slu_put(bytes, TAG, 4);
    at = slu_put(at, VERSION, 2);
    at = slu_put(at, READABLE, 2);
    at = slu_put(at, remote->addr, 8);
    at = slu_put(at, remote->length, 8);
    slu_put(at, remote->rkey, 4);
    return 0;
}

int sluice_remote_mr_unpack(const uint8_t bytes[SLUICE_REMOTE_MR_BYTES],
                            struct sluice_remote_mr *remote)
{
    static const struct slu_versions known = {"the handle of a memory region", VERSION, OLDEST};
    struct sluice_remote_mr read = {0};
    uint32_t written;
    int error;

    if (bytes == NULL || remote == NULL)
        return slu_misuse(EINVAL, "%s must not be NULL", bytes == NULL ? "bytes" : "remote");
    written = (uint32_t)read_at(bytes, 4, 2);
    if (read_at(bytes, 0, 4) != TAG || (written <= VERSION && read_at(bytes, 28, 4) != 0))
        return slu_fail(EPROTO, "these 32 bytes are not the handle of a memory region");
    error = slu_versions_check(&known, written, (uint32_t)read_at(bytes, 6, 2));
    if (error < 0)
        return error;
    read.addr = read_at(bytes, 8, 8);
    read.length = read_at(bytes, 16, 8);
    read.rkey = (uint32_t)read_at(bytes, 24, 4);
    if (read.length > 0 && read.addr + (read.length - 1) < read.addr)
        return slu_fail(EPROTO, "handle has a range that wraps the address space");
    *remote = read;
    return 0;
}

int sluice_remote_mr_slice(const struct sluice_remote_mr *remote, uint64_t offset, uint64_t length,
                           struct sluice_remote_mr *slice)
{
    int error;

    if (remote == NULL || slice == NULL)
        return slu_misuse(EINVAL, "%s must not be NULL", remote == NULL ? "remote" : "slice");
    error = check_reserved(remote);
    if (error < 0)
        return error;
    if (offset > remote->length || length > remote->length - offset)
        return slu_fail(ERANGE,
                        "bytes %llu to %llu + %llu are outside the remote region of %llu bytes",
                        (unsigned long long)offset, (unsigned long long)offset,
                        (unsigned long long)length, (unsigned long long)remote->length);
    *slice = (struct sluice_remote_mr){
        .addr = remote->addr + offset, .length = length, .rkey = remote->rkey};
    return 0;
}
