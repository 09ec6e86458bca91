/* SPDX-License-Identifier: MIT */
/* The life of a rank of random traffic: its memory, its connections, and its rounds. */
#include "traffic.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct traffic traffic;

static struct {
    bool is_plain[3]; /* of areas and window: memory of malloc(3), and not of sluice_mr_alloc() */
    size_t area_bytes;
    uint64_t hash[2], withdrawn;
    size_t hashed[2];
    struct sluice_endpoint own[MOST_RANKS];
    bool is_prepared[MOST_RANKS];
} mine;

/* A number that all ranks know. */
static uint64_t common(uint64_t what)
{
    return mixed(traffic.truth->number, what);
}

static uint64_t hash(const uint8_t *memory, size_t bytes)
{
    uint64_t hash = 1, word = 0;
    size_t at = 0;
    for (; at + sizeof word <= bytes; at += sizeof word) {
        memcpy(&word, memory + at, sizeof word);
        hash = (hash ^ word) * UINT64_C(0x9e3779b97f4a7c15);
    }
    for (; at < bytes; at++) {
        hash = (hash ^ memory[at]) * UINT64_C(0x100000001b3);
    }
    return hash ^ hash >> 32;
}

static struct sluice_mr *make_region(uint32_t number, size_t bytes, uint32_t access, uint8_t **at)
{
    struct sluice_mr *mr;
    mine.is_plain[number] = below(2);
    if (!mine.is_plain[number]) {
        while ((mr = sluice_mr_alloc(traffic.pd, bytes, access)) == NULL) {
            again("memory");
        }
        *at = sluice_mr_addr(mr);
        return mr;
    }
    while ((*at = aligned_alloc(64, (bytes + 63) & ~(size_t)63)) == NULL) {
        again("malloc");
    }
    memset(*at, 0, bytes);
    while ((mr = sluice_mr_register(traffic.pd, *at, bytes, access)) == NULL) {
        again("register");
    }
    return mr;
}

static uint32_t window_access(void)
{
    return SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ |
           (traffic.limits.atomics != SLUICE_ATOMICS_NONE ? SLUICE_ACCESS_REMOTE_ATOMIC : 0);
}

static void open_all(void)
{
    while ((traffic.context = sluice_context_open(NULL, NULL)) == NULL) {
        again("open");
    }
    traffic.limits.size = sizeof traffic.limits;
    must(sluice_context_query(traffic.context, &traffic.limits) == 0, "query: %s",
         sluice_last_error());
    while ((traffic.pd = sluice_pd_alloc(traffic.context)) == NULL) {
        again("pd");
    }
    for (uint32_t i = 0; i < 2; i++) {
        traffic.area_mr[i] =
            make_region(i, mine.area_bytes, SLUICE_ACCESS_LOCAL_WRITE, &traffic.area[i]);
    }
    traffic.window_mr = make_region(2, window_bytes(), window_access(), &traffic.window);
    fill(traffic.window + constant(), traffic.most_bytes, CONSTANT_KEY);
    traffic.truth->window[traffic.rank] = traffic.window;
    sluice_mr_remote(traffic.window_mr, &traffic.truth->remote[traffic.rank]);
}

void withdraw(void)
{
    int result;
    if (!mine.is_plain[2]) {
        return;
    }
    sim_pause((int64_t)below(400000));
    result = sluice_mr_deregister(traffic.window_mr);
    must(result == 0, "deregister: %d: %s", result, sluice_last_error());
    traffic.window_mr = NULL;
    mine.withdrawn = hash(traffic.window, window_bytes());
}

static void restore_window(void)
{
    if (traffic.window_mr == NULL) {
        must(hash(traffic.window, window_bytes()) == mine.withdrawn,
             "round %u: memory changed after its region was deregistered", traffic.round);
        while ((traffic.window_mr = sluice_mr_register(traffic.pd, traffic.window, window_bytes(),
                                                       window_access())) == NULL) {
            again("register");
        }
        sluice_mr_remote(traffic.window_mr, &traffic.truth->remote[traffic.rank]);
    }
}

