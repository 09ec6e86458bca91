/* SPDX-License-Identifier: MIT */
/* Every call for several peers, or for one, where some were removed. */
#include <sluice/verbs.h>

#include "fixture.h"

#define PEERS 5

/* Opens a server with peers 1 and 3 removed. */
static void open_with_holes(struct server *server)
{
    server_open(server, 8);
    for (uint32_t i = 0; i < PEERS; i++) {
        client_comes(server, i);
    }
    client_goes(server, 1, true);
    client_goes(server, 3, false);
}

static bool is_hole(uint32_t index)
{
    return index == 1 || index == 3;
}

TEST(calls_of_one_peer)
{
    struct server server;
    struct sluice_channel_info info = {.size = sizeof(info)};
    struct sluice_counters counters = {.size = sizeof(counters)};
    struct sluice_error error = {.size = sizeof(error)};
    struct sluice_endpoint endpoint;
    open_with_holes(&server);
    struct sluice_multichannel *all = server.all;
    struct sluice_request request = client_request(&server, SLUICE_OP_WRITE, 3, 0);
    require(sluice_multichannel_peers(all) == PEERS, "%u", sluice_multichannel_peers(all));
    require_result(sluice_multichannel_peer_state(all, 3), SLUICE_STATE_REMOVED);
    require_ok(sluice_multichannel_peer_counters(all, 3, &counters));
    require_error(sluice_multichannel_peer_error(all, 3, &error), -ENOTCONN, "peer 3 removed");
    require_error(sluice_multichannel_peer_query(all, 3, &info), -ENOTCONN, "peer 3 removed");
    require_error(sluice_multichannel_peer_reset(all, 3, &endpoint), -ENOTCONN, "peer 3 removed");
    require_error(sluice_multichannel_peer_handshake(all, 3, &endpoint), -ENOTCONN,
                  "peer 3 removed");
    require_error(sluice_multichannel_peer_wait_connected(all, 3, 0), -ENOTCONN, "peer 3 removed");
    require_error(sluice_multichannel_peer_remove(all, 3), -ENOTCONN, "peer 3 removed");
    require_error(sluice_multichannel_peer_remove(all, PEERS), -EINVAL, "5 0..4");
    require_error(sluice_multichannel_peer_add(all, NULL), -EINVAL, "endpoint");
    require_error(sluice_multichannel_send(all, 3, &request.sge, 1, DEADLINE), -ENOTCONN,
                  "peer 3 removed");
    require_error(sluice_multichannel_receive(all, 3, &request.sge, 1, DEADLINE, NULL), -ENOTCONN,
                  "peer 3 removed");
    require_error(sluice_multichannel_write(all, 3, &request.sge, 1, &request.remote, DEADLINE),
                  -ENOTCONN, "peer 3 removed");
    require_error(sluice_multichannel_post_send(all, 3, &request.sge, 1, DEADLINE, NULL), -ENOTCONN,
                  "peer 3 removed");
    require_error(sluice_multichannel_post(all, &request, 1, DEADLINE, NULL), -ENOTCONN,
                  "peer 3 removed");
    require_error(sluice_multichannel_post(all, &request, 1, 0, NULL), -ENOTCONN, "peer 3 removed");
    require_null(sluice_verbs_multichannel_qp(all, 3), device_is_soft() ? EOPNOTSUPP : ENOTCONN,
                 device_is_soft() ? "" : "peer 3 was removed");
    server_close(&server);
}

/* Each request has its own result, in the order of the list. */
static void check_results(const struct sluice_completion *completions)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        require(completions[i].peer == i, "%u at %u", completions[i].peer, i);
        require(completions[i].error == (is_hole(i) ? -ENOTCONN : 0), "%u: %d", i,
                completions[i].error);
        require((completions[i].cause == 0) == !is_hole(i), "%u: cause %u", i,
                completions[i].cause);
    }
}

