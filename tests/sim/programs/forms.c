/* SPDX-License-Identifier: MIT */
/* Forms of calls with one peer: the same for a channel and for a peer of a multichannel. */
#include "forms.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

struct forms forms;

/* A message to the next rank, and one from the rank before. */
struct transfer {
    struct end ends[2];
    struct sluice_sge sges[2];
    struct sluice_handle handles[2];
    struct sluice_completion completions[2];
    bool open[2]; /* posted, and its completion was not taken */
    bool immediate, written, same;
    uint32_t bytes[2];
};

uint8_t form_value(uint32_t from, uint32_t to, uint32_t at)
{
    return (uint8_t)(from * 59 + to * 31 + forms.step * 7 + at * 3 + (at >> 8));
}

void form_fill(size_t place, uint32_t bytes, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < bytes; i++) {
        forms.memory[place + i] = form_value(from, to, i);
    }
}

bool form_holds(size_t place, uint32_t bytes, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < bytes; i++) {
        if (forms.memory[place + i] != form_value(from, to, i)) {
            return false;
        }
    }
    return true;
}

struct sluice_sge form_sge(size_t place, uint32_t bytes)
{
    struct sluice_sge sge;
    must((below(2) ? sluice_mr_sge(forms.mr, place, bytes, &sge)
                   : sluice_mr_sge_at(forms.mr, forms.memory + place, bytes, &sge)) == 0,
         "element: %s", sluice_last_error());
    return sge;
}

struct sluice_remote_mr form_remote(uint32_t rank, uint32_t bytes)
{
    struct sluice_remote_mr slice;
    must(sluice_remote_mr_slice(&forms.remotes[rank], WINDOW + sim_rank() * FORM_BYTES, bytes,
                                &slice) == 0,
         "slice: %s", sluice_last_error());
    return slice;
}

void form_ends(struct end ends[2])
{
    bool single = agreed(2) == 0;
    ends[SENT] = (struct end){single ? forms.channels[0] : NULL, next_rank()};
    ends[RECEIVED] = (struct end){single ? forms.channels[1] : NULL, rank_before()};
}

void form_count(const struct end *end, uint32_t opcode, bool well)
{
    forms.done[opcode] += end->channel == NULL && well;
}

/* Takes a completion of a transfer, of either direction. */
static void note(struct transfer *transfer, const struct sluice_completion *completion)
{
    uint32_t index = completion->opcode == SLUICE_OP_RECEIVE ? RECEIVED : SENT;
    must(transfer->open[index], "step %u: a completion of no request", forms.step);
    transfer->open[index] = false;
    transfer->completions[index] = *completion;
}

/*
 * Sleeps as an event loop does, and returns once there may be a completion: false if only the
 * deadline of a request has come.
 */
static bool sleep_on(const struct end *end)
{
    int64_t due = 0;
    struct pollfd pollfd = {.fd = OF(end, fd), .events = POLLIN};
    int armed = OF(end, arm, &due);
    must(pollfd.fd >= 0 && armed >= 0, "arm: %s", sluice_last_error());
    return armed != 0 || poll(&pollfd, 1, due < PATIENCE ? (int)(due / 1000000) + 1 : 60000) != 0 ||
           due < PATIENCE / 2;
}

/* Takes the completion of one direction, in one of all ways. */
static void collect(struct transfer *transfer, uint32_t index)
{
    const struct end *end = &transfer->ends[index];
    uint64_t way = below(4);
    bool woken = true;
    while (transfer->open[index]) {
        struct sluice_completion completions[4];
        int result = 1;
        if (way == 0) {
            result = OF(end, wait, &transfer->handles[index], PATIENCE + SLUICE_S(3), completions);
            must(result == 0 &&
                     completions->opcode == (index == SENT ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE),
                 "wait: %d: %s", result, sluice_last_error());
            result = 1;
        } else if (way == 1) {
            result = OF(end, next, PATIENCE + SLUICE_S(3), completions) == 0;
            must(result == 1, "next: %s", sluice_last_error());
        } else {
            result = OF(end, poll, completions, 1 + (uint32_t)below(4));
            must(result >= 0, "poll: %s", sluice_last_error());
            must(woken || result == 0 || completions->error != 0 || sim_is_troubled(),
                 "step %u: a completion wakes nobody", forms.step);
            if (result == 0 && way == 2) {
                woken = sleep_on(end);
            } else if (result == 0) {
                sim_pause((int64_t)below(200000));
            }
        }
        for (int i = 0; i < result; i++) {
            note(transfer, &completions[i]);
        }
    }
}

