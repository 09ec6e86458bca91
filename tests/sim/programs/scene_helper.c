/* SPDX-License-Identifier: MIT */
/* Scenarios in which a helper thread of rank 1 is stopped, and another one takes over. */
#include "scenarios.h"

#define IS_VICTIM (scene.rank == scene.victim)

/*
 * Rank 1 leaves connections in which it has waited, so that its helper thread has to serve them.
 * The thread gets no processor for a while. Once it has one, it finds another request as well, a
 * write to slow memory, which stops it. The thread that replaces it has to serve the connections.
 */
void helper_replaced(void)
{
    struct sluice_multichannel *first;
    struct sluice_request work, both[2];
    int64_t began;
    scene_open(NULL);
    first = scene.all;
    scene_connect(NULL);
    sim_pause(SLUICE_MS(50));
    meet();
    if (IS_VICTIM) {
        both[0] = both[1] = request(SLUICE_OP_RECEIVE, 2, 64);
        sim_slow(in(0), SLICE, SLUICE_S(3));
        sim_strike(SIM_HOLD, scene.rank, SLUICE_MS(30), SLUICE_MS(30));
        must(sluice_multichannel_submit(scene.all, both, 2, PATIENCE, NULL) == 0, "receives: %s",
             sluice_last_error());
        sim_pause(SLUICE_S(4));
    } else if (scene.rank == 0) {
        work = request(SLUICE_OP_WRITE, scene.victim, 64);
        sim_pause(SLUICE_MS(45));
        must(sluice_multichannel_submit(first, &work, 1, PATIENCE, NULL) == 0, "a write: %s",
             sluice_last_error());
    } else {
        work = request(SLUICE_OP_SEND, scene.victim, 64);
        sim_pause(SLUICE_MS(5));
        succeeds(&work, "a send");
        sim_pause(SLUICE_MS(30));
        succeeds(&work, "a second send");
        sim_pause(SLUICE_MS(400));
        work = request(SLUICE_OP_WRITE, scene.victim, 64);
        began = sim_own_time();
        succeeds(&work, "a write to rank 1");
        must(sim_own_time() - began < SLUICE_S(1), "no helper thread serves rank 1");
    }
    meet();
    sluice_multichannel_close(first);
    scene_close();
}

/*
 * As above, but the write comes over the connections that rank 1 has left, and the system has no
 * memory for what these send. So the new thread checks their queue every millisecond. The stopped
 * thread asks for the same once it comes back: the queue must not be checked twice then.
 */
void helper_replaced_starved(void)
{
    struct sluice_multichannel *others;
    struct sluice_request work;
    int64_t began;
    scene_open(NULL);
    others = scene.all;
    scene_connect(NULL);
    meet();
    if (IS_VICTIM) {
        sim_pause(SLUICE_MS(50));
        sim_slow(in(0), SLICE, SLUICE_S(3));
        sim_strike(SIM_HOLD, scene.rank, 0, SLUICE_MS(30));
        sim_refuse(scene.rank, "sendmsg", 0, 1000000);
        work = request(SLUICE_OP_WRITE, 2, 64);
        post(&work);
        sim_pause(SLUICE_S(4));
        sim_forget();
        must(sluice_multichannel_flush(scene.all, PATIENCE) == 0, "flush: %s", sluice_last_error());
        sim_pause(SLUICE_S(1));
    } else if (scene.rank == 0) {
        work = request(SLUICE_OP_WRITE, scene.victim, 64);
        sim_pause(SLUICE_MS(60));
        succeeds(&work, "a write to slow memory");
    } else {
        work = request(SLUICE_OP_WRITE, scene.victim, 64);
        sim_pause(SLUICE_MS(5));
        succeeds(&work, "a write");
        sim_pause(SLUICE_MS(4300));
        began = sim_own_time();
        succeeds(&work, "a second write");
        must(sluice_multichannel_submit(others, &work, 1, PATIENCE, NULL) == 0, "others: %s",
             sluice_last_error());
        must(sim_own_time() - began < SLUICE_S(1), "no helper thread serves rank 1");
    }
    meet();
    sluice_multichannel_close(others);
    scene_close();
}
