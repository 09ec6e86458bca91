/* SPDX-License-Identifier: MIT */
#include "talk.h"

#include <stdio.h>
#include <string.h>

#define LENGTH 100000
#define LONG ((size_t)1 << 20)

/* Takes a short message and a long one, sends them back, and takes memory that the peer filled. */
static int serve(struct sluice_agent *agent)
{
    struct sluice_agent_local local = {.size = sizeof local};
    struct sluice_agent_peer *peer = sluice_agent_next_peer(agent, DEADLINE);
    int result = 0;

    for (int i = 0; peer != NULL && i < 2 && result == 0; i++) {
        struct sluice_agent_message *message = sluice_agent_receive(agent, peer, DEADLINE);

        if (message == NULL)
            return complain("receive");
        result = sluice_agent_send(peer, sluice_agent_message_addr(message),
                                   sluice_agent_message_length(message), DEADLINE);
        sluice_agent_message_free(message);
    }
    if (peer == NULL || result != 0 ||
        sluice_agent_receive_local_mr(agent, peer, DEADLINE, &local) != 0)
        return complain("serve");
    if (local.length != LENGTH || !is_filled(local.addr, LENGTH, 1, 3))
        return differ("the memory that was handed over");
    sluice_mr_deregister(local.mr);
    if (meet("end") != 0)
        return -1;
    sluice_agent_peer_close(peer);
    return 0;
}

static int echo(struct sluice_agent *agent, struct sluice_agent_peer *peer, struct device *device,
                size_t length, uint32_t salt)
{
    struct sluice_agent_message *message;
    int equal;

    fill(device->memory, length, side, salt);
    if (sluice_agent_send(peer, device->memory, length, DEADLINE) != 0)
        return complain("send");
    message = sluice_agent_receive(agent, peer, DEADLINE);
    if (message == NULL)
        return complain("receive");
    equal = sluice_agent_message_length(message) == length &&
            is_filled(sluice_agent_message_addr(message), length, side, salt);
    sluice_agent_message_free(message);
    return equal ? 0 : differ("echo");
}

/* Asks for memory there, writes it, reads it back, and hands it over. */
static int use_memory(struct sluice_agent_peer *peer, struct device *device)
{
    const uint32_t access = SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;
    struct sluice_agent_mr *mr = sluice_agent_request_mr(peer, LENGTH, access, 0, DEADLINE);
    struct sluice_sge out, in;

    fill(device->memory, LENGTH, side, 3);
    if (mr == NULL || sluice_mr_sge(device->mr, 0, LENGTH, &out) != 0 ||
        sluice_mr_sge(device->mr, LENGTH, LENGTH, &in) != 0 ||
        sluice_agent_mr_write(mr, 0, &out, 1, DEADLINE) != 0 ||
        sluice_agent_mr_read(mr, 0, &in, 1, DEADLINE) != 0)
        return complain("memory of the peer");
    if (!is_filled(device->memory + LENGTH, LENGTH, side, 3))
        return differ("memory of the peer");
    if (sluice_agent_mr_renew(mr, 0, DEADLINE) != 0)
        return complain("renew");
    return sluice_agent_mr_send_back(mr, DEADLINE) == 0 ? 0 : complain("hand over");
}

static int call(struct sluice_agent *agent, struct device *device)
{
    struct sluice_agent_peer *peer;
    char address[64] = "";

    if (take("address", address, sizeof address) != 0)
        return -1;
    peer = sluice_agent_connect(agent, address, NULL, DEADLINE);
    if (peer == NULL)
        return complain("connect");
    if (echo(agent, peer, device, 100, 1) != 0 || echo(agent, peer, device, LONG, 2) != 0 ||
        use_memory(peer, device) != 0 || meet("end") != 0)
        return -1;
    sluice_agent_peer_close(peer);
    return 0;
}

int talk_agent(void)
{
    const struct sluice_agent_attr attr = {.size = sizeof attr, .quota = LONG};
    struct sluice_agent *agent;
    struct device device;
    char address[64] = "";
    int result;

    if (open_device(&device, LONG) != 0)
        return -1;
    agent = sluice_agent_open(device.pd, &attr);
    if (agent == NULL)
        return complain("make an agent");
    if (side == 1) {
        result = call(agent, &device);
    } else {
        if (sluice_agent_listen(agent, "127.0.0.1:0", NULL) != 0 ||
            sluice_agent_address(agent, address, sizeof address) < 0)
            return complain("listen");
        result = give("address", address, sizeof address) == 0 ? serve(agent) : -1;
    }
    sluice_agent_close(agent);
    close_device(&device);
    return result;
}

/* The owner does nothing while the other side reads and writes. */
static int own(struct sluice_buffer_service *service)
{
    const uint32_t access = SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;
    struct sluice_buffer *buffer = sluice_buffer_publish(service, NULL, LONG, access);
    struct sluice_buffer_handle handle;
    int result;

    if (buffer == NULL || sluice_buffer_export(buffer, &handle) != 0)
        return complain("publish");
    fill(sluice_buffer_addr(buffer), LONG, 0, 1);
    result = give("handle", &handle, sizeof handle) == 0 ? meet("end") : -1;
    if (result == 0 && !is_filled(sluice_buffer_addr(buffer), LENGTH, 1, 2))
        result = differ("what was written to the buffer");
    sluice_buffer_release(buffer);
    return result;
}

static int visit(struct sluice_buffer_service *service, struct device *device)
{
    struct sluice_buffer_handle handle;

    if (take("handle", &handle, sizeof handle) != 0)
        return -1;
    if (sluice_buffer_read(service, &handle, 0, device->mr, device->memory, LONG, DEADLINE) != 0)
        return complain("read");
    if (!is_filled(device->memory, LONG, 0, 1))
        return differ("read");
    fill(device->memory, LENGTH, 1, 2);
    if (sluice_buffer_write(service, &handle, 0, device->mr, device->memory, LENGTH, DEADLINE) != 0)
        return complain("write");
    return meet("end");
}

int talk_buffer(void)
{
    struct sluice_buffer_service *service;
    struct device device;
    int result;

    if (open_device(&device, LONG) != 0)
        return -1;
    service = sluice_buffer_service_open(&device.pd, 1, NULL);
    if (service == NULL)
        return complain("open a service");
    result = side == 0 ? own(service) : visit(service, &device);
    sluice_buffer_service_close(service);
    close_device(&device);
    return result;
}
