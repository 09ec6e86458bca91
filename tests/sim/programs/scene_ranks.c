/* SPDX-License-Identifier: MIT */
/* Scenarios of lazy nodes: how ranks connect whose peers are silent, gone, or without memory. */
#include <errno.h>
#include <string.h>

#include "scenarios.h"

enum { MOST_RANKS = 64 };

static struct sluice_node *node;
static struct sluice_multichannel *all;

/* Waits until all ranks that live have come here. */
static void gather(void)
{
    uint8_t own = 1, theirs[MOST_RANKS];
    sim_allgather(&own, theirs, 1);
}

static void open_limited(uint32_t connections)
{
    const struct sluice_node_attr attr = {
        .size = sizeof attr, .connect = SLUICE_NODE_CONNECT_LAZY, .max_connections = connections};
    node = sluice_node_open(NULL, NULL, &attr, PATIENCE);
    must(node != NULL, "a lazy node: %s", sluice_last_error());
    all = sluice_node_multichannel(node);
    gather();
}

static void open_lazy(void)
{
    open_limited(0);
}

static void close_lazy(void)
{
    gather();
    sluice_node_close(node);
}

/* Posts a send of no bytes, which may fail. */
static void post_to(uint32_t peer, int64_t deadline)
{
    struct sluice_request send = {.opcode = SLUICE_OP_SEND, .peer = peer};
    must(sluice_multichannel_post(all, &send, 1, deadline, NULL) == 1, "post to %u: %s", peer,
         sluice_last_error());
}

/* Rank 0 reaches rank 1, which makes no call, within some ms. */
static void reach_1(int64_t within, const char *what)
{
    const uint32_t other = 1;
    int64_t began = sim_own_time(), took;
    int error = sluice_node_reach(node, &other, 1, PATIENCE);
    took = (sim_own_time() - began) / SLUICE_MS(1);
    must(error == 0 && took <= within, "%s: %ld ms, error %d: %s", what, (long)took, -error,
         sluice_last_error());
}

/* Ranks from 2 on are stopped for a minute, before rank 0 dials that many of them. */
static void dial_silent(uint32_t count)
{
    if (sim_rank() >= 2) {
        sim_strike(SIM_STOP, sim_rank(), 0, SLUICE_S(60));
        sim_pause(SLUICE_US(10));
    }
    sim_pause(SLUICE_MS(1));
    for (uint32_t i = 2; i < 2 + count && sim_rank() == 0; i++) {
        post_to(i, PATIENCE);
    }
}

/* Rank 0 dials more silent ranks than it dials at a time, and then one that answers. */
void silent_ranks(void)
{
    open_lazy();
    dial_silent(34);
    if (sim_rank() == 0) {
        reach_1(10000, "a rank behind dials of silent ones");
    }
    close_lazy();
}

/* Silent ranks do not keep the few connections that there may be from one that answers. */
void silent_limit(void)
{
    open_limited(4);
    dial_silent(34);
    if (sim_rank() == 0) {
        reach_1(45000, "a rank that waits for room behind silent ones");
    }
    close_lazy();
}

/* One rank is wanted again and again while others wait to be dialed: none of these is forgotten. */
void wanted_again(void)
{
    const uint32_t last = sim_ranks() - 1;
    open_lazy();
    dial_silent(32);
    if (sim_rank() == 0) {
        post_to(1, PATIENCE);
        for (uint32_t i = 0; i < sim_ranks() + 5; i++) {
            must(sluice_multichannel_receive(all, last, NULL, 0, SLUICE_US(50), NULL) < 0 &&
                     sluice_node_reach(node, &last, 1, SLUICE_US(50)) < 0,
                 "a stopped rank answers");
        }
        reach_1(20000, "a rank that waits to be dialed");
    }
    close_lazy();
}

/* A rank that is gone is noticed, although there is no route to one of its addresses. */
void no_route(void)
{
    const uint32_t other = 1;
    int64_t began;
    sim_strike(SIM_ISLE, sim_rank(), 0, 0);
    sim_pause(SLUICE_US(10));
    open_lazy();
    if (sim_rank() == 1) {
        sim_strike(SIM_KILL, 1, 0, 0);
        sim_pause(PATIENCE);
    }
    sim_pause(SLUICE_MS(1));
    began = sim_own_time();
    must(sluice_node_reach(node, &other, 1, PATIENCE) == -ECONNRESET &&
             sim_own_time() - began < SLUICE_S(10),
         "a rank that is gone: %s", sluice_last_error());
    close_lazy();
}

