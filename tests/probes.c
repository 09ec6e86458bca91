/* SPDX-License-Identifier: MIT */
/*
 * The program that check-probes.sh traces: a channel to itself writes 1 to 15 bytes, one after the
 * other, in all ways to post; then a write fails. Needs no peer, and prints nothing.
 */
#include <errno.h>
#include <stdlib.h>

#include <sluice.h>

#define WRITES 9
#define DEADLINE SLUICE_S(60)

static struct sluice_channel *connect_to_itself(struct sluice_pd *pd)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_endpoint endpoint;
    if (!prepared || sluice_prepared_channel_endpoint(prepared, &endpoint) < 0) {
        exit(EXIT_FAILURE);
    }
    return sluice_prepared_channel_handshake(prepared, &endpoint);
}

/* Writes bytes, and then one byte more, by a list, a prepared list, or in a scope. */
static int write_two(struct sluice_channel *channel, struct sluice_mr *mr,
                     const struct sluice_remote_mr *remote, uint32_t bytes, int way)
{
    struct sluice_request requests[2] = {{.opcode = SLUICE_OP_WRITE}};
    struct sluice_list *list = NULL;
    struct sluice_scope *scope;
    int result = 0;
    for (uint32_t i = 0; i < 2 && result == 0; i++) {
        requests[i] =
            (struct sluice_request){.opcode = SLUICE_OP_WRITE, .sge_count = 1, .remote = *remote};
        result = sluice_mr_sge(mr, 0, bytes + i, &requests[i].sge);
    }
    if (result < 0) {
        return result;
    }
    switch (way) {
    case 0:
        return sluice_channel_submit(channel, requests, 2, DEADLINE, NULL);
    case 1:
        list = sluice_channel_list_prepare(channel, requests, 2);
        result = list ? sluice_list_submit(list, DEADLINE, NULL) : -1;
        sluice_list_free(list);
        return result;
    default:
        scope = sluice_channel_scope_begin(channel, DEADLINE);
        result = scope ? sluice_scope_post(scope, requests, 2, NULL) : -1;
        return result == 2 ? sluice_scope_end(scope, NULL) : -1;
    }
}

static int work(struct sluice_channel *channel, struct sluice_mr *mr)
{
    struct sluice_completion completion;
    struct sluice_remote_mr remote;
    struct sluice_handle handle;
    struct sluice_sge sge;
    int result = sluice_mr_remote(mr, &remote);
    for (uint32_t i = 1; i <= WRITES && result == 0; i++) {
        result = sluice_mr_sge(mr, 0, i, &sge);
        if (result == 0 && i % 2 != 0) {
            result = sluice_channel_write(channel, &sge, 1, &remote, DEADLINE);
        } else if (result == 0) {
            result = sluice_channel_post_write(channel, &sge, 1, &remote, DEADLINE, &handle);
            if (result == 0) {
                result = sluice_channel_wait(channel, &handle, DEADLINE, &completion);
            }
        }
    }
    for (int way = 0; way < 3 && result == 0; way++) {
        result = write_two(channel, mr, &remote, WRITES + 1 + 2 * (uint32_t)way, way);
    }
    remote.rkey ^= 0x5a5a5a5a;
    if (result == 0) {
        result = sluice_channel_write(channel, &sge, 1, &remote, DEADLINE) == -EACCES ? 0 : -1;
    }
    return result;
}

int main(void)
{
    static char bytes[64];
    struct sluice_context *context = sluice_context_open("soft", NULL);
    struct sluice_pd *pd = context ? sluice_pd_alloc(context) : NULL;
    struct sluice_mr *mr =
        pd ? sluice_mr_register(pd, bytes, sizeof(bytes),
                                SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE)
           : NULL;
    struct sluice_channel *channel = mr ? connect_to_itself(pd) : NULL;
    int result = channel ? work(channel, mr) : -1;
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
