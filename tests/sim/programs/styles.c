/* SPDX-License-Identifier: MIT */
/* The ways in which a rank does the requests of a round. */
#include <errno.h>
#include <string.h>

#include "traffic.h"

static uint32_t receives[MOST_WORK], sends[MOST_WORK], receive_count, send_count;
static struct sluice_request list[MOST_WORK];
static struct sluice_completion results[MOST_WORK];
static struct sluice_handle handles[MOST_WORK];

static struct work *add(uint32_t opcode, uint32_t peer, uint32_t bytes, uint32_t pieces)
{
    struct work *work = &traffic.work[traffic.count];
    uint32_t lkey = sluice_mr_lkey(traffic.area_mr[traffic.round % 2]), at = 0;
    *work = (struct work){.memory = traffic.area[traffic.round % 2] + traffic.used,
                          .bytes = bytes,
                          .number = UNTOLD,
                          .request = {.opcode = opcode, .peer = peer}};
    work->request.user_data = (uint64_t)traffic.round << 32 | traffic.count;
    if (pieces >
        (opcode == SLUICE_OP_READ ? traffic.limits.max_read_sge : traffic.limits.max_sge)) {
        pieces = 1;
    }
    pieces = bytes == 0 ? 0 : bytes < 2 * pieces ? 1 : pieces;
    for (uint32_t i = 0; i < pieces; i++) {
        uint32_t length = i + 1 == pieces ? bytes - at : (uint32_t)below(bytes / pieces + 1);
        work->sges[i] = (struct sluice_sge){(uintptr_t)work->memory + at, length, lkey};
        at += length;
    }
    work->request.sges = pieces != 0 ? work->sges : NULL;
    work->request.sge_count = pieces;
    traffic.used += (bytes + 15) & ~7U;
    traffic.count++;
    return work;
}

static void aim(struct work *work, size_t offset, uint64_t bytes)
{
    must(sluice_remote_mr_slice(&traffic.truth->remote[work->request.peer], offset, bytes,
                                &work->request.remote) == 0,
         "slice: %s", sluice_last_error());
}

static void add_send(uint32_t peer, uint32_t number)
{
    struct message sent = message(traffic.rank, peer, number);
    struct work *work;
    if (sent.second) {
        work = add(SLUICE_OP_WRITE, peer, sent.bytes, sent.pieces);
        work->number = number;
        work->key = sent.key + 1;
        aim(work, place_of(traffic.rank, number), sent.bytes);
        fill(work->memory, sent.bytes, work->key);
        sends[send_count++] = traffic.count - 1;
    }
    work = add(sent.writes ? SLUICE_OP_WRITE : SLUICE_OP_SEND, peer, sent.bytes, sent.pieces);
    work->number = number;
    work->key = sent.key;
    work->request.flags = sent.flags;
    if (sent.bytes > traffic.limits.max_inline) {
        work->request.flags &= ~SLUICE_INLINE;
    }
    work->request.immediate = (sent.flags & SLUICE_IMMEDIATE) != 0 ? sent.immediate : 0;
    if (sent.writes) {
        aim(work, place_of(traffic.rank, number), sent.bytes);
    }
    fill(work->memory, sent.bytes, sent.key);
    sends[send_count++] = traffic.count - 1;
}

static void add_receive(uint32_t peer, uint32_t number, bool cut)
{
    struct message sent = message(peer, traffic.rank, number);
    uint32_t bytes = sent.writes ? 0 : sent.bytes + (uint32_t)below(9);
    struct work *work;
    if (cut && !sent.writes && sent.bytes > 1) {
        spoil(peer, SHORT);
        bytes = sent.bytes - 1;
    }
    work = add(SLUICE_OP_RECEIVE, peer, bytes, sent.pieces);
    work->bad = bytes < sent.bytes && !sent.writes;
    work->number = number;
    memset(work->memory, 0xdd, bytes);
    receives[receive_count++] = traffic.count - 1;
}

