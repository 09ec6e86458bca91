/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "fuzz_state.h"
#include "invariants.h"

#define SEEDS 6000
#define SHORT_SEEDS 600
/* How late a call may return: not every poll reads the clock. */
#define SLACK SLUICE_MS(20)

struct fuzz fuzz;

uint32_t fuzz_one_in(uint32_t n, uint32_t value)
{
    return fake_random(n) == 0 ? value : 0;
}

static void choose_faults(void)
{
    fake.chances = (struct fake_chances){
        .hold = fuzz_one_in(2, fake_random(700)),
        .fail = fuzz_one_in(2, fake_random(50)),
        .lose = fuzz_one_in(2, fake_random(30)),
        .stick = fuzz_one_in(3, fake_random(1000)),
        .refuse = fuzz_one_in(3, fake_random(60)),
        .refuse_blind = fake_random(500),
        .run_refused = fake_random(1000),
        .repeat = fuzz_one_in(2, 100),
        .invent = fuzz_one_in(2, 50),
        .die = fuzz_one_in(10, fake_random(10)),
        .create = fuzz_one_in(3, 50),
        .late = 50,
        .flush_at_once = fuzz_one_in(4, 1000),
    };
}

static bool open_channel(struct rig *rig)
{
    struct sluice_channel_attr attr =
        *ATTR(.flags = fake_random(3) != 0 ? SLUICE_CHANNEL_HISTOGRAMS : 0,
              .send_depth = 1 + fake_random(20), .receive_depth = 1 + fake_random(20),
              .max_message = RIG_MESSAGE, .wait_mode = fake_random(3),
              .staging = 2 * RIG_MESSAGE + fake_random(2 * RIG_MESSAGE));
    if (fake_random(2) == 0) {
        attr.queue_pairs = 2 + fake_random(3);
        attr.stripe_least = 1 + fake_random(RIG_MESSAGE);
    }
    fake.max_cq_depth = fuzz_one_in(3, 2 + fake_random(60));
    if (fake.max_cq_depth != 2) { /* that depth has no room for a probe */
        attr.keepalive = fuzz_one_in(3, (uint32_t)SLUICE_MS(1 + fake_random(4)));
    }
    rig->context = sluice_context_open("soft", NULL);
    rig->pd = sluice_pd_alloc(rig->context);
    fake_require(rig->pd, "%s", sluice_last_error());
    choose_faults();
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(rig->pd, fuzz.peers, &attr);
    if (!prepared) {
        return false;
    }
    require_ok(sluice_prepared_multichannel_endpoints(prepared, fuzz.endpoints, fuzz.peers));
    struct sluice_multichannel *channel =
        sluice_prepared_multichannel_handshake(prepared, fuzz.endpoints, fuzz.peers);
    fake_require(channel, "%s", sluice_last_error());
    rig_attach(rig, channel);
    return true;
}

/*
 * Moves the only element of a request into the request itself, or leaves it; the unused field holds
 * nonsense.
 */
static void move_element(struct sluice_request *request)
{
    request->sge = (struct sluice_sge){.addr = 1, .length = UINT32_MAX, .lkey = UINT32_MAX};
    if (request->sge_count == 1 && fake_random(2) == 0) {
        request->sge = request->sges[0];
        request->sges = NULL;
    }
}

static void make_atomic(struct sluice_request *request)
{
    request->sge_count = 1;
    fuzz.sges[request->user_data - fuzz.next][0].length = 8;
    request->operand[0] = request->user_data;
    request->operand[1] = request->opcode == SLUICE_OP_COMPARE_SWAP;
}

