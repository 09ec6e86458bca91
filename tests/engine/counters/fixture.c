/* SPDX-License-Identifier: MIT */
#include "fixture.h"

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
void fixture_open(struct fixture *fixture, const struct sluice_channel_attr *attr)
{
    memset(fixture, 0, sizeof(*fixture));
    pair_open(&fixture->pair, attr);
    for (int i = 0; i < 2; i++) {
        memory_open(&fixture->memories[i], fixture->pair.sides.pds[i], FIXTURE_BYTES);
    }
}

void fixture_check(const struct fixture *fixture)
{
    for (int i = 0; i < 2; i++) {
        require_counters(read_channel(fixture->pair.channels[i]), &fixture->wanted[i]);
    }
}

void fixture_close(struct fixture *fixture)
{
    memory_close(&fixture->memories[0]);
    memory_close(&fixture->memories[1]);
    pair_close(&fixture->pair);
}

struct sluice_sge sge_of(const struct fixture *fixture, int side, size_t length)
{
    return memory_sge(&fixture->memories[side], 0, length);
}

struct sluice_request write_of(const struct fixture *fixture, const struct sluice_sge *sge)
{
    struct sluice_request request = request_of(SLUICE_OP_WRITE, 0, sge);
    request.remote = memory_remote(&fixture->memories[1], 0, FIXTURE_BYTES);
    return request;
}

void expect(struct sluice_counters *wanted, uint32_t opcode, uint64_t bytes)
{
    wanted->requests[opcode]++;
    wanted->bytes[opcode] += bytes;
}

void fail_write(struct fixture *fixture, bool local)
{
    struct sluice_sge sge = sge_of(fixture, 0, 100);
    struct sluice_remote_mr remote = memory_remote(&fixture->memories[1], 0, 100);
    if (local) {
        sge.lkey ^= 0x5a5a5a5a;
    } else {
        remote.rkey ^= 0x5a5a5a5a;
    }
    require_result(sluice_channel_write(fixture->pair.channels[0], &sge, 1, &remote, DEADLINE),
                   local ? -EFAULT : -EACCES);
    fixture->wanted[0].failed[local ? SLUICE_CLASS_LOCAL : SLUICE_CLASS_ACCESS]++;
}