static void add_other(uint32_t peer, bool *atomic)
{
    uint32_t kind = *atomic || traffic.limits.atomics == SLUICE_ATOMICS_NONE
                        ? 0
                        : (uint32_t)below(peer == 0 ? 5 : 4);
    struct work *work;
    if (kind < 2) {
        work = add(SLUICE_OP_READ, peer, 1 + (uint32_t)below(traffic.most_bytes), 2);
        aim(work, constant(), work->bytes);
    } else {
        work = add(kind == 2 ? SLUICE_OP_COMPARE_SWAP : SLUICE_OP_FETCH_ADD, peer, 8, 1);
        aim(work, word_of(kind == 4 ? MOST_RANKS : traffic.rank), 8);
        work->request.operand[0] = kind == 2 ? traffic.word[peer] : kind == 4 ? 1 : below(1 << 20);
        work->request.operand[1] = kind == 2 ? below(UINT64_MAX) : 0;
        work->expected = kind == 4 ? TICKETS : 0;
        *atomic = true;
    }
    sends[send_count++] = traffic.count - 1;
}

static void add_wrong(uint32_t peer)
{
    struct work *work = add(below(2) ? SLUICE_OP_WRITE : SLUICE_OP_READ, peer, 8, 1);
    spoil(peer, BAD_KEY);
    aim(work, constant(), 8);
    switch (below(4)) {
    case 0:
        work->request.remote.addr += window_bytes();
        break;
    case 1: /* it begins within the window, and ends behind it */
        work->request.remote.addr += window_bytes() - constant() - 4;
        break;
    default:
        work->request.remote.rkey ^= 0x5000;
        break;
    }
    work->bad = true;
    sends[send_count++] = traffic.count - 1;
}

/* Adds all requests of the round: in order for each peer, and peers in any order. */
static void add_round(uint32_t mishap)
{
    uint32_t sent[MOST_RANKS] = {0}, posted[MOST_RANKS] = {0}, left = 0;
    bool atomic[MOST_RANKS] = {false};
    uint32_t victim = (uint32_t)below(traffic.ranks);
    for (uint32_t i = 0; i < traffic.ranks; i++) {
        left += traffic.up[i] ? messages(traffic.rank, i) + messages(i, traffic.rank) : 0;
    }
    while (left > 0) {
        uint32_t peer = (uint32_t)below(traffic.ranks);
        if (!traffic.up[peer]) {
            continue;
        }
        if (below(2) && sent[peer] < messages(traffic.rank, peer)) {
            add_send(peer, sent[peer]++);
            left--;
        } else if (posted[peer] < messages(peer, traffic.rank)) {
            add_receive(peer, posted[peer]++, mishap == SHORT && peer == victim && below(2));
            left--;
        }
        if (below(8) == 0) {
            add_other(peer, &atomic[peer]);
        }
        if (mishap == BAD_KEY && peer == victim && below(4) == 0) {
            add_wrong(peer);
            mishap = 0;
        }
    }
}

/* Copies requests into the list for a call; they count as accepted from here on. */
static uint32_t put(const uint32_t *numbers, uint32_t count, uint32_t at, bool accepted)
{
    for (uint32_t i = 0; i < count; i++) {
        struct work *work = &traffic.work[numbers[i]];
        list[at + i] = work->request;
        work->accepted = accepted;
        work->due = sim_own_time() + traffic.deadline;
        if (work->request.opcode == SLUICE_OP_RECEIVE) {
            traffic.truth->receives[work->request.peer][traffic.rank] = work->number + 1;
        }
    }
    traffic.entered = sim_own_time();
    return at + count;
}

static struct work *work_of(const struct sluice_request *request)
{
    return &traffic.work[(uint32_t)request->user_data];
}

static void finish_list(int result, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        must(results[i].user_data == list[i].user_data, "a completion is at a wrong place");
        complete(work_of(&list[i]), &results[i]);
    }
    check_list(result, results, count);
}

static void submit(void)
{
    uint32_t count = put(receives, receive_count, put(sends, send_count, 0, true), true);
    memset(results, 0xff, count * sizeof *results);
    finish_list(sluice_multichannel_submit(traffic.all, list, count, traffic.deadline, results),
                count);
}

static void scatter_gather(void)
{
    for (uint32_t i = 0; i < send_count; i++) {
        if (traffic.work[sends[i]].request.opcode != SLUICE_OP_SEND) {
            submit();
            return;
        }
    }
    put(receives, receive_count, put(sends, send_count, 0, true), true);
    finish_list(sluice_multichannel_scatter_gather(traffic.all, list, send_count, list + send_count,
                                                   receive_count, traffic.deadline, results),
                send_count + receive_count);
}

