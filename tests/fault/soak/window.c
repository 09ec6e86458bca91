/* SPDX-License-Identifier: MIT */
/*
 * An assembly around memory that is registered for it: its owner sends the key to all others, each
 * writes a stripe and reads it back, and reports that. The owner checks the stripes and deregisters
 * the memory.
 */
#include "soak.h"

#define WINDOW_KEYS (UINT64_C(1) << 49)
#define PIECES 3

static uint64_t window_length(uint64_t id)
{
    struct rng rng = {mix(soak.options.seed ^ id) + 1};
    return soak.size + random_size(&rng, LARGEST - soak.size);
}

static uint64_t stripe_key(uint64_t id, uint32_t rank)
{
    return key_of(id | WINDOW_KEYS, rank, rank, 0);
}

/* Returns where the stripe of a rank begins; that of the next one is its end. */
static uint64_t stripe_at(uint64_t length, uint32_t rank)
{
    return length * rank / soak.size;
}

static void tell(const struct big *big, uint32_t mask)
{
    struct batch batch = {.count = 0};
    struct sluice_remote_mr remote;
    expect(sluice_mr_remote(big->mr, &remote) == 0, "%s", sluice_last_error());
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        if (mask >> rank & 1 && rank != soak.index && is_up(rank)) {
            struct flight *flight =
                make_flight(&soak.assembly, rank, FLY_ANY, SLUICE_OP_SEND, SLUICE_REMOTE_MR_BYTES);
            expect(flight, "no flight");
            sluice_remote_mr_pack(&remote, flight->bytes);
            batch.flights[batch.count++] = flight;
        }
    }
    if (batch.count > 0) {
        perform_multicast(&soak.assembly, &batch);
    }
}

/* Checks the stripes of ranks that have reported all writes. */
static void check_stripes(const struct big *big, uint64_t id, uint32_t mask)
{
    for (uint32_t rank = 0; rank < soak.size; rank++) {
        if (!(mask >> rank & 1) || rank == soak.index || !is_up(rank)) {
            continue;
        }
        struct flight *flight = make_flight(&soak.assembly, rank, FLY_ANY, SLUICE_OP_RECEIVE, 0);
        expect(flight, "no flight");
        perform_one(flight);
        if (flight->error == 0) {
            uint64_t from = stripe_at(big->length, rank);
            uint64_t length = stripe_at(big->length, rank + 1) - from;
            uint64_t wrong = check_pattern(big->bytes + from, 0, length, stripe_key(id, rank));
            expect(wrong == length, "byte %llu of %llu in the stripe of rank %u",
                   (unsigned long long)wrong, (unsigned long long)length, rank);
            atomic_fetch_add(&soak.ledger->bytes, length);
        }
    }
}

static void own_window(uint64_t id, uint32_t mask)
{
    struct big *big = take_big(window_length(id), true);
    tell(big, mask);
    check_stripes(big, id, mask);
    give_big(big);
}

static void aim_piece(struct flight *flight, const struct sluice_remote_mr *window, uint64_t at,
                      uint64_t length)
{
    int result = sluice_remote_mr_slice(window, at, length, &flight->request.remote);
    expect(result == 0, "%s", sluice_last_error());
}

/* Moves a stripe in pieces, by any call that can. */
static void move_stripe(uint64_t id, uint32_t owner, const struct sluice_remote_mr *window,
                        bool write)
{
    uint64_t start = stripe_at(window->length, soak.index);
    uint64_t length = stripe_at(window->length, soak.index + 1) - start;
    struct batch batch = {.count = 0};
    for (uint32_t i = 0; i < PIECES; i++) {
        uint64_t from = length * i / PIECES;
        uint64_t bytes = length * (i + 1) / PIECES - from;
        struct flight *flight = make_flight(&soak.assembly, owner, write ? FLY_PLAN_OUT : FLY_BOARD,
                                            write ? SLUICE_OP_WRITE : SLUICE_OP_READ, bytes);
        expect(flight, "no flight for %llu bytes", (unsigned long long)bytes);
        flight->key = stripe_key(id, soak.index);
        flight->offset = from;
        if (write) {
            fill_pattern(flight->bytes, from, bytes, flight->key);
        }
        aim_piece(flight, window, start + from, bytes);
        batch.flights[batch.count++] = flight;
    }
    enum method method;
    do {
        method = (enum method)random_below(&soak.rng, METHODS);
    } while (!fits_method(&soak.assembly, &batch, method));
    perform(&soak.assembly, &batch, method);
    settle(&soak.assembly);
}

static void use_window(uint64_t id, uint32_t owner)
{
    struct sluice_remote_mr window;
    struct flight *flight;
    if (!is_up(owner)) {
        return;
    }
    flight = make_flight(&soak.assembly, owner, FLY_ANY, SLUICE_OP_RECEIVE, SLUICE_REMOTE_MR_BYTES);
    expect(flight, "no flight");
    perform_one(flight);
    if (flight->error != 0) {
        return;
    }
    expect(sluice_remote_mr_unpack(flight->bytes, &window) == 0, "%s", sluice_last_error());
    expect(window.length == window_length(id), "%llu bytes", (unsigned long long)window.length);
    move_stripe(id, owner, &window, true);
    if (is_up(owner)) {
        move_stripe(id, owner, &window, false);
    }
    if (is_up(owner)) {
        flight = make_flight(&soak.assembly, owner, FLY_ANY, SLUICE_OP_SEND, 0);
        expect(flight, "no flight");
        perform_one(flight);
    }
}

void assemble_window(uint64_t id, uint32_t mask, uint32_t owner)
{
    if (soak.index == owner) {
        own_window(id, mask);
    } else {
        use_window(id, owner);
    }
}
