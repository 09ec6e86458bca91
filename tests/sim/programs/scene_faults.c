/* SPDX-License-Identifier: MIT */
/* Scenarios in which something befalls rank 1, its host, or the way to it. */
#include <errno.h>

#include "scenarios.h"

#define IS_VICTIM (scene.rank == scene.victim)

/* The time after which a peer that was killed, or is out of reach, is lost: ms. */
static int64_t lost_within(void)
{
    return scene.device ? 2000 : 1000;
}

/* The one that is struck stays until then. */
static void await_blow(void)
{
    sim_pause(SLUICE_S(3600));
    sim_break("rank 1 was not killed");
}

static void post_many(uint32_t opcode, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_request work = request(opcode, scene.victim, 2000);
        post(&work);
    }
}

void a1_killed_busy(void)
{
    scene_open(NULL);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_KILL, scene.rank, (int64_t)below(SLUICE_MS(2)), 0);
        await_blow();
    }
    post_many(SLUICE_OP_RECEIVE, 8);
    post_many(SLUICE_OP_SEND, 8);
    all_fail(16, SLUICE_CLASS_PEER_LOST, lost_within(), "work with a peer that is killed");
    bystanders();
    scene_close();
}

void a2_killed_idle(void)
{
    struct sluice_channel_attr attr = scene_attr();
    scene_begin();
    attr.keepalive = scene.device ? SLUICE_MS(450) : 0;
    scene_connect(&attr);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_KILL, scene.rank, (int64_t)below(SLUICE_MS(50)), 0);
        await_blow();
    }
    post_many(SLUICE_OP_RECEIVE, 4);
    all_fail(4, SLUICE_CLASS_PEER_LOST, 1000, "receives of a peer that is killed");
    bystanders();
    scene_close();
}

/* Rank 1 dies somewhere in the middle of messages to the others. */
void a3_killed_in_scatter(void)
{
    struct sluice_channel_attr attr = scene_attr();
    struct sluice_request work;
    uint32_t got = 0;
    scene_begin();
    attr.keepalive = scene.device ? SLUICE_MS(450) : 0;
    scene_connect(&attr);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_KILL, scene.rank, (int64_t)below(SLUICE_US(200)), 0);
        for (;;) {
            struct sluice_request sends[2] = {request(SLUICE_OP_SEND, 0, 30000),
                                              request(SLUICE_OP_SEND, 2, 30000)};
            must(sluice_multichannel_submit(scene.all, sends, 2, PATIENCE, NULL) == 0,
                 "scatter: %s", sluice_last_error());
        }
    }
    work = request(SLUICE_OP_RECEIVE, scene.victim, 30000);
    for (;;) {
        struct sluice_completion completion = do_one(&work, PATIENCE);
        if (completion.error != 0) {
            must(completion.error_class == SLUICE_CLASS_PEER_LOST, "receive %u: %s", got,
                 sluice_last_error());
            break;
        }
        got++;
    }
    bystanders();
    scene_close();
}

void a4_stopped(void)
{
    struct sluice_request send, receive, write;
    scene_open(NULL);
    send = request(SLUICE_OP_SEND, scene.victim, 2000);
    write = request(SLUICE_OP_WRITE, scene.victim, 2000);
    receive = request(SLUICE_OP_RECEIVE, 0, 2000);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_STOP, scene.rank, 0, SLUICE_MS(800));
        sim_pause(SLUICE_US(10));
        succeeds(&receive, "a receive after a stop");
    } else if (scene.rank == 0) {
        sim_pause(SLUICE_MS(1));
        succeeds(&write, "a write to a rank that stops for a time");
        succeeds(&send, "a send to a rank that stops for a time");
    }
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_STOP, scene.rank, 0, SLUICE_S(10));
        sim_pause(SLUICE_US(10));
    } else if (scene.rank == 0) {
        struct sluice_completion completion;
        sim_pause(SLUICE_MS(1));
        completion = do_one(&send, SLUICE_MS(500));
        must(completion.error_class == SLUICE_CLASS_TIMEOUT, "a send to a stopped rank: %s",
             sluice_last_error());
    }
    bystanders();
    meet();
    connect_again(scene.victim);
    if (scene.rank < 2) {
        exchange(0, 1, 4);
    }
    scene_close();
}

