/* SPDX-License-Identifier: MIT */
#include "fixture.h"

void server_open(struct server *server, uint32_t depth)
{
    struct sluice_prepared_multichannel *prepared;

    memset(server, 0, sizeof(*server));
    server->attr.size = sizeof(server->attr);
    server->attr.flags = SLUICE_CHANNEL_HISTOGRAMS;
    server->attr.send_depth = server->attr.receive_depth = depth;
    sides_open(&server->sides);
    prepared = made(sluice_multichannel_prepare(server->sides.pds[0], 0, &server->attr));
    require_ok(sluice_prepared_multichannel_endpoints(prepared, NULL, 0));
    server->all = made(sluice_prepared_multichannel_handshake(prepared, NULL, 0));
    server->memory = side_memory(&server->sides, 0, 4096);
    server->far = side_memory(&server->sides, 1, 4096);
}

void server_close(struct server *server)
{
    multichannel_is_timed(server->all);
    for (uint32_t i = 0; i < MOST_CLIENTS; i++) {
        sluice_channel_close(server->clients[i]);
    }
    sluice_multichannel_close(server->all);
    sides_close(&server->sides);
}

uint32_t client_comes(struct server *server, uint32_t index)
{
    struct sluice_endpoint ours, theirs;
    struct sluice_prepared_channel *prepared =
        prepare_channel(server->sides.pds[1], &server->attr, &theirs);
    require_result(sluice_multichannel_peer_add(server->all, &ours), (int)index);
    require_result(sluice_multichannel_peer_state(server->all, index), SLUICE_STATE_PREPARED);
    require_ok(sluice_multichannel_peer_handshake(server->all, index, &theirs));
    server->clients[index] = made(sluice_prepared_channel_handshake(prepared, &ours));
    return index;
}

void client_goes(struct server *server, uint32_t index, bool closes_first)
{
    if (closes_first) {
        sluice_channel_close(server->clients[index]);
    }
    require_ok(sluice_multichannel_peer_remove(server->all, index));
    if (!closes_first) {
        sluice_channel_close(server->clients[index]);
    }
    server->clients[index] = NULL;
    require_result(sluice_multichannel_peer_state(server->all, index), SLUICE_STATE_REMOVED);
}

void client_works(struct server *server, uint32_t index)
{
    struct sluice_channel *client = server->clients[index];
    struct sluice_sge near = memory_sge(&server->memory, 2048, 8);
    struct sluice_sge far = memory_sge(&server->far, 2048, 8);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &far);
    struct sluice_handle handle;

    memset(server->memory.bytes + 2048, 0, 8);
    memset(server->far.bytes + 2048, (int)(index % 200) + 1, 8);
    handle = post(client, &send);
    require_ok(sluice_multichannel_receive(server->all, index, &near, 1, DEADLINE, NULL));
    await(client, handle, SLUICE_CLASS_NONE);
    value_check(server->memory.bytes + 2048, 8, (uint8_t)(index % 200 + 1));
    send.opcode = SLUICE_OP_RECEIVE;
    handle = post(client, &send);
    require_ok(sluice_multichannel_send(server->all, index, &near, 1, DEADLINE));
    await(client, handle, SLUICE_CLASS_NONE);
}

struct sluice_request client_request(const struct server *server, uint32_t opcode, uint32_t index,
                                     uint64_t user_data)
{
    struct sluice_request request = {.opcode = opcode,
                                     .peer = index,
                                     .sge = memory_sge(&server->memory, 0, 8),
                                     .sge_count = 1,
                                     .user_data = user_data};

    if (opcode >= SLUICE_OP_WRITE) {
        request.remote = memory_remote(&server->far, 0, 8);
    }
    return request;
}

struct sluice_completion server_next(struct server *server)
{
    struct sluice_completion completion;
    require_ok(sluice_multichannel_next(server->all, DEADLINE, &completion));
    return completion;
}
