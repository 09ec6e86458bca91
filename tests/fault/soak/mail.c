/* SPDX-License-Identifier: MIT */
/*
 * Random traffic of one rank with the others. The number of a message determines the size of its
 * receive; grants tell a rank what it may send.
 */
#include "soak.h"

#define RECEIVES 12   /* parked for each peer */
#define BIGS_PARKED 4 /* large ones among them, of all peers */

static uint64_t grant_of(uint32_t rank)
{
    return sluice_load_acquire64(&soak.common->grants[rank]);
}

static bool may_send(uint32_t rank)
{
    return soak.peers[rank].sent < (uint32_t)grant_of(rank);
}

static bool may_write(uint32_t rank)
{
    return soak.peers[rank].written - (grant_of(rank) >> 32) < WINDOWS;
}

/* Receives. */

static uint32_t count_parked_bigs(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < FLIGHTS; i++) {
        const struct flight *flight = &soak.flights[i];
        count += flight->state != FLIGHT_FREE && flight->kind == FLY_RECEIVE && flight->big;
    }
    return count;
}

static struct flight *make_receive(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    uint64_t room = capacity_of(peer->meeting, rank, soak.index, peer->posted);
    struct flight *flight;
    if (room > SMALL && count_parked_bigs() >= BIGS_PARKED) {
        return NULL;
    }
    flight = make_flight(&soak.mail, rank, FLY_RECEIVE, SLUICE_OP_RECEIVE, room);
    if (flight) {
        flight->number = peer->posted++;
    }
    return flight;
}

static void park_receives(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    struct batch batch = {.count = 0};
    struct big *big = NULL;
    while (peer->posted - peer->received < RECEIVES && batch.count < BATCH) {
        struct flight *flight = make_receive(rank);
        if (!flight) {
            break;
        }
        big = flight->big ? flight->big : big;
        batch.flights[batch.count++] = flight;
    }
    if (batch.count == 0) {
        return;
    }
    enum method method = one_in(&soak.rng, 2) ? BY_POST : BY_POSTED_LIST;
    perform(&soak.mail, &batch, one_in(&soak.rng, 3) ? BY_NAMED : method);
    /* No grant has been sent for it, so no message can come. */
    if (big && is_up(rank) && one_in(&soak.rng, 2)) {
        int result = CALL(mr_deregister, big->mr);
        expect(result == -EBUSY, "%d for memory of a parked receive", result);
    }
}

static void grant(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    uint64_t word = peer->checked << 32 | (uint32_t)peer->posted;
    if (word == peer->granted || (one_in(&soak.rng, 2) && !soak.paused)) {
        return;
    }
    struct flight *flight = make_flight(&soak.mail, rank, FLY_GRANT, SLUICE_OP_WRITE, 8);
    struct batch batch = {.flights = {flight}, .count = 1};
    int result =
        sluice_remote_mr_slice(&peer->common, offsetof(struct common, grants) + 8 * soak.index, 8,
                               &flight->request.remote);
    expect(result == 0, "%s", sluice_last_error());
    memcpy(flight->bytes, &word, 8);
    peer->granted = word;
    enum method method = (enum method)random_below(&soak.rng, METHODS);
    perform(&soak.mail, &batch, fits_method(&soak.mail, &batch, method) ? method : BY_POST);
}

void serve_mail(void)
{
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        if (is_up(rank)) {
            park_receives(rank);
        }
        if (is_up(rank)) {
            grant(rank);
        }
    }
}

/* Makes a message that this rank sends. */

static struct flight *make_message(uint32_t rank, bool plain)
{
    struct peer *peer = &soak.peers[rank];
    if (!may_send(rank)) {
        return NULL;
    }
    uint64_t room = capacity_of(peer->meeting, soak.index, rank, peer->sent);
    uint64_t length = random_size(&soak.rng, room);
    struct flight *flight = make_flight(&soak.mail, rank, FLY_MESSAGE, SLUICE_OP_SEND, length);
    if (!flight) {
        return NULL;
    }
    flight->number = peer->sent++;
    fill_message(flight);
    if (!plain && one_in(&soak.rng, 3)) {
        flight->request.flags |= SLUICE_IMMEDIATE;
        flight->request.immediate = immediate_of(flight);
    }
    return flight;
}

