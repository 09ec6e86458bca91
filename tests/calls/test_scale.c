/* SPDX-License-Identifier: MIT */
/* Many peers in one process, within the fds that a process usually has. */
#include <stdlib.h>
#include <sys/resource.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define PEERS 1000
#define BLOCK 256

struct fixture {
    struct sluice_sge sges[2 * PEERS];
    struct sluice_request requests[2 * PEERS];
    struct sluice_completion completions[2 * PEERS];
};

/* Each peer i sends block i to its partner i ^ 1, and writes and reads it. */
static void use_all_peers(struct sluice_multichannel *loop, struct memory *out, struct memory *in)
{
    struct fixture *fixture = calloc(1, sizeof(*fixture));
    require(fixture, "%d peers", PEERS);
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture->sges[i] = memory_sge(out, (size_t)i * BLOCK, BLOCK);
        fixture->sges[PEERS + i] = memory_sge(in, (size_t)(i ^ 1) * BLOCK, BLOCK);
        fixture->requests[i] = request_of(SLUICE_OP_NONE, i, &fixture->sges[i]);
        fixture->requests[PEERS + i] = request_of(SLUICE_OP_NONE, i, &fixture->sges[PEERS + i]);
    }
    pattern_fill(out->bytes, out->length, 1);
    require_ok(sluice_multichannel_scatter_gather(loop, fixture->requests, PEERS,
                                                  fixture->requests + PEERS, PEERS, DEADLINE,
                                                  fixture->completions));
    for (uint32_t i = 0; i < 2 * PEERS; i++) {
        require_class(&fixture->completions[i], SLUICE_CLASS_NONE);
        require(fixture->completions[i].peer == i % PEERS, "%u", i);
    }
    pattern_check(in->bytes, in->length, 1);

    pattern_fill(out->bytes, out->length, 2);
    for (uint32_t i = 0; i < PEERS; i++) {
        fixture->requests[i].remote = memory_remote(in, (size_t)i * BLOCK, BLOCK);
    }
    require_ok(sluice_multichannel_scatter_write(loop, fixture->requests, PEERS, DEADLINE,
                                                 fixture->completions));
    pattern_check(in->bytes, in->length, 2);
    memset(out->bytes, 0, out->length);
    require_ok(sluice_multichannel_gather_read(loop, fixture->requests, PEERS, DEADLINE,
                                               fixture->completions));
    pattern_check(out->bytes, out->length, 2);
    free(fixture);
}

static void connect_thousand(struct rank *rank)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 16, .receive_depth = 16};
    struct rlimit limit = {1024, 1024};
    struct memory out, in;
    require(rank->size == 1 && setrlimit(RLIMIT_NOFILE, &limit) == 0, "%s", strerror(errno));
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    memory_open(&out, pd, (size_t)PEERS * BLOCK);
    memory_open(&in, pd, (size_t)PEERS * BLOCK);
    struct sluice_multichannel *loop = loop_open(pd, PEERS, &attr);
    require_result(sluice_multichannel_peers(loop), PEERS);
    use_all_peers(loop, &out, &in);
    /* A broken peer breaks only its partner. */
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 700, NULL);
    struct sluice_completion completion;
    require_result(sluice_multichannel_submit(loop, &receive, 1, SLUICE_MS(10), &completion),
                   -ETIMEDOUT);
    uint32_t failed = 0;
    for (uint32_t i = 0; i < PEERS; i++) {
        failed += sluice_multichannel_peer_state(loop, i) == SLUICE_STATE_FAILED;
    }
    require(failed >= 1 && failed <= 2, "%u failed peers", failed);
    memory_close(&out);
    memory_close(&in);
    sluice_multichannel_close(loop);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

TEST(thousand_peers_in_one_process)
{
    group_run(1, connect_thousand, NULL, 40);
}

#define FULL_PEERS 300
#define FULL_DEPTH 128

/* Fills the send queue of a peer with writes of 8 bytes, each to a place of its own. */
static void fill_queue(struct sluice_multichannel *loop, uint32_t peer, struct memory *out,
                       struct memory *in)
{
    struct sluice_request requests[FULL_DEPTH];
    struct sluice_sge sges[FULL_DEPTH];
    for (uint32_t i = 0; i < FULL_DEPTH; i++) {
        size_t offset = ((size_t)peer * FULL_DEPTH + i) * 8;
        sges[i] = memory_sge(out, offset, 8);
        requests[i] = request_of(SLUICE_OP_WRITE, peer, &sges[i]);
        requests[i].remote = memory_remote(in, offset, 8);
    }
    require_result(sluice_multichannel_post(loop, requests, FULL_DEPTH, SLUICE_S(60), NULL),
                   FULL_DEPTH);
}

/*
 * All queues full at once: more completions than one queue of some devices has
 * room for (32,767 on soft-RoCE), and none may be lost.
 */
TEST_WITH(sides, queues_of_all_peers_can_be_full, ())
{
    const struct sluice_channel_attr attr =
        *ATTR(.send_depth = FULL_DEPTH, .receive_depth = FULL_DEPTH);
    const uint32_t all = FULL_PEERS * FULL_DEPTH;
    struct sluice_completion completions[64];
    struct memory out = side_memory(sides, 0, (size_t)all * 8);
    struct memory in = side_memory(sides, 0, (size_t)all * 8);
    struct sluice_multichannel *loop = loop_open(sides->pds[0], FULL_PEERS, &attr);
    pattern_fill(out.bytes, out.length, 3);
    for (uint32_t peer = 0; peer < FULL_PEERS; peer++) {
        fill_queue(loop, peer, &out, &in);
    }
    uint32_t done = 0;
    while (done < all) {
        int got = sluice_multichannel_poll(loop, completions, COUNT(completions));
        require(got >= 0, "%s", sluice_last_error());
        for (int i = 0; i < got; i++) {
            require_class(&completions[i], SLUICE_CLASS_NONE);
        }
        done += (uint32_t)got;
    }
    pattern_check(in.bytes, in.length, 3);
    sluice_multichannel_close(loop);
}

int main(void)
{
    static const struct tests cases[] = {{"self", WIRE_SELF, 50}};
    return run_groups("scale", cases, COUNT(cases));
}
