/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "ring.h"

enum { MOST_BYTES = 200000, KEPT = 3, PARTS = 4 };

static uint8_t value(uint32_t from, uint32_t step, size_t at)
{
    return (uint8_t)(from * 41 + step * 23 + at * 7 + (at >> 8));
}

/* Messages that were received, and which the program has still: the last KEPT. */
static struct {
    struct sluice_agent_message *message;
    uint32_t step;
} kept[KEPT];

/* Checks one byte in so many. */
static void check(struct sluice_agent_message *message, uint32_t step, size_t pace)
{
    const uint8_t *bytes = sluice_agent_message_addr(message);
    const size_t length = sluice_agent_message_length(message);
    for (size_t i = 0; i < length; i += pace) {
        must(bytes[i] == value(rank_before(), step, i), "byte %zu of a message is wrong", i);
    }
}

/* Keeps a message for some time, in the place of another one, whose bytes are as they were. */
static void keep(struct sluice_agent_message *message, uint32_t step)
{
    uint32_t place = (uint32_t)below(KEPT);
    if (kept[place].message != NULL) {
        check(kept[place].message, kept[place].step, 251);
        sluice_agent_message_free(kept[place].message);
    }
    kept[place].message = message;
    kept[place].step = step;
}

static void free_kept(void)
{
    for (uint32_t i = 0; i < KEPT; i++) {
        if (kept[i].message != NULL) {
            check(kept[i].message, kept[i].step, 251);
            sluice_agent_message_free(kept[i].message);
        }
    }
}

static bool receive(struct ring *ring, size_t bytes)
{
    int64_t began = sim_own_time();
    struct sluice_agent_message *message =
        sluice_agent_receive(ring->agent, below(2) == 0 ? ring->before : NULL, PATIENCE);
    in_time(began, PATIENCE, "receive");
    if (!works(message != NULL, "receive")) {
        return false;
    }
    must(sluice_agent_message_length(message) == bytes &&
             sluice_agent_message_peer(message) == ring->before,
         "a message of %zu bytes came with %zu", bytes, sluice_agent_message_length(message));
    check(message, ring->steps, 1);
    keep(message, ring->steps);
    return true;
}

/* Ranks take turns to send first: a long message waits until the peer receives. */
static bool pass_message(struct ring *ring)
{
    size_t bytes = agreed(2) == 0 ? agreed(4097) : agreed(MOST_BYTES);
    uint8_t *own = malloc(bytes + 1);
    const uint32_t rank = sim_rank();
    bool first = (rank + ring->steps) % 2 == 0, well = works(own != NULL, "memory");
    int64_t began;
    for (size_t i = 0; well && i < bytes; i++) {
        own[i] = value(rank, ring->steps, i);
    }
    well = well && (first || receive(ring, bytes));
    began = sim_own_time();
    if (well) {
        well = works(sluice_agent_send(ring->next, own, bytes, PATIENCE) == 0, "send");
        in_time(began, PATIENCE, "send");
    }
    free(own);
    return well && (!first || receive(ring, bytes));
}

static bool move(struct ring *ring, struct sluice_agent_mr *mr, bool writes, uint64_t offset,
                 size_t bytes)
{
    struct sluice_sge sge;
    int64_t began = sim_own_time();
    int error;
    must(sluice_mr_sge(ring->mr, writes ? 0 : REGION, bytes, &sge) == 0, "element: %s",
         sluice_last_error());
    error = writes ? sluice_agent_mr_write(mr, offset, &sge, 1, PATIENCE)
                   : sluice_agent_mr_read(mr, offset, &sge, 1, PATIENCE);
    in_time(began, PATIENCE, "transfer");
    return error == 0 || (errno = -error, false);
}