static void do_list(uint32_t count)
{
    struct sluice_list *made =
        count == 0 ? NULL : sluice_multichannel_list_prepare(traffic.all, list, count);
    int result;
    if (made == NULL) {
        if (count != 0 && errno != E2BIG) {
            again("list");
        }
        finish_list(sluice_multichannel_submit(traffic.all, list, count, traffic.deadline, results),
                    count);
        return;
    }
    memset(results, 0xff, count * sizeof *results);
    result = below(2) ? -EAGAIN : sluice_list_post(made, traffic.deadline, results);
    if (result == 0) {
        do {
            result = sluice_list_wait(made, SLUICE_MS(1 + below(100)));
        } while (result == -ETIMEDOUT);
        must(result == 0, "wait for a list: %d", result);
        result = sluice_list_result(made);
    } else {
        result = sluice_list_submit(made, traffic.deadline, results);
    }
    finish_list(result, count);
    sluice_list_free(made);
}

static void scoped(void)
{
    uint32_t count = put(sends, send_count, put(receives, receive_count, 0, true), true);
    struct sluice_scope_report report = {
        .size = sizeof report, .failures = results, .capacity = MOST_WORK};
    struct sluice_scope *scope;
    uint32_t taken = 0;
    int result;
    while ((scope = sluice_multichannel_scope_begin(traffic.all, traffic.deadline)) == NULL) {
        again("scope");
    }
    for (uint32_t at = 0; at < count;) {
        uint32_t some = 1 + (uint32_t)below(count - at);
        result = sluice_scope_post(scope, list + at, some, handles + at);
        must(result == (int)some, "scope: %d: %s", result, sluice_last_error());
        at += some;
        result = sluice_scope_poll(scope, results, (uint32_t)below(4));
        for (int i = 0; i < result; i++, taken++) {
            take(&results[i]);
        }
    }
    for (uint32_t i = 0; i < count; i++) {
        if (below(4) == 0 && !work_of(&list[i])->done &&
            sluice_scope_wait(scope, &handles[i], SLUICE_MS(below(3)), results) == 0) {
            must(results->user_data == list[i].user_data, "a wait gave another completion");
            take(results);
            taken++;
        }
    }
    traffic.entered = sim_own_time();
    result = sluice_scope_end(scope, &report);
    must(report.posted == count && report.unseen == count - taken &&
             (result == 0) == (report.failed == 0) && report.count == report.failed - report.lost,
         "scope: %u of %u posted, %u not taken of %u, %u failed: %d", report.posted, count,
         report.unseen, count - taken, report.failed, result);
    for (uint32_t i = 0; i < report.count; i++) {
        take(&results[i]);
    }
    for (uint32_t i = 0; i < count; i++) {
        struct work *work = work_of(&list[i]);
        if (!work->done && report.lost == 0) {
            complete(work, NULL);
        } else if (!work->done) {
            leave_untold(work);
        }
    }
}

/* Returns how many results there were. */
static int poll_some(void)
{
    int count = sluice_multichannel_poll(traffic.all, results, 1 + (uint32_t)below(8));
    must(count >= 0, "poll: %s", sluice_last_error());
    for (int i = 0; i < count; i++) {
        take(&results[i]);
    }
    return count;
}

/* Posts requests, all or only as many as there is room for. Returns how many. */
static uint32_t post(const uint32_t *numbers, uint32_t count, bool all)
{
    uint32_t at = 0;
    while (at < count) {
        uint32_t some = put(numbers + at, 1 + (uint32_t)below(count - at), 0, false);
        int posted = sluice_multichannel_post(traffic.all, list, some, traffic.deadline, handles);
        sim_note("posts %d of %u: first %u to rank %u: %s", posted, count - at, list->opcode,
                 list->peer, posted < 0 ? sluice_last_error() : "");
        for (int i = 0; i < posted; i++) {
            struct work *work = &traffic.work[numbers[at++]];
            work->accepted = true;
            work->handle = traffic.old[work->request.peer] = handles[i];
            if ((work->request.flags & SLUICE_INLINE) != 0) {
                memset(work->memory, 0xcc, work->bytes);
            }
        }
        if (posted == -EAGAIN && !all) {
            return at;
        }
        if (posted == -EAGAIN) {
            poll_some();
            sim_pause((int64_t)below(UINT64_C(1) << below(20)));
        } else if (posted <= 0) {
            refuse(&traffic.work[numbers[at++]], posted);
        }
    }
    return at;
}

