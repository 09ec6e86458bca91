/* SPDX-License-Identifier: MIT */
/* Requests posted without waiting: all ways to post them, and all ways to get their results. */
#include <poll.h>

#include "soak.h"

#define NAP SLUICE_MS(2)

/* Posting. */

/* Parked receives wait for as long as it takes. */
static int64_t deadline_of(const struct sluice_request *request)
{
    return request->opcode == SLUICE_OP_RECEIVE ? SLUICE_FOREVER : choose_deadline();
}

static int post_named(const struct flight *flight, struct sluice_handle *handle)
{
    struct form_call call = form_call_one(&flight->request);
    call.deadline = deadline_of(&flight->request);
    call.handles = handle;
    return call_office(flight->office, flight->request.opcode, ONE, POSTED, &call);
}

/* Posts the batch from `at` on. Returns how many were posted, or an error. */
static int post_some(struct office *office, struct batch *batch, uint32_t at, enum method method,
                     struct sluice_handle *handles)
{
    struct sluice_request requests[BATCH];
    uint32_t count = batch->count - at;
    struct form_call call;
    if (method == BY_NAMED) {
        int result = post_named(batch->flights[at], handles);
        return result == 0 ? 1 : result;
    }
    for (uint32_t i = 0; i < count; i++) {
        requests[i] = batch->flights[at + i]->request;
    }
    call = (struct form_call){.requests = requests,
                              .count = count,
                              .deadline = deadline_of(&requests[0]),
                              .handles = handles};
    return call_office(office, method == BY_POST ? SLUICE_OP_NONE : requests[0].opcode, LIST,
                       POSTED, &call);
}

static void was_posted(struct flight *flight, const struct sluice_handle *handle)
{
    flight->has_handle = handle != NULL;
    if (handle) {
        flight->handle = *handle;
    }
    /* The bytes of an inline request were taken when the post returned. */
    if (flight->request.flags & SLUICE_INLINE && !flight->big) {
        memset(flight->bytes, 0x5a, flight->length);
    }
}

static bool may_detach(const struct flight *flight)
{
    return flight->has_handle && (flight->kind == FLY_MESSAGE || flight->kind == FLY_PLACE ||
                                  flight->kind == FLY_GRANT || flight->kind == FLY_PLAN_OUT);
}

/* Waits for, detaches or drops the handles of requests in flight. */
static void follow_up(const struct batch *batch, const uint64_t *tags)
{
    uint64_t fate = random_below(&soak.rng, 4);
    for (uint32_t i = 0; i < batch->count; i++) {
        struct flight *flight = batch->flights[i];
        struct sluice_completion completion;
        if (flight->state != FLIGHT_MADE || flight->tag != tags[i] || !flight->has_handle) {
            continue;
        }
        if (fate == 1 && may_detach(flight) && one_in(&soak.rng, 3)) {
            detach_flight(flight);
        } else if (fate == 2 && flight->request.opcode != SLUICE_OP_RECEIVE) {
            int result = EITHER(flight->office, wait, &flight->handle, OPERATION_TIME, &completion);
            if (result == 0) {
                conclude(flight, &completion);
            } else {
                expect(result == -EINTR, "%d: %s", result, sluice_last_error());
            }
        }
    }
}

void perform_posted(struct office *office, struct batch *batch, enum method method)
{
    struct sluice_handle room[BATCH];
    uint64_t tags[BATCH];
    bool handles = !one_in(&soak.rng, 4);
    for (uint32_t i = 0; i < batch->count; i++) {
        tags[i] = batch->flights[i]->tag;
        if (method == BY_NAMED) {
            batch->flights[i]->request.user_data = 0;
        }
    }
    for (uint32_t at = 0; at < batch->count;) {
        int result = post_some(office, batch, at, method, handles ? room : NULL);
        if (result > 0) {
            for (int i = 0; i < result; i++) {
                was_posted(batch->flights[at++], handles ? &room[i] : NULL);
            }
        } else if (result == -ENOTCONN) {
            conclude_result(batch->flights[at++], result);
        } else {
            expect(result == -EAGAIN, "%d: %s", result, sluice_last_error());
            beat();
            look(office);
        }
    }
    follow_up(batch, tags);
}

static void wait_multicast(struct office *office, const struct sluice_handle *handle,
                           struct sluice_completion *completion)
{
    int result;
    do {
        beat();
        result = CALL(multichannel_wait, office->mc, handle, OPERATION_TIME, completion);
    } while (result == -EINTR);
    expect(result == 0, "%d: %s", result, sluice_last_error());
}

/*
 * The queue of the peer is full of other requests: none of the completions taken here is of the
 * multicast.
 */