/* Memory at the next rank, which is zeros, then what was written, and gone after its lease. */
static bool use_memory(struct ring *ring)
{
    int64_t lease = agreed(2) == 0 ? SLUICE_MS(50) : 0, began = sim_own_time();
    size_t bytes = 8 + agreed(REGION - 8), offset = agreed(bytes);
    struct sluice_agent_mr *mr = sluice_agent_request_mr(
        ring->next, bytes, SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ, lease, PATIENCE);
    bool well = works(mr != NULL, "request");
    in_time(began, PATIENCE, "request");
    if (well && lease == 0) {
        well = works(move(ring, mr, false, 0, bytes), "read");
        for (size_t i = 0; well && i < bytes; i++) {
            must(ring->memory[REGION + i] == 0, "byte %zu of new memory is not 0", i);
            ring->memory[i] = value(sim_rank(), ring->steps, i);
        }
        well = well && works(move(ring, mr, true, offset, bytes - offset), "write") &&
               works(move(ring, mr, false, 0, bytes), "read");
        for (size_t i = 0; well && i < bytes; i++) {
            must(ring->memory[REGION + i] == (i < offset ? 0 : ring->memory[i - offset]),
                 "byte %zu of remote memory is wrong", i);
        }
        must(!move(ring, mr, false, 1, bytes) && (errno == ERANGE || sim_is_troubled()),
             "a read outside of a region");
    } else if (well) {
        sim_pause(lease + SLUICE_MS(below(2000)));
        must(!move(ring, mr, false, 0, bytes), "a read after the lease succeeds");
        works(errno == EACCES, "read after the lease");
    }
    if (mr != NULL) {
        works(sluice_agent_mr_release(mr, PATIENCE) == 0, "release");
    }
    return well;
}

static uint64_t count_refused(const struct ring *ring)
{
    struct sluice_agent_info info = {.size = sizeof info};
    must(sluice_agent_query(ring->agent, &info) == 0, "query: %s", sluice_last_error());
    return info.refused_late;
}

/* A read of memory that its owner has taken back. A message from there came later: told. */
static void use_withdrawn(struct ring *ring, struct sluice_agent_mr *mr, size_t bytes, bool told)
{
    uint64_t refused = count_refused(ring);
    memset(ring->memory, 1, bytes);
    must(!move(ring, mr, false, 0, bytes), "memory is read that was withdrawn");
    works(errno == EACCES || errno == ENOTCONN, "read of withdrawn memory");
    must(!told || count_refused(ring) > refused || sim_is_troubled(),
         "a read of withdrawn memory reaches its owner");
}

/* Own memory goes to the next rank, which reads it until it is withdrawn. */
static bool hand_over(struct ring *ring)
{
    uint64_t id = 0;
    size_t bytes = 1 + agreed(REGION - 1);
    struct sluice_agent_mr *mr;
    bool well;
    for (size_t i = 0; i < bytes; i++) {
        ring->memory[i] = value(sim_rank(), ring->steps, i);
    }
    well =
        works(sluice_agent_send_local_mr(ring->next, ring->mr, 0, bytes, SLUICE_ACCESS_REMOTE_READ,
                                         SLUICE_FOREVER, PATIENCE, &id) == 0,
              "hand over");
    mr = well ? sluice_agent_receive_remote_mr(ring->agent, ring->before, PATIENCE) : NULL;
    well = well && works(mr != NULL, "receive memory") &&
           works(move(ring, mr, false, 0, bytes), "read");
    for (size_t i = 0; well && i < bytes; i++) {
        must(ring->memory[REGION + i] == value(rank_before(), ring->steps, i),
             "byte %zu of the memory of a peer is wrong", i);
    }
    if (all_well(well)) {
        bool tells = agreed(2) == 0;
        well = works(sluice_agent_revoke_mr(ring->next, id) == 0, "revoke");
        if (all_well(well) && (!tells || all_well(pass_message(ring)))) {
            use_withdrawn(ring, mr, bytes, tells);
        }
    }
    if (mr != NULL) {
        sluice_agent_mr_release(mr, PATIENCE);
    }
    return well;
}

