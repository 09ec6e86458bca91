/* SPDX-License-Identifier: MIT */
/*
 * Lists of requests by every call there is. The result of a call is compared with the results of
 * its requests.
 */
#include "soak.h"

#define UNWRITTEN 0xa5 /* bytes of completions that a call must write */

int64_t choose_deadline(void)
{
    return one_in(&soak.rng, 2) ? OPERATION_TIME : SLUICE_FOREVER;
}

static bool one_opcode(const struct batch *batch)
{
    for (uint32_t i = 1; i < batch->count; i++) {
        if (batch->flights[i]->request.opcode != batch->flights[0]->request.opcode) {
            return false;
        }
    }
    return batch->flights[0]->request.opcode <= SLUICE_OP_READ;
}

static bool is_plain(const struct batch *batch, uint32_t allowed)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->flights[i]->request.flags & ~allowed) {
            return false;
        }
    }
    return true;
}

static bool two_sided(const struct batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->flights[i]->request.opcode > SLUICE_OP_RECEIVE) {
            return false;
        }
    }
    return true;
}

bool fits_method(const struct office *office, const struct batch *batch, enum method method)
{
    switch (method) {
    case BY_ONE:
        return is_plain(batch, SLUICE_IMMEDIATE);
    case BY_LIST:
    case BY_POSTED_LIST:
        return !office->channel && one_opcode(batch);
    case BY_SCOPE_KIND:
        return one_opcode(batch);
    case BY_SCATTER_GATHER:
        return !office->channel && two_sided(batch);
    case BY_SCOPE_NAMED:
    case BY_NAMED:
        return is_plain(batch, 0);
    default:
        return true;
    }
}

static void aim_at(const struct batch *batch)
{
    aim(batch->flights[0]->peer, batch->count);
}

int call_office(const struct office *office, uint32_t opcode, enum form_shape shape,
                enum form_end end, struct form_call *call)
{
    enum form_of of = call->scope ? OF_SCOPE : office->channel ? OF_CHANNEL : OF_PEER;
    call->channel = office->channel;
    call->hub = office->mc;
    return call_form(form_find(of, opcode, shape, end, call->flags), call);
}

/* Blocking, one by one. */

static int call_one(const struct flight *flight, struct sluice_completion *completion)
{
    struct form_call call = form_call_one(&flight->request);
    call.deadline = choose_deadline();
    call.completions = completion;
    return call_office(flight->office, flight->request.opcode, ONE, BLOCKING, &call);
}

void perform_one(struct flight *flight)
{
    struct sluice_completion completion;
    memset(&completion, UNWRITTEN, sizeof(completion));
    aim(flight->peer, 1);
    int result = call_one(flight, &completion);
    if (result == 0 && flight->request.opcode == SLUICE_OP_RECEIVE) {
        completion.user_data = flight->request.user_data;
        conclude(flight, &completion);
    } else {
        conclude_result(flight, result);
    }
}

/* Lists that block. */

static bool is_mere(int error)
{
    return error == -ECANCELED || error == -ENOTCONN;
}

/* Returns what a list call must return. */
static int result_of(const struct sluice_completion *completions, uint32_t count)
{
    int first = 0;
    for (uint32_t i = 0; i < count; i++) {
        int error = completions[i].error;
        if (error != 0 && (first == 0 || (is_mere(first) && !is_mere(error)))) {
            first = error;
        }
    }
    return first;
}

static void copy_requests(const struct batch *batch, struct sluice_request *requests)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        requests[i] = batch->flights[i]->request;
    }
}

static void conclude_list(struct batch *batch, const struct sluice_completion *completions,
                          int result)
{
    int wanted = result_of(completions, batch->count);
    expect(result == wanted, "a list of %u gave %d, its completions %d: %s", batch->count, result,
           wanted, sluice_last_error());
    for (uint32_t i = 0; i < batch->count; i++) {
        conclude(batch->flights[i], &completions[i]);
    }
}

/* Sends first, as its completions are. */
static void sort_sends(struct batch *batch, uint32_t *sends)
{
    struct batch sorted = {.count = 0};
    for (int receives = 0; receives < 2; receives++) {
        for (uint32_t i = 0; i < batch->count; i++) {
            if ((batch->flights[i]->request.opcode == SLUICE_OP_RECEIVE) == receives) {
                sorted.flights[sorted.count++] = batch->flights[i];
            }
        }
        *sends = receives ? *sends : sorted.count;
    }
    *batch = sorted;
}

