/* SPDX-License-Identifier: MIT */
#include "group.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process.h"

/* A request of a rank to its parent, and what the rank then waits for. */
enum wish { WISH_NONE = 0, WISH_BARRIER, WISH_EXCHANGE, WISH_KILL, WISH_FAIL };

static const char *const wish_names[] = {"its own work", "a barrier", "an exchange", "a kill",
                                         "its end"};

#define TEXT_BYTES 1500

struct message {
    uint32_t wish;
    uint32_t value; /* victim, or bytes of a block */
    uint8_t blocks[GROUP_MOST * GROUP_BLOCK];
};

struct member {
    pid_t pid; /* 0: ended */
    int socket;
    bool killed;
    struct message asked; /* its wish is NONE while the rank works */
};

struct hub {
    uint32_t size;
    struct member members[GROUP_MOST];
    char failure[TEXT_BYTES + 100]; /* empty: none */
};

static struct rank *self;

/* The side of the ranks. */

static void exchange_with_hub(struct rank *rank, struct message *message, size_t bytes)
{
    size_t length = offsetof(struct message, blocks) + bytes;
    if (send(rank->hub, message, length, MSG_NOSIGNAL) != (ssize_t)length) {
        _exit(EXIT_FAILURE);
    }
    ssize_t got;
    do {
        got = recv(rank->hub, message, sizeof(*message), 0);
    } while (got < 0 && errno == EINTR);
    if (got <= 0) {
        _exit(EXIT_FAILURE);
    }
}

void rank_fail(const char *text)
{
    struct message message = {.wish = WISH_FAIL};
    if (!self) {
        return;
    }
    snprintf((char *)message.blocks, TEXT_BYTES, "%s", text);
    exchange_with_hub(self, &message, TEXT_BYTES);
    _exit(EXIT_FAILURE);
}

void rank_barrier(struct rank *rank)
{
    struct message message = {.wish = WISH_BARRIER};
    exchange_with_hub(rank, &message, 0);
}

void rank_exchange(struct rank *rank, const void *blocks, void *received, size_t bytes)
{
    struct message message = {.wish = WISH_EXCHANGE, .value = (uint32_t)bytes};
    require(bytes <= GROUP_BLOCK, "%zu bytes", bytes);
    memcpy(message.blocks, blocks, rank->size * bytes);
    exchange_with_hub(rank, &message, rank->size * bytes);
    memcpy(received, message.blocks, rank->size * bytes);
}

void rank_kill(struct rank *rank, uint32_t victim)
{
    struct message message = {.wish = WISH_KILL, .value = victim};
    exchange_with_hub(rank, &message, 0);
}

void rank_await_death(struct rank *rank)
{
    (void)rank;
    for (;;) {
        pause();
    }
}

static void run_rank(struct rank *rank, void (*function)(struct rank *rank))
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    self = rank;
    function(rank);
    fflush(NULL);
    exit(EXIT_SUCCESS); /* not _exit(): the sanitizers look for leaks at exit */
}

/* The side of the parent. */

static void answer(struct member *member, const struct message *message, size_t bytes)
{
    member->asked.wish = WISH_NONE;
    send(member->socket, message, offsetof(struct message, blocks) + bytes, MSG_NOSIGNAL);
}