static struct flight *make_place(uint32_t rank, bool plain)
{
    struct peer *peer = &soak.peers[rank];
    if (!may_write(rank)) {
        return NULL;
    }
    bool immediate = !plain && may_send(rank) && one_in(&soak.rng, 4);
    uint64_t length = 32 + random_size(&soak.rng, WINDOW - 32);
    struct flight *flight = make_flight(&soak.mail, rank, FLY_PLACE, SLUICE_OP_WRITE, length);
    if (!flight) {
        return NULL;
    }
    flight->number = ++peer->written;
    fill_place(flight);
    size_t offset = offsetof(struct common, windows) +
                    (soak.index * WINDOWS + flight->number % WINDOWS) * (size_t)WINDOW;
    int result = sluice_remote_mr_slice(&peer->common, offset, WINDOW, &flight->request.remote);
    expect(result == 0, "%s", sluice_last_error());
    if (immediate) {
        peer->sent++;
        flight->request.flags |= SLUICE_IMMEDIATE;
        flight->request.immediate = immediate_of(flight);
    }
    return flight;
}

static struct flight *make_read(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    uint64_t length = random_size(&soak.rng, one_in(&soak.rng, 40) ? BOARD : SMALL);
    uint64_t offset = random_below(&soak.rng, BOARD - length + 1);
    struct flight *flight = make_flight(&soak.mail, rank, FLY_BOARD, SLUICE_OP_READ, length);
    if (!flight) {
        return NULL;
    }
    int result = sluice_remote_mr_slice(&peer->board, offset, length, &flight->request.remote);
    expect(result == 0, "%s", sluice_last_error());
    flight->key = board_key(rank, peer->epoch);
    flight->offset = offset;
    return flight;
}

/* opcode NONE: any. plain: only what a call without flags can do. */
static struct flight *make_any(uint32_t rank, uint32_t opcode, bool plain)
{
    static const uint32_t mixed[] = {SLUICE_OP_SEND,  SLUICE_OP_SEND, SLUICE_OP_SEND,
                                     SLUICE_OP_WRITE, SLUICE_OP_READ, SLUICE_OP_FETCH_ADD};
    switch (opcode ? opcode : mixed[random_below(&soak.rng, COUNT(mixed))]) {
    case SLUICE_OP_SEND:
        return make_message(rank, plain);
    case SLUICE_OP_WRITE:
        return make_place(rank, plain);
    case SLUICE_OP_READ:
        return make_read(rank);
    default:
        return make_word(rank);
    }
}

static uint32_t any_peer(void)
{
    uint32_t from = (uint32_t)random_below(&soak.rng, soak.size);
    for (uint32_t i = 0; i < soak.size; i++) {
        uint32_t rank = (from + i) % soak.size;
        if (is_up(rank)) {
            return rank;
        }
    }
    return SLUICE_MAX_PEERS;
}

static uint32_t sends_in_flight(void)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < soak.size; i++) {
        count += soak.peers[i].sending;
    }
    return count;
}

