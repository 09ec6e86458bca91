/* SPDX-License-Identifier: MIT */
/*
 * Packed handles of memory regions, and slices of them: an unpacked handle does not wrap the
 * address space, and is packed to the same bytes; a slice lies inside. Behind the 32 bytes of a
 * handle are the offset and length of a slice, 8 bytes each.
 */
#include "config.h"

#include <errno.h>
#include <string.h>

#include <sluice.h>

#include "base/bytes.h"
#include "fuzz.h"

const char fuzz_name[] = "remote_mr";

static bool is_same(const struct sluice_remote_mr *a, const struct sluice_remote_mr *b)
{
    return a->addr == b->addr && a->length == b->length && a->rkey == b->rkey;
}

/* All bytes but the versions and additions of later versions are the same. */
static void check_same(const uint8_t *bytes, const struct sluice_remote_mr *remote)
{
    uint8_t again[SLUICE_REMOTE_MR_BYTES], wanted[SLUICE_REMOTE_MR_BYTES];
    uint64_t own, written;
    sluice_remote_mr_pack(remote, again);
    slu_get(bytes + 4, &written, 2);
    slu_get(again + 4, &own, 2);
    memcpy(wanted, bytes, sizeof(wanted));
    memcpy(wanted + 4, again + 4, 4);
    if (written > own) {
        memset(wanted + 28, 0, 4);
    }
    hold(memcmp(wanted, again, sizeof(again)) == 0, "other bytes");
}

static void check_slice(const struct sluice_remote_mr *remote, uint64_t offset, uint64_t length)
{
    static const struct sluice_remote_mr before = {.addr = 1, .length = 2, .rkey = 3};
    struct sluice_remote_mr slice = before;
    int error = sluice_remote_mr_slice(remote, offset, length, &slice);
    if (error != 0) {
        hold(error == -ERANGE, "%d", error);
        hold(offset > remote->length || length > remote->length - offset, "it is inside");
        hold(is_same(&slice, &before), "something is left of it");
        fuzz_explained();
        return;
    }
    hold(offset <= remote->length && length <= remote->length - offset, "it is outside");
    hold(slice.addr - remote->addr == offset && slice.length == length, "another slice");
    hold(slice.rkey == remote->rkey, "%#x", slice.rkey);
    hold(length == 0 || slice.addr + (length - 1) >= slice.addr, "it wraps");
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct sluice_remote_mr before = {.addr = 1, .length = 2, .rkey = 3};
    struct fuzz_input input = {data, size};
    struct sluice_remote_mr remote = before;
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES] = {0};
    size_t count = sizeof(bytes);
    const uint8_t *given = fuzz_bytes(&input, &count);
    uint64_t offset;
    int error;
    memcpy(bytes, given, count);
    error = sluice_remote_mr_unpack(bytes, &remote);
    if (error != 0) {
        hold(error == -EPROTO, "%d", error);
        hold(is_same(&remote, &before), "something is left of it");
        fuzz_explained();
        return 0;
    }
    fuzz_taken++;
    hold(remote.length == 0 || remote.addr + (remote.length - 1) >= remote.addr, "it wraps");
    check_same(bytes, &remote);
    offset = fuzz_number(&input, 8);
    check_slice(&remote, offset, fuzz_number(&input, 8));
    return 0;
}
