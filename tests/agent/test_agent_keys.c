/* SPDX-License-Identifier: MIT */
/* Keys that were never given out: they open nothing, however many are tried. */
#include "../support/process.h"
#include "agents.h"

/* As many keys as take some seconds: the cost of a new pair of channels differs by wire. */
static uint32_t keys_to_try(void)
{
    static const uint32_t tries[][2] = {
        [WIRE_SELF] = {1000000, 10000}, [WIRE_TCP] = {10000, 500}, [WIRE_SHM] = {1000, 100}};
    return device_is_soft() ? tries[current_wire()][short_run()] : 100;
}

/*
 * Tries keys at full speed against the device's own check: a channel in the owner's domain, which
 * is reset after each key, lacks only the right one.
 */
TEST(random_keys_open_nothing)
{
    const uint32_t tries = keys_to_try();
    struct agents agents;
    struct pair pair = {.channels = {NULL}};
    struct memory given;
    struct sluice_agent_mr *mr;
    struct sluice_remote_mr remote;
    struct sluice_request write;
    struct sluice_sge sge;
    struct sluice_agent_attr attr = {.size = sizeof(attr), .secret_file = ""};
    uint64_t state = 7654321;
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL));
    agents_open(&agents, NULL, &attr);
    memory_open(&given, agents.sides.pds[0], 4096);
    memset(given.bytes, 7, 4096);
    require_ok(sluice_agent_send_local_mr(agents.at_owner, given.mr, 0, 4096, ACCESS_READ_WRITE,
                                          SLUICE_FOREVER, DEADLINE, NULL));
    mr = sluice_agent_receive_remote_mr(agents.holder, agents.at_holder, DEADLINE);
    require(mr, "%s", sluice_last_error());
    remote = mr_info(mr).remote;
    pair.sides = agents.sides;
    pair_connect(&pair, NULL);
    sge = memory_sge(&agents.memory, 0, 4096);
    memset(agents.memory.bytes, 3, 4096);
    write = request_of(SLUICE_OP_WRITE, 0, &sge);
    for (uint32_t tried = 0; tried < tries;) {
        write.remote = remote;
        state = state * 6364136223846793005u + 1442695040888963407u;
        write.remote.rkey = (uint32_t)(state >> 32);
        if (write.remote.rkey == remote.rkey) {
            continue;
        }
        require_result(sluice_channel_submit(pair.channels[1], &write, 1, DEADLINE, NULL), -EACCES);
        pair_reset(&pair);
        tried++;
    }
    value_check(given.bytes, 4096, 7);
    require(peer_info(agents.at_holder).reconnects == 0, "the agents were harmed");
    write.remote = remote;
    require_ok(sluice_channel_submit(pair.channels[1], &write, 1, DEADLINE, NULL));
    value_check(given.bytes, 4096, 3);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    sluice_channel_close(pair.channels[0]);
    sluice_channel_close(pair.channels[1]);
    memory_close(&given);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    agents_close(&agents);
}

/* Guessed keys open nothing, and agents slow down attempts. */
TEST(guessed_keys_open_nothing)
{
    struct agents agents;
    struct sluice_agent_mr *mr;
    struct sluice_remote_mr remote;
    struct sluice_sge sge;
    uint64_t state = 1234567;
    int64_t begin, tried = 0;
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL));
    agents_open(&agents, NULL, NULL);
    mr = request(&agents, 4096, ACCESS_READ_WRITE, 0);
    remote = mr_info(mr).remote;
    sge = memory_sge(&agents.memory, 0, 8);
    memset(agents.memory.bytes, 3, 8);
    begin = clock_now();
    while (tried < (short_run() ? 5 : 15)) {
        struct sluice_request write = request_of(SLUICE_OP_WRITE, 0, &sge);
        state = state * 6364136223846793005u + 1442695040888963407u;
        if ((uint32_t)(state >> 32) == remote.rkey) {
            continue;
        }
        write.remote = remote;
        write.remote.rkey = (uint32_t)(state >> 32);
        require_result(sluice_agent_submit(agents.at_holder, &write, 1, DEADLINE, NULL), -EACCES);
        tried++;
    }
    /*
     * Each attempt costs a data queue pair, and only ten a second are made, except for the first.
     */
    require(clock_now() - begin >= (tried - 2) * SLUICE_MS(100), "%lld in %lld ns",
            (long long)tried, (long long)(clock_now() - begin));
    memset(agents.memory.bytes, 1, 8);
    require_ok(sluice_agent_mr_read(mr, 0, &sge, 1, DEADLINE));
    value_check(agents.memory.bytes, 8, 0);
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    agents_close(&agents);
}

int main(void)
{
    return run_tests("agent_keys", 120);
}