void fuzz_make_requests(uint32_t count, uint32_t opcode)
{
    fuzz.count = count;
    fake_require(fuzz.next + count < FAKE_KEYS - 2, "%u requests", fuzz.next);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t key = fuzz.next + i;
        struct entry *entry = &fuzz.entries[key];
        struct sluice_request *request = &fuzz.requests[i];
        *entry = (struct entry){
            .peer = fake_random(fuzz.peers),
            .opcode = opcode ? opcode : SLUICE_OP_SEND + fake_random(SLUICE_OP_FETCH_ADD)};
        bool one_sided = entry->opcode == SLUICE_OP_WRITE || entry->opcode == SLUICE_OP_READ;
        *request = REQUEST(.opcode = entry->opcode, .peer = entry->peer, .user_data = key,
                           .sges = fuzz.sges[i], .sge_count = 1 + fake_random(SGES));
        for (uint32_t k = 0; k < request->sge_count; k++) {
            uint32_t length = one_sided && fake_random(3) == 0 ? fake_random(28000)
                                                               : fake_random(RIG_MESSAGE / SGES);
            fuzz.sges[i][k] = (struct sluice_sge){.addr = 4096, .length = length, .lkey = key};
            entry->bytes += length;
        }
        if (slu_opcode_is_atomic(entry->opcode)) {
            make_atomic(request);
            entry->bytes = 8;
        } else if (entry->opcode != SLUICE_OP_RECEIVE && entry->opcode != SLUICE_OP_READ) {
            request->flags = fuzz_one_in(8, SLUICE_IMMEDIATE);
        }
        request->remote = (struct sluice_remote_mr){.addr = 4096, .length = entry->bytes};
        if (one_sided && fake_random(4) == 0) {
            entry->bytes = fuzz_make_blocks(request, i);
            request->remote.length = SPAN;
        }
        if (entry->opcode < SLUICE_OP_WRITE && fake_random(4) == 0) {
            entry->bytes = fuzz_make_message(request, i);
        }
        move_element(request);
    }
}

void fuzz_make_single(void)
{
    struct sluice_request *request = &fuzz.requests[0];
    fuzz_make_requests(1, SLUICE_OP_NONE);
    if (request->blocks) {
        request->blocks = NULL;
        if (request->opcode < SLUICE_OP_WRITE) {
            fuzz.sges[0][0].length = request->sge.length = RIG_MESSAGE;
        }
        fuzz.entries[fuzz.next].bytes = fuzz.sges[0][0].length;
    }
    request->remote.length = SPAN;
}

void fuzz_accept_requests(enum owner owner)
{
    for (uint32_t i = 0; i < fuzz.count; i++) {
        fuzz.entries[fuzz.next + i].owner = owner;
    }
    fuzz.next += fuzz.count;
}

static void check_success(const struct sluice_completion *completion, uint32_t key)
{
    const struct fake_work *work = &fake.ledger[key];
    fake_require(completion->bytes == fuzz.entries[key].bytes, "request %u: %llu bytes, not %llu",
                 key, (unsigned long long)completion->bytes,
                 (unsigned long long)fuzz.entries[key].bytes);
    fake_require(work->bytes == completion->bytes, "request %u succeeded, and moved %llu of %llu",
                 key, (unsigned long long)work->bytes, (unsigned long long)completion->bytes);
    fake_require(work->status == SLUICE_STATUS_SUCCESS, "request %u succeeded; it had status %u",
                 key, work->status);
    fake_require(completion->status == 0 && completion->cause == 0 && completion->error_class == 0,
                 "request %u succeeded with status %u, cause %u", key, completion->status,
                 completion->cause);
}

/*
 * With stripes, a request that was waiting and was then refused may end with the error of its peer,
 * or as the first that this failure ends.
 */
static bool can_be_told_of_the_peer(uint32_t status)
{
    return fuzz.rig.engine->attr.queue_pairs > 1 && status == SLUICE_STATUS_GENERAL_ERR;
}

static void check_failure(const struct sluice_completion *completion, uint32_t key)
{
    bool refused = completion->error == -ENOTCONN;
    int error = slu_class_error((enum sluice_error_class)completion->error_class);
    fake_require(completion->bytes == 0 && completion->status != 0, "request %u failed: %u", key,
                 completion->status);
    fake_require(
        refused ? completion->error_class == SLUICE_CLASS_CANCELLED : completion->error == error,
        "request %u: error %d of class %u", key, completion->error, completion->error_class);
    fake_require(completion->status != SLUICE_STATUS_WR_FLUSH_ERR ||
                     fake.ledger[key].status == SLUICE_STATUS_SUCCESS ||
                     can_be_told_of_the_peer(fake.ledger[key].status),
                 "request %u is said to be flushed; it had status %u", key,
                 fake.ledger[key].status);
    fake_require(completion->cause != 0 || refused || completion->error == -ETIMEDOUT,
                 "request %u: error %d without a cause", key, completion->error);
}