/* Leaves both peers, and meets them again. */
static bool meet_again(struct ring *ring)
{
    sluice_agent_peer_close(ring->next);
    sluice_agent_peer_close(ring->before);
    ring->next = ring->before = NULL;
    return all_well(true) && ring_connect(ring);
}

/* Reads or writes all of a region, whose owner hangs; afterwards the memory is this rank's. */
static void move_late(struct ring *ring, struct sluice_agent_mr *mr)
{
    struct sluice_agent_mr_info info = {.size = sizeof info};
    struct sluice_request requests[PARTS];
    uint32_t bytes = REGION / PARTS, opcode = below(2) ? SLUICE_OP_READ : SLUICE_OP_WRITE;
    int64_t began = sim_own_time(), deadline = SLUICE_MS(1 + below(500));
    must(sluice_agent_mr_query(mr, &info) == 0, "query: %s", sluice_last_error());
    for (uint32_t i = 0; i < PARTS; i++) {
        requests[i] = (struct sluice_request){.opcode = opcode, .sge_count = 1};
        must(sluice_mr_sge(ring->mr, REGION + i * bytes, bytes, &requests[i].sge) == 0 &&
                 sluice_remote_mr_slice(&info.remote, i * bytes, bytes, &requests[i].remote) == 0,
             "element: %s", sluice_last_error());
    }
    (void)!sluice_agent_submit(ring->next, requests, PARTS, deadline, NULL);
    must(sim_own_time() - began < deadline + SLUICE_MS(1500) ||
             sim_befell(sim_rank(), sim_rank()) != 0,
         "requests with a deadline of %ld ms took %ld ms", (long)(deadline / 1000000),
         (long)((sim_own_time() - began) / 1000000));
    memset(ring->memory + REGION, 0x77, REGION);
}

/* A rank hangs, and requests to it end at their deadlines. Nothing else is left to do. */
static void hang(struct ring *ring)
{
    uint32_t odd = (uint32_t)agreed(sim_ranks());
    struct sluice_agent_mr *mr = sluice_agent_request_mr(
        ring->next, REGION, SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ, 0, PATIENCE);
    if (all_well(works(mr != NULL, "request"))) {
        if (sim_rank() == (odd + 1) % sim_ranks()) {
            sim_strike(SIM_STOP, odd, (int64_t)below(1000000), SLUICE_S(20));
        }
        while (sim_rank() != odd && !sim_is_troubled()) {
            sim_pause(100000);
        }
        if (next_rank() == odd) {
            move_late(ring, mr);
        }
        all_well(true);
        for (size_t i = 0; next_rank() == odd && i < REGION; i++) {
            must(ring->memory[REGION + i] == 0x77, "memory changed after a request had ended");
        }
    }
    if (mr != NULL) {
        (void)!sluice_agent_mr_release(mr, PATIENCE);
    }
}

int run_agent(void)
{
    static bool (*const steps[])(struct ring * ring) = {pass_message, use_memory, hand_over,
                                                        pass_message, meet_again};
    struct sluice_agent_attr attr = {.size = sizeof attr, .quota = 64 << 20};
    struct ring ring = {.steps = 0};
    if (agreed(2)) { /* what is waiting or being read soon reaches a limit */
        attr.max_message = MOST_BYTES;
        attr.max_waiting = 1 + (uint32_t)below(3);
        attr.window = 4 + (uint32_t)below(4);
        attr.max_waiting_bytes = 4096;
    }
    uint64_t most = sim_number("steps", agreed(1 + agreed(20)));
    bool well = all_well(ring_begin(&ring, &attr)) && all_well(ring_connect(&ring));
    for (; well && ring.steps < most; ring.steps++) {
        well = all_well(steps[sim_number("step", agreed(sizeof steps / sizeof *steps))](&ring));
    }
    if (well && agreed(8) == 0) {
        hang(&ring);
    }
    free_kept();
    ring_end(&ring);
    return 0;
}
