/* SPDX-License-Identifier: MIT */
/* Forms of calls with all peers at once: scatter, gather and multicast, in all three ways. */
#include <string.h>

#include "forms.h"

static struct sluice_request requests[2 * FORM_RANKS];
static struct sluice_completion completions[2 * FORM_RANKS];
static struct sluice_handle handles[2 * FORM_RANKS];
static uint32_t peers[FORM_RANKS];

static uint32_t bytes_of(uint32_t from)
{
    return 1 + (from * 311 + forms.step * 173) % (FORM_BYTES - 1);
}

/* Requests with all ranks, in the order of ranks. */
static struct sluice_request *list(uint32_t opcode, struct sluice_request *at)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        uint32_t bytes = bytes_of(opcode == SLUICE_OP_RECEIVE ? i : sim_rank());
        size_t place = (opcode == SLUICE_OP_RECEIVE || opcode == SLUICE_OP_READ ? IN : OUT) +
                       (size_t)i * FORM_BYTES;
        at[i] = (struct sluice_request){.opcode = below(2) ? opcode : SLUICE_OP_NONE,
                                        .peer = i,
                                        .sge_count = 1,
                                        .sge = form_sge(place, bytes),
                                        .user_data = i};
        if (opcode == SLUICE_OP_WRITE || opcode == SLUICE_OP_READ) {
            at[i].remote = form_remote(i, bytes);
        }
        peers[i] = i;
    }
    return at;
}

/* The same bytes for all ranks, or bytes for each; a multicast takes the first of these. */
static void fill_all(bool same)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        form_fill(OUT + (size_t)i * FORM_BYTES, bytes_of(sim_rank()), sim_rank(), same ? 0 : i);
    }
}

static bool check_results(uint32_t opcode, uint32_t first)
{
    bool well = true;
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        const struct sluice_completion *result = &completions[first + i];
        must(result->peer == i && result->opcode == opcode,
             "step %u: completion %u is of kind %u with rank %u", forms.step, i, result->opcode,
             result->peer);
        if (well_with(result->error == 0, i, "a request of a list")) {
            forms.done[opcode]++;
        } else {
            well = false;
        }
    }
    return well;
}

/* Waits for requests that were posted, whose handles begin at first. */
static bool collect(uint32_t opcode, uint32_t first)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        int result = sluice_multichannel_wait(forms.all, &handles[first + i],
                                              PATIENCE + SLUICE_S(3), &completions[first + i]);
        must(result == 0, "wait: %d: %s", result, sluice_last_error());
    }
    return check_results(opcode, first);
}

/* Posts a list until all of it is accepted, or a peer refuses. */
static bool post_all(int (*post)(const struct sluice_request *at, uint32_t count,
                                 struct sluice_handle *handle),
                     uint32_t first)
{
    uint32_t ranks = sim_ranks();
    for (uint32_t i = 0; i < ranks;) {
        int posted = post(&requests[first + i], ranks - i, &handles[first + i]);
        if (!well_with(posted > 0, i, "post a list")) {
            return false;
        }
        i += (uint32_t)posted;
    }
    return true;
}

static int post_receives(const struct sluice_request *at, uint32_t count,
                         struct sluice_handle *handle)
{
    return sluice_multichannel_post_gather_receive(forms.all, at, count, PATIENCE, handle);
}

static int post_sends(const struct sluice_request *at, uint32_t count, struct sluice_handle *handle)
{
    return sluice_multichannel_post_scatter_send(forms.all, at, count, PATIENCE, handle);
}

static int post_writes(const struct sluice_request *at, uint32_t count,
                       struct sluice_handle *handle)
{
    return sluice_multichannel_post_scatter_write(forms.all, at, count, PATIENCE, handle);
}

static int post_reads(const struct sluice_request *at, uint32_t count, struct sluice_handle *handle)
{
    return sluice_multichannel_post_gather_read(forms.all, at, count, PATIENCE, handle);
}