/* Attributes that ranks need not agree on. */
static struct sluice_channel_attr attributes(void)
{
    struct sluice_channel_attr attr = {.size = sizeof attr};
    /* A device sends a lost packet again after 1 s: a shorter time takes the loss for the end. */
    int64_t least = strcmp(traffic.limits.transport, "soft") == 0 ? 1 : 5;
    if (below(2)) {
        attr.send_depth = (uint32_t)((traffic.most_send != 0 ? 32 : 1) + below(below(2) ? 4 : 20));
        attr.receive_depth = (uint32_t)(MOST_MESSAGES + below(20));
    }
    attr.wait_mode = (uint32_t)below(3) == 1 ? 0 : (uint32_t)below(2) * 2;
    attr.keepalive = traffic.keepalive ? SLUICE_S(least + (int64_t)below(3)) : 0;
    attr.max_message = traffic.most_send;
    attr.queue_pairs = (uint32_t)(1 + below(3));
    attr.stripe_least = (uint32_t)(1 + below(5000));
    return attr;
}

static struct sluice_prepared_multichannel *prepare(const struct sluice_channel_attr *attr)
{
    struct sluice_prepared_multichannel *prepared;
    while ((prepared = sluice_multichannel_prepare(traffic.pd, traffic.ranks, attr)) == NULL) {
        again("prepare");
    }
    must(sluice_prepared_multichannel_endpoints(prepared, mine.own, traffic.ranks) == 0,
         "endpoints: %s", sluice_last_error());
    return prepared;
}

static void exchange(struct sluice_endpoint *theirs)
{
    static struct sluice_endpoint all[MOST_RANKS][MOST_RANKS];
    sim_allgather(mine.own, all, sizeof mine.own);
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        theirs[i] = all[i][traffic.rank];
    }
}

static void connect_all(void)
{
    struct sluice_channel_attr attr = attributes();
    struct sluice_endpoint theirs[MOST_RANKS];
    struct sluice_prepared_multichannel *prepared = prepare(&attr);
    exchange(theirs);
    while ((traffic.all =
                sluice_prepared_multichannel_handshake(prepared, theirs, traffic.ranks)) == NULL) {
        again("handshake");
        prepared = prepare(&attr);
        memset(theirs, 0, sizeof theirs);
    }
}

/* Checks that nothing of the connection that a peer had works on its new one. */
static void check_stale(uint32_t peer, bool added, struct sluice_list *list)
{
    struct sluice_completion unused;
    int result = -ESTALE;
    if (added && traffic.old[peer].owner != 0) {
        result = sluice_multichannel_wait(traffic.all, &traffic.old[peer], 0, &unused);
        must(result == -ESTALE, "a handle of a removed peer: %d", result);
    }
    if (list != NULL) {
        result = sluice_list_submit(list, PATIENCE, NULL);
        must(result == -ESTALE, "a list for an earlier connection: %d", result);
    }
}

/* Makes the connection to a peer new, or tries to: its endpoint is of zeros then. */
static void renew(uint32_t peer)
{
    const struct sluice_request request = {.opcode = SLUICE_OP_SEND, .peer = peer};
    int result = sluice_multichannel_peer_state(traffic.all, peer);
    bool was_removed = result == SLUICE_STATE_REMOVED, adds = was_removed || below(4) == 0;
    struct sluice_list *list =
        was_removed ? NULL : sluice_multichannel_list_prepare(traffic.all, &request, 1);
    memset(&mine.own[peer], 0, sizeof *mine.own);
    if (adds) {
        if (result != SLUICE_STATE_REMOVED) {
            result = sluice_multichannel_peer_remove(traffic.all, peer);
            must(result == 0, "remove: %d: %s", result, sluice_last_error());
        }
        result = sluice_multichannel_peer_add(traffic.all, &mine.own[peer]);
        must(result < 0 || result == (int)peer, "peer %u was added instead of %u", result, peer);
    } else {
        result = sluice_multichannel_peer_reset(traffic.all, peer, &mine.own[peer]);
    }
    if (result >= 0) {
        check_stale(peer, adds, list);
    }
    sluice_list_free(list);
    if (result < 0) {
        again("reset");
    }
    mine.is_prepared[peer] = result >= 0;
}