void a5_closed(void)
{
    struct sluice_channel_attr attr = scene_attr();
    struct sluice_request send;
    scene_begin();
    attr.keepalive = scene.device ? SLUICE_MS(450) : 0;
    scene_connect(&attr);
    send = request(SLUICE_OP_SEND, scene.victim, 64);
    meet();
    if (!IS_VICTIM) {
        struct sluice_completion completion;
        post_many(SLUICE_OP_RECEIVE, 4);
        meet();
        all_fail(4, SLUICE_CLASS_PEER_LOST, 1000, "receives of a peer that closes");
        completion = do_one(&send, PATIENCE);
        must(completion.error == -ENOTCONN, "a send to a peer that has closed: %d: %s",
             completion.error, sluice_last_error());
        bystanders();
        scene_close();
    } else {
        meet();
        scene_close();
    }
}

void a6_all_close(void)
{
    int64_t began;
    scene_open(NULL);
    for (uint32_t i = 0; i < scene.ranks; i++) {
        struct sluice_request receive = request(SLUICE_OP_RECEIVE, i, 64);
        post(&receive);
    }
    meet();
    began = sim_own_time();
    scene_close();
    must(sim_own_time() - began < SLUICE_MS(500), "closing takes %ld ms",
         (long)((sim_own_time() - began) / SLUICE_MS(1)));
}

void a7_black_hole(void)
{
    struct sluice_channel_attr attr = scene_attr();
    attr.keepalive = SLUICE_MS(300);
    scene_open(&attr);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_PART, scene.rank, 0, INT64_MAX);
    }
    sim_pause(SLUICE_MS(1));
    if (!IS_VICTIM) {
        struct sluice_request send = request(SLUICE_OP_SEND, scene.victim, 64);
        fails(&send, SLUICE_CLASS_PEER_LOST, lost_within(), "a send into a black hole");
    }
    bystanders();
    scene_close();
}

/* The deadline alone ends what waits for a host that has lost its power. */
void a7_power_fails(void)
{
    struct sluice_request send;
    scene_open(NULL);
    send = request(SLUICE_OP_SEND, scene.victim, 64);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_POWER, scene.rank, 0, 0);
        await_blow();
    }
    sim_pause(SLUICE_MS(1));
    if (scene.device) {
        fails(&send, SLUICE_CLASS_PEER_LOST, lost_within(), "a send to a host without power");
    } else {
        struct sluice_completion completion = do_one(&send, SLUICE_MS(700));
        must(completion.error_class == SLUICE_CLASS_TIMEOUT, "a send to a host without power: %s",
             sluice_last_error());
    }
    bystanders();
    scene_close();
}

void a8_loss(void)
{
    struct sluice_channel_attr attr = scene_attr();
    attr.retry_count = 6;
    scene_open(&attr);
    if (IS_VICTIM) {
        sim_strike(SIM_LOSE, scene.rank, 0, 20);
    }
    meet();
    for (uint32_t i = 0; i < scene.ranks; i++) {
        if (i != scene.rank) {
            exchange(scene.rank, i, 30);
        }
    }
    meet();
    scene_close();
}

/* Two times the host is out of reach for 5 s. TCP survives it, a device does not. */
void a9_link_down(void)
{
    scene_open(NULL);
    for (uint32_t round = 0; round < 2; round++) {
        meet();
        if (IS_VICTIM) {
            sim_strike(SIM_PART, scene.rank, 0, SLUICE_S(5));
        }
        sim_pause(SLUICE_MS(1));
        if (scene.rank < 2 && !scene.device) {
            exchange(0, 1, 4);
        } else if (scene.rank == 0) {
            struct sluice_request send = request(SLUICE_OP_SEND, scene.victim, 64);
            fails(&send, SLUICE_CLASS_PEER_LOST, lost_within(), "a send while the link is down");
        }
        bystanders();
        meet();
        sim_pause(SLUICE_S(5));
        connect_again(scene.victim);
        if (scene.rank < 2) {
            exchange(0, 1, 4);
        }
    }
    scene_close();
}

