/* SPDX-License-Identifier: MIT */
/*
 * The forms of the operations: all forms of one operation do the same, with or without handles, and
 * refuse the same. Each test runs for each row of one table.
 */
#include <stdio.h>

#include "../support/forms.h"
#include "../support/pair.h"

#define DEPTH 8
#define PEERS 4
#define LENGTH 512
#define IMMEDIATE 0xfeedface

#define TIMED SLUICE_CHANNEL_HISTOGRAMS
static const struct sluice_channel_attr short_queues = {
    .size = sizeof(short_queues), .flags = TIMED, .send_depth = DEPTH, .receive_depth = DEPTH};

/* A hub and its peers; near memory is the hub's, far memory that of all its peers, a piece each. */
struct fixture {
    struct star star;
    struct memory near, far;
    struct sluice_sge near_sges[PEERS], far_sges[PEERS];
    struct sluice_remote_mr near_remotes[PEERS], far_remotes[PEERS];
    bool atomics;
    /* The state of the form that is running. */
    const struct form *form;
    struct form_call call;
    uint32_t pieces; /* number of peers that take part */
    struct sluice_request requests[PEERS];
    struct sluice_peer_remote_mr remotes[PEERS];
    struct sluice_handle handles[PEERS];
    struct sluice_completion completions[PEERS];
};

/* In another order, so that the order of the list is not that of the peers. */
static const uint32_t targets[PEERS] = {2, 0, 3, 1};

static void fixture_open(struct fixture *fixture)
{
    uint32_t access = ACCESS_ALL;
    memset(fixture, 0, sizeof(*fixture));
    star_open(&fixture->star, PEERS, &short_queues);
    fixture->atomics = context_info(fixture->star.sides.contexts[1]).atomics != SLUICE_ATOMICS_NONE;
    if (fixture->atomics) {
        access |= SLUICE_ACCESS_REMOTE_ATOMIC;
    }
    fixture->near = side_memory_at(&fixture->star.sides, 0, PEERS * LENGTH, access, 0);
    fixture->far = side_memory_at(&fixture->star.sides, 1, PEERS * LENGTH, access, 0);
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture->near_sges[i] = memory_sge(&fixture->near, i * LENGTH, LENGTH);
        fixture->far_sges[i] = memory_sge(&fixture->far, i * LENGTH, LENGTH);
        fixture->near_remotes[i] = memory_remote(&fixture->near, i * LENGTH, LENGTH);
        fixture->far_remotes[i] = memory_remote(&fixture->far, i * LENGTH, LENGTH);
    }
}

static void fixture_close(struct fixture *fixture)
{
    star_close(&fixture->star);
}

static bool by_hub(const struct form *form)
{
    return form->of != OF_CHANNEL;
}

/* The elements and the remote regions, as the requesting side sees them. */
static struct sluice_sge *own_sges(struct fixture *fixture)
{
    return by_hub(fixture->form) ? fixture->near_sges : fixture->far_sges;
}

static struct sluice_sge *other_sges(struct fixture *fixture)
{
    return by_hub(fixture->form) ? fixture->far_sges : fixture->near_sges;
}

static struct sluice_remote_mr *other_remotes(struct fixture *fixture)
{
    return by_hub(fixture->form) ? fixture->far_remotes : fixture->near_remotes;
}

static uint8_t *bytes_of(const struct sluice_sge *sge)
{
    return (uint8_t *)(uintptr_t)sge->addr;
}

/*
 * Prepares the arguments of a valid call, with the first piece if there are many. Requests of a
 * list have their element inside, or in a list of elements.
 */
