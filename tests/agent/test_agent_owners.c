/* SPDX-License-Identifier: MIT */
/*
 * A stranger that owns or holds memory, and answers when and as it likes: when leases begin and
 * end, and the state of regions meanwhile.
 */
#include <pthread.h>

#include "../support/fair.h"
#include "../support/process.h"
#include "strangers.h"

#define LENGTH 4096
#define PAUSE SLUICE_MS(300)

/* The agent's program, in a thread: it requests memory of the stranger, and uses it. */
struct holder {
    pthread_t thread;
    struct sluice_agent_peer *peer;
    struct memory memory;
    struct sluice_agent_mr *mr;
    void (*go_on)(struct holder *holder);
    int errors[3];
};

static void *run_holder(void *argument)
{
    struct holder *holder = argument;
    holder->mr =
        sluice_agent_request_mr(holder->peer, LENGTH, ACCESS_READ_WRITE, SLUICE_S(50), DEADLINE);
    require(holder->mr, "%s", sluice_last_error());
    if (holder->go_on != NULL) {
        holder->go_on(holder);
    }
    return NULL;
}

static void start_holder(struct holder *holder, struct stranger *stranger,
                         void (*go_on)(struct holder *holder))
{
    holder->go_on = go_on;
    holder->peer = sluice_agent_next_peer(stranger->agent, DEADLINE);
    require(holder->peer, "%s", sluice_last_error());
    memory_open(&holder->memory, stranger->sides.pds[0], LENGTH);
    require(pthread_create(&holder->thread, NULL, run_holder, holder) == 0, "no thread");
}

static void holder_close(struct holder *holder)
{
    (void)!sluice_agent_mr_release(holder->mr, 0);
    sluice_agent_peer_close(holder->peer);
    memory_close(&holder->memory);
}

/* Grants a region at an invalid address, whose id is 7. */
static void grant(struct stranger *stranger, uint64_t id, int64_t lease)
{
    put(stranger->out + HEAD, 4096, 8);
    put(stranger->out + HEAD + 8, LENGTH, 8);
    put(stranger->out + HEAD + 24, 7, 8);
    put(stranger->out + HEAD + 32, (uint64_t)lease, 8);
    put(stranger->out + HEAD + 40, ACCESS_READ_WRITE, 4);
    say(stranger, ALLOCATED, id, 44);
}

static void renew_once(struct holder *holder)
{
    holder->errors[0] = sluice_agent_mr_renew(holder->mr, SLUICE_S(100), DEADLINE);
}

/* However late the owner answers, its holder counts the lease from the request. */
TEST(a_lease_begins_when_it_is_asked_for)
{
    struct stranger stranger;
    struct holder holder = {.errors = {0}};
    uint32_t heard = 1;
    uint64_t id;
    stranger_greet(&stranger);
    start_holder(&holder, &stranger, renew_once);
    id = hear_request(&stranger, &heard, ALLOC);
    let_pass(PAUSE);
    grant(&stranger, id, SLUICE_S(50));
    id = hear_request(&stranger, &heard, RENEW);
    require(mr_info(holder.mr).lease <= SLUICE_S(50) - PAUSE, "%lld",
            (long long)mr_info(holder.mr).lease);
    let_pass(PAUSE);
    put(stranger.out + HEAD, SLUICE_S(100), 8);
    say(&stranger, RENEWED, id, 8);
    require(pthread_join(holder.thread, NULL) == 0, "no end");
    require_ok(holder.errors[0]);
    require(mr_info(holder.mr).lease > SLUICE_S(50) &&
                mr_info(holder.mr).lease <= SLUICE_S(100) - PAUSE,
            "%lld", (long long)mr_info(holder.mr).lease);
    holder_close(&holder);
    stranger_close(&stranger);
}

/* Memory of the agent's program, handed to the stranger, which confirms it late. */
struct giver {
    pthread_t thread;
    struct sluice_agent_peer *peer;
    struct memory given;
    int error;
};

static void *run_giver(void *argument)
{
    struct giver *giver = argument;
    giver->error = sluice_agent_send_local_mr(giver->peer, giver->given.mr, 0, LENGTH,
                                              ACCESS_READ_WRITE, SLUICE_MS(1), DEADLINE, NULL);
    return NULL;
}

/*
 * The owner counts the lease from the confirmation of the holder. This takes seconds, so only one
 * wire runs it.
 */
TEST(a_lease_does_not_end_before_it_begins)
{
    struct stranger stranger;
    struct giver giver = {.error = 0};
    uint32_t heard = 1;
    uint64_t id;
    if (current_wire() != WIRE_SELF) {
        return;
    }
    stranger_greet(&stranger);
    giver.peer = sluice_agent_next_peer(stranger.agent, DEADLINE);
    require(giver.peer, "%s", sluice_last_error());
    memory_open(&giver.given, stranger.sides.pds[0], LENGTH);
    require(pthread_create(&giver.thread, NULL, run_giver, &giver) == 0, "no thread");
    id = hear_request(&stranger, &heard, HAND);
    let_pass(SLUICE_MS(1200));
    require(agent_info(stranger.agent).regions == 1, "it is over");
    say(&stranger, DONE, id, 4);
    require(pthread_join(giver.thread, NULL) == 0, "no end");
    require_ok(giver.error);
    await_info(stranger.agent, expired, 1);
    require(agent_info(stranger.agent).regions == 0, "it is there still");
    sluice_agent_peer_close(giver.peer);
    memory_close(&giver.given);
    stranger_close(&stranger);
}