static bool is_zero(const struct sluice_endpoint *endpoint)
{
    static const struct sluice_endpoint none;
    return memcmp(endpoint, &none, sizeof none) == 0;
}

/* Ends connections on which a request failed alone: the peer waits for it still. */
static void end_broken(void)
{
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        if (traffic.stopped[i] && !mine.is_prepared[i] &&
            sluice_multichannel_peer_state(traffic.all, i) == SLUICE_STATE_READY) {
            renew(i);
        }
    }
}

/* Ranks make those connections new that either end finds broken, or that both want new. */
static void reconnect(void)
{
    uint8_t bad[MOST_RANKS], all[MOST_RANKS][MOST_RANKS];
    struct sluice_endpoint theirs[MOST_RANKS];
    for (uint32_t i = 0; i < MOST_RANKS; i++) {
        bad[i] = i < traffic.ranks &&
                 (traffic.stopped[i] || !traffic.up[i] ||
                  sluice_multichannel_peer_state(traffic.all, i) != SLUICE_STATE_READY);
    }
    sim_allgather(bad, all, sizeof bad);
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        bad[i] |= all[i][traffic.rank];
        bad[i] |= common(traffic.round * 1000 + traffic.rank + i) % 64 == 0;
        if (bad[i] && !sim_is_dead(i) && !mine.is_prepared[i]) {
            renew(i);
        } else if (!mine.is_prepared[i]) {
            memset(&mine.own[i], 0, sizeof *mine.own);
        }
        if (bad[i]) {
            traffic.truth->spoiled[traffic.rank][i] = 0;
            traffic.known[i] = false;
        }
    }
    exchange(theirs);
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        if (bad[i]) {
            int result = -ENOTCONN;
            traffic.up[i] = !is_zero(&mine.own[i]) && !is_zero(&theirs[i]);
            if (traffic.up[i]) {
                result = sluice_multichannel_peer_handshake(traffic.all, i, &theirs[i]);
            }
            mine.is_prepared[i] = false;
            if (traffic.up[i] && result != 0 && (sim_befell(i, i) & SIM_DEVICE) == 0) {
                again("handshake with a peer");
            }
        }
    }
}

/* Checks that the peer took each message that was sent with success. */
static void check_sends(void)
{
    for (uint32_t i = 0; i < traffic.count; i++) {
        const struct work *work = &traffic.work[i];
        uint32_t peer = work->request.peer, taken;
        bool sends = work->request.opcode == SLUICE_OP_SEND ||
                     (work->request.opcode == SLUICE_OP_WRITE &&
                      (work->request.flags & SLUICE_IMMEDIATE) != 0);
        if (!sends || !work->succeeded || sim_is_dead(peer)) {
            continue;
        }
        taken = traffic.truth->taken[traffic.rank][peer][work->number];
        must(taken == traffic.round || taken == UNTOLD,
             "round %u: message %u to rank %u succeeded, and its receive did not", traffic.round,
             work->number, peer);
    }
}

/* Memory of completed requests stays as it is: this round's, until the next one has ended. */
static void check_memory(void)
{
    uint32_t now = traffic.round % 2, then = 1 - now;
    must(hash(traffic.area[then], mine.hashed[then]) == mine.hash[then],
         "round %u: memory of requests of the last round has changed", traffic.round);
    mine.hashed[now] = traffic.used;
    mine.hash[now] = hash(traffic.area[now], traffic.used);
}