static void prepare(struct fixture *fixture, const struct form *form, bool inside)
{
    uint32_t length = form_is_atomic(form) ? 8 : LENGTH;
    fixture->form = form;
    fixture->pieces = by_hub(form) ? PEERS : 1;
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture->near_sges[i].length = fixture->far_sges[i].length = length;
        fixture->near_remotes[i].length = fixture->far_remotes[i].length = length;
        fixture->requests[i] = request_of(SLUICE_OP_NONE, i, &own_sges(fixture)[i]);
        if (inside) {
            fixture->requests[i].sge = own_sges(fixture)[i];
            fixture->requests[i].sges = NULL;
        }
        fixture->requests[i].remote = other_remotes(fixture)[i];
        fixture->remotes[i] = (struct sluice_peer_remote_mr){
            .peer = targets[i], .remote = other_remotes(fixture)[targets[i]]};
    }
    fixture->call = (struct form_call){
        .channel = fixture->star.spokes[0],
        .hub = fixture->star.hub,
        .sges = own_sges(fixture),
        .sge_count = 1,
        .remote = other_remotes(fixture),
        .operands = {40, 77},
        .immediate = IMMEDIATE,
        .requests = fixture->requests,
        .peers = targets,
        .remotes = fixture->remotes,
        .count = PEERS,
        .deadline = DEADLINE,
        .handles = fixture->handles,
        .completions = fixture->completions,
    };
    memset(fixture->handles, 0xcc, sizeof(fixture->handles));
    memset(fixture->completions, 0xcc, sizeof(fixture->completions));
}

static void begin_scope(struct fixture *fixture)
{
    fixture->call.scope = made(sluice_multichannel_scope_begin(fixture->star.hub, DEADLINE));
}

/* Returns the piece of the request at a place of the list. */
static uint32_t piece_at(const struct form *form, uint32_t place)
{
    return form->shape == MULTICAST ? targets[place] : place;
}

/* Fills the memory of the side that data come from, and clears the other one. */
static void fill(struct fixture *fixture)
{
    const struct form *form = fixture->form;
    for (uint32_t i = 0; i < fixture->pieces; i++) {
        uint8_t *own = bytes_of(&own_sges(fixture)[i]);
        uint8_t *other = bytes_of(&other_sges(fixture)[i]);
        uint64_t key = pattern_key(0, form->shape == MULTICAST ? 0 : i, (uint32_t)(form - forms));
        memset(own, 0, LENGTH);
        memset(other, 0, LENGTH);
        if (form_is_atomic(form)) {
            memcpy(other, &(uint64_t){40}, 8);
        } else {
            pattern_fill(form_sends(form) ? own : other, LENGTH, key);
        }
    }
}

static void check_atomic(const struct fixture *fixture, const uint8_t *own, const uint8_t *other)
{
    uint64_t result, word;
    uint64_t wanted = fixture->form->opcode == SLUICE_OP_FETCH_ADD ? 80 : 77;
    memcpy(&result, own, 8);
    memcpy(&word, other, 8);
    require(result == 40 && word == wanted, "%s: %llu, %llu", fixture->form->name,
            (unsigned long long)result, (unsigned long long)word);
}

static void check(struct fixture *fixture)
{
    const struct form *form = fixture->form;
    for (uint32_t i = 0; i < fixture->pieces; i++) {
        const uint8_t *own = bytes_of(&own_sges(fixture)[i]);
        const uint8_t *other = bytes_of(&other_sges(fixture)[i]);
        uint64_t key = pattern_key(0, form->shape == MULTICAST ? 0 : i, (uint32_t)(form - forms));
        if (form_is_atomic(form)) {
            check_atomic(fixture, own, other);
        } else {
            pattern_check(form_sends(form) ? other : own, LENGTH, key);
        }
    }
}

/* Posts the other side of a piece: a receive, also for an immediate, or a send. */
static bool help(struct fixture *fixture, uint32_t piece, struct sluice_handle *handle)
{
    const struct form *form = fixture->form;
    bool immediate = form_is_immediate(form);
    struct sluice_request request =
        request_of(form_sends(form) ? SLUICE_OP_RECEIVE : SLUICE_OP_SEND, by_hub(form) ? 0 : piece,
                   form_is_one_sided(form) ? NULL : &other_sges(fixture)[piece]);
    if (form_is_one_sided(form) && !immediate) {
        return false;
    }
    if (by_hub(form)) {
        *handle = post(fixture->star.spokes[piece], &request);
    } else {
        require_result(sluice_multichannel_post(fixture->star.hub, &request, 1, DEADLINE, handle),
                       1);
    }
    return true;
}