static int post_one(const struct end *end, uint32_t opcode, const struct sluice_sge *sge,
                    uint32_t immediate, struct sluice_handle *handle)
{
    struct sluice_request request = {.opcode = opcode,
                                     .peer = end->channel != NULL ? 0 : end->peer,
                                     .flags = immediate != 0 ? SLUICE_IMMEDIATE : 0,
                                     .immediate = immediate,
                                     .sges = sge,
                                     .sge_count = 1};
    int result = OF(end, post, &request, 1, PATIENCE, handle);
    return result == 1 ? 0 : result;
}

static void begin_receive(struct transfer *transfer)
{
    const struct end *end = &transfer->ends[RECEIVED];
    struct sluice_handle *handle = &transfer->handles[RECEIVED];
    int result = below(2) ? AT(end, post_receive, &transfer->sges[RECEIVED], 1, PATIENCE, handle)
                          : post_one(end, SLUICE_OP_RECEIVE, &transfer->sges[RECEIVED], 0, handle);
    transfer->open[RECEIVED] = well_with(result == 0, rank_before(), "post a receive");
}

static void begin_send(struct transfer *transfer, uint32_t immediate)
{
    const struct end *end = &transfer->ends[SENT];
    struct sluice_handle *handle = &transfer->handles[SENT];
    int result = immediate == 0 && below(2)
                     ? AT(end, post_send, &transfer->sges[SENT], 1, PATIENCE, handle)
                     : post_one(end, SLUICE_OP_SEND, &transfer->sges[SENT], immediate, handle);
    transfer->open[SENT] = well_with(result == 0, next_rank(), "post a send");
    if (result != 0) {
        transfer->completions[SENT].error = result;
    }
}

/* Sends by a call that waits; the receive is posted at the other end, or will be. */
static int send_and_wait(const struct transfer *transfer, uint32_t immediate)
{
    const struct end *end = &transfer->ends[SENT];
    const struct sluice_sge *sge = &transfer->sges[SENT];
    if (transfer->written) {
        struct sluice_remote_mr remote = form_remote(end->peer, sge->length);
        return AT(end, write_immediate, sge, 1, &remote, immediate, PATIENCE);
    }
    if (immediate != 0) {
        return AT(end, send_immediate, sge, 1, immediate, PATIENCE);
    }
    if (below(2)) {
        struct sluice_request request = {.opcode = SLUICE_OP_SEND,
                                         .peer = end->channel != NULL ? 0 : end->peer,
                                         .sge_count = 1,
                                         .sge = *sge};
        return OF(end, submit, &request, 1, PATIENCE, NULL);
    }
    return AT(end, send, sge, 1, PATIENCE);
}

static uint32_t bytes_of(uint32_t rank)
{
    return 1 + (rank * 577 + forms.step * 131) % (FORM_BYTES - 1);
}

static bool check_received(const struct transfer *transfer)
{
    const struct sluice_completion *received = &transfer->completions[RECEIVED];
    uint32_t before = rank_before();
    size_t place = transfer->written ? WINDOW + before * FORM_BYTES : IN;
    if (!well_with(received->error == 0, before, "receive")) {
        return false;
    }
    must(received->bytes == transfer->bytes[RECEIVED] &&
             form_holds(place, transfer->bytes[RECEIVED], before, sim_rank()),
         "step %u: a message of rank %u is wrong: %lu bytes", forms.step, before,
         (unsigned long)received->bytes);
    must(((received->flags & SLUICE_IMMEDIATE) != 0) == transfer->immediate &&
             (!transfer->immediate || received->immediate == before + 1000),
         "step %u: the immediate of rank %u is wrong", forms.step, before);
    return true;
}

/* Each rank sends to the next one. The receive comes first, or the send does and is not waited for.
 */