static void wait_for_room(struct office *office, uint32_t rank)
{
    struct flight *flight = NULL;
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        struct flight *other = &soak.flights[i];
        if (other->state == FLIGHT_MADE && other->office == office && other->peer == rank &&
            other->has_handle && other->request.opcode != SLUICE_OP_RECEIVE) {
            flight = other;
        }
    }
    beat();
    if (flight) {
        struct sluice_completion completion;
        int result = EITHER(office, wait, &flight->handle, NAP, &completion);
        if (result == 0) {
            conclude(flight, &completion);
        }
    } else {
        expect(EITHER(office, flush, NAP) <= 0, "%s", sluice_last_error());
    }
}

/* All use the bytes of the first: nothing is freed before all have ended. */
void perform_posted_multicast(struct office *office, struct batch *batch)
{
    struct sluice_handle handles[BATCH];
    struct sluice_completion completions[BATCH];
    int results[BATCH] = {0};
    for (uint32_t at = 0; at < batch->count;) {
        struct form_call call = {.deadline = choose_deadline(), .handles = handles + at};
        int result = call_multicast(batch, at, POSTED, &call);
        expect(result > 0 || result == -ENOTCONN || result == -EAGAIN, "%d: %s", result,
               sluice_last_error());
        if (result > 0) {
            at += (uint32_t)result;
        } else if (result == -ENOTCONN) {
            results[at++] = result;
        } else {
            wait_for_room(office, batch->flights[at]->peer);
        }
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        if (results[i] == 0) {
            wait_multicast(office, &handles[i], &completions[i]);
        }
    }
    for (uint32_t i = 0; i < batch->count; i++) {
        if (results[i] != 0) {
            conclude_result(batch->flights[i], results[i]);
        } else {
            conclude(batch->flights[i], &completions[i]);
        }
    }
}

/* Learning. */

static void take(const struct office *office, const struct sluice_completion *completion)
{
    conclude(find_flight(office, completion), completion);
}

static bool look_by_poll(struct office *office)
{
    struct sluice_completion completions[16];
    uint32_t room = 1 + (uint32_t)random_below(&soak.rng, COUNT(completions));
    int count = EITHER(office, poll, completions, room);
    expect(count >= 0 && (uint32_t)count <= room, "%d: %s", count, sluice_last_error());
    for (int i = 0; i < count; i++) {
        take(office, &completions[i]);
    }
    return count > 0;
}

static bool look_by_next(struct office *office, int64_t timeout)
{
    struct sluice_completion completion;
    int result = EITHER(office, next, timeout, &completion);
    if (result == 0) {
        take(office, &completion);
    } else {
        expect(result == -ETIMEDOUT || result == -EINTR || result == -ENOENT, "%d: %s", result,
               sluice_last_error());
    }
    return result == 0;
}

static struct flight *any_handle(const struct office *office)
{
    uint64_t from = random_below(&soak.rng, FLIGHTS);
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        struct flight *flight = &soak.flights[(from + i) % FLIGHTS];
        if (flight->state == FLIGHT_MADE && flight->office == office && flight->has_handle) {
            return flight;
        }
    }
    return NULL;
}

static bool look_by_wait(struct office *office)
{
    struct sluice_completion completion;
    struct sluice_completion again;
    struct flight *flight = any_handle(office);
    if (!flight) {
        return look_by_poll(office);
    }
    int result = EITHER(office, wait, &flight->handle, one_in(&soak.rng, 2) ? 0 : NAP, &completion);
    if (result != 0) {
        expect(result == -ETIMEDOUT || result == -EINTR, "%d: %s", result, sluice_last_error());
        return false;
    }
    if (one_in(&soak.rng, 2)) {
        expect(EITHER(office, wait, &flight->handle, 0, &again) == 0 &&
                   memcmp(&again, &completion, sizeof(again)) == 0,
               "waiting twice: error %d, then %d", completion.error, again.error);
    }
    conclude(flight, &completion);
    return true;
}

/* Polls as an event loop does. */
static bool look_by_fd(struct office *office)
{
    int64_t due = 0;
    struct pollfd fds[2] = {{.fd = EITHER(office, fd), .events = POLLIN},
                            {.fd = soak.broker, .events = POLLIN}};
    expect(fds[0].fd >= 0, "%d: %s", fds[0].fd, sluice_last_error());
    int result = EITHER(office, arm, &due);
    expect(result == 0 || result == 1, "%d: %s", result, sluice_last_error());
    if (result == 0) {
        expect(due >= 0, "due in %lld", (long long)due);
        poll(fds, 2, due < NAP ? (int)(due / 1000000) : (int)(NAP / 1000000));
    }
    return look_by_poll(office);
}

bool look(struct office *office)
{
    switch (random_below(&soak.rng, 8)) {
    case 0:
        return look_by_wait(office);
    case 1:
        return look_by_fd(office);
    case 2:
        return look_by_next(office, 0);
    case 3:
    case 4:
        return look_by_next(office, NAP);
    case 5: {
        int result = EITHER(office, flush, one_in(&soak.rng, 2) ? 0 : NAP);
        expect(result == 0 || result == -ETIMEDOUT || result == -EINTR, "%d: %s", result,
               sluice_last_error());
        return look_by_poll(office);
    }
    default:
        return look_by_poll(office);
    }
}

