/* SPDX-License-Identifier: MIT */
/* Agents: mistakes of a program, and failures that peers and limits cause in a correct one. */
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../../support/process.h"
#include "mistakes.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)

/* Two agents; the second one has connected to the first. */
struct couple {
    struct sluice_agent *owner, *holder;
    struct sluice_agent_peer *peer; /* the owner, as the holder has it */
    char address[64];
};

static struct sluice_agent *agent_with(struct sluice_pd *pd, struct sluice_agent_attr attr)
{
    struct sluice_agent *agent;
    attr.size = sizeof(attr);
    attr.secret_file = "";
    attr.quota = attr.quota ? attr.quota : 1 << 20;
    agent = made(sluice_agent_open(pd, &attr));
    return agent;
}

static struct sluice_agent *agent_of(struct world *world)
{
    return agent_with(world->sides.pds[0], (struct sluice_agent_attr){.flags = 0});
}

static struct couple couple_with(struct world *world, struct sluice_agent_attr owner,
                                 struct sluice_agent_attr holder)
{
    struct couple couple;
    couple.owner = agent_with(world->sides.pds[0], owner);
    couple.holder = agent_with(world->sides.pds[1], holder);
    require_ok(sluice_agent_listen(couple.owner, "127.0.0.1:0", NULL));
    require(sluice_agent_address(couple.owner, couple.address, sizeof(couple.address)) > 0, "%s",
            sluice_last_error());
    couple.peer = made(sluice_agent_connect(couple.holder, couple.address, NULL, DEADLINE));
    return couple;
}

static struct couple couple_of(struct world *world)
{
    const struct sluice_agent_attr none = {.size = sizeof(none)};
    return couple_with(world, none, none);
}

static struct sluice_agent_mr *memory_of(struct couple *couple, uint32_t access)
{
    struct sluice_agent_mr *mr =
        made(sluice_agent_request_mr(couple->peer, 64, access, SLUICE_MS(1), DEADLINE));
    return mr;
}

/* The limit holds for users without privileges; an agent that needs no thread is still made. */
int thread_beyond_the_limit(struct world *world)
{
    const struct rlimit none = {0, 0};
    struct sluice_agent *agent;
    require_ok(setrlimit(RLIMIT_NPROC, &none));
    require(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0, "%s", strerror(errno));
    agent = agent_with(world->sides.pds[0],
                       (struct sluice_agent_attr){.flags = SLUICE_AGENT_NO_THREAD});
    sluice_agent_close(agent);
    return result_of(CALL(sluice_agent_open)(world->sides.pds[0], NULL));
}

/* Mistakes. */

MAKES(null_agent, sluice_agent_next_peer, NULL, 0);
RETURNS(null_bytes_to_send, sluice_agent_send, couple_of(world).peer, NULL, 1, DEADLINE);
RETURNS(other_peer_of_an_agent, sluice_agent_flush,
        (struct sluice_agent_peer *)(void *)agent_of(world), 0);
RETURNS(other_agent_memory, sluice_agent_mr_read, (struct sluice_agent_mr *)(void *)agent_of(world),
        0, &world->sge, 1, DEADLINE);
ENDS(close_other_agent, sluice_agent_close, OTHER(sluice_agent));

int close_peer_that_was_not_taken(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_agent_message *message;
    require_ok(sluice_agent_send(couple.peer, "x", 1, DEADLINE));
    message = made(sluice_agent_receive(couple.owner, NULL, DEADLINE));
    CALL(sluice_agent_peer_close)(sluice_agent_message_peer(message));
    return 0;
}

MAKES(no_size_of_agent, sluice_agent_open, world->sides.pds[0],
      &(struct sluice_agent_attr){.size = 0});
RETURNS(wild_size_of_agent_info, sluice_agent_query, agent_of(world),
        &(struct sluice_agent_info){.size = 5000});
MAKES(eager_out_of_range, sluice_agent_open, world->sides.pds[0],
      &(struct sluice_agent_attr){.size = sizeof(struct sluice_agent_attr), .eager = 63});
MAKES(unknown_flag_of_agent, sluice_agent_open, world->sides.pds[0],
      &(struct sluice_agent_attr){.size = sizeof(struct sluice_agent_attr), .flags = 8});