static bool pass(void)
{
    struct transfer transfer = {.immediate = agreed(3) == 0};
    bool receives_first, well;
    uint32_t immediate = transfer.immediate ? sim_rank() + 1000 : 0;
    int64_t began = sim_own_time();
    transfer.written = transfer.immediate && agreed(2) == 0;
    form_ends(transfer.ends);
    transfer.bytes[SENT] = bytes_of(sim_rank());
    transfer.bytes[RECEIVED] = bytes_of(rank_before());
    transfer.sges[SENT] = form_sge(OUT, transfer.bytes[SENT]);
    transfer.sges[RECEIVED] = form_sge(IN, FORM_BYTES);
    form_fill(OUT, transfer.bytes[SENT], sim_rank(), next_rank());
    receives_first = transfer.written || below(2) == 0;
    if (receives_first) {
        begin_receive(&transfer);
        transfer.completions[SENT].error = send_and_wait(&transfer, immediate);
        collect(&transfer, RECEIVED);
    } else {
        begin_send(&transfer, immediate);
        transfer.completions[RECEIVED].error =
            AT(&transfer.ends[RECEIVED], receive, &transfer.sges[RECEIVED], 1, PATIENCE,
               &transfer.completions[RECEIVED]);
        collect(&transfer, SENT);
    }
    in_time(began, 2 * PATIENCE, "a message");
    well = well_with(transfer.completions[SENT].error == 0, next_rank(), "send");
    form_count(&transfer.ends[SENT], transfer.written ? SLUICE_OP_WRITE : SLUICE_OP_SEND, well);
    well &= check_received(&transfer);
    form_count(&transfer.ends[RECEIVED], SLUICE_OP_RECEIVE,
               transfer.completions[RECEIVED].error == 0);
    return well;
}

/* Prepares both channels, or makes them new, and connects them. */
static bool connect_channels(void)
{
    struct sluice_channel_attr attr = {.size = sizeof attr, .flags = SLUICE_CHANNEL_HISTOGRAMS};
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint own[2], all[FORM_RANKS][2];
    bool well = true;
    memset(own, 0, sizeof own);
    for (uint32_t i = 0; i < 2; i++) {
        prepared[i] = forms.channels[i] != NULL ? sluice_channel_reset(forms.channels[i])
                                                : sluice_channel_prepare(forms.pd, &attr);
        forms.channels[i] = NULL;
        well &= works(prepared[i] != NULL, "prepare a channel") &&
                works(sluice_prepared_channel_endpoint(prepared[i], &own[i]) == 0, "endpoint");
    }
    sim_allgather(own, all, sizeof own);
    if (!all_well(well)) {
        sluice_prepared_channel_free(prepared[0]);
        sluice_prepared_channel_free(prepared[1]);
        return false;
    }
    forms.channels[0] = sluice_prepared_channel_handshake(prepared[0], &all[next_rank()][1]);
    forms.channels[1] = sluice_prepared_channel_handshake(prepared[1], &all[rank_before()][0]);
    for (uint32_t i = 0; i < 2; i++) {
        uint32_t peer = i == 0 ? next_rank() : rank_before();
        well = well_with(forms.channels[i] != NULL, peer, "handshake") && well;
    }
    return well && well_with(sluice_channel_wait_connected(forms.channels[0], PATIENCE) == 0,
                             next_rank(), "wait for the channel");
}

/* Ends the channel to the next rank in one of several ways, and makes both anew. */
static bool renew(void)
{
    struct sluice_channel *channel = forms.channels[0];
    struct sluice_sge sge = form_sge(IN, FORM_BYTES);
    struct sluice_handle handle;
    struct sluice_completion completion = {.error = 0};
    struct sluice_error error = {.size = sizeof error};
    int result = sluice_channel_post_receive(channel, &sge, 1, PATIENCE, &handle);
    if (!all_well(well_with(result == 0, next_rank(), "receive")) || !all_well(true)) {
        return false;
    }
    if (below(3) == 0) {
        must(sluice_channel_cancel(channel, &handle, &completion) == 0 && completion.error != 0,
             "cancel: %s", sluice_last_error());
    } else if (below(2)) {
        must(sluice_channel_detach(channel, &handle) == 0 &&
                 sluice_channel_wait(channel, &handle, 0, &completion) == -ESTALE,
             "detach: %s", sluice_last_error());
        result = sluice_channel_shutdown(channel, SLUICE_MS(below(20)));
        must(result == -ETIMEDOUT || result == 0, "shutdown: %s", sluice_last_error());
    } else {
        int state = sluice_channel_state(channel);
        must(state == SLUICE_STATE_READY || state == SLUICE_STATE_FAILED, "a channel has no state");
        if (!connect_channels()) {
            return false;
        }
        /* A result stays, whatever becomes of its connection. */
        result = sluice_channel_poll(forms.channels[0], &completion, 1);
        must(result == 1 && completion.error != 0, "a receive was lost by a reset");
        return true;
    }
    must(sluice_channel_state(channel) == SLUICE_STATE_FAILED &&
             sluice_channel_error(channel, &error) == 1,
         "a channel was ended, and has no error");
    return connect_channels();
}