void a10_address_changes(void)
{
    scene_open(NULL);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_MOVE, scene.rank, 0, 0);
    }
    sim_pause(SLUICE_MS(1));
    if (scene.rank == 0) {
        struct sluice_request send = request(SLUICE_OP_SEND, scene.victim, 64);
        struct sluice_completion completion = do_one(&send, SLUICE_S(1));
        must(completion.error_class == SLUICE_CLASS_TIMEOUT, "a send to an old address: %s",
             sluice_last_error());
    }
    bystanders();
    connect_again(scene.victim);
    exchange(scene.rank == 2 ? 2 : 0, 1, scene.rank == 2 ? 0 : 4);
    scene_close();
}

void a11_device_dies(void)
{
    struct sluice_request send;
    scene_open(NULL);
    send = request(SLUICE_OP_SEND, IS_VICTIM ? 0 : scene.victim, 64);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_DIE, scene.rank, 0, 0);
    }
    sim_pause(SLUICE_US(10));
    if (IS_VICTIM) {
        fails(&send, SLUICE_CLASS_DEVICE, ABOUT_NOW, "a send of a device that has died");
    } else {
        fails(&send, SLUICE_CLASS_PEER_LOST, lost_within(), "a send to a device that has died");
    }
    bystanders();
    scene_close();
}

/* Rank 1 dies and comes back several times, and the others connect to it again each time. */
void a12_restarts(void)
{
    enum { TIMES = 4 };
    struct sluice_request send;
    scene_open(NULL);
    for (uint32_t round = sim_generation(); round < TIMES; round++) {
        meet();
        if (IS_VICTIM) {
            sim_strike(SIM_RESTART, scene.rank, (int64_t)below(SLUICE_MS(1)), 0);
            await_blow();
        }
        send = request(SLUICE_OP_SEND, scene.victim, 64);
        fails(&send, SLUICE_CLASS_PEER_LOST, lost_within(), "a send to a rank that starts again");
        bystanders();
        sluice_multichannel_close(scene.all);
        scene_connect(NULL);
    }
    if (scene.rank < 2) {
        exchange(0, 1, 4);
    }
    bystanders();
    scene_close();
}

/* An endpoint from before a reset is refused after it. */
void a13_stale_endpoint(void)
{
    static struct sluice_endpoint stale;
    struct sluice_endpoint own;
    scene_open(NULL);
    meet();
    if (scene.rank == 0) {
        stale = endpoint_of(scene.victim);
    }
    connect_again(scene.victim);
    if (scene.rank == 0) {
        must(sluice_multichannel_peer_reset(scene.all, scene.victim, &own) == 0 &&
                 sluice_multichannel_peer_handshake(scene.all, scene.victim, &stale) == -ESTALE,
             "a stale endpoint: %s", sluice_last_error());
    }
    bystanders();
    scene_close();
}

void reset_by_the_network(void)
{
    scene_open(NULL);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_RESET, scene.rank, SLUICE_MS(1), 0);
    }
    post_many(SLUICE_OP_RECEIVE, IS_VICTIM ? 0 : 4);
    if (!IS_VICTIM) {
        all_fail(4, SLUICE_CLASS_PEER_LOST, 1000, "receives of a connection that is reset");
    }
    bystanders();
    connect_again(scene.victim);
    if (scene.rank < 2) {
        exchange(0, 1, 4);
    }
    scene_close();
}

/* The clock of the day jumps back and forth, and no deadline or keep-alive minds. */
void clock_jumps(void)
{
    struct sluice_channel_attr attr = scene_attr();
    attr.keepalive = SLUICE_S(1);
    scene_open(&attr);
    for (uint32_t i = 0; i < 6; i++) {
        int64_t began = sim_own_time();
        sim_strike(SIM_JUMP, scene.rank, (int64_t)below(SLUICE_MS(20)),
                   (i % 2 == 0 ? -1 : 1) * SLUICE_S(7200));
        must(sluice_multichannel_next(scene.all, SLUICE_MS(40), NULL) != 0, "there is no work");
        in_time(began, SLUICE_MS(40), "a wait");
        if (scene.ranks > 1) {
            exchange(scene.rank == 2 ? 2 : 0,
                     scene.rank == 2   ? 0
                     : scene.rank == 1 ? 0
                                       : 2,
                     scene.rank == 1 ? 0 : 4);
        }
    }
    meet();
    scene_close();
}