/* A list that is too long to be prepared is submitted as any other. */
static int submit_prepared(struct office *office, struct form_call *call)
{
    struct sluice_list *list = EITHER(office, list_prepare, call->requests, call->count);
    if (!list) {
        expect(errno == E2BIG, "no list: %s", sluice_last_error());
        return call_office(office, SLUICE_OP_NONE, LIST, BLOCKING, call);
    }
    int result = -EAGAIN;
    bool posted =
        one_in(&soak.rng, 2) && CALL(list_post, list, call->deadline, call->completions) == 0;
    if (posted) {
        do {
            result = CALL(list_wait, list, SLUICE_FOREVER);
        } while (result == -EINTR);
        expect(result == 0, "wait for a list: %s", sluice_last_error());
        result = CALL(list_result, list);
    } else {
        result = CALL(list_submit, list, call->deadline, call->completions);
    }
    CALL_VOID(list_free, list);
    return result;
}

static void perform_blocking(struct office *office, struct batch *batch, enum method method)
{
    struct sluice_request requests[BATCH];
    struct sluice_completion completions[BATCH];
    uint32_t sends = batch->count;
    struct form_call call;
    memset(completions, UNWRITTEN, sizeof(completions));
    if (method == BY_SCATTER_GATHER) {
        sort_sends(batch, &sends);
    }
    copy_requests(batch, requests);
    call = (struct form_call){.requests = requests,
                              .count = sends,
                              .receives = requests + sends,
                              .receive_count = batch->count - sends,
                              .deadline = choose_deadline(),
                              .completions = completions};
    int result = method == BY_PREPARED
                     ? submit_prepared(office, &call)
                     : call_office(office, method == BY_LIST ? requests[0].opcode : SLUICE_OP_NONE,
                                   method == BY_SCATTER_GATHER ? TWO_LISTS : LIST, BLOCKING, &call);
    conclude_list(batch, completions, result);
}

/* Scopes. */

static int post_named(struct sluice_scope *scope, const struct flight *flight,
                      struct sluice_handle *handle)
{
    struct form_call call = form_call_one(&flight->request);
    call.scope = scope;
    call.handles = handle;
    return call_office(flight->office, flight->request.opcode, ONE, POSTED, &call);
}

/* Tags the region with its peer, which differs each time the peer was removed. */
static void tag_remote(const struct flight *flight, struct sluice_peer_remote_mr *tagged)
{
    int result = CALL(multichannel_peer_remote, flight->office->mc, flight->request.peer,
                      &flight->request.remote, tagged);
    expect(result == 0, "%d: %s", result, sluice_last_error());
}

int call_multicast(const struct batch *batch, uint32_t at, enum form_end end,
                   struct form_call *call)
{
    uint32_t peers[BATCH];
    struct sluice_peer_remote_mr remotes[BATCH];
    const struct flight *first = batch->flights[0];
    call->requests = &first->request;
    call->peers = peers;
    call->remotes = remotes;
    call->count = batch->count - at;
    for (uint32_t i = at; i < batch->count; i++) {
        peers[i - at] = batch->flights[i]->request.peer;
        tag_remote(batch->flights[i], &remotes[i - at]);
    }
    return call_office(first->office, first->request.opcode, MULTICAST, end, call);
}

#define BY_MULTICAST METHODS /* beside the methods */

/* Posts a prepared list in a scope; one that is too long to be prepared is posted as any other. */
static int post_prepared(struct sluice_scope *scope, struct office *office, struct form_call *call)
{
    struct sluice_list *list = EITHER(office, list_prepare, call->requests, call->count);
    if (!list) {
        expect(errno == E2BIG, "no list: %s", sluice_last_error());
        return call_office(office, SLUICE_OP_NONE, LIST, POSTED, call);
    }
    int result = CALL(scope_post_list, scope, list, call->handles);
    CALL_VOID(list_free, list);
    return result;
}