/* A wake ends one wait, and nothing else. */
static bool wake(void)
{
    struct end ends[2];
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_sge sge = form_sge(IN, 1);
    bool well;
    form_ends(ends);
    well = well_with(AT(&ends[RECEIVED], post_receive, &sge, 1, PATIENCE, &handle) == 0,
                     rank_before(), "receive");
    if (well) {
        must(OF(&ends[RECEIVED], wake) == 0, "wake: %s", sluice_last_error());
        must(OF(&ends[RECEIVED], wait, &handle, PATIENCE, &completion) != -ETIMEDOUT,
             "a wait goes on after a wake");
    }
    if (!all_well(well)) {
        return false;
    }
    sge = form_sge(OUT, 1);
    well = well_with(AT(&ends[SENT], send, &sge, 1, PATIENCE) == 0, next_rank(), "send");
    well &= well_with(form_finish(&ends[RECEIVED], 0, &handle) == 0, rank_before(), "receive");
    form_count(&ends[SENT], SLUICE_OP_SEND, well);
    form_count(&ends[RECEIVED], SLUICE_OP_RECEIVE, well);
    return well;
}

static void check_histogram(const struct sluice_histogram *histogram, uint64_t expected)
{
    struct sluice_histogram sum = *histogram;
    int64_t middle = sluice_histogram_percentile(histogram, 50);
    must(histogram->count == expected, "a histogram has %lu requests of %lu",
         (unsigned long)histogram->count, (unsigned long)expected);
    must(sluice_histogram_percentile(histogram, 0) == (int64_t)histogram->min &&
             sluice_histogram_percentile(histogram, 100) == (int64_t)histogram->max &&
             middle >= (int64_t)histogram->min && middle <= (int64_t)histogram->max &&
             sluice_histogram_mean(histogram) >= (int64_t)histogram->min &&
             sluice_histogram_mean(histogram) <= (int64_t)histogram->max,
         "times of a histogram are wrong");
    must(sluice_histogram_merge(&sum, histogram) == 0 && sum.count == 2 * histogram->count,
         "histograms are not merged");
    must(sluice_histogram_bound(SLUICE_HISTOGRAM_BUCKETS) == INT64_C(1) << 40, "a wrong bound");
}

/* Counters and histograms agree with what was done. */
static bool look_up(void)
{
    static struct sluice_histogram histogram;
    struct sluice_counters counters = {.size = sizeof counters}, sum = counters, one = counters;
    struct sluice_channel_info info = {.size = sizeof info};
    must(sluice_multichannel_counters(forms.all, &counters) == 0 &&
             sluice_channel_counters(forms.channels[0], &one) == 0 &&
             sluice_multichannel_peers(forms.all) == sim_ranks(),
         "counters: %s", sluice_last_error());
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        must(sluice_multichannel_peer_counters(forms.all, i, &one) == 0 &&
                 sluice_multichannel_peer_query(forms.all, i, &info) == 0,
             "counters of a peer: %s", sluice_last_error());
        for (uint32_t opcode = 1; opcode < 7; opcode++) {
            sum.requests[opcode] += one.requests[opcode];
        }
    }
    histogram.size = sizeof histogram;
    for (uint32_t opcode = 1; opcode < 7; opcode++) {
        must(sum.requests[opcode] == counters.requests[opcode] &&
                 counters.requests[opcode] == forms.done[opcode],
             "step %u: %lu requests of kind %u are counted, and %lu were done", forms.step,
             (unsigned long)counters.requests[opcode], opcode, (unsigned long)forms.done[opcode]);
        must(sluice_multichannel_histogram(forms.all, opcode, &histogram) == 0, "histogram: %s",
             sluice_last_error());
        check_histogram(&histogram, forms.done[opcode] - forms.timed[opcode]);
        must(sluice_multichannel_peer_histogram(forms.all, next_rank(), opcode, &histogram) == 0 &&
                 sluice_channel_histogram(forms.channels[0], opcode, &histogram) == 0,
             "histogram: %s", sluice_last_error());
    }
    must(sluice_channel_query(forms.channels[0], &info) == 0 && info.send_depth == 128, "query: %s",
         sluice_last_error());
    must(sluice_channel_histogram_reset(forms.channels[0]) == 0 &&
             sluice_channel_histogram(forms.channels[0], SLUICE_OP_SEND, &histogram) == 0 &&
             histogram.count == 0,
         "a histogram is not empty after a reset");
    if (below(2)) {
        must(sluice_multichannel_histogram_reset(forms.all) == 0, "reset: %s", sluice_last_error());
        memcpy(forms.timed, forms.done, sizeof forms.timed);
    }
    return true;
}