/* Requires that the device is done with the request, so that its memory may go. */
void fuzz_check_released(uint32_t key)
{
    fake_require(fake.ledger[key].held == 0, "request %u is complete; the device holds %u of it",
                 key, fake.ledger[key].held);
    fake_require(!slu_pd_uses_key(fuzz.rig.pd, key), "key %u seems to be in use", key);
}

void fuzz_see_result(const struct sluice_completion *completion, enum owner owner)
{
    fake_require(completion->user_data > 0 && completion->user_data < fuzz.next,
                 "no request has user data %llu", (unsigned long long)completion->user_data);
    uint32_t key = (uint32_t)completion->user_data;
    struct entry *entry = &fuzz.entries[key];
    fake_require(entry->owner == owner, "request %u has owner %d, not %d", key, (int)entry->owner,
                 (int)owner);
    fake_require(completion->peer == entry->peer && completion->opcode == entry->opcode,
                 "request %u: peer %u, opcode %u", key, completion->peer, completion->opcode);
    if (completion->error == 0) {
        check_success(completion, key);
    } else {
        check_failure(completion, key);
    }
    fuzz_check_released(key);
    entry->owner = SEEN;
}

int64_t fuzz_choose_deadline(void)
{
    return fake_random(4) ? SLUICE_MS(5) : SLUICE_US(fake_random(4) ? fake_random(300) : 0);
}

void fuzz_check_time(const char *call, int64_t start, int64_t deadline)
{
    int64_t took = fake.now - start;
    fake_require(took <= deadline + SLU_DRAIN_TIME + SLACK, "%s took %lld us, not %lld us", call,
                 (long long)took / 1000, (long long)deadline / 1000);
}

const struct form *fuzz_choose_list(enum form_of of, enum form_end end)
{
    const struct form *chosen = form_find(of, SLUICE_OP_NONE, LIST, end, 0);
    uint32_t count = 0;
    if (fake_random(4)) {
        return chosen;
    }
    for (uint32_t i = 0; i < FORMS; i++) {
        if (forms[i].of == of && forms[i].shape == LIST && forms[i].end == end &&
            fake_random(++count) == 0) {
            chosen = &forms[i];
        }
    }
    return chosen;
}

/* Submits or posts a prepared list; a list that cannot be prepared is submitted directly. */
static int submit_prepared(const struct form *form, const struct form_call *call)
{
    struct sluice_list *list =
        call->count > 0 && form->opcode == SLUICE_OP_NONE
            ? sluice_multichannel_list_prepare(call->hub, call->requests, call->count)
            : NULL;
    int result = -EAGAIN;
    if (!list) {
        fake_require(call->count == 0 || form->opcode != SLUICE_OP_NONE || errno == E2BIG ||
                         errno == ENOMEM,
                     "%s", sluice_last_error());
        return form->call(call);
    }
    if (fake_random(2)) {
        result = sluice_list_post(list, call->deadline, call->completions);
        bool posted = result == 0;
        if (posted) {
            fake_require(sluice_list_wait(list, SLUICE_FOREVER) == 0, "%s", sluice_last_error());
            result = sluice_list_result(list);
        } else {
            fuzz_refused_list(result);
        }
        sluice_list_free(list);
        return posted ? result : form->call(call);
    }
    result = sluice_list_submit(list, call->deadline, call->completions);
    bool stale = result == -ESTALE;
    sluice_list_free(list);
    return stale ? form->call(call) : result;
}