static bool are_forgotten(void)
{
    struct sluice_counters counters = {.size = sizeof counters};
    sluice_multichannel_counters(traffic.all, &counters);
    return counters.forgotten > 0;
}

static void wait_for(struct work *work)
{
    int64_t timeout = below(4) == 0 ? 0 : traffic.deadline + SLUICE_S(2);
    int result = sluice_multichannel_wait(traffic.all, &work->handle, timeout, results);
    if (result == -ESTALE) {
        must(are_forgotten(), "a handle is stale: %s", sluice_last_error());
        leave_untold(work);
    } else if (result == 0) {
        must(results->user_data == work->request.user_data, "a wait gave another completion");
        take(results);
    } else {
        must(result == -ETIMEDOUT && timeout == 0, "wait: %d: %s", result, sluice_last_error());
    }
}

static void flush(void)
{
    int result;
    traffic.entered = sim_own_time();
    result = sluice_multichannel_flush(traffic.all, PATIENCE + SLUICE_S(2));
    must(result == 0, "flush: %d: %s", result, sluice_last_error());
}

static void cancel(struct work *work)
{
    int result;
    spoil(work->request.peer, CANCEL);
    result = sluice_multichannel_cancel(traffic.all, &work->handle, results);
    if (result == 0) {
        take(results);
    } else {
        must(result == -ESTALE && are_forgotten(), "cancel: %s", sluice_last_error());
        leave_untold(work);
    }
}

static void detach(struct work *work)
{
    int result = sluice_multichannel_detach(traffic.all, &work->handle);
    must(result == 0 || are_forgotten(), "detach: %s", sluice_last_error());
    must(sluice_multichannel_wait(traffic.all, &work->handle, 0, results) == -ESTALE,
         "a detached handle is not stale");
    leave_untold(work);
}

/* Returns how many results there were. */
static int take_next(void)
{
    int result = sluice_multichannel_next(traffic.all, SLUICE_MS(below(20)), results);
    must(result == 0 || result == -ETIMEDOUT || result == -ENOENT, "next: %d: %s", result,
         sluice_last_error());
    must(result != -ENOENT || are_forgotten(), "next: nothing is left, and one request is pending");
    if (result == 0) {
        take(results);
    }
    return result == 0;
}

/* Ways to take results; with the last one nobody takes them. */
enum way { WAIT, POLL, NEXT, DETACH, NONE, WAYS };

static void finish_one(struct work *work, enum way way)
{
    int taken = 1;
    traffic.entered = sim_own_time();
    if (way == DETACH && below(2)) {
        detach(work);
    } else if (way == DETACH || way == WAIT) {
        wait_for(work);
    } else {
        taken = way == POLL ? poll_some() : take_next();
    }
    /* All is complete, and the rest was forgotten. */
    if (taken == 0 && !work->done && are_forgotten() &&
        sluice_multichannel_flush(traffic.all, 0) == 0 && poll_some() == 0) {
        leave_untold(work);
    } else if (taken == 0) {
        sim_pause((int64_t)below(200000));
    }
}

/* Takes the results of all that was posted in one of several ways, or never. */
static void finish_posted(uint32_t mishap)
{
    enum way way = (enum way)below(WAYS);
    bool pending = true;
    while (pending && way != NONE) {
        pending = false;
        for (uint32_t i = 0; i < traffic.count; i++) {
            struct work *work = &traffic.work[i];
            if (work->done || !work->accepted) {
                continue;
            }
            pending = true;
            if (mishap == CANCEL && below(8) == 0) {
                cancel(work);
                mishap = 0;
            } else {
                finish_one(work, way);
            }
        }
    }
    flush();
    for (uint32_t i = 0; i < traffic.count && way == NONE; i++) {
        if (traffic.work[i].accepted && !traffic.work[i].done) {
            leave_untold(&traffic.work[i]);
        }
    }
}

static void posted(uint32_t mishap)
{
    uint32_t early = below(2) ? post(sends, (uint32_t)below(send_count + 1), false) : 0;
    if (early > 0 && below(2)) {
        sim_pause((int64_t)below(3000000));
    }
    post(receives, receive_count, true);
    post(sends + early, send_count - early, true);
    finish_posted(mishap);
}