static void reap(struct hub *hub, uint32_t index)
{
    struct member *member = &hub->members[index];
    int status = 0;
    while (waitpid(member->pid, &status, 0) < 0 && errno == EINTR) {
    }
    member->pid = 0;
    close(member->socket);
    if (member->killed || hub->failure[0]) {
        return;
    }
    if (WIFSIGNALED(status)) {
        snprintf(hub->failure, sizeof(hub->failure), "rank %u ended by signal %d (%s)", index,
                 WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else if (WEXITSTATUS(status) != 0) {
        snprintf(hub->failure, sizeof(hub->failure), "rank %u ended with status %d", index,
                 WEXITSTATUS(status));
    }
}

static void kill_member(struct hub *hub, uint32_t index)
{
    hub->members[index].killed = true;
    if (hub->members[index].pid) {
        kill(hub->members[index].pid, SIGKILL);
        reap(hub, index);
    }
}

/* Takes the request of a rank. Barriers and exchanges wait for the others. */
static void listen_to(struct hub *hub, uint32_t index)
{
    struct member *member = &hub->members[index];
    ssize_t got = recv(member->socket, &member->asked, sizeof(member->asked), 0);
    if (got <= 0) {
        reap(hub, index);
    } else if (member->asked.wish == WISH_KILL) {
        kill_member(hub, member->asked.value);
        answer(member, &member->asked, 0);
    } else if (member->asked.wish == WISH_FAIL && !hub->failure[0]) {
        snprintf(hub->failure, sizeof(hub->failure), "rank %u: %.*s", index, TEXT_BYTES,
                 (const char *)member->asked.blocks);
    }
}

/* If all live ranks wait for the same, grants it. */
static void serve(struct hub *hub)
{
    enum wish wish = WISH_NONE;
    size_t bytes = 0;
    for (uint32_t i = 0; i < hub->size; i++) {
        const struct member *member = &hub->members[i];
        if (!member->pid) {
            continue;
        }
        if (member->asked.wish != WISH_BARRIER && member->asked.wish != WISH_EXCHANGE) {
            return;
        }
        if (wish != WISH_NONE && wish != member->asked.wish) {
            snprintf(hub->failure, sizeof(hub->failure), "rank %u waits for %s, others for %s", i,
                     wish_names[member->asked.wish], wish_names[wish]);
            return;
        }
        wish = member->asked.wish;
        bytes = wish == WISH_EXCHANGE ? member->asked.value : 0;
    }
    static struct message blocks[GROUP_MOST];
    for (uint32_t to = 0; to < hub->size; to++) {
        for (uint32_t from = 0; from < hub->size; from++) {
            if (!hub->members[from].pid) {
                memset(blocks[to].blocks + from * bytes, 0, bytes);
                continue;
            }
            memcpy(blocks[to].blocks + from * bytes, hub->members[from].asked.blocks + to * bytes,
                   bytes);
        }
    }
    for (uint32_t to = 0; to < hub->size; to++) {
        if (hub->members[to].pid) {
            answer(&hub->members[to], &blocks[to], hub->size * bytes);
        }
    }
}

static void describe_wait(struct hub *hub, unsigned seconds)
{
    size_t at = (size_t)snprintf(hub->failure, TEXT_BYTES, "not done after %u s:", seconds);
    for (uint32_t i = 0; i < hub->size; i++) {
        if (hub->members[i].pid) {
            at += (size_t)snprintf(hub->failure + at, TEXT_BYTES - at, " rank %u in %s;", i,
                                   wish_names[hub->members[i].asked.wish]);
        }
    }
}

static void run_hub(struct hub *hub, unsigned seconds)
{
    int64_t end = clock_now() + PATIENCE * SLUICE_S(seconds);
    while (!hub->failure[0]) {
        struct pollfd fds[GROUP_MOST];
        uint32_t indices[GROUP_MOST];
        nfds_t count = 0;
        for (uint32_t i = 0; i < hub->size; i++) {
            if (hub->members[i].pid) {
                indices[count] = i;
                fds[count++] = (struct pollfd){.fd = hub->members[i].socket, .events = POLLIN};
            }
        }
        int64_t left = end - clock_now();
        if (count == 0) {
            return;
        }
        if (left <= 0) {
            describe_wait(hub, PATIENCE * seconds);
            return;
        }
        if (poll(fds, count, (int)(left / 1000000) + 1) < 0) {
            continue;
        }
        for (nfds_t i = 0; i < count; i++) {
            if (fds[i].revents && hub->members[indices[i]].pid) {
                listen_to(hub, indices[i]);
            }
        }
        serve(hub);
    }
}

static void start(struct hub *hub, uint32_t index, void (*function)(struct rank *rank),
                  const void *argument)
{
    int sockets[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) < 0) {
        snprintf(hub->failure, sizeof(hub->failure), "socketpair: %s", strerror(errno));
        return;
    }
    pid_t pid = fork();
    if (pid == 0) {
        struct rank rank = {index, hub->size, argument, sockets[1]};
        for (uint32_t i = 0; i < index; i++) {
            close(hub->members[i].socket);
        }
        close(sockets[0]);
        free(hub);
        run_rank(&rank, function);
    }
    close(sockets[1]);
    if (pid < 0) {
        close(sockets[0]);
        snprintf(hub->failure, sizeof(hub->failure), "fork: %s", strerror(errno));
        return;
    }
    hub->members[index].pid = pid;
    hub->members[index].socket = sockets[0];
}

void group_run(uint32_t size, void (*function)(struct rank *rank), const void *argument,
               unsigned seconds)
{
    struct hub *hub = calloc(1, sizeof(*hub));
    char failure[sizeof(hub->failure)];
    require(hub && size <= GROUP_MOST, "%u ranks", size);
    hub->size = size;
    for (uint32_t i = 0; i < size && !hub->failure[0]; i++) {
        start(hub, i, function, argument);
    }
    run_hub(hub, seconds);
    for (uint32_t i = 0; i < size; i++) {
        kill_member(hub, i);
    }
    memcpy(failure, hub->failure, sizeof(failure));
    free(hub);
    require(!failure[0], "%s", failure);
}

/* A mesh of all ranks. */

void mesh_open(struct mesh *mesh, struct rank *rank, const struct sluice_channel_attr *attr)
{
    struct sluice_endpoint ours[GROUP_MAX], theirs[GROUP_MAX];
    require(rank->size <= GROUP_MAX, "%u ranks", rank->size);
    mesh->context = open_context();
    mesh->pd = made(sluice_pd_alloc(mesh->context));
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(mesh->pd, rank->size, attr));
    require_ok(sluice_prepared_multichannel_endpoints(prepared, ours, rank->size));
    rank_exchange(rank, ours, theirs, sizeof(ours[0]));
    mesh->all = made(sluice_prepared_multichannel_handshake(prepared, theirs, rank->size));
    rank_barrier(rank);
}