/* Posts empty requests to a peer until its queue is full. Nothing else is in flight to it. */
static void fill_queue(uint32_t peer, uint32_t opcode, uint32_t depth)
{
    static struct sluice_request requests[256];
    int posted;
    must(depth <= sizeof requests / sizeof *requests, "a queue of %u requests", depth);
    for (uint32_t i = 0; i < depth; i++) {
        requests[i] = (struct sluice_request){.opcode = opcode, .peer = peer};
    }
    posted = sluice_multichannel_post(traffic.all, requests, depth, PATIENCE, NULL);
    must(posted == (int)depth ||
             sluice_multichannel_peer_state(traffic.all, peer) != SLUICE_STATE_READY,
         "an empty queue of rank %u takes %d requests of %u: %s", peer, posted, depth,
         posted < 0 ? sluice_last_error() : "");
}

/* At rest, all credits are back. */
static void check_credits(void)
{
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        struct sluice_channel_info info = {.size = sizeof info};
        if (sluice_multichannel_peer_state(traffic.all, i) == SLUICE_STATE_READY &&
            sluice_multichannel_peer_query(traffic.all, i, &info) == 0) {
            fill_queue(i, SLUICE_OP_RECEIVE, info.receive_depth);
            fill_queue(i, SLUICE_OP_SEND, info.send_depth);
        }
    }
}

/* Full queues harm no connection: what all ranks have posted is taken, or waits. */
static void check_full(void)
{
    struct sluice_error error = {.size = sizeof error};
    uint8_t all[MOST_RANKS], none = 0;
    for (uint32_t i = 0; i < 8; i++) {
        int result = sluice_multichannel_flush(traffic.all, SLUICE_MS(below(8)));
        must(result == 0 || result == -ETIMEDOUT, "flush: %d", result);
    }
    for (uint32_t i = 0; i < traffic.ranks && !sim_is_troubled(); i++) {
        must(sluice_multichannel_peer_state(traffic.all, i) == SLUICE_STATE_READY,
             "full queues end the connection to rank %u: %d: %s", i,
             sluice_multichannel_peer_error(traffic.all, i, &error), error.text);
    }
    sim_allgather(&none, all, sizeof none);
}

/* Writes to windows of others, until it is time to close; others may close earlier. */
static void write_last(uint32_t bytes)
{
    struct sluice_sge sge;
    for (uint64_t i = below(24); i > 0 && bytes > 0; i--) {
        uint32_t peer = (uint32_t)below(traffic.ranks);
        struct sluice_remote_mr remote;
        int result;
        if (traffic.truth->remote[peer].length == 0) {
            continue; /* it died before it had one */
        }
        must(sluice_mr_sge(traffic.area_mr[0], 0, 1 + (uint32_t)below(bytes), &sge) == 0 &&
                 sluice_remote_mr_slice(&traffic.truth->remote[peer], place_of(traffic.rank, 0),
                                        sge.length, &remote) == 0,
             "element: %s", sluice_last_error());
        result =
            sluice_multichannel_post_write(traffic.all, peer, &sge, 1, &remote, PATIENCE, NULL);
        must(result == 0 || result == -EAGAIN || result == -ENOTCONN, "last write: %s",
             sluice_last_error());
        if (below(4) == 0) {
            sim_pause((int64_t)below(30000));
        }
    }
}

/* A peer that stands still in the middle of a copy may do the rest of it later. */
static bool is_any_stopped(void)
{
    bool stopped = false;
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        stopped = stopped || (sim_befell(i, i) & SIM_STOPPED) != 0;
    }
    return stopped;
}

/* Without a device, each completion belongs to a request. */
static void check_discarded(void)
{
    struct sluice_counters counters = {.size = sizeof counters};
    must(sluice_multichannel_counters(traffic.all, &counters) == 0, "counters: %s",
         sluice_last_error());
    must(counters.discarded == 0 || strcmp(traffic.limits.transport, "soft") != 0,
         "%lu completions belong to no request", (unsigned long)counters.discarded);
}