static void await_help(struct fixture *fixture, uint32_t piece, struct sluice_handle handle)
{
    struct sluice_completion completion;
    if (by_hub(fixture->form)) {
        completion = await(fixture->star.spokes[piece], handle, SLUICE_CLASS_NONE);
    } else {
        require_ok(sluice_multichannel_wait(fixture->star.hub, &handle, DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_NONE);
    }
    require(form_is_immediate(fixture->form)
                ? (completion.flags & SLUICE_IMMEDIATE) && completion.immediate == IMMEDIATE
                : !(completion.flags & SLUICE_IMMEDIATE),
            "flags %u, immediate %#x", completion.flags, completion.immediate);
}

/* Requires that the request at a place of the list succeeded. */
static void check_completion_at(const struct fixture *fixture, uint32_t place,
                                const struct sluice_completion *completion)
{
    const struct form *form = fixture->form;
    require_class(completion, SLUICE_CLASS_NONE);
    require(completion->opcode == form->opcode && completion->peer == piece_at(form, place) &&
                completion->bytes == own_sges((struct fixture *)fixture)[0].length,
            "%s: opcode %u, peer %u, %llu bytes", form->name, completion->opcode, completion->peer,
            (unsigned long long)completion->bytes);
}

/* Takes results by handles, or by polls, which return this order for one peer. */
static void take_posted(struct fixture *fixture, uint32_t count, bool with_handles)
{
    const struct form_call *call = &fixture->call;
    struct sluice_completion completion;
    for (uint32_t i = 0; i < count; i++) {
        if (!with_handles) {
            require_ok(by_hub(fixture->form)
                           ? sluice_multichannel_next(call->hub, DEADLINE, &completion)
                           : sluice_channel_next(call->channel, DEADLINE, &completion));
            require_class(&completion, SLUICE_CLASS_NONE);
            require(completion.opcode == fixture->form->opcode, "opcode %u", completion.opcode);
            continue;
        }
        const struct sluice_handle *handle = &fixture->handles[i];
        require_ok(fixture->form->of == OF_SCOPE
                       ? sluice_scope_wait(call->scope, handle, DEADLINE, &completion)
                   : by_hub(fixture->form)
                       ? sluice_multichannel_wait(call->hub, handle, DEADLINE, &completion)
                       : sluice_channel_wait(call->channel, handle, DEADLINE, &completion));
        check_completion_at(fixture, i, &completion);
    }
}

/* Makes the calls for all pieces; a posted list returns the number of its requests. */
static void ask(struct fixture *fixture, bool with_handles)
{
    const struct form *form = fixture->form;
    struct form_call call = fixture->call;
    uint32_t rounds = form->shape == ONE ? fixture->pieces : 1;
    for (uint32_t i = 0; i < rounds; i++) {
        call.peer = i;
        call.sges = &own_sges(fixture)[i];
        call.remote = &other_remotes(fixture)[i];
        call.handles = with_handles ? &fixture->handles[i] : NULL;
        call.completions = with_handles ? &fixture->completions[i] : NULL;
        require_result(form->call(&call),
                       form->shape == ONE || form->end == BLOCKING ? 0 : (int)fixture->pieces);
    }
}

static void take(struct fixture *fixture, bool with_handles)
{
    const struct form *form = fixture->form;
    struct sluice_scope_report report = {.size = sizeof(report)};
    bool described = form->shape != ONE || form->opcode == SLUICE_OP_RECEIVE;
    if (form->end == POSTED && (with_handles || form->of != OF_SCOPE)) {
        take_posted(fixture, fixture->pieces, with_handles);
    } else if (form->end == BLOCKING && with_handles && described) {
        for (uint32_t i = 0; i < fixture->pieces; i++) {
            check_completion_at(fixture, i, &fixture->completions[i]);
        }
    }
    if (form->of == OF_SCOPE) {
        require_ok(sluice_scope_end(fixture->call.scope, &report));
        require(report.posted == fixture->pieces &&
                    report.unseen == (with_handles ? 0 : fixture->pieces),
                "%u posted, %u unseen", report.posted, report.unseen);
    }
}

/*
 * Runs all forms of one operation, of a channel, a peer or a scope; each has a process of its own.
 * Lists with several operations are in test_submit, test_scope_posts and test_scatter.
 */
static void try_forms(enum form_of of, void (*run)(const struct form *form))
{
    for (uint32_t i = 0; i < FORMS; i++) {
        if (forms[i].of == of && forms[i].opcode != SLUICE_OP_NONE) {
            run(&forms[i]);
        }
    }
}

static void move_bytes(const struct form *form, bool with_handles)
{
    struct fixture fixture;
    struct sluice_handle theirs[PEERS];
    bool helped[PEERS];
    fixture_open(&fixture);
    prepare(&fixture, form, !with_handles);
    if (form_is_atomic(form) && !fixture.atomics) {
        return fixture_close(&fixture);
    }
    fill(&fixture);
    for (uint32_t i = 0; i < fixture.pieces; i++) {
        helped[i] = help(&fixture, i, &theirs[i]);
    }
    if (form->of == OF_SCOPE) {
        begin_scope(&fixture);
    }
    ask(&fixture, with_handles);
    take(&fixture, with_handles);
    for (uint32_t i = 0; i < fixture.pieces; i++) {
        if (helped[i]) {
            await_help(&fixture, i, theirs[i]);
        }
    }
    check(&fixture);
    fixture_close(&fixture);
}

static void move_both_ways(const struct form *form)
{
    move_bytes(form, true);
    move_bytes(form, false);
}

/* Each form does its operation, with and without handles or completions. */
TEST(each_moves_its_bytes, .times = OF_SCOPE + 1)
{
    try_forms((enum form_of)_i, move_both_ways);
}

/* Requires that the call was refused without effect, also on the report of the next mistake. */
static void refused(struct fixture *fixture, int error, const char *words)
{
    const struct form *form = fixture->form;
    int result = form->call(&fixture->call);
    require(result == error, "%s: %d (%s), not %d: %s", form->name, result, words, error,
            sluice_last_error());
    require_words(sluice_last_error(), words);
    value_check(fixture->handles, sizeof(fixture->handles), 0xcc);
    value_check(fixture->completions, sizeof(fixture->completions), 0xcc);
}

/* Returns the name of the operation in texts. */
static const char *operation(const struct form *form)
{
    static const char *const names[] = {
        [SLUICE_OP_SEND] = "send",
        [SLUICE_OP_RECEIVE] = "receive",
        [SLUICE_OP_WRITE] = "write",
        [SLUICE_OP_READ] = "read",
        [SLUICE_OP_COMPARE_SWAP] = "compare-swap",
        [SLUICE_OP_FETCH_ADD] = "fetch-add",
    };
    return names[form->opcode];
}

static void wrong_ones(struct fixture *fixture)
{
    const struct form *form = fixture->form;
    struct form_call *call = &fixture->call;
    const struct form_call good = *call;
    struct sluice_remote_mr narrow = *call->remote;
    struct sluice_sge long_sge = *call->sges;
    char words[40];
    long_sge.length++;
    call->sges = NULL;
    refused(fixture, -EINVAL, "NULL");
    if (form_is_atomic(form)) {
        call->sges = &long_sge;
        refused(fixture, -EINVAL, "8 bytes, not 9");
    } else {
        call->sge_count = 2;
        refused(fixture, -EINVAL, "2 NULL");
    }
    *call = good;
    if (form->of != OF_CHANNEL) {
        call->peer = PEERS;
        refused(fixture, -EINVAL, "peer 4");
        *call = good;
    }
    if (form_is_one_sided(form)) {
        call->remote = NULL;
        snprintf(words, sizeof(words), "%s remote", operation(form));
        refused(fixture, -EINVAL, words);
        narrow.length--;
        call->remote = &narrow;
        snprintf(words, sizeof(words), form_is_atomic(form) ? "%u" : "512 %u",
                 (unsigned)narrow.length);
        refused(fixture, -ERANGE, words);
        *call = good;
        if (!form_is_atomic(form)) {
            call->sge_count = 2;
            refused(fixture, -ERANGE, "1024 512");
        }
        *call = good;
    }
}

static void wrong_lists(struct fixture *fixture)
{
    const struct form *form = fixture->form;
    struct form_call *call = &fixture->call;
    const struct form_call good = *call;
    uint32_t peers[PEERS] = {0, 1, 2, PEERS};
    char words[40];
    struct sluice_request *last = &fixture->requests[form->shape == LIST ? PEERS - 1 : 0];
    call->requests = NULL;
    refused(fixture, -EINVAL, "NULL");
    *call = good;
    last->opcode = form->opcode == SLUICE_OP_READ ? SLUICE_OP_WRITE : SLUICE_OP_READ;
    snprintf(words, sizeof(words), form->shape == LIST ? "3 %s %s" : "%s",
             form->opcode == SLUICE_OP_READ ? "write" : "read", operation(form));
    refused(fixture, -EINVAL, words);
    last->opcode = SLUICE_OP_NONE;
    if (form->shape == LIST) {
        last->peer = PEERS;
        refused(fixture, -EINVAL, "peer 4");
        last->peer = PEERS - 1;
    } else {
        call->peers = NULL;
        call->remotes = NULL;
        refused(fixture, -EINVAL, "NULL");
        call->peers = peers;
        call->remotes = fixture->remotes;
        fixture->remotes[PEERS - 1].peer = PEERS;
        refused(fixture, -EINVAL, "peer 4");
        fixture->remotes[PEERS - 1].peer = targets[PEERS - 1];
    }
    /* With a count of 0 no array is read. */
    *call = good;
    call->requests = NULL;
    call->peers = NULL;
    call->remotes = NULL;
    call->count = 0;
    require_ok(form->call(call));
    *call = good;
}

static void ask_wrongly(const struct form *form)
{
    struct fixture fixture;
    struct sluice_completion completion;
    fixture_open(&fixture);
    prepare(&fixture, form, false);
    struct form_call *call = &fixture.call;
    if (form->of == OF_SCOPE) {
        begin_scope(&fixture);
    }
    if (form_is_atomic(form) && !fixture.atomics) {
        refused(&fixture, -EOPNOTSUPP, "");
    } else if (form->shape == ONE) {
        wrong_ones(&fixture);
    } else {
        wrong_lists(&fixture);
    }
    const struct form_call good = *call;
    if (form->of != OF_SCOPE) {
        call->deadline = -1;
        refused(&fixture, -EINVAL, "deadline -1");
    }
    *call = good;
    call->channel = NULL;
    call->hub = NULL;
    call->scope = NULL;
    refused(&fixture, -EINVAL, form->of == OF_SCOPE ? "scope" : "channel");
    if (form->of == OF_SCOPE) {
        struct sluice_scope_report report = {.size = sizeof(report)};
        *call = good;
        require_ok(sluice_scope_end(call->scope, &report));
        require(report.posted == 0, "%u posted", report.posted);
        refused(&fixture, -ESTALE, "scope has ended");
        require_error(sluice_scope_poll(call->scope, &completion, 1), -ESTALE, "scope has ended");
        require_error(sluice_scope_end(call->scope, NULL), -ESTALE, "scope has ended");
    }
    require_error(sluice_multichannel_next(fixture.star.hub, 0, &completion), -ENOENT, "");
    require_error(sluice_channel_next(fixture.star.spokes[0], 0, &completion), -ENOENT, "");
    star_works(&fixture.star, 0);
    fixture_close(&fixture);
}

TEST(each_refuses_what_is_wrong, .times = OF_SCOPE + 1)
{
    try_forms((enum form_of)_i, ask_wrongly);
}

static void ask_beside_a_scope(const struct form *form)
{
    struct fixture fixture;
    struct sluice_scope_report report = {.size = sizeof(report)};
    fixture_open(&fixture);
    prepare(&fixture, form, false);
    fill(&fixture);
    struct sluice_scope *scope =
        made(by_hub(form) ? sluice_multichannel_scope_begin(fixture.star.hub, DEADLINE)
                          : sluice_channel_scope_begin(fixture.star.spokes[0], DEADLINE));
    refused(&fixture, -EBUSY, "scope");
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == 0, "%u posted", report.posted);
    star_works(&fixture.star, 0);
    fixture_close(&fixture);
}

