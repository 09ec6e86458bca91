/* SPDX-License-Identifier: MIT */
/*
 * Memory as a service: a client requests memory from a server, writes to it, and hands it over.
 * The server, without any call for that, receives it as memory of its own and reads it.
 *
 *   13-remote-alloc                       both, as two processes
 *   13-remote-alloc -l ADDRESS:PORT       the server, of one client
 *   13-remote-alloc -c ADDRESS:PORT TEXT  a client
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#include "workers.h"

#define DEADLINE SLUICE_S(30)

struct device {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_agent *agent;
};

/*
 * The agent has a domain of its own: a key gives access to all peers of its domain. It lends each
 * peer at most quota bytes of memory.
 */
static int open_device(struct device *device, uint64_t quota)
{
    const struct sluice_agent_attr attr = {.size = sizeof(attr), .quota = quota};

    device->context = sluice_context_open(NULL, NULL);
    device->pd = device->context != NULL ? sluice_pd_alloc(device->context) : NULL;
    device->agent = device->pd != NULL ? sluice_agent_open(device->pd, &attr) : NULL;
    return device->agent != NULL ? 0 : complain("set up", "an agent");
}

static void close_device(struct device *device)
{
    sluice_agent_close(device->agent);
    sluice_pd_free(device->pd);
    sluice_context_close(device->context);
}

/* Waits for one client. The agent serves peers, which allocate and write memory meanwhile. */
static int serve_one(struct sluice_agent *agent)
{
    struct sluice_agent_local local = {.size = sizeof(local)};
    struct sluice_agent_peer *peer = sluice_agent_next_peer(agent, DEADLINE);
    int result = 0;

    if (peer == NULL || sluice_agent_receive_local_mr(agent, peer, DEADLINE, &local) != 0)
        result = complain("server", "receive");
    else
        printf("received %llu bytes: %.*s\n", (unsigned long long)local.length, (int)local.length,
               (const char *)local.addr);
    sluice_mr_deregister(local.mr);
    sluice_agent_peer_close(peer);
    return result;
}

/* A lease of 0 is as long as the server allows. The client loses memory that it hands over. */
static int hand_over(struct sluice_agent_peer *peer, const struct sluice_mr *text)
{
    size_t length = sluice_mr_length(text);
    struct sluice_agent_mr *mr;
    struct sluice_sge sge;

    mr = sluice_agent_request_mr(peer, length, SLUICE_ACCESS_REMOTE_WRITE, 0, DEADLINE);
    if (mr == NULL)
        return complain("client", "ask for memory");
    if (sluice_mr_sge(text, 0, length, &sge) != 0 ||
        sluice_agent_mr_write(mr, 0, &sge, 1, DEADLINE) != 0) {
        complain("client", "write");
        (void)sluice_agent_mr_release(mr, DEADLINE);
        return -1;
    }
    return sluice_agent_mr_send_back(mr, DEADLINE) == 0 ? 0 : complain("client", "hand over");
}

static int run_client(const char *address, const char *text)
{
    struct device device = {NULL, NULL, NULL};
    struct sluice_agent_peer *peer = NULL;
    struct sluice_mr *mr = NULL;
    int result = open_device(&device, 0);

    if (result == 0) {
        peer = sluice_agent_connect(device.agent, address, NULL, DEADLINE);
        mr = peer != NULL ? sluice_mr_alloc(device.pd, strlen(text), 0) : NULL;
        result = mr != NULL ? 0 : complain("client", "connect");
    }
    if (result == 0) {
        memcpy(sluice_mr_addr(mr), text, strlen(text));
        result = hand_over(peer, mr);
    }
    sluice_agent_peer_close(peer);
    sluice_mr_deregister(mr);
    close_device(&device);
    return result;
}

static int run_worker(int socket)
{
    char address[64];

    if (take(socket, address, sizeof(address)) != 0)
        return -1;
    return run_client(address, "written from afar");
}

/* Runs the server; the client is a worker of ours, or any that connects. */
static int run_server(const char *address, const struct workers *workers)
{
    struct device device = {NULL, NULL, NULL};
    char here[64] = "";
    int result = open_device(&device, 1 << 20);

    if (result == 0 && (sluice_agent_listen(device.agent, address, NULL) != 0 ||
                        sluice_agent_address(device.agent, here, sizeof(here)) < 0))
        result = complain("server", "listen");
    if (result == 0 && workers == NULL) {
        printf("listening at %s\n", here);
        fflush(stdout);
    }
    if (result == 0 && workers != NULL)
        result = give(workers->sockets[1], here, sizeof(here));
    if (result == 0)
        result = serve_one(device.agent);
    close_device(&device);
    return result;
}

/* Starts the processes first: open objects do not survive a fork. */
static int run_both(void)
{
    struct workers workers = {0};
    int result = workers_start(&workers, 2, run_worker);

    if (result == 0)
        result = run_server("127.0.0.1:0", &workers);
    return workers_end(&workers, result);
}

int main(int argc, char **argv)
{
    int result = 2;

    if (argc == 1)
        result = run_both();
    else if (argc == 3 && strcmp(argv[1], "-l") == 0)
        result = run_server(argv[2], NULL);
    else if (argc == 4 && strcmp(argv[1], "-c") == 0 && argv[3][0] != 0)
        result = run_client(argv[2], argv[3]);
    else
        fprintf(stderr, "usage: 13-remote-alloc [-l ADDRESS:PORT | -c ADDRESS:PORT TEXT]\n");
    return result < 0 ? EXIT_FAILURE : result;
}
