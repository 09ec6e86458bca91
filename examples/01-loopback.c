/* SPDX-License-Identifier: MIT */
/*
 * The whole life of a program without a second process: a channel that is
 * connected to its own endpoint. It sends itself a text, then writes to and
 * reads from its own memory as a peer would.
 *
 * Runs on the device that SLUICE_DEVICE names, or else on the best one.
 */
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

/* The memory of this program, which is registered. */
struct memory {
    char out[64], in[64], target[64], copy[64];
};

/* The time limit of each call. If it passes, the connection fails. */
#define DEADLINE SLUICE_S(10)

static int complain(const char *what)
{
    fprintf(stderr, "01-loopback: %s: %s\n", what, sluice_last_error());
    return -1;
}

/* Prepare, exchange endpoints, handshake: here the program is its own peer. */
static struct sluice_channel *connect_to_itself(struct sluice_pd *pd)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_endpoint endpoint;

    if (prepared == NULL)
        return NULL;
    sluice_prepared_channel_endpoint(prepared, &endpoint);
    return sluice_prepared_channel_handshake(prepared, &endpoint);
}

/* A send needs a receive on the other side, and both sides are this thread. */
static int send_a_text(struct sluice_channel *channel, struct sluice_mr *mr)
{
    struct memory *memory = sluice_mr_addr(mr);
    struct sluice_sge out, in;
    struct sluice_handle handle;
    struct sluice_completion completion;

    strcpy(memory->out, "Hello, this is me.");
    if (sluice_mr_sge_at(mr, memory->out, strlen(memory->out), &out) != 0 ||
        sluice_mr_sge_at(mr, memory->in, sizeof(memory->in), &in) != 0)
        return complain("name the memory");

    /* Posted: the call returns at once, and the handle identifies the receive later. */
    if (sluice_channel_post_receive(channel, &in, 1, DEADLINE, &handle) != 0)
        return complain("post the receive");
    if (sluice_channel_send(channel, &out, 1, DEADLINE) != 0)
        return complain("send");
    if (sluice_channel_wait(channel, &handle, DEADLINE, &completion) != 0)
        return complain("wait for the receive");
    if (completion.error != 0) {
        fprintf(stderr, "01-loopback: receive: %s\n",
                sluice_error_class_name(completion.error_class));
        return -1;
    }
    printf("received %u bytes: %.*s\n", (unsigned)completion.bytes, (int)completion.bytes,
           memory->in);
    return 0;
}

/* Write and read need only the handle of the other side's memory. */
static int write_and_read(struct sluice_channel *channel, struct sluice_mr *mr)
{
    struct memory *memory = sluice_mr_addr(mr);
    const char *text = "Written without a receive.";
    struct sluice_sge out, copy;
    struct sluice_remote_mr remote;
    uint8_t packed[SLUICE_REMOTE_MR_BYTES];

    /* With a real peer, send the packed form along with the endpoint. */
    sluice_mr_remote(mr, &remote);
    sluice_remote_mr_pack(&remote, packed);
    if (sluice_remote_mr_unpack(packed, &remote) != 0 ||
        sluice_remote_mr_slice(&remote, offsetof(struct memory, target), sizeof(memory->target),
                               &remote) != 0)
        return complain("name the remote memory");

    strcpy(memory->out, text);
    if (sluice_mr_sge_at(mr, memory->out, strlen(text) + 1, &out) != 0 ||
        sluice_mr_sge_at(mr, memory->copy, strlen(text) + 1, &copy) != 0)
        return complain("name the memory");

    if (sluice_channel_write(channel, &out, 1, &remote, DEADLINE) != 0)
        return complain("write");
    if (sluice_channel_read(channel, &copy, 1, &remote, DEADLINE) != 0)
        return complain("read");
    if (strcmp(memory->target, text) != 0 || strcmp(memory->copy, text) != 0) {
        fprintf(stderr, "01-loopback: what was read is not what was written\n");
        return -1;
    }
    printf("wrote and read back: %s\n", memory->copy);
    return 0;
}

int main(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = NULL;
    struct sluice_mr *mr = NULL;
    struct sluice_channel *channel = NULL;
    int status = EXIT_FAILURE;

    if (context != NULL)
        pd = sluice_pd_alloc(context);
    if (pd != NULL)
        mr = sluice_mr_alloc(pd, sizeof(struct memory),
                             SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                 SLUICE_ACCESS_REMOTE_READ);
    if (mr != NULL)
        channel = connect_to_itself(pd);
    if (channel == NULL)
        complain("set up");
    else if (send_a_text(channel, mr) == 0 && write_and_read(channel, mr) == 0)
        status = EXIT_SUCCESS;

    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return status;
}