static void post_in_scope(struct sluice_scope *scope, struct batch *batch, unsigned method,
                          struct sluice_handle *handles)
{
    struct sluice_request requests[BATCH];
    struct form_call call = {
        .scope = scope, .requests = requests, .count = batch->count, .handles = handles};
    int result = 0;
    copy_requests(batch, requests);
    if (method == BY_SCOPE_NAMED) {
        for (uint32_t i = 0; i < batch->count && result == (int)i; i++) {
            int error = post_named(scope, batch->flights[i], handles ? &handles[i] : NULL);
            result = error < 0 ? error : (int)i + 1;
        }
    } else if (method == BY_MULTICAST) {
        result = call_multicast(batch, 0, POSTED, &call);
    } else if (method != BY_SCOPE_KIND && one_in(&soak.rng, 2)) {
        result = post_prepared(scope, batch->flights[0]->office, &call);
    } else {
        result = call_office(batch->flights[0]->office,
                             method == BY_SCOPE_KIND ? requests[0].opcode : SLUICE_OP_NONE, LIST,
                             POSTED, &call);
    }
    expect(result == (int)batch->count, "%d: %s", result, sluice_last_error());
}

/*
 * Finds the flight of a completion without user data: the first or the last one of its peer and
 * operation whose result was not read.
 */
static uint32_t find_in_batch(const struct batch *batch, const struct sluice_completion *completion,
                              bool last)
{
    uint32_t found = BATCH;
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct flight *flight = batch->flights[i];
        if (flight && flight->request.user_data == completion->user_data &&
            flight->request.peer == completion->peer &&
            flight->request.opcode == completion->opcode && (found == BATCH || last)) {
            found = i;
        }
    }
    expect(found < BATCH, "a completion of the scope with user data %#llx, peer %u, opcode %u",
           (unsigned long long)completion->user_data, completion->peer, completion->opcode);
    return found;
}

static void conclude_at(struct batch *batch, uint32_t index,
                        const struct sluice_completion *completion)
{
    conclude(batch->flights[index], completion);
    batch->flights[index] = NULL;
}

/* Reads some results before the end. */
static void look_in_scope(struct sluice_scope *scope, struct batch *batch,
                          const struct sluice_handle *handles)
{
    struct sluice_completion completions[8];
    for (uint32_t i = 0; handles && i < batch->count; i++) {
        if (!batch->flights[i] || !one_in(&soak.rng, 3)) {
            continue;
        }
        int64_t timeout = one_in(&soak.rng, 2) ? 0 : OPERATION_TIME;
        int result = CALL(scope_wait, scope, &handles[i], timeout, completions);
        if (result == 0) {
            conclude_at(batch, i, completions);
        } else {
            expect(result == -EINTR || (result == -ETIMEDOUT && timeout == 0), "%d: %s", result,
                   sluice_last_error());
        }
    }
    if (one_in(&soak.rng, 3)) {
        int count = CALL(scope_poll, scope, completions, (uint32_t)COUNT(completions));
        expect(count >= 0, "%d: %s", count, sluice_last_error());
        for (int i = 0; i < count; i++) {
            conclude_at(batch, find_in_batch(batch, &completions[i], false), &completions[i]);
        }
    }
}

/* Tries calls that are forbidden while the scope is open. */
static void trespass(struct office *office)
{
    struct sluice_completion completion;
    int result;
    if (!one_in(&soak.rng, 8)) {
        return;
    }
    if (one_in(&soak.rng, 2)) {
        result = EITHER(office, poll, &completion, 1);
    } else {
        result = EITHER(office, flush, 0);
    }
    expect(result == -EBUSY, "%d beside an open scope", result);
}

struct conclusion {
    struct sluice_scope_report report;
    struct sluice_completion failures[BATCH];
};

/*
 * Concludes requests whose results were not read: the report has the failures, all others have
 * succeeded.
 */