/* Ends all requests of an office without parked receives. */

static uint32_t count_detached(const struct office *office)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        count += soak.flights[i].state == FLIGHT_DETACHED && soak.flights[i].office == office;
    }
    return count;
}

void settle(struct office *office)
{
    struct sluice_completion completion;
    int result;
    while (office->unsettled > 0 && office->unsettled > count_detached(office)) {
        beat();
        look(office);
    }
    do {
        result = EITHER(office, flush, OPERATION_TIME);
    } while (result == -EINTR);
    expect(result == 0, "%d: %s", result, sluice_last_error());
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        if (soak.flights[i].state == FLIGHT_DETACHED && soak.flights[i].office == office) {
            end_flight(&soak.flights[i]);
        }
    }
    result = EITHER(office, next, SLUICE_FOREVER, &completion);
    expect(result == -ENOENT,
           "%d, though nothing is posted: user data %#llx, peer %u, opcode %u, error %d", result,
           (unsigned long long)completion.user_data, completion.peer, completion.opcode,
           completion.error);
}

/* Tries further calls with handles. */

static void look_at_handles(struct office *office)
{
    struct sluice_completion completion;
    struct sluice_handle nothing = {.id = 0};
    int result = EITHER(office, wait, &nothing, 0, &completion);
    expect(result == -ESTALE, "%d for no handle", result);
    if (soak.old_handle.id != 0) {
        result = EITHER(office, wait, &soak.old_handle, 0, &completion);
        expect(result == 0 || result == -ESTALE, "%d for an old handle", result);
        result = CALL(multichannel_wait, soak.assembly.mc, &soak.old_handle, 0, &completion);
        expect(result == 0 || result == -ESTALE, "%d for another's handle", result);
    }
}

static void look_at_counters(struct office *office)
{
    struct sluice_counters all = {.size = sizeof(all)};
    struct sluice_counters one = {.size = sizeof(one)};
    uint64_t sum = office->past;
    expect(EITHER(office, counters, &all) == 0, "%s", sluice_last_error());
    expect(all.forgotten == 0 && all.discarded == 0, "%llu forgotten, %llu discarded",
           (unsigned long long)all.forgotten, (unsigned long long)all.discarded);
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        expect(CALL(multichannel_peer_counters, office->mc, rank, &one) == 0, "%s",
               sluice_last_error());
        sum += one.requests[SLUICE_OP_SEND];
    }
    expect(sum == all.requests[SLUICE_OP_SEND], "%llu sends, %llu of all peers",
           (unsigned long long)all.requests[SLUICE_OP_SEND], (unsigned long long)sum);
}

static void look_at_peer(struct office *office, uint32_t rank)
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    struct sluice_error error = {.size = sizeof(error)};
    expect(CALL(multichannel_peers, office->mc) == soak.size, "%s", sluice_last_error());
    expect(CALL(multichannel_peer_query, office->mc, rank, &info) == 0 && info.send_depth == DEPTH,
           "depth %u: %s", info.send_depth, sluice_last_error());
    int state = CALL(multichannel_peer_state, office->mc, rank);
    int found = CALL(multichannel_peer_error, office->mc, rank, &error);
    if (state == SLUICE_STATE_FAILED || found == 1) {
        suspect(rank, "its state", found == 1 ? error.error : 0);
    } else {
        expect(state == SLUICE_STATE_READY && found == 0, "rank %u in state %d, error %d", rank,
               state, found);
    }
}

static void wait_for_connections(struct office *office, uint32_t rank)
{
    int result = is_up(rank) && one_in(&soak.rng, 2)
                     ? CALL(multichannel_peer_wait_connected, office->mc, rank, OPERATION_TIME)
                     : EITHER(office, wait_connected, NAP);
    if (result == 0 || result == -EINTR || result == -ETIMEDOUT) {
        return;
    }
    for (uint32_t i = 0; i < soak.size; i++) {
        if (CALL(multichannel_peer_state, office->mc, i) == SLUICE_STATE_FAILED) {
            suspect(i, "waiting for its connection", result);
            return;
        }
    }
    give_up("waiting for connections: %d: %s", result, sluice_last_error());
}

void look_closely(struct office *office)
{
    uint32_t rank = (uint32_t)random_below(&soak.rng, soak.size);
    aim(rank, 1);
    switch (random_below(&soak.rng, 5)) {
    case 0:
        look_at_handles(office);
        break;
    case 1:
        look_at_counters(office);
        break;
    case 2:
        wait_for_connections(office, rank);
        break;
    case 3:
        expect(EITHER(office, wake) == 0, "%s", sluice_last_error());
        break;
    default:
        if (is_up(rank)) {
            look_at_peer(office, rank);
        }
        break;
    }
}