/* Processes that see no /proc cannot know that they are on one host. */
void no_proc(void)
{
    sim_strike(SIM_HIDE, sim_rank(), 0, 0);
    sim_pause(SLUICE_US(10));
    scene_open(NULL);
    bystanders();
    if (scene.rank < 2) {
        exchange(0, 1, 20);
    }
    scene_close();
}

/* For a time the system has no memory for sends: they come late. */
void starved(void)
{
    scene_open(NULL);
    for (uint32_t i = 0; i < 4; i++) {
        meet();
        sim_refuse(scene.rank, "sendmsg", below(20), 20);
        if (scene.rank < 2) {
            exchange(0, 1, 10);
        }
        bystanders();
    }
    /* A close does not wait for memory to acknowledge what has come. */
    meet();
    scene_close();
}

/* The same while all connect. */
void starved_early(void)
{
    sim_refuse(sim_rank(), "sendmsg", below(12), 1 + (uint32_t)below(8));
    scene_open(NULL);
    bystanders();
    meet();
    scene_close();
}

/*
 * The device of rank 1 takes 1 ms for each packet, and seconds to flush its queues. Messages to it
 * arrive, bystanders do not wait for it, and rank 1 closes when the time to drain is over.
 */
void slow_device(void)
{
    struct sluice_channel_attr attr = scene_attr();
    struct sluice_request work;
    int64_t began;
    attr.ack_timeout = 18;
    scene_open(&attr);
    meet();
    if (IS_VICTIM) {
        sim_strike(SIM_CRAWL, scene.rank, 0, SLUICE_MS(1));
        sim_pause(SLUICE_US(10));
        work = request(SLUICE_OP_RECEIVE, 0, 20000);
        succeeds(&work, "a receive by a slow device");
    } else if (scene.rank == 0) {
        sim_pause(SLUICE_MS(1));
        began = sim_own_time();
        work = request(SLUICE_OP_SEND, scene.victim, 20000);
        post(&work);
        exchange(0, 2, 3);
        must(sim_own_time() - began < SLUICE_MS(50), "a bystander waited for a slow device");
        must(sluice_multichannel_flush(scene.all, PATIENCE) == 0, "flush: %s", sluice_last_error());
    } else {
        exchange(0, 2, 3);
    }
    meet();
    if (IS_VICTIM) {
        post_many(SLUICE_OP_RECEIVE, 4);
        work = request(SLUICE_OP_RECEIVE, 0, 64);
        post(&work);
    }
    began = sim_own_time();
    scene_close();
    must(sim_own_time() - began < SLUICE_MS(1800), "closing takes %ld ms",
         (long)((sim_own_time() - began) / SLUICE_MS(1)));
}

/* The user has too many descriptors in flight for a time: ranks share memory a little later. */
void descriptors_in_flight(void)
{
    int64_t began;
    sim_refuse(sim_rank(), "rights", below(4), 1 + (uint32_t)below(8));
    scene_begin();
    began = sim_own_time();
    scene_connect(NULL);
    must(sim_own_time() - began < SLUICE_S(2), "connecting took %ld ms",
         (long)((sim_own_time() - began) / SLUICE_MS(1)));
    bystanders();
    meet();
    scene_close();
}

