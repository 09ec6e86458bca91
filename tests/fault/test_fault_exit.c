/* SPDX-License-Identifier: MIT */
/*
 * A process ends in the middle of a scatter without closing anything: of its own scatter, or of one
 * to it. Messages that it sent whole arrive, the others end as lost, each once, and the remaining
 * ranks scatter on.
 */
#include <stdlib.h>
#include <unistd.h>

#include "../support/fault.h"

/* Ranks 0 and 1 stay; each other one leaves in a round of its own. */
#define FIRST_LEAVER 2

/* Messages of a scatter to or from each rank. */
#define MESSAGES 6
#define TAKEN 2
#define BYTES ((size_t)1 << 18)

struct flight {
    struct mesh mesh;
    struct memory memory;
    struct sluice_sge sges[GROUP_MAX * MESSAGES];
    struct sluice_request requests[GROUP_MAX * MESSAGES];
    struct sluice_completion completions[GROUP_MAX * MESSAGES];
};

/* Makes MESSAGES requests for each of these peers, in turn, from or into the memory. */
static uint32_t ask(struct flight *flight, uint32_t opcode, const uint32_t *peers, uint32_t count)
{
    uint32_t at = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        for (uint32_t k = 0; k < count; k++, at++) {
            flight->sges[at] = memory_sge(&flight->memory, at * BYTES, BYTES);
            flight->requests[at] = request_of(opcode, peers[k], &flight->sges[at]);
            flight->requests[at].user_data = at;
            if (opcode == SLUICE_OP_SEND) {
                pattern_fill(flight->memory.bytes + at * BYTES, BYTES, pattern_key(0, 0, i));
            }
        }
    }
    return at;
}

static void leave(const struct rank *rank) __attribute__((noreturn));

/* Ends with the handlers of exit(), and without. */
static void leave(const struct rank *rank)
{
    if (rank->index / 2 % 2 == 0) {
        exit(EXIT_SUCCESS);
    }
    _exit(EXIT_SUCCESS);
}

