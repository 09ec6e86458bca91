/* SPDX-License-Identifier: MIT */
/*
 * Agents of which some have no thread: memory at the next rank that is used, renewed, given or sent
 * back, and over; and own memory that is lent to the next rank.
 */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "ring.h"

enum { STEPS = 64, QUOTA = 1 << 20 };

static struct ring ring;
static bool atomics;
static bool expires; /* a region of this step ends by its lease */

/* The ranks that have done each of the two halves of each step, whatever came of it: a bit each. */
struct progress {
    uint64_t done[2 * STEPS];
};

/* Serves the peers until all ranks are here: they may need an agent without a thread. */
static void serve(uint32_t half)
{
    uint64_t *done =
        &((struct progress *)sim_shared(sizeof(struct progress)))->done[2 * ring.steps + half];
    bool waits = true;
    *done |= UINT64_C(1) << sim_rank();
    while (waits) {
        int64_t due;
        struct pollfd pollfd = {.fd = sluice_agent_fd(ring.agent), .events = POLLIN};
        if (below(2)) {
            must(sluice_agent_progress(ring.agent) >= 0, "progress: %s", sluice_last_error());
            sim_pause((int64_t)below(1000000));
        } else if (sluice_agent_arm(ring.agent, &due) == 0) {
            (void)poll(&pollfd, 1, due < SLUICE_MS(5) ? (int)(due / 1000000) + 1 : 5);
        }
        waits = false;
        for (uint32_t i = 0; i < sim_ranks(); i++) {
            waits |= (*done >> i & 1) == 0 && !sim_is_dead(i);
        }
    }
}

static uint8_t value(uint32_t from, size_t at)
{
    return (uint8_t)(from * 71 + ring.steps * 29 + at * 3 + (at >> 8));
}

static void fill(size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        ring.memory[i] = value(sim_rank(), i);
    }
}

static void check(const uint8_t *bytes, size_t count, uint32_t from)
{
    for (size_t i = 0; i < count; i++) {
        must(bytes[i] == value(from, i), "step %u: byte %zu of rank %u is wrong", ring.steps, i,
             from);
    }
}

static struct sluice_sge element(bool in, size_t bytes)
{
    struct sluice_sge sge;
    must(sluice_mr_sge(ring.mr, in ? REGION : 0, bytes, &sge) == 0, "element: %s",
         sluice_last_error());
    return sge;
}

static struct sluice_agent_mr_info query(struct sluice_agent_mr *mr)
{
    struct sluice_agent_mr_info info = {.size = sizeof info};
    must(sluice_agent_mr_query(mr, &info) == 0, "query: %s", sluice_last_error());
    return info;
}

/* A use that ends within the lease succeeds; one that begins after it is refused. */
static bool judge(int result, int64_t began, int64_t least_end, int64_t most_end, uint32_t peer)
{
    if (began > most_end) {
        must(result != 0, "step %u: memory is used after its lease", ring.steps);
        return well_with(result == -EACCES, peer, "a use after the lease");
    }
    return sim_own_time() >= least_end || well_with(result == 0, peer, "a use within the lease");
}

/* Writes and reads a whole region; by its handle, the lease is not checked here. */
static int use(struct sluice_agent_mr *mr, bool by_handle, size_t bytes)
{
    struct sluice_sge out = element(false, bytes), in = element(true, bytes);
    struct sluice_agent_mr_info info = query(mr);
    struct sluice_request requests[2] = {
        {.opcode = SLUICE_OP_WRITE, .sge_count = 1, .sge = out, .remote = info.remote},
        {.opcode = SLUICE_OP_READ, .sge_count = 1, .sge = in, .remote = info.remote}};
    int result;
    must(sluice_agent_mr_peer(mr) == ring.next, "a region is of another peer");
    fill(bytes);
    memset(ring.memory + REGION, 0, bytes);
    if (by_handle) {
        result = sluice_agent_submit(ring.next, requests, 2, PATIENCE, NULL);
    } else {
        result = sluice_agent_mr_write(mr, 0, &out, 1, PATIENCE);
        result = result == 0 ? sluice_agent_mr_read(mr, 0, &in, 1, PATIENCE) : result;
    }
    if (result == 0) {
        check(ring.memory + REGION, bytes, sim_rank());
    }
    return result;
}

static int count_up(struct sluice_agent_mr *mr)
{
    struct sluice_sge sge = element(true, 8);
    uint64_t word;
    int result = 0;
    memcpy(&word, ring.memory, sizeof word);
    for (uint32_t i = 0; i < 4 && result == 0 && atomics; i++) {
        uint64_t old;
        bool adds = below(2) != 0;
        result = adds ? sluice_agent_mr_fetch_add(mr, 0, &sge, 3, PATIENCE)
                      : sluice_agent_mr_compare_swap(mr, 0, &sge, word, word * 5, PATIENCE);
        memcpy(&old, ring.memory + REGION, sizeof old);
        must(result != 0 || old == word, "step %u: a word of a region is wrong", ring.steps);
        word = adds ? word + 3 : word * 5;
    }
    return result;
}

