/* SPDX-License-Identifier: MIT */
/*
 * Requests, from when they are made until they are complete: each completes once, with the right
 * peer and operation, and the right data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "soak.h"

#define GUARD 64
#define GUARD_BYTE 0xee
#define STRIDE (SMALL + GUARD)
#define BIGS_MOST 12
#define BIG_BYTES_MOST (4 * LARGEST)

uint64_t key_of(uint64_t meeting, uint32_t from, uint32_t to, uint64_t number)
{
    uint64_t pair = mix_with(soak.options.seed, meeting << 16 | from << 8 | to);
    return mix_with(pair, number);
}

uint64_t board_key(uint32_t rank, uint32_t epoch)
{
    return mix_with(soak.options.seed + 1, (uint64_t)epoch << 8 | rank);
}

uint32_t office_index(const struct office *office, uint32_t rank)
{
    return office->channel ? 0 : rank;
}

static bool is_receive(const struct flight *flight)
{
    return flight->request.opcode == SLUICE_OP_RECEIVE;
}

/* Memory of its own. */

static void fill_rights(struct big *big, size_t length)
{
    const uint32_t rights =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;
    if (one_in(&soak.rng, 2)) {
        big->mr = CALL(mr_alloc, soak.pd, length, rights);
        expect(big->mr, "%zu bytes: %s", length, sluice_last_error());
        big->bytes = sluice_mr_addr(big->mr);
        soak.big_allocs++;
        return;
    }
    big->mapped = (length + 4095) / 4096 * 4096;
    big->bytes = mmap(NULL, big->mapped, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    expect(big->bytes != MAP_FAILED, "%zu bytes", big->mapped);
    big->mr = CALL(mr_register, soak.pd, big->bytes, length, rights);
    expect(big->mr, "%zu bytes: %s", length, sluice_last_error());
    soak.big_mapped += big->mapped;
}

struct big *take_big(size_t length, bool must_be)
{
    if (!must_be && (soak.bigs >= BIGS_MOST || soak.big_bytes + length > BIG_BYTES_MOST)) {
        return NULL;
    }
    struct big *big = calloc(1, sizeof(*big));
    expect(big, "no memory");
    big->length = length ? length : 1;
    fill_rights(big, big->length);
    soak.bigs++;
    soak.big_bytes += big->length;
    return big;
}

void give_big(struct big *big)
{
    uint8_t *bytes = big->bytes;
    int result = CALL(mr_deregister, big->mr);
    expect(result == 0, "%d: %s", result, sluice_last_error());
    if (big->mapped) {
        munmap(bytes, big->mapped);
        soak.big_mapped -= big->mapped;
    } else {
        soak.big_allocs--;
    }
    soak.bigs--;
    soak.big_bytes -= big->length;
    free(big);
}

/* Flights. */

/* One to four pieces that cover the bytes. */
static void split(struct flight *flight, uint64_t length)
{
    uint32_t count =
        length >= 4 && one_in(&soak.rng, 3) ? 1 + (uint32_t)random_below(&soak.rng, 4) : 1;
    uint64_t from = 0;
    if (length == 0 && one_in(&soak.rng, 2)) {
        count = 0;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint64_t to = i + 1 == count ? length : from + random_below(&soak.rng, length - from + 1);
        flight->sges[i] = (struct sluice_sge){.addr = (uintptr_t)flight->bytes + from,
                                              .length = (uint32_t)(to - from),
                                              .lkey = flight->lkey};
        from = to;
    }
    flight->request.sge_count = count;
    flight->request.sges = count ? flight->sges : NULL;
}

static bool find_memory(struct flight *flight, uint32_t slot, uint64_t length)
{
    flight->big = NULL;
    if (length > SMALL) {
        flight->big = take_big(length, flight->office->kind != OFFICE_MAIL);
        if (!flight->big) {
            return false;
        }
        flight->bytes = flight->big->bytes;
        flight->lkey = sluice_mr_lkey(flight->big->mr);
        return true;
    }
    flight->bytes = (uint8_t *)sluice_mr_addr(soak.arena_mr) + (size_t)slot * STRIDE;
    flight->lkey = sluice_mr_lkey(soak.arena_mr);
    memset(flight->bytes + length, GUARD_BYTE, GUARD);
    return true;
}

struct flight *make_flight(struct office *office, uint32_t rank, enum flight_kind kind,
                           uint32_t opcode, uint64_t length)
{
    struct peer *peer = &soak.peers[rank];
    /* Some flights are reserved for receives and grants, which everything else needs. */
    bool vital = office->kind != OFFICE_MAIL || kind == FLY_RECEIVE || kind == FLY_GRANT;
    uint32_t spare = vital ? 0 : FLIGHTS / 4;
    if (soak.free_count <= spare) {
        expect(spare, "%u flights", FLIGHTS);
        return NULL;
    }
    uint32_t slot = soak.free_flights[soak.free_count - 1];
    struct flight *flight = &soak.flights[slot];
    memset(flight, 0, sizeof(*flight));
    flight->office = office;
    if (!find_memory(flight, slot, length)) {
        return NULL;
    }
    soak.free_count--;
    soak.tags++;
    flight->state = FLIGHT_MADE;
    flight->tag = soak.tags << 16 | slot;
    flight->kind = kind;
    flight->peer = rank;
    flight->meeting = peer->meeting;
    flight->length = flight->planned = length;
    flight->request.opcode = opcode;
    flight->request.peer = office_index(office, rank);
    flight->request.user_data = flight->tag;
    flight->order = ++peer->order;
    split(flight, length);
    office->unsettled++;
    soak.accepted += office->kind == OFFICE_MAIL;
    peer->sending += opcode != SLUICE_OP_RECEIVE && office->kind == OFFICE_MAIL;
    return flight;
}

static void free_flight(struct flight *flight)
{
    uint32_t slot = (uint32_t)(flight - soak.flights);
    struct peer *peer = &soak.peers[flight->peer];
    if (flight->big) {
        give_big(flight->big);
    }
    if (flight->state == FLIGHT_DETACHED) {
        peer->detached--;
    }
    flight->office->unsettled--;
    peer->sending -= !is_receive(flight) && flight->office->kind == OFFICE_MAIL;
    flight->state = FLIGHT_FREE;
    soak.free_flights[soak.free_count++] = slot;
}

void end_flight(struct flight *flight)
{
    soak.failed += flight->office->kind == OFFICE_MAIL;
    free_flight(flight);
}

void set_flags(struct flight *flight)
{
    struct sluice_request *request = &flight->request;
    bool out = request->opcode == SLUICE_OP_SEND || request->opcode == SLUICE_OP_WRITE;
    if (out && flight->length <= 64 && one_in(&soak.rng, 3)) {
        request->flags |= SLUICE_INLINE;
    }
    if (out && one_in(&soak.rng, 8)) {
        request->flags |= SLUICE_SOLICITED;
    }
    if (request->opcode != SLUICE_OP_RECEIVE && one_in(&soak.rng, 8)) {
        request->flags |= SLUICE_FENCE;
    }
}

/* The oldest flight that was posted without user data. */
static struct flight *find_named(const struct office *office,
                                 const struct sluice_completion *completion)
{
    struct flight *oldest = NULL;
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        struct flight *flight = &soak.flights[i];
        if (flight->state == FLIGHT_MADE && flight->office == office &&
            flight->request.user_data == 0 && flight->request.peer == completion->peer &&
            flight->request.opcode == completion->opcode &&
            (!oldest || flight->order < oldest->order)) {
            oldest = flight;
        }
    }
    expect(oldest, "a completion of peer %u, opcode %u, which nobody waits for", completion->peer,
           completion->opcode);
    return oldest;
}

