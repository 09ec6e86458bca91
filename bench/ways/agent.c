/* SPDX-License-Identifier: MIT */
/* Agents: rank 1 listens and serves, rank 0 uses its memory; both send messages. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "ways.h"

#define RIGHTS \
    (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC)
#define QUOTA (UINT64_C(64) << 20) /* more than any way requests */

struct service {
    struct sluice_agent *agent;
    struct sluice_agent_peer *peer;
    struct sluice_agent_mr *mr; /* of rank 0, at rank 1 */
    char address[64];
};

static struct sluice_agent *make_agent(struct rank *rank)
{
    const struct sluice_agent_attr attr = {.size = sizeof attr, .access = RIGHTS, .quota = QUOTA};

    return MAKE(sluice_agent_open(rank->pd, &attr));
}

static void make_service(struct rank *rank)
{
    struct service *service = MAKE(calloc(1, sizeof *service));
    char own[64] = "", all[2][64];

    service->agent = make_agent(rank);
    if (rank->rank == 1) {
        MUST(sluice_agent_listen(service->agent, "127.0.0.1:0", NULL));
        MUST(sluice_agent_address(service->agent, own, sizeof own));
    }
    share(rank, own, all, sizeof own);
    memcpy(service->address, all[1], sizeof own);
    service->peer =
        rank->rank == 0
            ? MAKE(sluice_agent_connect(service->agent, service->address, NULL, DEADLINE))
            : MAKE(sluice_agent_next_peer(service->agent, DEADLINE));
    if (rank->rank == 0)
        service->mr = MAKE(sluice_agent_request_mr(
            service->peer, rank->size < 4096 ? 4096 : rank->size, RIGHTS, 0, DEADLINE));
    rank->state = service;
}

static void end_service(struct rank *rank)
{
    struct service *service = rank->state;

    if (service->mr != NULL)
        sluice_agent_mr_release(service->mr, DEADLINE);
    meet(rank);
    sluice_agent_peer_close(service->peer);
    sluice_agent_close(service->agent);
    free(service);
}

static void agent_echo(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;

    for (uint64_t i = 0; i < count; i++) {
        if (rank->rank == 0)
            MUST(sluice_agent_send(service->peer, rank->memory, rank->size, DEADLINE));
        sluice_agent_message_free(
            MAKE(sluice_agent_receive(service->agent, service->peer, DEADLINE)));
        if (rank->rank == 1)
            MUST(sluice_agent_send(service->peer, rank->memory, rank->size, DEADLINE));
    }
}

/* An event loop as in sluice_agent_fd(3). */
static void agent_loop(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    struct pollfd entry = {.fd = sluice_agent_fd(service->agent), .events = POLLIN};

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_agent_message *message;

        if (rank->rank == 0)
            MUST(sluice_agent_send(service->peer, rank->memory, rank->size, DEADLINE));
        while ((message = sluice_agent_receive(service->agent, service->peer, 0)) == NULL) {
            int64_t due;

            if (MUST(sluice_agent_progress(service->agent)) == 0 &&
                MUST(sluice_agent_arm(service->agent, &due)) == 0)
                poll(&entry, 1, 1000);
        }
        sluice_agent_message_free(message);
        if (rank->rank == 1)
            MUST(sluice_agent_send(service->peer, rank->memory, rank->size, DEADLINE));
    }
}

static void agent_flush(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;

    for (uint64_t i = 0; i < count; i++)
        if (rank->rank == 0) {
            MUST(sluice_agent_send(service->peer, rank->memory, rank->size, DEADLINE));
            MUST(sluice_agent_flush(service->peer, DEADLINE));
        } else {
            sluice_agent_message_free(
                MAKE(sluice_agent_receive(service->agent, service->peer, DEADLINE)));
        }
}

static void agent_request(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_agent_mr_release(
            MAKE(sluice_agent_request_mr(service->peer, rank->size, RIGHTS, 0, DEADLINE)),
            DEADLINE));
}

static void agent_renew(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_agent_mr_renew(service->mr, 0, DEADLINE));
}

static void agent_write(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    const struct sluice_sge sge = place(rank, 0, rank->size);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_agent_mr_write(service->mr, 0, &sge, 1, DEADLINE));
}

static void agent_read(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    const struct sluice_sge sge = place(rank, 0, rank->size);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_agent_mr_read(service->mr, 0, &sge, 1, DEADLINE));
}

static void agent_add(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_agent_mr_fetch_add(service->mr, 0, &sge, 1, DEADLINE));
}

static void agent_swap(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    const struct sluice_sge sge = place(rank, 0, 8);

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++)
        MUST(sluice_agent_mr_compare_swap(service->mr, 0, &sge, 0, 0, DEADLINE));
}