static void conclude_scope(struct batch *batch, const struct conclusion *conclusion)
{
    const struct sluice_scope_report *report = &conclusion->report;
    uint32_t unseen = 0;
    for (uint32_t i = 0; i < batch->count; i++) {
        unseen += batch->flights[i] != NULL;
    }
    expect(report->posted == batch->count && report->unseen == unseen &&
               report->failed == report->count && report->lost == 0,
           "posted %u of %u, unseen %u of %u, failed %u, in the list %u, lost %u", report->posted,
           batch->count, report->unseen, unseen, report->failed, report->count, report->lost);
    int wanted = result_of(report->failures, report->count);
    if (wanted == 0 && report->flags & SLUICE_SCOPE_STRICT && unseen > 0) {
        wanted = -EBUSY;
    }
    if (report->said != 0) {
        wanted = report->said;
    }
    expect(report->error == wanted, "the scope gave %d, not %d", report->error, wanted);
    for (uint32_t i = 0; i < report->count; i++) {
        conclude_at(batch, find_in_batch(batch, &report->failures[i], true), &report->failures[i]);
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        if (batch->flights[i]) {
            conclude_result(batch->flights[i], 0);
        }
    }
}

static void perform_scope(struct office *office, struct batch *batch, unsigned method)
{
    struct sluice_handle room[BATCH];
    struct sluice_handle *handles = one_in(&soak.rng, 4) ? NULL : room;
    struct conclusion conclusion;
    struct sluice_scope_report *report = &conclusion.report;
    memset(&conclusion, 0, sizeof(conclusion));
    *report = (struct sluice_scope_report){.size = sizeof(*report),
                                           .flags = one_in(&soak.rng, 4) ? SLUICE_SCOPE_STRICT : 0,
                                           .said = one_in(&soak.rng, 8) ? -EDOM : 0,
                                           .failures = conclusion.failures,
                                           .capacity = BATCH};
    if (method == BY_SCOPE_NAMED) {
        for (uint32_t i = 0; i < batch->count; i++) {
            batch->flights[i]->request.user_data = 0;
        }
    }
    if (one_in(&soak.rng, 2)) {
        begin_call(CALL_scope_attach);
        SLUICE_SCOPE(scope, EITHER(office, scope_begin, choose_deadline()), report) {
            post_in_scope(scope, batch, method, handles);
            trespass(office);
            if (one_in(&soak.rng, 2)) {
                begin_call(CALL_scope_end);
                break;
            }
            look_in_scope(scope, batch, handles);
            begin_call(CALL_scope_end);
        }
        end_call();
    } else {
        struct sluice_scope *scope = EITHER(office, scope_begin, choose_deadline());
        expect(scope, "%s", sluice_last_error());
        post_in_scope(scope, batch, method, handles);
        trespass(office);
        look_in_scope(scope, batch, handles);
        int result = CALL(scope_end, scope, report);
        expect(result == report->error, "%d is not %d", result, report->error);
    }
    conclude_scope(batch, &conclusion);
}

/* One call for all. */

/* All from the memory of the first one, with the user data of the first one. */
static void share_bytes(struct batch *batch)
{
    for (uint32_t i = 1; i < batch->count; i++) {
        batch->flights[i]->request.user_data = batch->flights[0]->request.user_data;
    }
}

void perform_multicast(struct office *office, struct batch *batch)
{
    struct sluice_completion completions[BATCH];
    struct form_call call = {.deadline = choose_deadline(), .completions = completions};
    memset(completions, UNWRITTEN, sizeof(completions));
    aim_at(batch);
    share_bytes(batch);
    switch (random_below(&soak.rng, 3)) {
    case 0:
        conclude_list(batch, completions, call_multicast(batch, 0, BLOCKING, &call));
        break;
    case 1:
        perform_scope(office, batch, BY_MULTICAST);
        break;
    default:
        perform_posted_multicast(office, batch);
        break;
    }
}

void perform(struct office *office, struct batch *batch, enum method method)
{
    aim_at(batch);
    beat();
    switch (method) {
    case BY_ONE:
        for (uint32_t i = 0; i < batch->count; i++) {
            perform_one(batch->flights[i]);
        }
        break;
    case BY_SUBMIT:
    case BY_LIST:
    case BY_SCATTER_GATHER:
    case BY_PREPARED:
        perform_blocking(office, batch, method);
        break;
    case BY_SCOPE_LIST:
    case BY_SCOPE_NAMED:
    case BY_SCOPE_KIND:
        perform_scope(office, batch, method);
        break;
    default:
        perform_posted(office, batch, method);
        break;
    }
}
