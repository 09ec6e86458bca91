/* SPDX-License-Identifier: MIT */
/*
 * A scope: its requests cannot outlive the block of code. Four blocks of data are
 * read from peers, and each is checked as soon as it has arrived, while the others
 * are still in flight. The scope is left at the first wrong block, and its end
 * waits for all requests in flight, so that no buffer is freed too early.
 *
 * The peers are this program itself: a multichannel whose peers 0 and 1 are
 * connected to each other, as are 2 and 3.
 *
 * Runs on the device that SLUICE_DEVICE names, or else on the best one.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sluice.h>

#define PEERS 4
#define BLOCK 100000 /* bytes */

/* For all requests of a scope together, counted from its beginning. */
#define DEADLINE SLUICE_S(10)

struct desk {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr; /* the blocks of the peers, and then our copies */
    struct sluice_multichannel *peers;
};

static int complain(const char *what)
{
    fprintf(stderr, "06-scope: %s: %s\n", what, sluice_last_error());
    return -1;
}

static struct sluice_multichannel *connect_to_itself(struct sluice_pd *pd)
{
    struct sluice_prepared_multichannel *prepared = sluice_multichannel_prepare(pd, PEERS, NULL);
    struct sluice_endpoint ours[PEERS], theirs[PEERS];
    int i;

    if (prepared == NULL)
        return NULL;
    if (sluice_prepared_multichannel_endpoints(prepared, ours, PEERS) != 0) {
        sluice_prepared_multichannel_free(prepared);
        return NULL;
    }
    for (i = 0; i < PEERS; i++)
        theirs[i] = ours[i ^ 1];
    return sluice_prepared_multichannel_handshake(prepared, theirs, PEERS);
}

static char *theirs(const struct desk *desk, int i)
{
    return (char *)sluice_mr_addr(desk->mr) + (size_t)i * BLOCK;
}

static char *ours(const struct desk *desk, int i)
{
    return theirs(desk, PEERS + i);
}

/* Makes a request that reads block i from peer i. */
static int make_read(const struct desk *desk, int i, struct sluice_request *read)
{
    *read = (struct sluice_request){.peer = (uint32_t)i, .sge_count = 1};
    if (sluice_mr_sge_at(desk->mr, ours(desk, i), BLOCK, &read->sge) != 0 ||
        sluice_mr_remote(desk->mr, &read->remote) != 0 ||
        sluice_remote_mr_slice(&read->remote, (size_t)i * BLOCK, BLOCK, &read->remote) != 0)
        return complain("name the memory");
    return 0;
}

static int is_good(const char *block, int i)
{
    return block[0] == 'a' + i && memcmp(block, block + 1, BLOCK - 1) == 0;
}

/*
 * Waits for each block in turn and checks it. Returns the result for the report of
 * the scope: 0, or an error if the data is wrong.
 */
static int look_at_blocks(const struct desk *desk, struct sluice_scope *scope,
                          const struct sluice_handle *handles)
{
    struct sluice_completion completion;
    int i, error;

    for (i = 0; i < PEERS; i++) {
        error = sluice_scope_wait(scope, &handles[i], DEADLINE, &completion);
        if (error == 0)
            error = completion.error;
        if (error != 0)
            return error;
        if (!is_good(ours(desk, i), i)) {
            printf("block %d is not what it should be\n", i);
            return -1;
        }
        printf("block %d is good\n", i);
    }
    return 0;
}

static int read_blocks(const struct desk *desk)
{
    struct sluice_scope_report report = {.size = sizeof report};
    struct sluice_request reads[PEERS];
    struct sluice_handle handles[PEERS];
    int i;

    for (i = 0; i < PEERS; i++)
        if (make_read(desk, i, &reads[i]) != 0)
            return -1;
    SLUICE_SCOPE(scope, sluice_multichannel_scope_begin(desk->peers, DEADLINE), &report) {
        report.said = sluice_scope_post_gather_read(scope, reads, PEERS, handles);
        if (report.said < 0)
            break; /* leaves the scope */
        report.said = look_at_blocks(desk, scope, handles);
    }
    /* The scope has ended here: all four reads are complete, or have failed. */
    printf("of %u reads %u were not waited for, and %u of these failed\n", (unsigned)report.posted,
           (unsigned)report.unseen, (unsigned)report.failed);
    return report.error;
}

static int run(const struct desk *desk)
{
    int i;

    for (i = 0; i < PEERS; i++)
        memset(theirs(desk, i), 'a' + i, BLOCK);
    if (read_blocks(desk) != 0)
        return complain("read good blocks");

    theirs(desk, 1)[BLOCK / 2] = '?';
    if (read_blocks(desk) != -1)
        return complain("read a bad block");
    for (i = 0; i < PEERS; i++)
        if (memcmp(ours(desk, i), theirs(desk, i), BLOCK) != 0)
            return complain("drain the scope");
    printf("all blocks have come, though the scope was left at block 1\n");
    return 0;
}

int main(void)
{
    struct desk desk = {.context = sluice_context_open(NULL, NULL)};
    int status = EXIT_FAILURE;

    if (desk.context != NULL)
        desk.pd = sluice_pd_alloc(desk.context);
    if (desk.pd != NULL)
        desk.mr = sluice_mr_alloc(desk.pd, (size_t)2 * PEERS * BLOCK,
                                  SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ);
    if (desk.mr != NULL)
        desk.peers = connect_to_itself(desk.pd);
    if (desk.peers == NULL)
        complain("set up");
    else if (run(&desk) == 0)
        status = EXIT_SUCCESS;

    sluice_multichannel_close(desk.peers);
    sluice_mr_deregister(desk.mr);
    sluice_pd_free(desk.pd);
    sluice_context_close(desk.context);
    return status;
}
