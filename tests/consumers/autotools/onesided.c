/* SPDX-License-Identifier: MIT */
/* Writes to the memory of a peer, here the process itself, and reads it back, in one list. */
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sluice.h>

#define TEXT "written and read by autotools"
#define BLOCK 64

static int fail(const char *what)
{
    fprintf(stderr, "onesided: %s: %s\n", what, sluice_last_error());
    return -1;
}

/* The handle of our memory, as it would come from a peer. */
static int get_remote(const struct sluice_mr *mr, struct sluice_remote_mr *remote)
{
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES];
    struct sluice_remote_mr whole;

    sluice_mr_remote(mr, &whole);
    sluice_remote_mr_pack(&whole, bytes);
    if (sluice_remote_mr_unpack(bytes, &whole) != 0)
        return -1;
    return sluice_remote_mr_slice(&whole, BLOCK, sizeof(TEXT), remote);
}

static int write_and_read(struct sluice_channel *channel, const struct sluice_mr *mr)
{
    char *memory = sluice_mr_addr(mr);
    struct sluice_request requests[2] = {{.opcode = SLUICE_OP_WRITE, .sge_count = 1},
                                         {.opcode = SLUICE_OP_READ, .sge_count = 1}};

    memcpy(memory, TEXT, sizeof(TEXT));
    if (get_remote(mr, &requests[0].remote) != 0 || get_remote(mr, &requests[1].remote) != 0 ||
        sluice_mr_sge(mr, 0, sizeof(TEXT), &requests[0].sge) != 0 ||
        sluice_mr_sge(mr, 2 * BLOCK, sizeof(TEXT), &requests[1].sge) != 0)
        return fail("name the memory");
    if (sluice_channel_submit(channel, requests, 2, SLUICE_S(30), NULL) != 0)
        return fail("write and read");
    printf("%s\n", memory + 2 * BLOCK);
    return 0;
}

int main(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context == NULL ? NULL : sluice_pd_alloc(context);
    struct sluice_mr *mr =
        pd == NULL ? NULL
                   : sluice_mr_alloc(pd, 3 * BLOCK,
                                     SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE |
                                         SLUICE_ACCESS_REMOTE_READ);
    struct sluice_prepared_channel *prepared = mr == NULL ? NULL : sluice_channel_prepare(pd, NULL);
    struct sluice_channel *channel = NULL;
    struct sluice_endpoint endpoint;
    int result;

    if (prepared != NULL) {
        sluice_prepared_channel_endpoint(prepared, &endpoint);
        channel = sluice_prepared_channel_handshake(prepared, &endpoint);
    }
    result = channel == NULL ? fail("set up") : write_and_read(channel, mr);
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result != 0;
}
