/* SPDX-License-Identifier: MIT */
#include "strangers.h"

void put(uint8_t *at, uint64_t value, int bytes)
{
    while (bytes-- > 0) {
        at[bytes] = (uint8_t)value;
        value >>= 8;
    }
}

static void post_receives(struct stranger *stranger)
{
    for (uint32_t i = 0; i < RECEIVES; i++) {
        struct sluice_sge sge = memory_sge(&stranger->memory, (size_t)i * SLOT, SLOT);
        require_ok(sluice_channel_post_receive(stranger->control, &sge, 1, SLUICE_FOREVER, NULL));
    }
}

void greet(struct stranger *stranger)
{
    struct sluice_completion done;
    struct sluice_endpoint endpoint;
    struct sluice_sge sge;
    require_ok(sluice_channel_next(stranger->control, DEADLINE, &done));
    require(done.error == 0 && done.opcode == SLUICE_OP_RECEIVE, "%d", done.error);
    memcpy(stranger->out, stranger->memory.bytes, done.bytes);
    stranger->data = prepare_channel(stranger->sides.pds[1], NULL, &endpoint);
    memcpy(stranger->out + done.bytes - SLUICE_ENDPOINT_BYTES, &endpoint, sizeof(endpoint));
    sge = memory_sge(&stranger->memory, (size_t)RECEIVES * SLOT, (size_t)done.bytes);
    require_ok(sluice_channel_send(stranger->control, &sge, 1, DEADLINE));
}

struct sluice_channel *connect_control(struct stranger *stranger)
{
    struct sluice_channel_attr attr = {
        .size = sizeof(attr), .access = SLUICE_ACCESS_NONE, .receive_depth = RECEIVES};
    struct sluice_connect_attr options = {.size = sizeof(options), .secret_file = ""};
    struct sluice_channel *control =
        sluice_connect(stranger->address, stranger->sides.pds[1], &attr, &options, DEADLINE);
    require(control, "%s", sluice_last_error());
    return control;
}

void stranger_open(struct stranger *stranger)
{
    const struct sluice_agent_attr attr = {
        .size = sizeof(attr), .max_message = LONG_BYTES, .secret_file = ""};
    stranger_open_to(stranger, &attr);
    post_receives(stranger);
}

void stranger_open_to(struct stranger *stranger, const struct sluice_agent_attr *attr)
{
    memset(stranger, 0, sizeof(*stranger));
    require_ok(sluice_log_set(SLUICE_LOG_ERROR, NULL, NULL));
    sides_open(&stranger->sides);
    stranger->agent = make_agent(stranger->sides.pds[0], attr, 0);
    require_ok(sluice_agent_listen(stranger->agent, "127.0.0.1:0", NULL));
    require(sluice_agent_address(stranger->agent, stranger->address, sizeof(stranger->address)) > 0,
            "%s", sluice_last_error());
    memory_open(&stranger->memory, stranger->sides.pds[1], (RECEIVES + 1) * SLOT);
    stranger->out = stranger->memory.bytes + (size_t)RECEIVES * SLOT;
    stranger->control = connect_control(stranger);
}

void stranger_greet(struct stranger *stranger)
{
    stranger_open(stranger);
    greet(stranger);
    memset(stranger->out, 0, SLOT);
}

/* The agent still works, for another peer. */
static void agent_lives(struct stranger *stranger)
{
    struct sluice_agent *other = make_agent(stranger->sides.pds[1], NULL, SLUICE_AGENT_NO_THREAD);
    struct sluice_agent_peer *peer = sluice_agent_connect(other, stranger->address, NULL, DEADLINE);
    struct sluice_agent_mr *mr;
    require(peer, "%s", sluice_last_error());
    mr = sluice_agent_request_mr(peer, 100, ACCESS_READ_WRITE, 0, DEADLINE);
    require(mr, "%s", sluice_last_error());
    require_ok(sluice_agent_mr_release(mr, DEADLINE));
    sluice_agent_peer_close(peer);
    sluice_agent_close(other);
}

void stranger_close(struct stranger *stranger)
{
    sluice_channel_close(stranger->control);
    if (stranger->data != NULL) {
        sluice_prepared_channel_free(stranger->data);
    }
    agent_lives(stranger);
    sluice_agent_close(stranger->agent);
    memory_close(&stranger->memory);
    sides_close(&stranger->sides);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
}

void say(struct stranger *stranger, uint32_t type, uint64_t id, uint32_t length)
{
    struct sluice_sge sge = memory_sge(&stranger->memory, (size_t)RECEIVES * SLOT, HEAD + length);
    put(stranger->out, 0x534c4147, 4);
    put(stranger->out + 4, 1, 2);
    put(stranger->out + TYPE_AT, type, 2);
    put(stranger->out + LENGTH_AT, length, 4);
    put(stranger->out + TAKEN_AT, stranger->taken, 4);
    put(stranger->out + ID_AT, id, 8);
    memset(stranger->out + 24, 0, 16);
    require_ok(sluice_channel_send(stranger->control, &sge, 1, DEADLINE));
    memset(stranger->out, 0, SLOT);
}

void say_raw(struct stranger *stranger, uint32_t count)
{
    struct sluice_sge sge = memory_sge(&stranger->memory, (size_t)RECEIVES * SLOT, count);
    require_ok(sluice_channel_send(stranger->control, &sge, 1, DEADLINE));
}

uint32_t hear_type(struct stranger *stranger, uint32_t *heard)
{
    const uint8_t *at = stranger->memory.bytes + (size_t)*heard * SLOT;
    struct sluice_completion done = {.opcode = 0};
    while (done.opcode != SLUICE_OP_RECEIVE) {
        require_ok(sluice_channel_next(stranger->control, DEADLINE, &done));
        require(done.error == 0, "%d", done.error);
    }
    (*heard)++;
    return (uint32_t)at[TYPE_AT] << 8 | at[TYPE_AT + 1];
}

uint64_t hear_request(struct stranger *stranger, uint32_t *heard, uint32_t type)
{
    uint64_t id = 0;
    while (hear_type(stranger, heard) != type) {
        continue;
    }
    for (int i = 0; i < 8; i++) {
        id = id << 8 | stranger->memory.bytes[(size_t)(*heard - 1) * SLOT + ID_AT + (size_t)i];
    }
    return id;
}