struct flight *find_flight(const struct office *office, const struct sluice_completion *completion)
{
    uint64_t tag = completion->user_data;
    if (tag == 0) {
        return find_named(office, completion);
    }
    struct flight *flight = &soak.flights[(tag & 0xffff) % FLIGHTS];
    expect(flight->tag == tag && flight->state == FLIGHT_MADE && flight->office == office,
           "a completion with user data %#llx, which nobody waits for: state %d, tag %#llx",
           (unsigned long long)tag, flight->state, (unsigned long long)flight->tag);
    return flight;
}

void detach_flight(struct flight *flight)
{
    int result = EITHER(flight->office, detach, &flight->handle);
    expect(result == 0, "%d: %s", result, sluice_last_error());
    struct sluice_completion completion;
    result = EITHER(flight->office, wait, &flight->handle, 0, &completion);
    expect(result == -ESTALE, "%d for a detached handle", result);
    flight->state = FLIGHT_DETACHED;
    soak.peers[flight->peer].detached++;
}

/* Requests posted before a completed one are complete as well. */
static void end_detached(struct office *office, uint32_t rank, uint64_t order)
{
    if (soak.peers[rank].detached == 0) {
        return;
    }
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        struct flight *flight = &soak.flights[i];
        if (flight->state == FLIGHT_DETACHED && flight->office == office && flight->peer == rank &&
            flight->order < order) {
            soak.succeeded += office->kind == OFFICE_MAIL;
            free_flight(flight);
        }
    }
}