static void agent_submit(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    struct sluice_agent_mr_info info = {.size = sizeof info};
    struct sluice_request request = {
        .opcode = SLUICE_OP_WRITE, .sge_count = 1, .sge = place(rank, 0, rank->size)};

    if (rank->rank != 0)
        return;
    MUST(sluice_agent_mr_query(service->mr, &info));
    request.remote = info.remote;
    for (uint64_t i = 0; i < count; i++)
        MUST(sluice_agent_submit(service->peer, &request, 1, DEADLINE, NULL));
}

/* Hands a region to the peer, and receives it back. */
static void agent_hand_over(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    struct sluice_agent_local local = {.size = sizeof local};

    for (uint64_t i = 0; i < count; i++)
        if (rank->rank == 0) {
            MUST(sluice_agent_send_local_mr(service->peer, rank->mr, 0, rank->size,
                                            SLUICE_ACCESS_REMOTE_READ, SLUICE_FOREVER, DEADLINE,
                                            NULL));
            MUST(sluice_agent_receive_local_mr(service->agent, service->peer, DEADLINE, &local));
        } else {
            MUST(sluice_agent_mr_send_back(
                MAKE(sluice_agent_receive_remote_mr(service->agent, service->peer, DEADLINE)),
                DEADLINE));
        }
}

static void agent_revoke(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    uint64_t id;

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_agent_mr *mr = NULL;

        if (rank->rank == 0)
            MUST(sluice_agent_send_local_mr(service->peer, rank->mr, 0, rank->size,
                                            SLUICE_ACCESS_REMOTE_READ, SLUICE_FOREVER, DEADLINE,
                                            &id));
        else
            mr = MAKE(sluice_agent_receive_remote_mr(service->agent, service->peer, DEADLINE));
        meet(rank);
        if (rank->rank == 0)
            MUST(sluice_agent_revoke_mr(service->peer, id));
        meet(rank);
        if (rank->rank == 1)
            sluice_agent_mr_release(mr, DEADLINE);
    }
}

static void agent_connect(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;

    for (uint64_t i = 0; i < count; i++) {
        struct sluice_agent_peer *peer =
            rank->rank == 0
                ? MAKE(sluice_agent_connect(service->agent, service->address, NULL, DEADLINE))
                : MAKE(sluice_agent_next_peer(service->agent, DEADLINE));

        meet(rank);
        sluice_agent_peer_close(peer);
    }
}

static void agent_create(struct rank *rank, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct sluice_agent *agent = make_agent(rank);

        MUST(sluice_agent_listen(agent, "127.0.0.1:0", NULL));
        sluice_agent_close(agent);
    }
}

static void agent_wake(struct rank *rank, uint64_t count)
{
    const struct service *service = rank->state;
    struct sluice_agent_message *message;

    for (uint64_t i = 0; rank->rank == 0 && i < count; i++) {
        MUST(sluice_agent_wake(service->agent));
        message = sluice_agent_receive(service->agent, service->peer, DEADLINE);
        MUST(message == NULL && errno == EINTR ? 0 : -errno);
    }
}

#define WAY(name, against, plain, calls, sizes)          \
    {                                                    \
#name, "agent", against, plain, NULL, calls, 0,  \
            {2 }, sizes, make_service, name, end_service \
    }
#define LONG_SIZES              \
    {                           \
        8, 4096, 65536, 1048576 \
    }
#define PAGE          \
    {                 \
        4096, 1048576 \
    }

const struct way ways_agent[] = {
    WAY(agent_echo, "echo_posted", "plain_echo", "agent_send agent_receive agent_message_free",
        LONG_SIZES),
    WAY(agent_loop, "echo_posted", "plain_echo", "agent_fd agent_arm agent_progress", SMALL),
    WAY(agent_flush, "echo_posted", "plain_echo", "agent_flush", SMALL),
    WAY(agent_request, "echo_posted", "plain_echo", "agent_request_mr agent_mr_release", PAGE),
    WAY(agent_renew, "echo_posted", "plain_echo", "agent_mr_renew", SMALL),
    WAY(agent_write, "channel_write", NULL, "agent_mr_write", LONG_SIZES),
    WAY(agent_read, "channel_read", NULL, "agent_mr_read", LONG_SIZES),
    WAY(agent_add, "add_blocking", NULL, "agent_mr_fetch_add", SMALL),
    WAY(agent_swap, "swap_blocking", NULL, "agent_mr_compare_swap", SMALL),
    WAY(agent_submit, "channel_write", NULL, "agent_submit", SMALL),
    WAY(agent_hand_over, "echo_posted", "plain_echo",
        "agent_send_local_mr agent_receive_remote_mr agent_mr_send_back agent_receive_local_mr",
        PAGE),
    WAY(agent_revoke, "echo_posted", "plain_echo", "agent_revoke_mr", SMALL),
    WAY(agent_connect, "connect_accept", "plain_connect",
        "agent_connect agent_next_peer agent_peer_close", SMALL),
    WAY(agent_create, NULL, NULL, "agent_open agent_listen agent_close", SMALL),
    WAY(agent_wake, NULL, NULL, "agent_wake", SMALL),
    {0},
};