/* The region of the rank before comes back with its bytes, as memory of this program. */
static bool take_back(bool allocated, uint64_t id, size_t bytes)
{
    struct sluice_agent_local local = {.size = sizeof local};
    int result = sluice_agent_receive_local_mr(ring.agent, allocated || below(2) ? NULL : ring.next,
                                               PATIENCE, &local);
    uint32_t from = allocated ? rank_before() : next_rank();
    if (!well_with(result == 0, from, "a region that comes back")) {
        return false;
    }
    must(local.length == bytes && local.peer == (allocated ? ring.before : ring.next) &&
             (local.mr != NULL) == allocated && (allocated || local.id == id),
         "step %u: another region comes back", ring.steps);
    if (allocated && !atomics) {
        check(local.addr, bytes, from);
    }
    must(local.mr == NULL || sluice_mr_deregister(local.mr) == 0, "deregister: %s",
         sluice_last_error());
    return true;
}

enum fate { RELEASED, SENT_BACK, RENEWED, OVER, FATES };

static bool renew(struct sluice_agent_mr *mr, int64_t lease, int64_t least_end)
{
    int64_t before = query(mr).lease, now;
    int result = sluice_agent_mr_renew(mr, lease, PATIENCE);
    now = sim_own_time();
    if (now < least_end && !well_with(result == 0, next_rank(), "renew")) {
        return false;
    }
    must(result != 0 || query(mr).lease + (sim_own_time() - now) >= 0, "a lease of nothing");
    must(result != 0 || before > 0 || now >= least_end, "a lease that was over is renewed");
    return true;
}

/* Memory at the next rank, for a lease, with one of several ends. */
static bool borrow(void)
{
    enum fate fate = (enum fate)agreed(FATES);
    int64_t lease = fate == OVER || fate == RENEWED ? SLUICE_MS(20 + agreed(500)) : 0;
    int64_t began = sim_own_time(), least_end, most_end, use_began;
    size_t bytes = 8 + agreed(REGION - 8);
    uint32_t access = SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ |
                      (atomics ? SLUICE_ACCESS_REMOTE_ATOMIC : 0);
    struct sluice_agent_mr *mr = sluice_agent_request_mr(ring.next, bytes, access, lease, PATIENCE);
    bool well = well_with(mr != NULL, next_rank(), "request");
    int result = -ENOTCONN;
    if (mr != NULL) {
        struct sluice_agent_mr_info info = query(mr);
        least_end = began + info.lease;
        most_end = sim_own_time() + info.lease;
        must(info.remote.length == bytes && info.access == access &&
                 (lease == 0 || info.lease <= lease),
             "step %u: a region is not as it was requested", ring.steps);
        use_began = sim_own_time();
        result = use(mr, below(2) == 0, bytes);
        result = result == 0 ? count_up(mr) : result;
        well = judge(result, use_began, least_end, most_end, next_rank());
        if (fate == RENEWED) {
            well &= renew(mr, SLUICE_S(5), least_end);
        } else if (fate == OVER) {
            expires = true;
            sim_pause(most_end - sim_own_time() + SLUICE_MS(below(2500)) + 1);
            well &= judge(use(mr, false, bytes), most_end + 1, 0, most_end, next_rank()) ||
                    sim_own_time() < most_end;
            must(sluice_agent_mr_renew(mr, 0, PATIENCE) != 0, "a lease is renewed after its end");
        }
    }
    if (fate == SENT_BACK) {
        result = mr != NULL ? sluice_agent_mr_send_back(mr, PATIENCE) : -ENOTCONN;
        well &= well_with(result == 0, next_rank(), "send back");
        return take_back(true, 0, bytes) && well;
    }
    result = mr != NULL ? sluice_agent_mr_release(mr, PATIENCE) : 0;
    return well_with(result == 0, next_rank(), "release") && well;
}