/* Posts work for the last time, and closes: nothing is touched any more. */
static void close_all(void)
{
    uint32_t area = (traffic.round + 1) % 2;
    uint32_t bytes = traffic.most_bytes < 4096 ? traffic.most_bytes : 4096;
    size_t used = (size_t)traffic.ranks * 4 * bytes;
    struct sluice_sge sge;
    uint64_t before, window;
    bool full = common(7) % 2;
    check_discarded();
    if (full) {
        check_credits();
        check_full();
    } else {
        write_last(bytes);
    }
    for (uint32_t i = 0; i < traffic.ranks && !full; i++) {
        for (uint32_t k = 0; k < 4; k++) {
            int result = sluice_mr_sge(traffic.area_mr[area], (i * 4 + k) * bytes, bytes, &sge);
            must(result == 0, "element: %s", sluice_last_error());
            result =
                k % 2 ? sluice_multichannel_post_send(traffic.all, i, &sge, 1, PATIENCE, NULL)
                      : sluice_multichannel_post_receive(traffic.all, i, &sge, 1, PATIENCE, NULL);
            must(result == 0 || result == -EAGAIN || result == -ENOTCONN, "last work: %s",
                 sluice_last_error());
        }
    }
    sim_pause((int64_t)below(300000));
    sluice_multichannel_close(traffic.all);
    traffic.all = NULL;
    used = used > mine.hashed[area] ? used : mine.hashed[area];
    before = hash(traffic.area[area], used);
    window = hash(traffic.window, window_bytes());
    sim_pause((int64_t)below(20000000));
    must(before == hash(traffic.area[area], used), "memory changed after a close");
    must(window == hash(traffic.window, window_bytes()) || is_any_stopped(),
         "a peer wrote to memory after a close");
    sim_allgather(&mine.own[0], traffic.work, sizeof *mine.own);
}

void end_traffic(void)
{
    uint8_t *memory[3] = {traffic.area[0], traffic.area[1], traffic.window};
    struct sluice_mr *mr[3] = {traffic.area_mr[0], traffic.area_mr[1], traffic.window_mr};
    sluice_multichannel_close(traffic.all);
    for (uint32_t i = 0; i < 3; i++) {
        int result = sluice_mr_deregister(mr[i]);
        must(result == 0, "deregister: %d: %s", result, sluice_last_error());
        if (mine.is_plain[i]) {
            free(memory[i]);
        }
    }
    sluice_pd_free(traffic.pd);
    sluice_context_close(traffic.context);
}

static void begin(void)
{
    static const uint32_t sizes[] = {64,  64,  64,  64,  64,   320,  320,   320,
                                     320, 320, 320, 320, 5000, 5000, 24000, 120000};
    traffic.truth = sim_shared(sizeof *traffic.truth);
    traffic.rank = sim_rank();
    traffic.ranks = sim_ranks();
    if (traffic.truth->number == 0) {
        traffic.truth->number = sim_program_random() | 1;
    }
    traffic.keepalive = common(3) % 4 == 0;
    traffic.most_send = common(4) % 3 == 0 ? 4096 : 0;
    /* Where requests are split, some more are long enough for it. */
    traffic.most_bytes =
        traffic.most_send != 0 && common(6) % 3 == 0 ? 24000 : sizes[common(1) % 16];
    traffic.most_bytes = (uint32_t)sim_number("bytes", traffic.most_bytes);
    mine.hash[0] = mine.hash[1] = hash(NULL, 0);
    mine.area_bytes = (size_t)traffic.ranks * (3 * MOST_MESSAGES + 4) * (traffic.most_bytes + 16);
}

void run_traffic(void)
{
    uint32_t rounds;
    begin();
    rounds = (uint32_t)sim_number("rounds", 1 + common(2) % (1 + common(5) % 12));
    open_all();
    connect_all();
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        traffic.up[i] = sluice_multichannel_peer_state(traffic.all, i) == SLUICE_STATE_READY;
    }
    reconnect();
    for (traffic.round = 1; traffic.round <= rounds; traffic.round++) {
        do_round();
        end_broken();
        restore_window();
        check_memory();
        reconnect();
        check_sends();
    }
    close_all();
}
