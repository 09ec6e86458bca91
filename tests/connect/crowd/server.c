/* SPDX-License-Identifier: MIT */
#include <sys/epoll.h>
#include <unistd.h>

#include "../../support/pair.h"
#include "crowd.h"

/* Which request of a peer completed. */
enum step { RECEIVED, SENT };

/* Time that a client has to connect after it has come. */
#define WELCOME SLUICE_S(60)

void server_open(struct server *server, struct crowd *crowd)
{
    /* Soft notices at once that a process is dead. */
    const struct sluice_channel_attr attr = {.size = sizeof(attr),
                                             .send_depth = 4,
                                             .receive_depth = 4,
                                             .keepalive = device_is_soft() ? 0 : SLUICE_S(5)};
    const struct sluice_listen_attr open_to_all = {.size = sizeof(open_to_all), .secret_file = ""};
    size_t lines = crowd->count * sizeof(struct line);
    server->crowd = crowd;
    server->context = open_context();
    server->pd = made(sluice_pd_alloc(server->context));
    server->lines = made(sluice_mr_alloc(server->pd, lines, SLUICE_ACCESS_LOCAL_WRITE));
    server->doomed = made(sluice_mr_alloc(server->pd, lines, SLUICE_ACCESS_LOCAL_WRITE));
    server->windows = made(sluice_mr_alloc(server->pd, (size_t)crowd->count * WINDOW, ACCESS_ALL));
    struct sluice_prepared_multichannel *prepared =
        made(sluice_multichannel_prepare(server->pd, 0, &attr));
    server->clients = made(sluice_prepared_multichannel_handshake(prepared, NULL, 0));
    server->listener = made(sluice_listen("127.0.0.1:0", &open_to_all));
    int fds[] = {sluice_listener_fd(server->listener), sluice_multichannel_fd(server->clients)};
    server->epoll = epoll_create1(EPOLL_CLOEXEC);
    for (size_t i = 0; i < COUNT(fds); i++) {
        struct epoll_event event = {.events = EPOLLIN};
        require(epoll_ctl(server->epoll, EPOLL_CTL_ADD, fds[i], &event) == 0, "%s",
                strerror(errno));
    }
}

static struct member *member_of(struct server *server, uint32_t peer)
{
    return &server->crowd->members[server->numbers[peer]];
}

static struct sluice_mr *lines_of(struct server *server, uint32_t peer)
{
    return member_of(server, peer)->victim ? server->doomed : server->lines;
}

/* Posts a receive of the client's next line, or a send of the answer. */
static void post_line(struct server *server, uint32_t peer, enum step step)
{
    uint32_t opcode = step == SENT ? SLUICE_OP_SEND : SLUICE_OP_RECEIVE;
    struct sluice_sge sge;
    require_ok(sluice_mr_sge(lines_of(server, peer), peer * sizeof(struct line),
                             sizeof(struct line), &sge));
    struct sluice_request request = request_of(opcode, peer, &sge);
    request.user_data = step;
    int posted = sluice_multichannel_post(server->clients, &request, 1, SLUICE_FOREVER, NULL);
    /* The peer is dead, and its loss will be reported. */
    require(posted == 1 || (posted == -ENOTCONN && member_of(server, peer)->killed), "%d: %s",
            posted, sluice_last_error());
}

static void part_from(struct server *server, uint32_t peer)
{
    server->there--;
    require_ok(sluice_multichannel_peer_remove(server->clients, peer));
}

/*
 * Kills the client if this is the moment chosen for it, with messages in flight. Returns whether it
 * did.
 */
static bool dies(struct server *server, uint32_t number, enum moment moment, uint32_t when)
{
    struct member *member = &server->crowd->members[number];
    if (!member->victim || member->killed || member->moment != moment || member->when > when) {
        return false;
    }
    crowd_kill(server->crowd, number);
    return true;
}

static void kill_those_of_now(struct server *server)
{
    for (uint32_t i = 0; i < server->crowd->count; i++) {
        dies(server, i, ANY_TIME, server->said);
    }
}

/* A line of no bytes is the goodbye. */
static void answer(struct server *server, const struct sluice_completion *done)
{
    uint32_t peer = done->peer;
    struct member *member = member_of(server, peer);
    uint8_t *window =
        (uint8_t *)sluice_mr_addr(server->windows) + (size_t)server->numbers[peer] * WINDOW;
    struct line line;
    if (done->bytes == 0) {
        require(!member->victim, "a victim says goodbye");
        server->left++;
        member->left = true;
        part_from(server, peer);
        return;
    }
    memcpy(&line, (uint8_t *)sluice_mr_addr(lines_of(server, peer)) + peer * sizeof(line),
           sizeof(line));
    require(done->bytes == sizeof(line) && line.number == server->numbers[peer],
            "%llu bytes of client %u, not %u", (unsigned long long)done->bytes, line.number,
            server->numbers[peer]);
    pattern_check(window, WINDOW, asked_key(&line));
    pattern_fill(window, WINDOW, answered_key(&line));
    dies(server, line.number, ASKING, line.round);
    post_line(server, peer, SENT);
    dies(server, line.number, ANSWERED, line.round);
    server->said++;
    kill_those_of_now(server);
}

