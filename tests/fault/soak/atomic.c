/* SPDX-License-Identifier: MIT */
/*
 * Words that peers add to and swap. The peer knows the value of a word of its pair; the sum of the
 * shared words is compared when all ranks stand still (a census). A killed rank may or may not have
 * added: then the sum of that census is only taken over. A lock and the data it guards are used
 * with compare and swap, read and write.
 */
#include "soak.h"

static struct flight *make_atomic(struct office *office, uint32_t rank, enum flight_kind kind,
                                  uint32_t opcode, uint64_t offset)
{
    struct flight *flight = make_flight(office, rank, kind, opcode, 8);
    if (flight) {
        int result =
            sluice_remote_mr_slice(&soak.peers[rank].common, offset, 8, &flight->request.remote);
        expect(result == 0, "%s", sluice_last_error());
        /* One element, which split() does not promise. */
        flight->sges[0] = (struct sluice_sge){(uintptr_t)flight->bytes, 8, flight->lkey};
        flight->request.sges = flight->sges;
        flight->request.sge_count = 1;
    }
    return flight;
}

static struct flight *make_add(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    bool pair = one_in(&soak.rng, 2);
    uint64_t addend = one_in(&soak.rng, 4) ? next_random(&soak.rng) : 1;
    struct flight *flight =
        make_atomic(&soak.mail, rank, pair ? FLY_WORD : FLY_ANY, SLUICE_OP_FETCH_ADD,
                    pair ? offsetof(struct common, pair_sum) + 8 * soak.index
                         : offsetof(struct common, shared_sum));
    if (!flight) {
        return NULL;
    }
    flight->request.operand[0] = addend;
    flight->expected = peer->pair_sum;
    *(pair ? &peer->pair_sum : &peer->shared_sum) += addend;
    return flight;
}

static struct flight *make_swap(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    struct flight *flight = make_atomic(&soak.mail, rank, FLY_WORD, SLUICE_OP_COMPARE_SWAP,
                                        offsetof(struct common, pair_swap) + 8 * soak.index);
    if (!flight) {
        return NULL;
    }
    bool right = !one_in(&soak.rng, 3);
    flight->expected = peer->pair_swap;
    flight->request.operand[0] = right ? peer->pair_swap : peer->pair_swap + 1;
    flight->request.operand[1] = next_random(&soak.rng);
    if (right) {
        peer->pair_swap = flight->request.operand[1];
    }
    return flight;
}

struct flight *make_word_of(struct office *office, uint32_t rank, bool swap, size_t array)
{
    return make_atomic(office, rank, FLY_WORD, swap ? SLUICE_OP_COMPARE_SWAP : SLUICE_OP_FETCH_ADD,
                       array + 8 * soak.index);
}

struct flight *make_word(uint32_t rank)
{
    if (!soak.atomics) {
        return NULL;
    }
    return one_in(&soak.rng, 2) ? make_add(rank) : make_swap(rank);
}

/* Does an operation on a word and waits for it. Returns false if the peer is lost. */
static bool use_word(uint32_t rank, uint32_t opcode, size_t offset, uint64_t first, uint64_t second,
                     uint64_t *value)
{
    struct flight *flight = make_atomic(&soak.mail, rank, FLY_ANY, opcode, offset);
    if (!flight) {
        return false;
    }
    if (opcode == SLUICE_OP_COMPARE_SWAP) {
        flight->request.operand[0] = first;
        flight->request.operand[1] = second;
    } else if (opcode == SLUICE_OP_WRITE) {
        memcpy(flight->bytes, &first, 8);
    }
    perform_one(flight);
    if (flight->error != 0) {
        return false;
    }
    memcpy(value, flight->bytes, 8);
    return true;
}

void use_lock(uint32_t rank)
{
    const size_t lock = offsetof(struct common, lock);
    const size_t sum = offsetof(struct common, locked_sum);
    uint64_t old;
    uint64_t mine = (uint64_t)soak.epoch << 8 | (soak.index + 1);
    uint64_t value;
    /* The requests below must not fail for want of room. */
    if (!soak.atomics || soak.free_count < FLIGHTS / 2 ||
        !use_word(rank, SLUICE_OP_COMPARE_SWAP, lock, 0, mine, &old) || old != 0) {
        return;
    }
    if (use_word(rank, SLUICE_OP_READ, sum, 0, 0, &value) &&
        use_word(rank, SLUICE_OP_WRITE, sum, value + 1, 0, &old)) {
        soak.peers[rank].locked_sum++;
        if (use_word(rank, SLUICE_OP_COMPARE_SWAP, lock, mine, 0, &old)) {
            expect(old == mine, "the lock of rank %u was held by %#llx, not %#llx", rank,
                   (unsigned long long)old, (unsigned long long)mine);
        }
    }
}

/* A peer restarts: forgets its words here, and ours there. */
void forget_words(uint32_t rank)
{
    struct peer *peer = &soak.peers[rank];
    soak.common->grants[rank] = 0;
    soak.common->pair_sum[rank] = 0;
    soak.common->pair_swap[rank] = 0;
    soak.common->line_sum[rank] = 0;
    peer->pair_sum = peer->pair_swap = peer->line_sum = 0;
}

void count_words(struct count *count)
{
    for (uint32_t i = 0; i < soak.size; i++) {
        count->shared[i] = soak.peers[i].shared_sum;
        count->locked[i] = soak.peers[i].locked_sum;
        count->paired[i] = soak.peers[i].pair_sum;
        soak.peers[i].shared_sum = soak.peers[i].locked_sum = 0;
    }
}

void compare_words(const struct message *message)
{
    struct common *common = soak.common;
    uint64_t shared = sluice_load_acquire64(&common->shared_sum);
    uint64_t locked = sluice_load_acquire64(&common->locked_sum);
    if (message->flag) {
        expect(shared - soak.shared_base == message->count.shared[soak.index],
               "all have added %#llx, and the sum is %#llx more",
               (unsigned long long)message->count.shared[soak.index],
               (unsigned long long)(shared - soak.shared_base));
        expect(locked - soak.locked_base == message->count.locked[soak.index],
               "all have added %llu under the lock, and the sum is %llu more",
               (unsigned long long)message->count.locked[soak.index],
               (unsigned long long)(locked - soak.locked_base));
        expect(common->lock == 0, "the lock is held by %#llx", (unsigned long long)common->lock);
    }
    for (uint32_t i = 0; i < soak.size; i++) {
        if (message->mask >> i & 1 && soak.peers[i].state == PEER_UP) {
            uint64_t sum = sluice_load_acquire64(&common->pair_sum[i]);
            expect(sum == message->count.paired[i], "rank %u has added %#llx, and the sum is %#llx",
                   i, (unsigned long long)message->count.paired[i], (unsigned long long)sum);
        }
    }
    common->lock = 0;
    soak.shared_base = shared;
    soak.locked_base = locked;
}