/* A rank fails while another one is waited for: the call says why. */
void reached_in_vain(void)
{
    static const uint32_t others[] = {2, 1};
    int error;
    open_lazy();
    if (sim_rank() > 0) {
        sim_strike(sim_rank() == 1 ? SIM_KILL : SIM_STOP, sim_rank(), 0, SLUICE_S(8));
        sim_pause(SLUICE_US(10));
    } else {
        sim_pause(SLUICE_MS(1));
        error = sluice_node_reach(node, others, 2, PATIENCE);
        must(error == -ECONNRESET && strstr(sluice_last_error(), "rank 1"), "error %d: %s", -error,
             sluice_last_error());
    }
    close_lazy();
}

/* Two ranks want each other, and rank 1 lacks memory at some moment: a second call succeeds. */
void knock_without_memory(void)
{
    for (uint32_t skips = 0; skips < 24; skips++) {
        open_lazy();
        if (sim_rank() < 2) {
            const uint32_t other = 1 - sim_rank();
            int64_t began = sim_own_time();
            int error;
            sim_refuse(sim_rank(), "malloc", skips, sim_rank());
            error = sluice_node_reach(node, &other, 1, PATIENCE);
            sim_forget();
            if (error < 0) {
                error = sluice_node_reach(node, &other, 1, PATIENCE);
            }
            must(error == 0 && sim_own_time() - began < SLUICE_S(10),
                 "without memory for allocation %u: %s", skips, sluice_last_error());
        }
        close_lazy();
    }
}

/* Without memory for a dial, the rank does not ask for it all the time, and dials later. */
void dial_without_memory(void)
{
    for (uint32_t skips = 0; skips < 8; skips++) {
        open_lazy();
        if (sim_rank() == 0) {
            sim_refuse(0, "malloc", skips, UINT32_MAX);
            (void)sluice_multichannel_send(all, 1, NULL, 0, SLUICE_MS(500));
            must(sim_refused() < 200, "%u allocations were refused in half a second",
                 sim_refused());
            sim_forget();
        }
        close_lazy();
    }
}

/*
 * Rank 1 closes an idle connection to rank 0, and is stopped somewhere on the way. Rank 0 uses the
 * connection meanwhile: nothing is lost.
 */
void stopped_closing(void)
{
    const uint32_t last = 2;
    for (uint32_t i = 0; i < 12; i++) {
        int64_t after = (int64_t)(sim_program_random() % (uint64_t)SLUICE_US(400));
        open_limited(1);
        if (sim_rank() == 0) {
            reach_1(10000, "a first connection");
        }
        gather();
        if (sim_rank() == 1) {
            sim_strike(SIM_STOP, 1, after, SLUICE_S(15));
            /* There is none while the message of rank 0 waits for its receive. */
            (void)sluice_node_reach(node, &last, 1, SLUICE_S(20));
            must(sluice_multichannel_receive(all, 0, NULL, 0, PATIENCE, NULL) == 0,
                 "a message to a rank that was stopped after %ld us: %s", (long)(after / 1000),
                 sluice_last_error());
        } else if (sim_rank() == 0) {
            sim_pause(SLUICE_MS(5));
            must(sluice_multichannel_send(all, 1, NULL, 0, PATIENCE) == 0,
                 "a message to a rank that was stopped: %s", sluice_last_error());
        }
        close_lazy();
    }
}

/* Rank 1 dies while it connects to rank 0, which then has room for another connection. */
void killed_connecting(void)
{
    const uint32_t first = 0, last = 2;
    open_limited(1);
    if (sim_rank() == 1) {
        sim_strike(SIM_KILL, 1, (int64_t)(sim_program_random() % (uint64_t)SLUICE_US(250)), 0);
        (void)sluice_node_reach(node, &first, 1, PATIENCE);
        sim_pause(PATIENCE);
    } else if (sim_rank() == 0) {
        sim_pause(SLUICE_MS(5));
        must(sluice_node_reach(node, &last, 1, SLUICE_S(10)) == 0, "another connection: %s",
             sluice_last_error());
    }
    close_lazy();
}