static void do_list(void)
{
    static const uint32_t opcodes[] = {SLUICE_OP_SEND, SLUICE_OP_WRITE, SLUICE_OP_READ};
    enum method method = (enum method)random_below(&soak.rng, METHODS);
    bool plain = method == BY_NAMED || method == BY_SCOPE_NAMED;
    bool one_kind = method == BY_LIST || method == BY_SCOPE_KIND || method == BY_POSTED_LIST;
    uint32_t opcode = one_kind ? opcodes[random_below(&soak.rng, 3)] : 0;
    uint32_t most = soak.size * DEPTH / 2 < BATCH ? soak.size * DEPTH / 2 : BATCH;
    uint32_t count = 1 + (uint32_t)random_size(&soak.rng, method == BY_ONE ? 3 : most - 1);
    uint32_t only = one_in(&soak.rng, 3) ? any_peer() : SLUICE_MAX_PEERS;
    struct batch batch = {.count = 0};
    for (uint32_t i = 0; i < count; i++) {
        uint32_t rank = only != SLUICE_MAX_PEERS ? only : any_peer();
        struct flight *flight = rank == SLUICE_MAX_PEERS ? NULL : make_any(rank, opcode, plain);
        if (flight) {
            if (!plain && method != BY_ONE) {
                set_flags(flight);
            }
            batch.flights[batch.count++] = flight;
        }
    }
    if (batch.count > 0) {
        if (!fits_method(&soak.mail, &batch, method)) {
            method = BY_SUBMIT;
        }
        perform(&soak.mail, &batch, method);
    }
}

/* Sends the same bytes to several peers, all of which have room. */
static void do_multicast(void)
{
    bool write = one_in(&soak.rng, 2);
    uint64_t number = ++soak.multicasts;
    uint64_t length = 32 + random_size(&soak.rng, (write ? WINDOW : SMALL) - 32);
    struct batch batch = {.count = 0};
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        struct flight *flight = NULL;
        if (!is_up(rank) || one_in(&soak.rng, 4)) {
            continue;
        }
        if (write && may_write(rank)) {
            flight = make_flight(&soak.mail, rank, FLY_PLACE, SLUICE_OP_WRITE, length);
        } else if (!write && may_send(rank)) {
            flight = make_flight(&soak.mail, rank, FLY_MESSAGE, SLUICE_OP_SEND, length);
        }
        if (!flight) {
            continue;
        }
        struct peer *peer = &soak.peers[rank];
        flight->number = write ? ++peer->written : peer->sent++;
        int result = sluice_remote_mr_slice(&peer->common,
                                            offsetof(struct common, windows) +
                                                (soak.index * WINDOWS + flight->number % WINDOWS) *
                                                    (size_t)WINDOW,
                                            WINDOW, &flight->request.remote);
        expect(result == 0, "%s", sluice_last_error());
        fill_multicast(flight->bytes, length, number);
        batch.flights[batch.count++] = flight;
    }
    if (batch.count > 0) {
        perform_multicast(&soak.mail, &batch);
    }
}

void mail_step(void)
{
    uint32_t rank = any_peer();
    /* Unread results keep their places, which all peers share. */
    if (sends_in_flight() >= soak.size * DEPTH / 4 || rank == SLUICE_MAX_PEERS) {
        look(&soak.mail);
        return;
    }
    switch (random_below(&soak.rng, 10)) {
    case 0:
        do_multicast();
        break;
    case 1:
        use_lock(rank);
        break;
    case 2:
        look_closely(&soak.mail);
        break;
    default:
        do_list();
        break;
    }
}

/* Ending it. */

static bool mail_is_quiet(uint32_t rank)
{
    return soak.peers[rank].sending == 0;
}

/* A complete read proves that detached requests before it are done. */
static void prove_detached(uint32_t rank)
{
    struct flight *flight;
    if (soak.peers[rank].detached == 0) {
        return;
    }
    flight = make_flight(&soak.mail, rank, FLY_GRANT, SLUICE_OP_READ, 0);
    flight->request.remote = soak.peers[rank].common;
    perform_one(flight);
}

/* Requests in flight with a lost peer end with the connection at the latest. */
static bool is_silent(uint32_t rank)
{
    const struct peer *peer = &soak.peers[rank];
    return mail_is_quiet(rank) || peer->lost || peer->state == PEER_ABSENT;
}

void make_quiet(uint32_t rank)
{
    for (uint32_t i = 0; i < soak.size; i++) {
        if (rank != SLUICE_MAX_PEERS && i != rank) {
            continue;
        }
        while (!is_silent(i)) {
            beat();
            prove_detached(i);
            look(&soak.mail);
        }
    }
}