/* Scatters, and exits when the first message has arrived. */
static void scatter_and_leave(struct flight *flight, const struct rank *rank)
{
    static const uint32_t peers[] = {0, 1};
    struct sluice_handle handles[2 * MESSAGES];
    struct sluice_completion completion;
    uint32_t count = ask(flight, SLUICE_OP_SEND, peers, 2);
    require_result(
        sluice_multichannel_post(flight->mesh.all, flight->requests, count, DEADLINE, handles),
        (int)count);
    require_ok(sluice_multichannel_wait(flight->mesh.all, &handles[0], DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
    leave(rank);
}

/* Received messages are whole, in order, and come before all that were lost. */
static uint32_t check_received(const struct flight *flight, uint32_t leaver)
{
    uint32_t arrived = 0;
    for (uint32_t i = 0; i < MESSAGES; i++) {
        const struct sluice_completion *completion = &flight->completions[i];
        require(completion->user_data == i && completion->peer == leaver, "%u", i);
        if (completion->error == 0) {
            require(arrived == i && completion->bytes == BYTES, "message %u", i);
            pattern_check(flight->memory.bytes + i * BYTES, BYTES, pattern_key(0, 0, i));
            arrived++;
        } else {
            require_class(completion,
                          i == arrived ? SLUICE_CLASS_PEER_LOST : SLUICE_CLASS_CANCELLED);
        }
    }
    return arrived;
}

static void lose_scatterer(struct flight *flight, struct rank *rank, uint32_t leaver)
{
    if (rank->index == leaver) {
        scatter_and_leave(flight, rank);
    }
    if (rank->index < FIRST_LEAVER) {
        /*
         * A device does not notify a rank that only receives of a peer's end; its deadline passes.
         */
        int64_t deadline = device_is_soft() ? DEADLINE : SLUICE_S(2);
        uint32_t count = ask(flight, SLUICE_OP_RECEIVE, &leaver, 1);
        memset(flight->completions, 0xcc, sizeof(flight->completions));
        int result = sluice_multichannel_gather_receive(flight->mesh.all, flight->requests, count,
                                                        deadline, flight->completions);
        if (device_is_soft()) {
            require(result == 0 || result == -ECONNRESET, "%d: %s", result, sluice_last_error());
            uint32_t arrived = check_received(flight, leaver);
            require((arrived == MESSAGES) == (result == 0), "%u arrived: %d", arrived, result);
            require(rank->index == 1 || arrived > 0, "%u arrived", arrived);
        } else {
            require(result == 0 || result == -ETIMEDOUT, "%d: %s", result, sluice_last_error());
        }
    }
}

/* Rank 0 scatters to rank 1 and to a rank that exits after the first messages. */
static void lose_receiver(struct flight *flight, struct rank *rank, uint32_t leaver)
{
    if (rank->index == leaver) {
        struct sluice_sge sge = memory_sge(&flight->memory, 0, BYTES);
        for (uint32_t i = 0; i < TAKEN; i++) {
            require_ok(sluice_multichannel_receive(flight->mesh.all, 0, &sge, 1, DEADLINE, NULL));
        }
        leave(rank);
    }
    if (rank->index == 0) {
        const uint32_t peers[] = {leaver, 1};
        uint32_t count = ask(flight, SLUICE_OP_SEND, peers, 2);
        memset(flight->completions, 0xcc, sizeof(flight->completions));
        require_result(sluice_multichannel_scatter_send(flight->mesh.all, flight->requests, count,
                                                        DEADLINE, flight->completions),
                       -ECONNRESET);
        for (uint32_t i = 0; i < count; i++) {
            const struct sluice_completion *completion = &flight->completions[i];
            uint32_t number = i / 2;
            require(completion->user_data == i && completion->peer == peers[i % 2], "%u", i);
            /* A device acknowledges before its program knows; the last of these may be lost. */
            if (i % 2 == 0 && number == TAKEN - 1 && completion->error != 0) {
                require(!device_is_soft() && completion->error == -ECONNRESET, "%d",
                        completion->error);
                continue;
            }
            require((completion->error == 0) == (i % 2 == 1 || number < TAKEN),
                    "message %u to %u: %d", number, completion->peer, completion->error);
        }
        check_lost(&flight->mesh, leaver);
    } else if (rank->index == 1) {
        const uint32_t root = 0;
        uint32_t count = ask(flight, SLUICE_OP_RECEIVE, &root, 1);
        require_ok(sluice_multichannel_gather_receive(flight->mesh.all, flight->requests, count,
                                                      DEADLINE, flight->completions));
        require(check_received(flight, 0) == MESSAGES, "%u", count);
    }
}

static void run_round(struct rank *rank, uint32_t leaver)
{
    struct flight *flight = calloc(1, sizeof(*flight));
    require(flight, "%u", leaver);
    mesh_open(&flight->mesh, rank, NULL);
    memory_open(&flight->memory, flight->mesh.pd, 2 * MESSAGES * BYTES);
    if (leaver % 2 == 0) {
        lose_scatterer(flight, rank, leaver);
    } else {
        lose_receiver(flight, rank, leaver);
    }
    memset(flight->memory.bytes, 0x77, flight->memory.length);
    if (rank->index < FIRST_LEAVER) {
        mesh_pass(&flight->mesh, rank, 0, 1);
    }
    value_check(flight->memory.bytes, flight->memory.length, 0x77);
    rank_barrier(rank);
    memory_close(&flight->memory);
    mesh_close(&flight->mesh);
    free(flight);
}

static void lose_one_by_one(struct rank *rank)
{
    struct census census = {0};
    for (uint32_t leaver = FIRST_LEAVER; leaver < rank->size; leaver++) {
        run_round(rank, leaver);
        if (leaver == FIRST_LEAVER) {
            census = census_take();
        } else {
            census_check(&census);
        }
    }
}

TEST(exit_in_the_middle_of_a_scatter)
{
    group_run(FIRST_LEAVER + (short_run() ? 2 : 4), lose_one_by_one, NULL, 50);
}

int main(void)
{
    return RUN_GROUPS("fault_exit", {"processes", WIRE_SHM, 60});
}