static int post_multicast(const struct sluice_request *at, uint32_t count,
                          struct sluice_handle *handle)
{
    return sluice_multichannel_post_multicast_send(forms.all, &requests[sim_ranks()],
                                                   &peers[at->peer], count, PATIENCE, handle);
}

static struct sluice_peer_remote_mr remotes[FORM_RANKS];

static int post_multicast_write(const struct sluice_request *at, uint32_t count,
                                struct sluice_handle *handle)
{
    return sluice_multichannel_post_multicast_write(forms.all, &requests[0], &remotes[at->peer],
                                                    count, PATIENCE, handle);
}

static int post_sends_in_scope(struct sluice_scope *scope)
{
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        must(sluice_scope_post_send(scope, i, &requests[sim_ranks() + i].sge, 1, NULL) == 0,
             "send in a scope: %s", sluice_last_error());
    }
    return (int)sim_ranks();
}

/* In a scope; sends or receives first, as it likes. */
static bool pass_in_scope(bool same)
{
    uint32_t ranks = sim_ranks();
    struct sluice_scope_report report = {
        .size = sizeof report, .failures = completions, .capacity = 2 * FORM_RANKS};
    struct sluice_scope *scope = sluice_multichannel_scope_begin(forms.all, PATIENCE);
    bool well = true, first = below(2) == 0, attached = below(2) == 0;
    int sent = 0;
    if (attached) {
        scope = sluice_scope_attach(scope, &report);
    }
    must(scope != NULL, "scope: %s", sluice_last_error());
    for (uint32_t turn = 0; turn < 2; turn++) {
        if ((turn == 0) == first) {
            sent = same ? sluice_scope_post_multicast_send(scope, &requests[ranks], peers, ranks,
                                                           handles)
                   : below(2)
                       ? sluice_scope_post_scatter_send(scope, &requests[ranks], ranks, handles)
                       : post_sends_in_scope(scope);
        } else if (below(2)) {
            must(sluice_scope_post_gather_receive(scope, requests, ranks, NULL) == (int)ranks,
                 "receives in a scope: %s", sluice_last_error());
        } else {
            for (uint32_t i = 0; i < ranks; i++) {
                must(sluice_scope_post_receive(scope, i, &requests[i].sge, 1, NULL) == 0,
                     "receive in a scope: %s", sluice_last_error());
            }
        }
    }
    must(sent == (int)ranks, "sends in a scope: %d: %s", sent, sluice_last_error());
    sluice_scope_end(scope, attached ? NULL : &report);
    must(report.posted == 2 * ranks, "%u requests were posted in a scope", report.posted);
    for (uint32_t i = 0; i < report.count; i++) {
        well = well_with(false, completions[i].peer, "a request of a scope");
    }
    forms.done[SLUICE_OP_SEND] += well ? ranks : 0;
    forms.done[SLUICE_OP_RECEIVE] += well ? ranks : 0;
    return well && report.failed == 0;
}

/* Receives are posted, and the call for the sends waits. */
static bool send_blocking(bool same)
{
    uint32_t ranks = sim_ranks();
    bool posted = post_all(post_receives, 0), well;
    memset(completions, 0xff, sizeof completions);
    if (same) {
        (void)!sluice_multichannel_multicast_send(forms.all, &requests[ranks], peers, ranks,
                                                  PATIENCE, completions + ranks);
    } else {
        (void)!sluice_multichannel_scatter_send(forms.all, &requests[ranks], ranks, PATIENCE,
                                                completions + ranks);
    }
    well = check_results(SLUICE_OP_SEND, ranks);
    return posted && collect(SLUICE_OP_RECEIVE, 0) && well;
}

/* Sends are posted, and the call for the receives waits. */
static bool receive_blocking(bool same)
{
    uint32_t ranks = sim_ranks();
    bool posted = post_all(same ? post_multicast : post_sends, ranks), well;
    (void)!sluice_multichannel_gather_receive(forms.all, requests, ranks, PATIENCE, completions);
    well = check_results(SLUICE_OP_RECEIVE, 0);
    return posted && collect(SLUICE_OP_SEND, ranks) && well;
}