static void write_once(struct holder *holder)
{
    struct sluice_sge sge = memory_sge(&holder->memory, 0, LENGTH);
    holder->errors[0] = sluice_agent_mr_write(holder->mr, 0, &sge, 1, DEADLINE);
}

/* A use waits for the data queue pair, which comes after its lease is over: it is not posted. */
TEST(a_use_that_has_waited_for_too_long_is_refused)
{
    struct stranger stranger;
    struct holder holder = {.errors = {0}};
    uint32_t heard = 1;
    stranger_greet(&stranger);
    start_holder(&holder, &stranger, write_once);
    grant(&stranger, hear_request(&stranger, &heard, ALLOC), PAUSE);
    let_pass(PAUSE);
    put(stranger.out + HEAD, 1, 4);
    say(&stranger, READY, 0, 4);
    require(pthread_join(holder.thread, NULL) == 0, "no end");
    require_result(holder.errors[0], -EACCES);
    require(agent_info(stranger.agent).refused_late == 1, "%llu",
            (unsigned long long)agent_info(stranger.agent).refused_late);
    require(peer_info(holder.peer).reconnects == 0, "something was posted");
    holder_close(&holder);
    stranger_close(&stranger);
}

static void fill_window(struct holder *holder)
{
    for (int i = 0; i < 15; i++) {
        require_ok(sluice_agent_send(holder->peer, "x", 1, DEADLINE));
    }
}

/* A region that cannot be returned at once is returned later, or ends with its peer. */
TEST(a_region_is_given_back_when_there_is_room, .times = 2)
{
    struct stranger stranger;
    struct holder holder = {.errors = {0}};
    uint32_t heard = 1;
    stranger_greet(&stranger);
    start_holder(&holder, &stranger, fill_window);
    grant(&stranger, hear_request(&stranger, &heard, ALLOC), SLUICE_S(50));
    require(pthread_join(holder.thread, NULL) == 0, "no end");
    require_result(sluice_agent_mr_release(holder.mr, 0), -ETIMEDOUT);
    require(agent_info(stranger.agent).held == 0, "it is the program's still");
    if (_i == 0) {
        stranger.taken = 16;
        say(&stranger, CREDIT, 0, 0);
        (void)hear_request(&stranger, &heard, RELEASE);
    } else {
        sluice_channel_close(stranger.control);
        stranger.control = NULL;
        await_info(stranger.agent, lost, 1);
    }
    sluice_agent_peer_close(holder.peer);
    memory_close(&holder.memory);
    stranger_close(&stranger);
}

static void renew(struct holder *holder)
{
    for (int i = 0; i < 3; i++) {
        holder->errors[i] = sluice_agent_mr_renew(holder->mr, SLUICE_S(60), DEADLINE);
    }
}

/* A longer lease than requested, memory in its place, or no answer: the lease is unchanged. */
TEST(invalid_answer_to_a_renewal)
{
    struct stranger stranger;
    struct holder holder = {.errors = {0}};
    uint32_t heard = 1;
    uint64_t id;
    stranger_greet(&stranger);
    start_holder(&holder, &stranger, renew);
    grant(&stranger, hear_request(&stranger, &heard, ALLOC), SLUICE_S(50));
    id = hear_request(&stranger, &heard, RENEW);
    put(stranger.out + HEAD, SLUICE_S(61), 8);
    say(&stranger, RENEWED, id, 8);
    id = hear_request(&stranger, &heard, RENEW);
    say(&stranger, DONE, id, 4); /* success without a lease, which is no valid answer */
    put(stranger.out + HEAD, 7, 4);
    say(&stranger, DONE, id, 4); /* an error that it cannot have */
    id = hear_request(&stranger, &heard, RENEW);
    put(stranger.out + HEAD, 4, 4); /* no such region */
    say(&stranger, DONE, id, 4);
    require(pthread_join(holder.thread, NULL) == 0, "no end");
    require(holder.errors[0] == -EPROTO && holder.errors[1] == -EPROTO &&
                holder.errors[2] == -EACCES,
            "%d %d %d", holder.errors[0], holder.errors[1], holder.errors[2]);
    require(mr_info(holder.mr).lease <= SLUICE_S(50), "it has a longer lease");
    require(agent_info(stranger.agent).unasked == 1 && agent_info(stranger.agent).malformed == 2,
            "not counted");
    holder_close(&holder);
    stranger_close(&stranger);
}

int main(void)
{
    return run_tests("agent_owners", 60);
}