MAKES(no_right_of_a_peer, sluice_agent_request_mr, couple_of(world).peer, 8,
      SLUICE_ACCESS_LOCAL_WRITE, 0, DEADLINE);
MAKES(negative_lease, sluice_agent_request_mr, couple_of(world).peer, 8, RIGHTS, -1, DEADLINE);
RETURNS(message_in_a_list_of_an_agent, sluice_agent_submit, couple_of(world).peer, &world->request,
        1, DEADLINE, NULL);

int second_peer_of_a_peer(struct world *world)
{
    world->request.opcode = SLUICE_OP_READ;
    world->request.peer = 1;
    return CALL(sluice_agent_submit)(couple_of(world).peer, &world->request, 1, DEADLINE, NULL);
}

MAKES(no_bytes_of_a_peer, sluice_agent_request_mr, couple_of(world).peer, 0, RIGHTS, 0, DEADLINE);
RETURNS(no_time_for_a_peer, sluice_agent_send_local_mr, couple_of(world).peer, world->far.mr, 0, 8,
        RIGHTS, 0, DEADLINE, NULL);
RETURNS(secret_of_one_listen, sluice_agent_listen, agent_of(world), "127.0.0.1:0",
        &(struct sluice_listen_attr){.size = sizeof(struct sluice_listen_attr), .secret_file = ""});
MAKES(secret_of_one_connect, sluice_agent_connect, agent_of(world), "127.0.0.1:1",
      &(struct sluice_connect_attr){.size = sizeof(struct sluice_connect_attr), .secret_file = ""},
      0);

int peer_of_another_agent(struct world *world)
{
    struct couple couple = couple_of(world);
    return result_of(CALL(sluice_agent_receive)(couple.owner, couple.peer, 0));
}

/* No mistakes. */

int late_use_of_memory(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_agent_mr *mr = memory_of(&couple, RIGHTS);
    struct sluice_sge sge = memory_sge(&world->far, 0, 8);
    let_pass(SLUICE_MS(2));
    return sluice_agent_mr_write(mr, 0, &sge, 1, DEADLINE);
}

int right_that_was_not_given(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_agent_mr *mr = memory_of(&couple, SLUICE_ACCESS_REMOTE_READ);
    struct sluice_sge sge = memory_sge(&world->far, 0, 8);
    return sluice_agent_mr_write(mr, 0, &sge, 1, DEADLINE);
}

RETURNS(second_listen_of_an_agent, sluice_agent_listen, couple_of(world).owner, "127.0.0.1:0",
        NULL);

int more_than_a_quota(struct world *world)
{
    const struct sluice_agent_attr owner = {.quota = 4096}, holder = {.quota = 0};
    struct couple couple = couple_with(world, owner, holder);
    return result_of(sluice_agent_request_mr(couple.peer, 65537, RIGHTS, 0, DEADLINE));
}

int more_peers_than_an_agent_takes(struct world *world)
{
    const struct sluice_agent_attr owner = {.quota = 0}, holder = {.max_peers = 1};
    struct couple couple = couple_with(world, owner, holder);
    return result_of(sluice_agent_connect(couple.holder, couple.address, NULL, DEADLINE));
}

int message_too_long_for_a_peer(struct world *world)
{
    const struct sluice_agent_attr owner = {.max_message = 100}, holder = {.max_message = 0};
    return sluice_agent_send(couple_with(world, owner, holder).peer, world->memory.bytes, 101,
                             DEADLINE);
}

RETURNS(agent_that_does_not_listen, sluice_agent_address, agent_of(world), NULL, 0);
RETURNS(region_that_a_peer_does_not_have, sluice_agent_revoke_mr, couple_of(world).peer, 5);

int peer_of_an_agent_that_left(struct world *world)
{
    struct couple couple = couple_of(world);
    sluice_agent_close(couple.owner);
    return result_of(sluice_agent_receive(couple.holder, couple.peer, DEADLINE));
}

int woken_agent(struct world *world)
{
    struct sluice_agent *agent = agent_of(world);
    require_ok(sluice_agent_wake(agent));
    return result_of(sluice_agent_next_peer(agent, DEADLINE));
}

MAKES(nothing_from_an_agent, sluice_agent_receive, agent_of(world), NULL, 0);