static void do_submit(void)
{
    const struct form *form = fuzz_choose_list(OF_PEER, BLOCKING);
    struct form_call call;
    struct sluice_completion completions[MOST];
    uint32_t first = fuzz.next;
    int64_t deadline = fuzz_choose_deadline();
    int64_t start = fake.now;
    int real = 0;
    int other = 0;
    memset(completions, 0xcc, sizeof(completions));
    fuzz_make_requests(fake_random(40), form->opcode);
    fuzz_accept_requests(CALL);
    call = (struct form_call){.hub = fuzz.rig.channel,
                              .requests = fuzz.requests,
                              .count = fuzz.count,
                              .deadline = deadline,
                              .completions = completions};
    int result = fake_random(3) ? form->call(&call) : submit_prepared(form, &call);
    for (uint32_t i = 0; i < fuzz.count; i++) {
        int error = completions[i].error;
        fake_require(completions[i].user_data == first + i, "result %u is of another request", i);
        fuzz_see_result(&completions[i], CALL);
        other = other == 0 ? error : other;
        if (real == 0 && error != -ECANCELED && error != -ENOTCONN) {
            real = error;
        }
    }
    fake_require(result == (real != 0 ? real : other), "%d, not %d or %d", result, real, other);
    fuzz_check_time(form->name, start, deadline);
}

/* Calls the function that the request stands for. */
static int call_single(const struct sluice_request *request, int64_t deadline,
                       struct sluice_completion *received)
{
    struct form_call call = form_call_one(request);
    call.hub = fuzz.rig.channel;
    call.deadline = deadline;
    call.completions = received;
    return form_find(OF_PEER, request->opcode, ONE, BLOCKING, request->flags)->call(&call);
}

/* A blocking call of one request has a code path of its own in the engine. */
static void do_single(void)
{
    struct sluice_completion received = {0};
    uint32_t key = fuzz.next;
    const struct entry *entry = &fuzz.entries[key];
    int64_t deadline = fuzz_choose_deadline();
    int64_t start = fake.now;
    fuzz_make_single();
    fuzz_accept_requests(CALL);
    int result = call_single(&fuzz.requests[0], deadline, &received);
    fake_require(result != 0 || (fake.ledger[key].bytes == entry->bytes &&
                                 fake.ledger[key].status == SLUICE_STATUS_SUCCESS),
                 "request %u succeeded with status %u, and moved %llu of %llu", key,
                 fake.ledger[key].status, (unsigned long long)fake.ledger[key].bytes,
                 (unsigned long long)entry->bytes);
    if (entry->opcode == SLUICE_OP_RECEIVE) {
        fake_require(received.error == result && received.peer == entry->peer &&
                         received.opcode == SLUICE_OP_RECEIVE,
                     "%d, peer %u, opcode %u", received.error, received.peer, received.opcode);
        fake_require(received.bytes == (result == 0 ? entry->bytes : 0), "%llu bytes of %llu",
                     (unsigned long long)received.bytes, (unsigned long long)entry->bytes);
    }
    fuzz_check_released(key);
    fuzz.entries[key].owner = SEEN;
    fuzz_check_time("single", start, deadline);
}

/* Resets failed peers, and one more. */
static void do_reset(void)
{
    struct sluice_endpoint endpoint;
    uint32_t one = fake_random(fuzz.peers);
    for (uint32_t i = 0; i < fuzz.peers; i++) {
        if (i != one && fuzz.rig.engine->peers[i].state != SLUICE_STATE_FAILED) {
            continue;
        }
        int64_t start = fake.now;
        if (sluice_multichannel_peer_reset(fuzz.rig.channel, i, &endpoint) == 0 &&
            fake_random(20)) {
            int result = sluice_multichannel_peer_handshake(fuzz.rig.channel, i, &endpoint);
            fake_require(result == 0 || result == -ENOMEM, "%d", result);
        }
        fuzz_check_time("reset", start, 0);
    }
}

