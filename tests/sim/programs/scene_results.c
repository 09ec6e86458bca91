/* SPDX-License-Identifier: MIT */
/* The scenario of results that no call takes. */
#include <errno.h>

#include "scenarios.h"

/* Requests of rank 0 and its peer whose results are not taken. */
static uint64_t untaken;

static void post_untaken(uint32_t opcode, uint32_t peer)
{
    struct sluice_request work = request(opcode, peer, 64);
    int64_t began = sim_own_time();
    int result;
    work.user_data = ++untaken;
    while ((result = sluice_multichannel_post(scene.all, &work, 1, PATIENCE, NULL)) == -EAGAIN) {
        sim_pause(SLUICE_US(5));
        in_time(began, PATIENCE, "a post");
    }
    must(result == 1, "post %lu: %s", (unsigned long)untaken, sluice_last_error());
}

/* Takes the results that are left: in order, and up to the newest one. Returns how many. */
static uint64_t take_rest(uint32_t class)
{
    uint64_t last[2] = {0, 0}, taken = 0; /* of sends and writes, and of receives */
    while (last[0] != untaken && last[1] != untaken) {
        struct sluice_completion completion;
        must(sluice_multichannel_next(scene.all, PATIENCE, &completion) == 0,
             "%lu results, and not the last one: %s", (unsigned long)taken, sluice_last_error());
        must(completion.error_class == class &&
                 completion.user_data > last[completion.opcode == SLUICE_OP_RECEIVE],
             "result %lu: %s", (unsigned long)completion.user_data, sluice_last_error());
        last[completion.opcode == SLUICE_OP_RECEIVE] = completion.user_data;
        taken++;
    }
    must(sluice_multichannel_poll(scene.all, &(struct sluice_completion){.error = 0}, 1) == 0,
         "a result behind the last one");
    return taken;
}

/* Each request was done, and its result was taken or forgotten. */
static void check_counts(uint32_t peer, uint64_t taken)
{
    struct sluice_counters counters = {.size = sizeof counters};
    uint64_t done = 0, failed = 0;
    must(sluice_multichannel_peer_counters(scene.all, peer, &counters) == 0, "counters: %s",
         sluice_last_error());
    for (size_t i = 0; i < sizeof counters.requests / sizeof *counters.requests; i++) {
        done += counters.requests[i];
    }
    for (size_t i = 0; i < sizeof counters.failed / sizeof *counters.failed; i++) {
        failed += counters.failed[i];
    }
    must(failed == 0 && done == untaken && counters.forgotten + taken == done && taken > 0,
         "%lu requests, %lu done, %lu failed, %lu forgotten, %lu taken", (unsigned long)untaken,
         (unsigned long)done, (unsigned long)failed, (unsigned long)counters.forgotten,
         (unsigned long)taken);
}

static void check_memory(uint64_t before)
{
    must(sim_allocated() < before + 65536, "memory grew from %lu to %lu bytes",
         (unsigned long)before, (unsigned long)sim_allocated());
}

/* Posts go on to find room, memory does not grow, and the newest results are left. */
void c2_never_polled(void)
{
    enum { ROUNDS = 1000, RESETS = 12, DEPTH = 16 };
    uint64_t before = 0, taken;
    uint32_t peer;
    bool works;
    scene_open(NULL);
    peer = scene.rank == 0 ? scene.victim : 0;
    works = scene.rank == 0 || scene.rank == scene.victim;
    untaken = 0;
    meet();
    for (uint32_t i = 0; works && i < ROUNDS; i++) {
        if (scene.rank == scene.victim) {
            post_untaken(SLUICE_OP_RECEIVE, peer);
        }
        if (scene.rank == 0) {
            post_untaken(SLUICE_OP_WRITE, peer);
            post_untaken(SLUICE_OP_SEND, peer);
        }
        before = i == ROUNDS / 10 ? sim_allocated() : before;
    }
    if (works) {
        check_memory(before);
        taken = take_rest(SLUICE_CLASS_NONE);
        check_counts(peer, taken);
    }
    bystanders();
    untaken = 0;
    for (uint32_t i = 0; i < RESETS; i++) {
        for (uint32_t j = 0; (scene.rank == 0) && j < DEPTH; j++) {
            post_untaken(SLUICE_OP_RECEIVE, peer);
        }
        connect_again(scene.victim);
        before = i == RESETS / 4 ? sim_allocated() : before;
    }
    if (scene.rank == 0) {
        check_memory(before);
        taken = take_rest(SLUICE_CLASS_CANCELLED);
        must(taken >= DEPTH && taken < RESETS * DEPTH, "%lu failures are kept",
             (unsigned long)taken);
    }
    bystanders();
    meet();
    scene_close();
}