/* While a scope is open, its channel or multichannel refuses all other calls. */
TEST(each_is_refused_beside_a_scope, .times = OF_SCOPE)
{
    try_forms((enum form_of)_i, ask_beside_a_scope);
}

static void ask_a_failed_peer(const struct form *form)
{
    static const uint32_t in_order[PEERS] = {0, 1, 2, 3};
    struct fixture fixture;
    if (form->end != POSTED) {
        return;
    }
    fixture_open(&fixture);
    prepare(&fixture, form, false);
    star_break(&fixture.star, 2);
    if (form->shape == ONE) {
        fixture.call.peer = 2;
        fixture.call.remote = &fixture.far_remotes[2];
        refused(&fixture, form_is_atomic(form) && !fixture.atomics ? -EOPNOTSUPP : -ENOTCONN, "");
        fixture_close(&fixture);
        return;
    }
    fixture.call.peers = in_order;
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture.remotes[i].peer = i;
        fixture.remotes[i].remote = fixture.far_remotes[i];
    }
    require_result(form->call(&fixture.call), 2);
    value_check(fixture.handles + 2, 2 * sizeof(fixture.handles[0]), 0xcc);
    fixture.call.requests += form->shape == LIST ? 2 : 0;
    fixture.call.peers += 2;
    fixture.call.remotes += 2;
    fixture.call.handles += 2;
    fixture.call.count = 2;
    require_error(form->call(&fixture.call), -ENOTCONN, "peer 2");
    value_check(fixture.handles + 2, 2 * sizeof(fixture.handles[0]), 0xcc);
    /* Posted requests do not end within a deadline of 0. */
    int ended = sluice_multichannel_shutdown(fixture.star.hub, 0);
    require(ended == -ETIMEDOUT || (form_is_one_sided(form) && ended == 0), "%s: %d", form->name,
            ended);
    fixture_close(&fixture);
}