bool form_messages(void)
{
    static bool (*const ways[])(bool same) = {pass_in_scope, send_blocking, receive_blocking};
    bool same = agreed(2) == 0, well;
    int64_t began = sim_own_time();
    list(SLUICE_OP_RECEIVE, requests);
    list(SLUICE_OP_SEND, requests + sim_ranks());
    fill_all(same);
    well = ways[below(3)](same);
    in_time(began, 2 * PATIENCE, "a list");
    for (uint32_t i = 0; well && i < sim_ranks(); i++) {
        must(form_holds(IN + (size_t)i * FORM_BYTES, bytes_of(i), i, same ? 0 : sim_rank()),
             "step %u: the message of rank %u is wrong", forms.step, i);
    }
    return well;
}

/* Does a list of writes or reads in a scope, and writes what failed behind its place. */
static bool move_in_scope(uint32_t opcode, bool same)
{
    uint32_t ranks = sim_ranks();
    struct sluice_scope *scope = sluice_multichannel_scope_begin(forms.all, PATIENCE);
    int posted;
    must(scope != NULL, "scope: %s", sluice_last_error());
    if (opcode == SLUICE_OP_READ) {
        posted = sluice_scope_post_gather_read(scope, requests, ranks, handles);
    } else if (same) {
        posted = sluice_scope_post_multicast_write(scope, requests, remotes, ranks, handles);
    } else {
        posted = sluice_scope_post_scatter_write(scope, requests, ranks, handles);
    }
    must(posted == (int)ranks, "list in a scope: %d: %s", posted, sluice_last_error());
    for (uint32_t i = 0; i < ranks; i++) {
        must(sluice_scope_wait(scope, &handles[i], PATIENCE + SLUICE_S(3), &completions[i]) == 0,
             "wait in a scope: %s", sluice_last_error());
    }
    must(sluice_scope_end(scope, NULL) == 0, "the end of a scope: %s", sluice_last_error());
    return check_results(opcode, 0);
}

static bool write_all(bool same)
{
    uint32_t ranks = sim_ranks();
    uint64_t way = below(3);
    list(SLUICE_OP_WRITE, requests);
    for (uint32_t i = 0; i < ranks; i++) {
        if (!well_with(sluice_multichannel_peer_remote(forms.all, i, &requests[i].remote,
                                                       &remotes[i]) == 0,
                       i, "tag memory")) {
            return false;
        }
    }
    if (way == 0) {
        return move_in_scope(SLUICE_OP_WRITE, same);
    }
    if (way == 1) {
        return post_all(same ? post_multicast_write : post_writes, 0) &&
               collect(SLUICE_OP_WRITE, 0);
    }
    if (same) {
        (void)!sluice_multichannel_multicast_write(forms.all, requests, remotes, ranks, PATIENCE,
                                                   completions);
    } else {
        (void)!sluice_multichannel_scatter_write(forms.all, requests, ranks, PATIENCE, completions);
    }
    return check_results(SLUICE_OP_WRITE, 0);
}

static bool read_all(void)
{
    uint64_t way = below(3);
    list(SLUICE_OP_READ, requests);
    if (way == 0) {
        return move_in_scope(SLUICE_OP_READ, false);
    }
    if (way == 1) {
        return post_all(post_reads, 0) && collect(SLUICE_OP_READ, 0);
    }
    (void)!sluice_multichannel_gather_read(forms.all, requests, sim_ranks(), PATIENCE, completions);
    return check_results(SLUICE_OP_READ, 0);
}

bool form_windows(void)
{
    bool same = agreed(2) == 0;
    fill_all(same);
    if (!all_well(write_all(same))) {
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        must(form_holds(WINDOW + (size_t)i * FORM_BYTES, bytes_of(i), i, same ? 0 : sim_rank()),
             "step %u: what rank %u wrote is wrong", forms.step, i);
    }
    if (!read_all()) {
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        must(
            form_holds(IN + (size_t)i * FORM_BYTES, bytes_of(sim_rank()), sim_rank(), same ? 0 : i),
            "step %u: what was read from rank %u is wrong", forms.step, i);
    }
    return true;
}