/* Own memory goes to the next rank, which writes to it, and gives, sends or loses it again. */
static bool lend(void)
{
    uint64_t id = 0, fate = agreed(3);
    size_t bytes = 1 + agreed(REGION - 1);
    struct sluice_agent_mr *mr;
    bool well;
    int result;
    fill(bytes);
    result = sluice_agent_send_local_mr(ring.next, ring.mr, 0, bytes,
                                        SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE,
                                        below(2) ? SLUICE_FOREVER : SLUICE_S(3000), PATIENCE, &id);
    well = well_with(result == 0, next_rank(), "lend");
    mr = sluice_agent_receive_remote_mr(ring.agent, below(2) ? ring.before : NULL, PATIENCE);
    well &= well_with(mr != NULL, rank_before(), "borrow");
    if (mr != NULL) {
        struct sluice_sge in = element(true, bytes);
        result = sluice_agent_mr_read(mr, 0, &in, 1, PATIENCE);
        well &= well_with(result == 0, rank_before(), "read");
        if (result == 0) {
            check(ring.memory + REGION, bytes, rank_before());
        }
    }
    if (fate == 1) {
        serve(0);
        result = sluice_agent_revoke_mr(ring.next, id);
        well &= well_with(result == 0 || result == -ENOENT, next_rank(), "revoke");
    }
    if (mr != NULL) {
        result = fate == 0 ? sluice_agent_mr_send_back(mr, PATIENCE)
                           : sluice_agent_mr_release(mr, PATIENCE);
        well &= well_with(result == 0, rank_before(), "the end of a loan");
    }
    return fate != 0 ? well : take_back(false, id, bytes) && well;
}

/* Too much memory is refused, with a reason, and harms nothing. */
static bool ask_too_much(void)
{
    struct sluice_agent_mr *mr =
        sluice_agent_request_mr(ring.next, QUOTA + 1, SLUICE_ACCESS_REMOTE_READ, 0, PATIENCE);
    int error = errno;
    must(mr == NULL, "more memory is given than the quota");
    return well_with(error == EDQUOT, next_rank(), "a request above the quota");
}

/* Messages to the next rank; a wake ends one wait of this one. */
static bool pass_on(void)
{
    size_t bytes = agreed(3000);
    struct sluice_agent_message *message;
    bool well;
    int result;
    fill(bytes);
    result = sluice_agent_send(ring.next, ring.memory, bytes, PATIENCE);
    well = well_with(result == 0, next_rank(), "send") &&
           well_with(sluice_agent_flush(ring.next, PATIENCE) == 0, next_rank(), "flush");
    if (below(4) == 0) {
        must(sluice_agent_wake(ring.agent) == 0 &&
                 sluice_agent_next_peer(ring.agent, PATIENCE) == NULL && errno == EINTR,
             "a wake ends no wait: %s", sluice_last_error());
    }
    message = sluice_agent_receive(ring.agent, ring.before, PATIENCE);
    if (!well_with(message != NULL, rank_before(), "receive")) {
        return false;
    }
    must(sluice_agent_message_length(message) == bytes, "a message has another length");
    check(sluice_agent_message_addr(message), bytes, rank_before());
    sluice_agent_message_free(message);
    return well;
}

/* Nothing is left of a step in which no lease ended by itself. */
static bool look_up(void)
{
    struct sluice_agent_info info = {.size = sizeof info};
    struct sluice_agent_peer_info peer = {.size = sizeof peer};
    must(sluice_agent_query(ring.agent, &info) == 0 &&
             sluice_agent_peer_query(ring.next, &peer) == 0,
         "query: %s", sluice_last_error());
    must(info.held == 0, "an agent holds %u regions", info.held);
    must(info.malformed + info.oversized + info.unasked == 0 || sim_is_troubled(),
         "messages of peers were refused");
    must(expires || (info.regions == 0 && info.bytes == 0) || sim_is_troubled(),
         "%u regions of an agent are with peers", info.regions);
    return well_with(peer.state == SLUICE_AGENT_PEER_CONNECTED, next_rank(), "a connection");
}

int run_lease(void)
{
    static bool (*const steps[])(void) = {borrow, borrow, lend, pass_on, ask_too_much, look_up};
    struct sluice_agent_attr attr = {.size = sizeof attr,
                                     .flags = below(2) ? 0 : SLUICE_AGENT_NO_THREAD,
                                     .quota = QUOTA,
                                     .max_lease = SLUICE_S(1 + agreed(50))};
    struct sluice_context_info limits = {.size = sizeof limits};
    uint64_t most = sim_number("steps", agreed(25));
    must(sim_ranks() <= 64, "this program has at most 64 ranks");
    bool well = all_well(ring_begin(&ring, &attr)) && all_well(ring_connect(&ring));
    if (ring.context != NULL) {
        must(sluice_context_query(ring.context, &limits) == 0, "query");
        atomics = limits.atomics != SLUICE_ATOMICS_NONE;
    }
    for (; well && ring.steps < most; ring.steps++) {
        uint64_t step = sim_number("step", agreed(sizeof steps / sizeof *steps));
        sim_note("step %u: kind %lu", ring.steps, (unsigned long)step);
        well = steps[step]();
        serve(1);
        well = all_well(well);
    }
    ring_end(&ring);
    return 0;
}