void suspect(uint32_t rank, const char *what, int error)
{
    struct peer *peer = &soak.peers[rank];
    peer->lost = true;
    if (peer->state != PEER_UP) {
        return;
    }
    expect(rank != soak.index, "%s failed with the rank itself: %d, %s", what, error,
           sluice_last_error());
    struct sluice_error cause = {.size = sizeof(cause)};
    int found = CALL(multichannel_peer_error, soak.mail.mc, rank, &cause);
    peer->state = PEER_SUSPECT;
    peer->failed_at = clock_now();
    atomic_fetch_add(&soak.ledger->suspected, 1);
    snprintf(soak.ledger->failure, sizeof(soak.ledger->failure),
             "%s with rank %u failed first: %d; error of its mail: %s", what, rank, error,
             found == 1 ? cause.text : "none");
}

static const int class_errors[] = {
    [SLUICE_CLASS_PEER_LOST] = -ECONNRESET, [SLUICE_CLASS_TIMEOUT] = -ETIMEDOUT,
    [SLUICE_CLASS_ACCESS] = -EACCES,        [SLUICE_CLASS_TRUNCATED] = -EMSGSIZE,
    [SLUICE_CLASS_CANCELLED] = -ECANCELED,
};

/* The queue pairs of a killed process may outlive its regions and answer with a refusal. */
static bool may_end_so(uint32_t class)
{
    return class == SLUICE_CLASS_PEER_LOST || class == SLUICE_CLASS_TIMEOUT ||
           class == SLUICE_CLASS_CANCELLED ||
           (is_verbs() && (class == SLUICE_CLASS_ACCESS || class == SLUICE_CLASS_TRUNCATED));
}

static void conclude_failure(struct flight *flight, const struct sluice_completion *completion)
{
    uint32_t class = completion->error_class;
    bool refused = class == SLUICE_CLASS_CANCELLED && completion->error == -ENOTCONN;
    expect(may_end_so(class) && (refused || completion->error == class_errors[class]),
           "an operation of kind %d, opcode %u, with rank %u: error %d, class %s, status %s",
           flight->kind, flight->request.opcode, flight->peer, completion->error,
           sluice_error_class_name(class), sluice_status_name(completion->status));
    atomic_fetch_add(&soak.ledger->ended[class], 1);
    soak.failed += flight->office->kind == OFFICE_MAIL;
    flight->error = completion->error;
    suspect(flight->peer, "an operation", completion->error);
}

