/* SPDX-License-Identifier: MIT */
/*
 * Acknowledgements that wait for an answer to ride on: after many immediate answers, a send is
 * still acknowledged when no further answer comes.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/group.h"
#include "../support/pair.h"

/*
 * Long enough for the helper of an idle machine to leave the queue to the program, and for answers
 * to be expected; otherwise acknowledgements do not wait.
 */
#define ROUNDS 3000

enum request { RECEIVE, SEND };

/* Static, so that a process that ends without closing it leaks nothing. */
static struct {
    struct rank *rank;
    struct mesh mesh;
    struct memory memory;
    struct sluice_sge sges[2];
    struct sluice_request requests[2];
} side;

static void submit(enum request first, uint32_t count)
{
    require_ok(
        sluice_multichannel_submit(side.mesh.all, &side.requests[first], count, DEADLINE, NULL));
}

static struct sluice_handle post_one(enum request which)
{
    struct sluice_handle handle;

    require_result(
        sluice_multichannel_post(side.mesh.all, &side.requests[which], 1, DEADLINE, &handle), 1);
    return handle;
}

static void end_one(struct sluice_handle handle)
{
    struct sluice_completion completion;

    require_ok(sluice_multichannel_wait(side.mesh.all, &handle, DEADLINE, &completion));
    require_class(&completion, SLUICE_CLASS_NONE);
}

/* Rank 0 has a message answered this many times. In the end nothing is posted. */
static void play(struct rank *rank)
{
    side.rank = rank;
    mesh_open(&side.mesh, rank, NULL);
    memory_open(&side.memory, side.mesh.pd, 64);
    for (uint32_t i = 0; i < 2; i++) {
        side.sges[i] = memory_sge(&side.memory, i * 32, 32);
        side.requests[i] = request_of(i == SEND ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE,
                                      1 - rank->index, &side.sges[i]);
    }
    rank_barrier(rank);
    if (rank->index == 1)
        submit(RECEIVE, 1);
    for (int i = 0; i < ROUNDS - (int)rank->index; i++)
        submit(RECEIVE, 2);
    if (rank->index == 1)
        submit(SEND, 1);
    rank_barrier(rank);
}

static void end_play(void)
{
    rank_barrier(side.rank);
    memory_close(&side.memory);
    mesh_close(&side.mesh);
}

static void receive_and_leave(struct rank *rank)
{
    play(rank);
    if (rank->index == 1)
        submit(RECEIVE, 1);
    else
        end_one(post_one(SEND));
    end_play();
}

static void receive_and_wait(struct rank *rank)
{
    struct sluice_completion completion;
    struct sluice_handle handle;

    play(rank);
    if (rank->index == 0) {
        end_one(post_one(SEND));
        rank_barrier(rank);
        end_one(post_one(SEND));
    } else {
        submit(RECEIVE, 1);
        handle = post_one(RECEIVE);
        require_result(sluice_multichannel_wait(side.mesh.all, &handle, SLUICE_MS(5), &completion),
                       -ETIMEDOUT);
        rank_barrier(rank);
        end_one(handle);
    }
    end_play();
}

static void send_in_a_call(struct rank *rank)
{
    play(rank);
    submit(rank->index == 0 ? SEND : RECEIVE, 1);
    end_play();
}

/* Both ranks have sent before either has received. */
static void exchange(struct rank *rank)
{
    play(rank);
    for (int i = 0; i < ROUNDS; i++)
        submit(RECEIVE, 2);
    end_play();
}

/* The last answer goes to a process that then ends without closing anything. */
static void receive_and_end(struct rank *rank)
{
    play(rank);
    if (rank->index == 0) {
        for (int i = 0; i < ROUNDS; i++)
            submit(RECEIVE, 2);
        return;
    }
    submit(RECEIVE, 1);
    for (int i = 1; i < ROUNDS; i++)
        submit(RECEIVE, 2);
    end_one(post_one(SEND));
    memory_close(&side.memory);
    mesh_close(&side.mesh);
}

TEST(ack_comes_while_the_program_is_away)
{
    group_run(2, receive_and_leave, NULL, 20);
}

TEST(ack_comes_while_the_program_waits_for_another_peer)
{
    group_run(2, receive_and_wait, NULL, 20);
}

TEST(ack_reaches_a_blocking_call)
{
    group_run(2, send_in_a_call, NULL, 20);
}

TEST(both_sides_may_send_first)
{
    group_run(2, exchange, NULL, 20);
}

TEST(ack_comes_when_the_process_ends)
{
    group_run(2, receive_and_end, NULL, 20);
}

int main(void)
{
    return RUN_GROUPS("answers", {"tcp", WIRE_TCP, 20}, {"shm", WIRE_SHM, 20});
}