static void prepared(void)
{
    do_list(put(sends, send_count, put(receives, receive_count, 0, true), true));
}

/* Posts some before the list, which then finds less room. */
static void prepared_late(uint32_t mishap)
{
    uint32_t early = (uint32_t)below(send_count + 1);
    post(receives, receive_count, true);
    post(sends, early, true);
    do_list(put(sends + early, send_count - early, 0, true));
    finish_posted(mishap);
}

/* Does one request by the blocking call for it. */
static int block(const struct sluice_request *request)
{
    struct sluice_multichannel *all = traffic.all;
    const struct sluice_sge *sges = request->sges;
    uint32_t peer = request->peer, count = request->sge_count;
    if (request->flags != 0) {
        return sluice_multichannel_submit(all, request, 1, traffic.deadline, NULL);
    }
    switch (request->opcode) {
    case SLUICE_OP_SEND:
        return sluice_multichannel_send(all, peer, sges, count, traffic.deadline);
    case SLUICE_OP_WRITE:
        return sluice_multichannel_write(all, peer, sges, count, &request->remote,
                                         traffic.deadline);
    case SLUICE_OP_READ:
        return sluice_multichannel_read(all, peer, sges, count, &request->remote, traffic.deadline);
    case SLUICE_OP_FETCH_ADD:
        return sluice_multichannel_fetch_add(all, peer, sges, &request->remote, request->operand[0],
                                             traffic.deadline);
    default:
        return sluice_multichannel_compare_swap(all, peer, sges, &request->remote,
                                                request->operand[0], request->operand[1],
                                                traffic.deadline);
    }
}

static struct sluice_completion failed_with(int error)
{
    static const int errors[] = {0,         ECONNRESET, ETIMEDOUT, EACCES, EMSGSIZE,
                                 ECANCELED, EFAULT,     EIO,       EPROTO};
    struct sluice_completion completion = {.error = error, .error_class = 99};
    for (uint32_t i = 1; i < sizeof errors / sizeof *errors; i++) {
        completion.error_class = errors[i] == -error ? i : completion.error_class;
    }
    completion.error_class = error == -ENOTCONN ? SLUICE_CLASS_CANCELLED : completion.error_class;
    return completion;
}

/* Posts all receives, and sends one after the other. */
static void blocking(uint32_t mishap)
{
    post(receives, receive_count, true);
    for (uint32_t i = 0; i < send_count; i++) {
        struct work *work = &traffic.work[sends[i]];
        struct sluice_completion failure;
        int result;
        if (traffic.stopped[work->request.peer]) {
            continue;
        }
        put(&sends[i], 1, 0, true);
        result = block(&work->request);
        failure = failed_with(result);
        complete(work, result == 0 ? NULL : &failure);
    }
    finish_posted(mishap);
}

static void do_requests(uint32_t mishap)
{
    static void (*const styles[])(void) = {submit, scatter_gather, prepared, scoped};
    uint32_t style = (uint32_t)sim_number("style", below(9));
    sim_note("round %u: style %u, mishap %u, %u sends, %u receives", traffic.round, style, mishap,
             send_count, receive_count);
    if (style < 4 && mishap != CANCEL) {
        styles[style]();
    } else if (style == 4) {
        blocking(mishap);
    } else if (style == 5) {
        prepared_late(mishap);
    } else {
        posted(mishap);
    }
    flush();
}

void do_round(void)
{
    bool errs = sim_number("mishaps", 1) != 0 && below(6) == 0;
    uint32_t mishap = errs ? UINT32_C(1) << below(5) : 0;
    traffic.deadline = mishap == HASTY ? 1 + (int64_t)below(UINT64_C(1) << below(24)) : PATIENCE;
    traffic.count = receive_count = send_count = 0;
    traffic.used = 0;
    memset(traffic.stopped, 0, sizeof traffic.stopped);
    for (uint32_t i = 0; i < traffic.ranks && (mishap == HASTY || mishap == WITHDRAW); i++) {
        spoil(i, (enum spoil)mishap);
    }
    add_round(mishap);
    if (mishap == WITHDRAW) {
        withdraw();
    }
    do_requests(mishap);
}