TEST(calls_of_many_peers)
{
    struct server server;
    struct sluice_completion completions[PEERS];
    struct sluice_peer_remote_mr remotes[PEERS];
    struct sluice_request writes[PEERS], reads[PEERS], sends[PEERS];
    struct sluice_handle handles[PEERS];
    uint32_t peers[PEERS];
    open_with_holes(&server);
    struct sluice_multichannel *all = server.all;
    for (uint32_t i = 0; i < PEERS; i++) {
        writes[i] = client_request(&server, SLUICE_OP_WRITE, i, i);
        reads[i] = client_request(&server, SLUICE_OP_READ, i, i);
        sends[i] = client_request(&server, SLUICE_OP_SEND, i, i);
        peers[i] = i;
        remotes[i] =
            (struct sluice_peer_remote_mr){.peer = i, .remote = memory_remote(&server.far, 0, 8)};
        if (!is_hole(i)) {
            struct sluice_request receive = {
                .opcode = SLUICE_OP_RECEIVE, .sge = memory_sge(&server.far, 64, 8), .sge_count = 1};
            post(server.clients[i], &receive);
            post(server.clients[i], &receive);
        }
    }
    require_result(sluice_multichannel_submit(all, writes, PEERS, DEADLINE, completions),
                   -ENOTCONN);
    check_results(completions);
    require_result(sluice_multichannel_scatter_write(all, writes, PEERS, DEADLINE, completions),
                   -ENOTCONN);
    check_results(completions);
    require_result(sluice_multichannel_gather_read(all, reads, PEERS, DEADLINE, completions),
                   -ENOTCONN);
    check_results(completions);
    require_result(
        sluice_multichannel_multicast_write(all, writes, remotes, PEERS, DEADLINE, completions),
        -ENOTCONN);
    check_results(completions);
    require_result(
        sluice_multichannel_multicast_send(all, sends, peers, PEERS, DEADLINE, completions),
        -ENOTCONN);
    check_results(completions);
    require_result(sluice_multichannel_scatter_send(all, sends, PEERS, DEADLINE, completions),
                   -ENOTCONN);
    check_results(completions);
    /* Posted lists end before the first hole. */
    require_result(sluice_multichannel_post(all, writes, PEERS, DEADLINE, handles), 1);
    require_result(sluice_multichannel_post(all, writes + 1, PEERS - 1, DEADLINE, handles),
                   -ENOTCONN);
    require_result(sluice_multichannel_post_scatter_write(all, writes + 2, 3, DEADLINE, handles),
                   1);
    require_ok(sluice_multichannel_flush(all, DEADLINE));
    require_result(sluice_multichannel_poll(all, completions, PEERS), 2);
    server_close(&server);
}

TEST(waits_with_holes)
{
    struct server server;
    struct sluice_counters before = {.size = sizeof(before)};
    struct sluice_counters after = {.size = sizeof(after)};
    struct sluice_completion completion;
    int64_t due;
    open_with_holes(&server);
    struct sluice_multichannel *all = server.all;
    for (uint32_t i = 0; i < PEERS; i++) {
        if (!is_hole(i)) {
            client_works(&server, i);
        }
    }
    require_ok(sluice_multichannel_wait_connected(all, DEADLINE));
    require_result(sluice_multichannel_next(all, 0, &completion), -ENOENT);
    require_ok(sluice_multichannel_flush(all, 0));
    require_ok(sluice_multichannel_poll(all, &completion, 1));
    require(sluice_multichannel_fd(all) >= 0, "%s", sluice_last_error());
    require(sluice_multichannel_arm(all, &due) >= 0, "%s", sluice_last_error());
    /* The counts of all peers stay when a peer is removed and its index is reused. */
    require_ok(sluice_multichannel_counters(all, &before));
    client_goes(&server, 0, false);
    client_comes(&server, 0);
    require_ok(sluice_multichannel_counters(all, &after));
    require_equal(after.requests[SLUICE_OP_SEND], before.requests[SLUICE_OP_SEND],
                  before.requests[SLUICE_OP_SEND], 3);
    require_ok(sluice_multichannel_peer_counters(all, 0, &after));
    require(after.requests[SLUICE_OP_SEND] == 0, "those of another");
    require_ok(sluice_multichannel_shutdown(all, DEADLINE));
    require_result(sluice_multichannel_peer_state(all, 1), SLUICE_STATE_REMOVED);
    require_result(sluice_multichannel_peer_state(all, 0), SLUICE_STATE_FAILED);
    server_close(&server);
}

/* Peers cannot be added or removed while a scope is open; posts in the scope skip the holes. */
TEST(scope_with_holes)
{
    struct server server;
    struct sluice_completion completion;
    struct sluice_endpoint endpoint;
    struct sluice_handle handle;
    struct sluice_scope *scope;
    open_with_holes(&server);
    struct sluice_request write = client_request(&server, SLUICE_OP_WRITE, 0, 0);
    scope = made(sluice_multichannel_scope_begin(server.all, DEADLINE));
    memset(&endpoint, 0x5a, sizeof(endpoint));
    require_error(sluice_multichannel_peer_add(server.all, &endpoint), -EBUSY, "scope");
    require_error(sluice_multichannel_peer_remove(server.all, 0), -EBUSY, "scope");
    value_check(&endpoint, sizeof(endpoint), 0x5a);
    require_result(sluice_multichannel_peer_state(server.all, 0), SLUICE_STATE_READY);
    require(sluice_multichannel_peers(server.all) == PEERS, "it has grown");
    require_result(sluice_scope_post(scope, &write, 1, &handle), 1);
    require_ok(sluice_scope_wait(scope, &handle, DEADLINE, &completion));
    require(completion.error == 0, "%d", completion.error);
    write.peer = 3;
    require_result(sluice_scope_post(scope, &write, 1, &handle), 1);
    require_ok(sluice_scope_wait(scope, &handle, DEADLINE, &completion));
    require(completion.error == -ENOTCONN, "%d", completion.error);
    sluice_scope_end(scope, NULL);
    client_comes(&server, 1);
    client_works(&server, 1);
    server_close(&server);
}
