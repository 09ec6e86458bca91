/* SPDX-License-Identifier: MIT */
#include "desk.h"

struct sluice_counters read_channel(const struct sluice_channel *channel)
{
    struct sluice_counters counters = {.size = sizeof(counters), .reserved = 77};
    require_ok(sluice_channel_counters(channel, &counters));
    require(counters.reserved == 0, "%u", counters.reserved);
    return counters;
}

struct sluice_counters read_all(const struct sluice_multichannel *multichannel)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(multichannel, &counters));
    return counters;
}

struct sluice_counters read_peer(const struct sluice_multichannel *multichannel, uint32_t peer)
{
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_peer_counters(multichannel, peer, &counters));
    return counters;
}

void check_counters(const char *file, int line, struct sluice_counters got,
                    const struct sluice_counters *wanted)
{
    for (uint32_t i = 0; i < COUNT(got.requests); i++) {
        if (got.requests[i] != wanted->requests[i] || got.bytes[i] != wanted->bytes[i]) {
            fail_at(file, line, "opcode %u: %llu requests of %llu bytes, not %llu of %llu", i,
                    (unsigned long long)got.requests[i], (unsigned long long)got.bytes[i],
                    (unsigned long long)wanted->requests[i], (unsigned long long)wanted->bytes[i]);
        }
    }
    for (uint32_t i = 0; i < COUNT(got.failed); i++) {
        if (got.failed[i] != wanted->failed[i]) {
            fail_at(file, line, "class %s: %llu failed, not %llu", sluice_error_class_name(i),
                    (unsigned long long)got.failed[i], (unsigned long long)wanted->failed[i]);
        }
    }
    if (got.refused != wanted->refused || got.queue_full != wanted->queue_full ||
        got.forgotten != wanted->forgotten || got.resets != wanted->resets) {
        fail_at(file, line,
                "refused %llu, queue_full %llu, forgotten %llu, resets %llu; "
                "wanted %llu, %llu, %llu, %llu",
                (unsigned long long)got.refused, (unsigned long long)got.queue_full,
                (unsigned long long)got.forgotten, (unsigned long long)got.resets,
                (unsigned long long)wanted->refused, (unsigned long long)wanted->queue_full,
                (unsigned long long)wanted->forgotten, (unsigned long long)wanted->resets);
    }
}
void desk_open(struct desk *desk, const struct sluice_channel_attr *attr)
{
    memset(desk, 0, sizeof(*desk));
    pair_open(&desk->pair, attr);
    for (int i = 0; i < 2; i++) {
        memory_open(&desk->memories[i], desk->pair.sides.pds[i], DESK_BYTES);
    }
}

void desk_check(const struct desk *desk)
{
    for (int i = 0; i < 2; i++) {
        require_counters(read_channel(desk->pair.channels[i]), &desk->wanted[i]);
    }
}

void desk_close(struct desk *desk)
{
    memory_close(&desk->memories[0]);
    memory_close(&desk->memories[1]);
    pair_close(&desk->pair);
}

struct sluice_sge sge_of(const struct desk *desk, int side, size_t length)
{
    return memory_sge(&desk->memories[side], 0, length);
}

struct sluice_request write_of(const struct desk *desk, const struct sluice_sge *sge)
{
    struct sluice_request request = request_of(SLUICE_OP_WRITE, 0, sge);
    request.remote = memory_remote(&desk->memories[1], 0, DESK_BYTES);
    return request;
}

void expect(struct sluice_counters *wanted, uint32_t opcode, uint64_t bytes)
{
    wanted->requests[opcode]++;
    wanted->bytes[opcode] += bytes;
}

void fail_write(struct desk *desk, bool local)
{
    struct sluice_sge sge = sge_of(desk, 0, 100);
    struct sluice_remote_mr remote = memory_remote(&desk->memories[1], 0, 100);
    if (local) {
        sge.lkey ^= 0x5a5a5a5a;
    } else {
        remote.rkey ^= 0x5a5a5a5a;
    }
    require_result(sluice_channel_write(desk->pair.channels[0], &sge, 1, &remote, DEADLINE),
                   local ? -EFAULT : -EACCES);
    desk->wanted[0].failed[local ? SLUICE_CLASS_LOCAL : SLUICE_CLASS_ACCESS]++;
}