/* Removes a peer and adds one, in its place or in that of an earlier one. */
static void do_members(void)
{
    const struct slu_engine *engine = fuzz.rig.engine;
    struct sluice_endpoint endpoint;
    uint32_t one = fake_random(fuzz.peers);
    uint32_t lowest = 0;
    int64_t start = fake.now;
    bool there = engine->peers[one].state != SLUICE_STATE_REMOVED;
    require_result(sluice_multichannel_peer_remove(fuzz.rig.channel, one), there ? 0 : -ENOTCONN);
    if (fake_random(4)) {
        while (engine->peers[lowest].state != SLUICE_STATE_REMOVED) {
            lowest++;
        }
        int result = sluice_multichannel_peer_add(fuzz.rig.channel, &endpoint);
        fake_require(result == (int)lowest || result == -ENOMEM, "%d, not %u", result, lowest);
        if (result >= 0 && fake_random(20)) {
            result = sluice_multichannel_peer_handshake(fuzz.rig.channel, lowest, &endpoint);
            fake_require(result == 0 || result == -ENOMEM, "%d", result);
        }
    }
    fuzz_check_time("remove", start, 0);
}

/* If the call succeeds, all peers, or the one, that are not prepared have been heard. */
static void do_await(void)
{
    const struct slu_peer *peers = fuzz.rig.engine->peers;
    uint32_t one = fake_random(fuzz.peers + 1);
    int64_t timeout = fuzz_one_in(2, SLUICE_US(300));
    int64_t start = fake.now;
    int result = one == fuzz.peers
                     ? sluice_multichannel_wait_connected(fuzz.rig.channel, timeout)
                     : sluice_multichannel_peer_wait_connected(fuzz.rig.channel, one, timeout);
    fake_require(result <= 0 && result != -EINVAL && result != -EBUSY, "%d", result);
    for (uint32_t i = 0; i < fuzz.peers && result == 0; i++) {
        fake_require((one != i && one != fuzz.peers) || peers[i].state == SLUICE_STATE_PREPARED ||
                         peers[i].state == SLUICE_STATE_REMOVED ||
                         (peers[i].state == SLUICE_STATE_READY && peers[i].probe.answered),
                     "peer %u was not heard", i);
    }
    fuzz_check_time("wait_connected", start, timeout - SLU_DRAIN_TIME);
}

static void do_look(void)
{
    struct sluice_error error = {.size = sizeof(error)};
    uint32_t peer = fake_random(fuzz.peers);
    int state = sluice_multichannel_peer_state(fuzz.rig.channel, peer);
    fake_require(state == (int)fuzz.rig.engine->peers[peer].state, "%d", state);
    int found = sluice_multichannel_peer_error(fuzz.rig.channel, peer, &error);
    state = (int)fuzz.rig.engine->peers[peer].state; /* the peer may have failed in between */
    fake_require(found ==
                     (state == SLUICE_STATE_REMOVED ? -ENOTCONN : state == SLUICE_STATE_FAILED),
                 "%d in state %d", found, state);
    fake_require(found <= 0 || (error.error != 0 && error.text[0]), "peer %u: %d", peer,
                 error.error);
    if (!fuzz.scope && fake_random(10) == 0) {
        int64_t start = fake.now;
        sluice_multichannel_shutdown(fuzz.rig.channel, SLUICE_US(100));
        fuzz_check_time("shutdown", start, SLUICE_US(100));
    }
}

/* Memory that the device may touch cannot be deregistered. */
static void check_keys(void)
{
    for (uint32_t key = 1; key < fuzz.next; key++) {
        fake_require(fake.ledger[key].held == 0 || slu_pd_uses_key(fuzz.rig.pd, key),
                     "key %u is in use, and could be deregistered", key);
    }
}

/* Every accepted request is pending, or is counted by its result. */
static void check_counters(void)
{
    const uint32_t *pending = fuzz.rig.engine->pending;
    uint64_t known = pending[SLU_SEND_QUEUE] + pending[SLU_RECEIVE_QUEUE];
    struct sluice_counters counters = {.size = sizeof(counters)};
    require_ok(sluice_multichannel_counters(fuzz.rig.channel, &counters));
    for (size_t i = 0; i < COUNT(counters.requests); i++) {
        known += counters.requests[i];
    }
    for (size_t i = 0; i < COUNT(counters.failed); i++) {
        known += counters.failed[i];
    }
    known += counters.refused - fuzz.refused;
    fake_require(known == fuzz.next - 1, "%llu requests are counted or pending, of %u",
                 (unsigned long long)known, fuzz.next - 1);
    fake_require(counters.discarded == fake.strays, "%llu discarded, %llu strays",
                 (unsigned long long)counters.discarded, (unsigned long long)fake.strays);
}