void mesh_close(struct mesh *mesh)
{
    sluice_multichannel_close(mesh->all);
    sluice_pd_free(mesh->pd);
    sluice_context_close(mesh->context);
}

void mesh_barrier(struct mesh *mesh, struct rank *rank)
{
    require(sluice_multichannel_peer_state(mesh->all, 0) > 0, "%s", sluice_last_error());
    rank_barrier(rank);
    require(sluice_multichannel_peer_state(mesh->all, 0) > 0, "%s", sluice_last_error());
}

void mesh_share(struct rank *rank, const struct memory *memory,
                struct sluice_remote_mr remotes[GROUP_MAX])
{
    uint8_t ours[GROUP_MAX][SLUICE_REMOTE_MR_BYTES], theirs[GROUP_MAX][SLUICE_REMOTE_MR_BYTES];
    struct sluice_remote_mr remote = memory_remote(memory, 0, memory->length);
    for (uint32_t i = 0; i < rank->size; i++) {
        sluice_remote_mr_pack(&remote, ours[i]);
    }
    rank_exchange(rank, ours, theirs, SLUICE_REMOTE_MR_BYTES);
    for (uint32_t i = 0; i < rank->size; i++) {
        memset(&remotes[i], 0, sizeof(remotes[i]));
        int result = sluice_remote_mr_unpack(theirs[i], &remotes[i]);
        require(result == 0 || theirs[i][0] == 0, "%s", sluice_last_error());
    }
}