/* All posted lists end before a failed peer, and return its error if it is the first. */
TEST(each_stops_at_a_failed_peer)
{
    try_forms(OF_PEER, ask_a_failed_peer);
}

TEST_WITH(fixture, full_queues_and_no_handles, ())
{
    struct sluice_completion completion;
    struct sluice_multichannel *hub = fixture->star.hub;
    struct sluice_handle handle;
    memset(&handle, 0xcc, sizeof(handle));
    for (uint32_t i = 0; i < DEPTH; i++) {
        require_ok(sluice_multichannel_post_receive(hub, 3, NULL, 0, DEADLINE, NULL));
        require_ok(sluice_channel_post_receive(fixture->star.spokes[0], NULL, 0, DEADLINE, NULL));
    }
    require_error(sluice_multichannel_post_receive(hub, 3, NULL, 0, DEADLINE, &handle), -EAGAIN,
                  "peer 3");
    require_error(sluice_channel_post_receive(fixture->star.spokes[0], NULL, 0, DEADLINE, &handle),
                  -EAGAIN, "receive queue");
    value_check(&handle, sizeof(handle), 0xcc);
    /* Requests without a handle are polled. */
    require_ok(sluice_multichannel_post_send(hub, 0, NULL, 0, DEADLINE, NULL));
    require_ok(sluice_multichannel_next(hub, DEADLINE, &completion));
    require_equal(completion.opcode, SLUICE_OP_SEND, completion.peer, 0);
    require_ok(sluice_channel_next(fixture->star.spokes[0], DEADLINE, &completion));
    require(completion.opcode == SLUICE_OP_RECEIVE, "opcode %u", completion.opcode);
}

int main(void)
{
    return run_tests("forms", 30);
}