static void serve(struct server *server, const struct sluice_completion *done)
{
    if ((done->flags & SLUICE_PEER_REMOVED) != 0) {
        return; /* a client that is gone already */
    }
    if (done->error != 0) {
        const struct member *member = member_of(server, done->peer);
        require(member->killed, "client %u, which lives, ended with %s: %s",
                server->numbers[done->peer], sluice_error_class_name(done->error_class),
                peer_error(server->clients, done->peer).text);
        server->lost++;
        part_from(server, done->peer);
    } else if (done->user_data == RECEIVED) {
        answer(server, done);
    } else {
        post_line(server, done->peer, RECEIVED);
    }
}

static uint32_t number_of(const struct sluice_incoming *incoming)
{
    struct sluice_incoming_info info = {.size = sizeof(info)};
    struct line hello;
    require_ok(sluice_incoming_query(incoming, &info));
    require(info.private_data.bytes == sizeof(hello), "%u bytes", info.private_data.bytes);
    memcpy(&hello, info.private_data.data, sizeof(hello));
    return hello.number;
}

/* Lets one waiting client in. Returns false if none waits. */
static bool welcome(struct server *server)
{
    struct sluice_private_data own = {.bytes = SLUICE_REMOTE_MR_BYTES};
    const struct sluice_accept_attr options = {.size = sizeof(options), .own = &own};
    struct sluice_remote_mr remote;
    uint32_t peer;
    struct sluice_incoming *incoming = sluice_listener_next(server->listener, 0);
    if (incoming == NULL) {
        require(errno == ETIMEDOUT, "%s", sluice_last_error());
        return false;
    }
    uint32_t number = number_of(incoming);
    require(number < server->crowd->count, "%u", number);
    dies(server, number, AT_THE_DOOR, 0);
    require_ok(sluice_mr_remote(server->windows, &remote));
    sluice_remote_mr_pack(&remote, own.data);
    if (sluice_incoming_accept_into(incoming, server->clients, &options, WELCOME, &peer, 1) != 0) {
        require(server->crowd->members[number].killed, "client %u: %s", number,
                sluice_last_error());
        server->in_vain++;
        return true;
    }
    require(peer < server->crowd->count, "index %u", peer);
    server->numbers[peer] = number;
    server->there++;
    server->most = server->there > server->most ? server->there : server->most;
    post_line(server, peer, RECEIVED);
    return true;
}

/* Takes all events, and arms. Returns how long the loop may sleep, in ms. */
static int look_after(struct server *server)
{
    struct sluice_completion done;
    int64_t due;
    int got, armed;
    do {
        while ((got = sluice_multichannel_poll(server->clients, &done, 1)) == 1) {
            serve(server, &done);
        }
        require(got == 0, "%s", sluice_last_error());
        armed = sluice_multichannel_arm(server->clients, &due);
        require(armed >= 0, "%s", sluice_last_error());
    } while (armed == 1);
    return due >= SLUICE_S(1) ? 1000 : (int)((due + 999999) / 1000000);
}

void server_turn(struct server *server)
{
    while (welcome(server)) {
    }
    look_after(server);
}

void server_run(struct server *server, uint32_t left, uint32_t killed)
{
    const struct board *board = server->crowd->board;
    int64_t end = clock_now() + CROWD_TIME;
    struct epoll_event event;
    for (;;) {
        uint32_t dead = 0;
        while (welcome(server)) {
        }
        int sleep = look_after(server);
        require(board->failed == 0, "%u clients failed; %s", board->failed, board->failure);
        for (uint32_t i = 0; i < server->crowd->count; i++) {
            dead += server->crowd->members[i].killed;
        }
        if (server->left >= left && dead >= killed && server->there == 0) {
            return;
        }
        require(clock_now() < end,
                "of %u and %u victims %u have left, %u were killed, %u are there", left, killed,
                server->left, dead, server->there);
        require(epoll_wait(server->epoll, &event, 1, sleep) >= 0 || errno == EINTR, "%s",
                strerror(errno));
    }
}

void server_close(struct server *server)
{
    sluice_listener_close(server->listener);
    sluice_multichannel_close(server->clients);
    require_ok(sluice_mr_deregister(server->lines));
    require_ok(sluice_mr_deregister(server->doomed));
    require_ok(sluice_mr_deregister(server->windows));
    sluice_pd_free(server->pd);
    sluice_context_close(server->context);
    close(server->epoll);
}