static void check_immediate(const struct flight *flight, const struct sluice_completion *completion)
{
    bool immediate = completion->flags & SLUICE_IMMEDIATE;
    expect(immediate == flight->immediate &&
               (!immediate || completion->immediate == (uint32_t)flight->key),
           "immediate %d, %#x from rank %u, wanted %d, %#x", immediate, completion->immediate,
           flight->peer, flight->immediate, (uint32_t)flight->key);
}

static void check_flight(struct flight *flight, const struct sluice_completion *completion)
{
    uint64_t wrong;
    uint64_t word;
    switch (flight->kind) {
    case FLY_RECEIVE:
        check_message(flight, completion);
        return;
    case FLY_WORD:
        memcpy(&word, flight->bytes, sizeof(word));
        expect(word == flight->expected, "word of rank %u was %#llx, not %#llx (opcode %u)",
               flight->peer, (unsigned long long)word, (unsigned long long)flight->expected,
               flight->request.opcode);
        break;
    case FLY_PLAN_IN:
    case FLY_BOARD:
        check_immediate(flight, completion);
        if (flight->offset == UINT64_MAX) {
            break; /* written elsewhere */
        }
        wrong = check_pattern(flight->bytes, flight->offset, completion->bytes, flight->key);
        expect(wrong == completion->bytes,
               "byte %llu of %llu from rank %u is wrong (kind %d, number %llu, pattern from %llu)",
               (unsigned long long)wrong, (unsigned long long)completion->bytes, flight->peer,
               flight->kind, (unsigned long long)flight->number,
               (unsigned long long)flight->offset);
        break;
    default:
        break;
    }
    expect(completion->bytes == flight->planned, "%llu bytes, not %llu (kind %d)",
           (unsigned long long)completion->bytes, (unsigned long long)flight->planned,
           flight->kind);
}

static void check_guard(const struct flight *flight)
{
    for (uint32_t i = 0; !flight->big && i < GUARD; i++) {
        expect(flight->bytes[flight->length + i] == GUARD_BYTE, "byte %u behind a buffer of %llu",
               i, (unsigned long long)flight->length);
    }
}

void conclude(struct flight *flight, const struct sluice_completion *completion)
{
    expect(completion->user_data == flight->request.user_data &&
               completion->peer == flight->request.peer &&
               completion->opcode == flight->request.opcode,
           "completion of user data %#llx, peer %u, opcode %u for %#llx, %u, %u",
           (unsigned long long)completion->user_data, completion->peer, completion->opcode,
           (unsigned long long)flight->request.user_data, flight->request.peer,
           flight->request.opcode);
    check_guard(flight);
    if (completion->error != 0) {
        conclude_failure(flight, completion);
    } else {
        expect(completion->status == SLUICE_STATUS_SUCCESS && completion->error_class == 0,
               "status %u", completion->status);
        check_flight(flight, completion);
        atomic_fetch_add(&soak.ledger->ended[0], 1);
        atomic_fetch_add(&soak.ledger->bytes, completion->bytes);
        soak.succeeded += flight->office->kind == OFFICE_MAIL;
        if (!is_receive(flight)) {
            end_detached(flight->office, flight->peer, flight->order);
        }
    }
    if (flight->has_handle) {
        soak.old_handle = flight->handle;
    }
    free_flight(flight);
}

static uint32_t class_of_error(int error)
{
    for (uint32_t class = 1; class < COUNT(class_errors); class ++) {
        if (class_errors[class] == error && error != 0) {
            return class;
        }
    }
    return error == -ENOTCONN ? SLUICE_CLASS_CANCELLED : SLUICE_CLASS_LOCAL;
}

void conclude_result(struct flight *flight, int result)
{
    struct sluice_completion completion = {.user_data = flight->request.user_data,
                                           .peer = flight->request.peer,
                                           .opcode = flight->request.opcode,
                                           .error = result};
    if (result == 0) {
        completion.bytes = flight->planned;
        completion.flags = flight->immediate ? SLUICE_IMMEDIATE : 0;
        completion.immediate = (uint32_t)flight->key;
    } else {
        completion.error_class = class_of_error(result);
    }
    conclude(flight, &completion);
}