static bool connect_all(void)
{
    struct sluice_channel_attr attr = {.size = sizeof attr, .flags = SLUICE_CHANNEL_HISTOGRAMS};
    struct sluice_endpoint own[FORM_RANKS], theirs[FORM_RANKS];
    static struct sluice_endpoint all[FORM_RANKS][FORM_RANKS];
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(forms.pd, sim_ranks(), &attr);
    bool well = works(prepared != NULL, "prepare");
    memset(own, 0, sizeof own);
    well = well && works(sluice_prepared_multichannel_endpoints(prepared, own, sim_ranks()) == 0,
                         "endpoints");
    sim_allgather(own, all, sizeof own);
    if (!all_well(well)) {
        sluice_prepared_multichannel_free(prepared);
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        theirs[i] = all[i][sim_rank()];
    }
    forms.all = sluice_prepared_multichannel_handshake(prepared, theirs, sim_ranks());
    well = works(forms.all != NULL, "handshake");
    if (well && below(2)) {
        well = works(sluice_multichannel_wait_connected(forms.all, PATIENCE) == 0, "connect");
    }
    for (uint32_t i = 0; well && i < sim_ranks(); i++) {
        well = well_with(sluice_multichannel_peer_wait_connected(forms.all, i, PATIENCE) == 0, i,
                         "connect");
    }
    return well;
}

static bool begin(void)
{
    uint8_t own[SLUICE_REMOTE_MR_BYTES], all[FORM_RANKS][SLUICE_REMOTE_MR_BYTES];
    struct sluice_remote_mr remote;
    uint32_t access =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE;
    bool well;
    memset(own, 0, sizeof own);
    forms.limits.size = sizeof forms.limits;
    forms.context = sluice_context_open(NULL, NULL);
    if (works(forms.context != NULL, "open")) {
        must(sluice_context_query(forms.context, &forms.limits) == 0, "query");
        access |= forms.limits.atomics != SLUICE_ATOMICS_NONE ? SLUICE_ACCESS_REMOTE_ATOMIC : 0;
        forms.pd = sluice_pd_alloc(forms.context);
    }
    forms.mr = forms.pd != NULL ? sluice_mr_alloc(forms.pd, ALL, access) : NULL;
    well = works(forms.mr != NULL, "memory");
    if (well) {
        forms.memory = sluice_mr_addr(forms.mr);
        must(sluice_mr_length(forms.mr) == ALL, "a region has another length");
        sluice_mr_remote(forms.mr, &remote);
        sluice_remote_mr_pack(&remote, own);
    }
    sim_allgather(own, all, sizeof own);
    if (!all_well(well)) {
        return false;
    }
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        must(sluice_remote_mr_unpack(all[i], &forms.remotes[i]) == 0 || sim_is_dead(i),
             "unpack: %s", sluice_last_error());
    }
    return true;
}

int run_forms(void)
{
    static bool (*const steps[])(void) = {pass,         pass,       form_messages, form_messages,
                                          form_windows, form_touch, form_inside,   form_elsewhere,
                                          look_up,      renew,      wake};
    uint64_t most = sim_number("steps", agreed(30));
    bool well = sim_ranks() <= FORM_RANKS && all_well(begin()) && all_well(connect_all()) &&
                all_well(connect_channels());
    for (; well && forms.step < most; forms.step++) {
        uint64_t step = sim_number("step", agreed(sizeof steps / sizeof *steps));
        sim_note("step %u: form %lu", forms.step, (unsigned long)step);
        well = all_well(steps[step]());
    }
    if (well && forms.all != NULL && below(2)) {
        (void)!sluice_multichannel_shutdown(forms.all, SLUICE_MS(below(100)));
    }
    sluice_multichannel_close(forms.all);
    sluice_channel_close(forms.channels[0]);
    sluice_channel_close(forms.channels[1]);
    must(forms.mr == NULL || sluice_mr_deregister(forms.mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(forms.pd);
    sluice_context_close(forms.context);
    return 0;
}
