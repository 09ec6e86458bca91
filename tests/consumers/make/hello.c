/* SPDX-License-Identifier: MIT */
/* A channel that is connected to itself: it sends a text and receives it. */
#include <stdio.h>
#include <string.h>

#include <sluice.h>

#define TEXT "hello from make"

static int fail(const char *what)
{
    fprintf(stderr, "hello: %s: %s\n", what, sluice_last_error());
    return -1;
}

static int send_and_receive(struct sluice_channel *channel, const struct sluice_mr *mr)
{
    char *memory = sluice_mr_addr(mr);
    struct sluice_sge out, in;
    struct sluice_handle handle;
    struct sluice_completion completion;

    memcpy(memory, TEXT, sizeof(TEXT));
    if (sluice_mr_sge(mr, 0, sizeof(TEXT), &out) != 0 || sluice_mr_sge(mr, 100, 100, &in) != 0)
        return fail("name the memory");
    if (sluice_channel_post_receive(channel, &in, 1, SLUICE_S(30), &handle) != 0 ||
        sluice_channel_send(channel, &out, 1, SLUICE_S(30)) != 0 ||
        sluice_channel_wait(channel, &handle, SLUICE_S(30), &completion) != 0)
        return fail("send and receive");
    printf("%u bytes: %s\n", (unsigned)completion.bytes, memory + 100);
    return completion.error;
}

int main(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context == NULL ? NULL : sluice_pd_alloc(context);
    struct sluice_mr *mr = pd == NULL ? NULL : sluice_mr_alloc(pd, 200, SLUICE_ACCESS_LOCAL_WRITE);
    struct sluice_prepared_channel *prepared = mr == NULL ? NULL : sluice_channel_prepare(pd, NULL);
    struct sluice_channel *channel = NULL;
    struct sluice_endpoint endpoint;
    int result;

    if (prepared != NULL) {
        sluice_prepared_channel_endpoint(prepared, &endpoint);
        channel = sluice_prepared_channel_handshake(prepared, &endpoint);
    }
    result = channel == NULL ? fail("set up") : send_and_receive(channel, mr);
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result != 0;
}
