/* SPDX-License-Identifier: MIT */
/*
 * The whole life of a program without a second one: a channel that is connected
 * to its own endpoint. It sends itself a text, then writes to and reads from
 * its own memory the way a peer would.
 *
 * Runs on the device that SLUICE_DEVICE names, else on the best one there is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

/* The memory of this program: four pieces, one for each purpose. */
#define PIECE 64 /* bytes */
#define OUT 0
#define IN 1
#define TARGET 2
#define COPY 3

/* No call may take longer. A deadline that passes ends the connection. */
#define DEADLINE SLUICE_S(10)

static int complain(const char *what)
{
    fprintf(stderr, "01-loopback: %s: %s\n", what, sluice_last_error());
    return -1;
}

/* Prepare, exchange endpoints, handshake: here the peer is ourselves. */
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
    char *memory = sluice_mr_addr(mr);
    struct sluice_sge out, in;
    struct sluice_handle handle;
    struct sluice_completion completion;

    strcpy(memory + OUT * PIECE, "Hello, this is me.");
    if (sluice_mr_sge(mr, OUT * PIECE, strlen(memory + OUT * PIECE), &out) != 0 ||
        sluice_mr_sge(mr, IN * PIECE, PIECE, &in) != 0)
        return complain("name the memory");

    /* Unpolled: it returns at once, and the handle names the receive later on. */
    if (sluice_channel_receive_unpolled(channel, &in, 1, DEADLINE, &handle) != 0)
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
           memory + IN * PIECE);
    return 0;
}

/* Write and read need nothing from the other side but the handle of its memory. */
static int write_and_read(struct sluice_channel *channel, struct sluice_mr *mr)
{
    char *memory = sluice_mr_addr(mr);
    const char *text = "Written without a receive.";
    struct sluice_sge out, copy;
    struct sluice_remote_mr remote;
    uint8_t packed[SLUICE_REMOTE_MR_BYTES];

    /* To a real peer, the packed form travels with the endpoint. */
    sluice_mr_remote(mr, &remote);
    sluice_remote_mr_pack(&remote, packed);
    if (sluice_remote_mr_unpack(packed, &remote) != 0 ||
        sluice_remote_mr_slice(&remote, TARGET * PIECE, PIECE, &remote) != 0)
        return complain("name the remote memory");

    memset(memory + OUT * PIECE, 0, PIECE);
    strcpy(memory + OUT * PIECE, text);
    if (sluice_mr_sge(mr, OUT * PIECE, PIECE, &out) != 0 ||
        sluice_mr_sge(mr, COPY * PIECE, PIECE, &copy) != 0)
        return complain("name the memory");

    if (sluice_channel_write(channel, &out, 1, &remote, DEADLINE) != 0)
        return complain("write");
    if (sluice_channel_read(channel, &copy, 1, &remote, DEADLINE) != 0)
        return complain("read");
    if (strcmp(memory + TARGET * PIECE, text) != 0 || strcmp(memory + COPY * PIECE, text) != 0) {
        fprintf(stderr, "01-loopback: what was read is not what was written\n");
        return -1;
    }
    printf("wrote and read back: %s\n", memory + COPY * PIECE);
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
        mr = sluice_mr_alloc(pd, (size_t)4 * PIECE,
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