/* Rank 1 ends a region that rank 0 has mapped while the system has no memory for sends. */
void region_ends_starved(void)
{
    struct sluice_remote_mr *remote = sim_shared(sizeof *remote);
    struct sluice_mr *mr = NULL;
    struct sluice_request work;
    struct sluice_completion none;
    uint32_t mapped = 0;
    scene_open(NULL);
    if (IS_VICTIM) {
        mr = sluice_mr_alloc(scene.pd, SLICE, SLUICE_ACCESS_REMOTE_READ);
        must(mr != NULL && sluice_mr_remote(mr, remote) == 0, "memory: %s", sluice_last_error());
    }
    meet();
    work = request(SLUICE_OP_READ, scene.victim, 64);
    work.remote = *remote;
    if (scene.rank == 0) {
        succeeds(&work, "the first request, from which on memory is shared");
        sim_pause(SLUICE_MS(40)); /* memory of connecting is given back */
        mapped = sim_mapped();
        for (uint32_t i = 0; i < 8; i++) {
            succeeds(&work, "a read of a region");
            sim_pause(SLUICE_MS(5)); /* longer than a tick of the helper */
        }
        must(sim_mapped() > mapped, "it has not mapped the region");
        sim_pause(SLUICE_MS(40)); /* memory of connecting is given back */
        mapped = sim_mapped();
    }
    meet();
    if (IS_VICTIM) {
        sim_refuse(scene.rank, "sendmsg", 0, 5);
        must(sluice_mr_deregister(mr) == 0, "deregister: %s", sluice_last_error());
    }
    meet();
    if (scene.rank == 0) {
        sim_pause(SLUICE_MS(20));
        must(sluice_multichannel_poll(scene.all, &none, 1) == 0, "there is no work");
        must(sim_mapped() < mapped, "it still has mapped a region that has ended");
    }
    meet(); /* requests of others begin to share memory */
    bystanders();
    meet();
    scene_close();
}

/*
 * Two ranks on one host that connect over TCP, since one of them has no Unix socket, and one of
 * them gives up before: on a host without IPv6 the other one notices that as well.
 */
void absent(void)
{
    struct sluice_prepared_multichannel *prepared;
    struct sluice_request receive;
    scene_begin();
    sim_refuse(scene.rank, "socket", 2, scene.rank == scene.victim);
    prepared = scene_prepare(NULL);
    if (scene.rank == scene.victim) {
        sluice_prepared_multichannel_free(prepared);
        meet();
    } else {
        scene_shake(prepared);
        meet();
        receive = request(SLUICE_OP_RECEIVE, scene.victim, 64);
        fails(&receive, SLUICE_CLASS_PEER_LOST, 8000, "a receive of a rank that gave up");
        bystanders();
        sluice_multichannel_close(scene.all);
    }
    scene_end();
}

/*
 * The pages of a message come after 3 s: a bystander does not wait for them. Then the same befalls
 * a write while rank 1 computes: its helper thread is replaced, and serves another multichannel.
 */
void slow_memory(void)
{
    struct sluice_multichannel *first;
    struct sluice_request work;
    int64_t began;
    scene_open(NULL);
    meet();
    began = sim_own_time();
    if (IS_VICTIM) {
        work = request(SLUICE_OP_RECEIVE, 0, 100000);
        sim_slow(in(0), SLICE, SLUICE_S(3));
        succeeds(&work, "a receive to slow memory");
    } else if (scene.rank == 0) {
        work = request(SLUICE_OP_SEND, scene.victim, 100000);
        post(&work);
        exchange(0, 2, 3);
        must(sim_own_time() - began < SLUICE_S(2), "a bystander waited for memory of rank 1");
        must(sluice_multichannel_flush(scene.all, PATIENCE) == 0, "flush: %s", sluice_last_error());
    } else {
        exchange(0, 2, 3);
    }
    meet();
    first = scene.all;
    scene_connect(NULL);
    work = request(SLUICE_OP_WRITE, scene.victim, 64);
    if (IS_VICTIM) {
        sim_slow(in(0), SLICE, SLUICE_S(3));
        sim_pause(SLUICE_S(5));
    } else if (scene.rank == 0) {
        sim_pause(SLUICE_MS(100));
        must(sluice_multichannel_submit(first, &work, 1, PATIENCE, NULL) == 0, "a write: %s",
             sluice_last_error());
    } else {
        sim_pause(SLUICE_MS(400));
        began = sim_own_time();
        succeeds(&work, "a write to other memory of that rank");
        must(sim_own_time() - began < SLUICE_S(1), "a helper thread waited for a page");
    }
    meet();
    sluice_multichannel_close(first);
    scene_close();
}