static void finish(void)
{
    struct rig *rig = &fuzz.rig;
    fake.chances.die = 0;
    if (fuzz.scope) {
        fuzz_end_scope();
    }
    sluice_multichannel_shutdown(rig->channel, 0);
    fuzz_end_lists();
    check_engine(rig->engine);
    for (int queue = 0; queue < SLU_QUEUES; queue++) {
        fake_require(rig->engine->pending[queue] == 0, "%u pending after the shutdown",
                     rig->engine->pending[queue]);
    }
    uint64_t lost = rig->engine->failures_lost;
    for (struct sluice_completion one; sluice_multichannel_poll(rig->channel, &one, 1) == 1;) {
        fuzz_see_result(&one, PROGRAM);
    }
    for (uint32_t key = 1; key < fuzz.next; key++) {
        fuzz_check_released(key);
        /*
         * A result that no call returned must be a forgotten success; the loop above has taken all
         * others.
         */
        fake_require(fuzz.entries[key].owner != PROGRAM || lost > 0 ||
                         fake.ledger[key].status == SLUICE_STATUS_SUCCESS,
                     "request %u failed with status %u, and nobody was told", key,
                     fake.ledger[key].status);
    }
}

void fuzz_run(uint64_t seed)
{
    static void (*const calls[])(void) = {
        do_submit,  do_submit, do_submit, do_single,  do_single,   fuzz_post, fuzz_post,
        fuzz_post,  fuzz_poll, fuzz_poll, fuzz_wait,  fuzz_posted, do_reset,  fuzz_scope,
        fuzz_scope, do_look,   do_await,  do_members, fuzz_list,   fuzz_list, fuzz_list};
    static void (*const calls_in_scope[])(void) = {fuzz_scope, fuzz_scope, fuzz_scope, do_look};
    memset(&fuzz, 0, sizeof(fuzz));
    fake_reset(seed);
    fuzz.next = 1;
    fuzz.peers = 1 + fake_random(5);
    if (!open_channel(&fuzz.rig)) {
        sluice_pd_free(fuzz.rig.pd);
        sluice_context_close(fuzz.rig.context);
        fake_require(fake.objects == 0, "%u objects of the device are left", fake.objects);
        return;
    }
    for (uint32_t steps = 30 + fake_random(100); steps > 0; steps--) {
        if (fuzz.scope) {
            calls_in_scope[fake_random(COUNT(calls_in_scope))]();
        } else {
            calls[fake_random(COUNT(calls))]();
        }
        check_engine(fuzz.rig.engine);
        check_keys();
        check_counters();
    }
    finish();
    rig_close(&fuzz.rig);
}

unsigned fuzz_seconds(void)
{
    const char *value = getenv("SLUICE_FUZZ_SECONDS");
    return value ? (unsigned)strtoul(value, NULL, 10) : 0;
}

static void soak(unsigned seconds)
{
    time_t end = time(NULL) + (time_t)seconds;
    for (uint64_t seed = (uint64_t)time(NULL) << 32; time(NULL) < end; seed++) {
        printf("# SLUICE_FUZZ_SEED=%llu\n", (unsigned long long)seed);
        fuzz_run(seed);
    }
}

void fuzz_run_all(void)
{
    const char *seed = getenv("SLUICE_FUZZ_SEED");
    if (seed) {
        fuzz_run(strtoull(seed, NULL, 10));
    } else if (fuzz_seconds() > 0) {
        soak(fuzz_seconds());
    } else {
        for (uint64_t i = 1; i <= (short_run() ? SHORT_SEEDS : SEEDS); i++) {
            fuzz_run(i);
        }
    }
}
