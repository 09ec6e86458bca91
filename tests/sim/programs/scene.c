/* SPDX-License-Identifier: MIT */
#include "scene.h"

#include <stdlib.h>
#include <string.h>

struct scene scene;

/* Endpoints of all ranks, of each generation: what one rank gives to another one. */
struct board {
    struct sluice_endpoint endpoints[SCENE_RANKS][SCENE_RANKS];
    struct sluice_remote_mr remote[SCENE_RANKS];
};

struct sluice_channel_attr scene_attr(void)
{
    return (struct sluice_channel_attr){.size = sizeof(struct sluice_channel_attr),
                                        .send_depth = 16,
                                        .receive_depth = 16,
                                        .ack_timeout = 12,
                                        .retry_count = 3};
}

void meet(void)
{
    uint8_t own = 1, all[SCENE_RANKS];
    sim_allgather(&own, all, 1);
}

static struct board *board(void)
{
    return sim_shared(sizeof(struct board));
}

struct sluice_endpoint endpoint_of(uint32_t peer)
{
    return board()->endpoints[peer][scene.rank];
}

uint8_t *out(uint32_t peer)
{
    return scene.memory + (size_t)peer * SLICE;
}

uint8_t *in(uint32_t peer)
{
    return scene.memory + (size_t)(SCENE_RANKS + peer) * SLICE;
}

static void open_memory(void)
{
    must(scene.context != NULL, "open: %s", sluice_last_error());
    scene.pd = sluice_pd_alloc(scene.context);
    must(scene.pd != NULL, "pd: %s", sluice_last_error());
    scene.mr = sluice_mr_alloc(scene.pd, (size_t)2 * SCENE_RANKS * SLICE,
                               SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ |
                                   SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC);
    must(scene.mr != NULL, "memory: %s", sluice_last_error());
    scene.memory = sluice_mr_addr(scene.mr);
    must(sluice_mr_remote(scene.mr, &board()->remote[scene.rank]) == 0, "remote: %s",
         sluice_last_error());
}

struct sluice_prepared_multichannel *scene_prepare(const struct sluice_channel_attr *attr)
{
    struct sluice_channel_attr quick = scene_attr();
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(scene.pd, scene.ranks, attr != NULL ? attr : &quick);
    must(prepared != NULL && sluice_prepared_multichannel_endpoints(
                                 prepared, board()->endpoints[scene.rank], scene.ranks) == 0,
         "prepare: %s", sluice_last_error());
    meet();
    return prepared;
}

void scene_shake(struct sluice_prepared_multichannel *prepared)
{
    struct sluice_endpoint theirs[SCENE_RANKS];
    for (uint32_t i = 0; i < scene.ranks; i++) {
        theirs[i] = endpoint_of(i);
    }
    memcpy(scene.remote, board()->remote, sizeof scene.remote);
    scene.all = sluice_prepared_multichannel_handshake(prepared, theirs, scene.ranks);
    must(scene.all != NULL, "handshake: %s", sluice_last_error());
}

static void await_all(void)
{
    must(sluice_multichannel_wait_connected(scene.all, PATIENCE) == 0, "connect: %s",
         sluice_last_error());
    meet();
}

void scene_connect(const struct sluice_channel_attr *attr)
{
    scene_shake(scene_prepare(attr));
    meet();
    await_all();
}

void scene_begin(void)
{
    struct sluice_context_info info = {.size = sizeof info};
    scene.rank = sim_rank();
    scene.ranks = sim_ranks();
    scene.victim = scene.ranks > 1 ? 1 : 0;
    must(scene.ranks <= SCENE_RANKS, "a scenario has at most %d ranks", SCENE_RANKS);
    scene.context = sluice_context_open(NULL, NULL);
    open_memory();
    must(sluice_context_query(scene.context, &info) == 0, "query: %s", sluice_last_error());
    scene.device = strcmp(info.transport, "soft") != 0;
}

void scene_end(void)
{
    must(sluice_mr_deregister(scene.mr) == 0, "deregister: %s", sluice_last_error());
    sluice_pd_free(scene.pd);
    sluice_context_close(scene.context);
}

void scene_open(const struct sluice_channel_attr *attr)
{
    scene_begin();
    scene_connect(attr);
}

void scene_close(void)
{
    sluice_multichannel_close(scene.all);
    scene_end();
}

/* A rank keeps its connection to itself, unless it has no other one. */
static bool is_self(uint32_t peer)
{
    return peer == scene.rank && scene.ranks > 1;
}

void connect_again(uint32_t peer)
{
    uint32_t first = scene.rank == peer ? 0 : peer,
             end = scene.rank == peer ? scene.ranks : peer + 1;
    meet();
    for (uint32_t i = first; i < end; i++) {
        must(is_self(i) || sluice_multichannel_peer_reset(scene.all, i,
                                                          &board()->endpoints[scene.rank][i]) == 0,
             "reset: %s", sluice_last_error());
    }
    meet();
    memcpy(scene.remote, board()->remote, sizeof scene.remote);
    for (uint32_t i = first; i < end; i++) {
        struct sluice_endpoint remote = endpoint_of(i);
        must(is_self(i) || sluice_multichannel_peer_handshake(scene.all, i, &remote) == 0,
             "handshake: %s", sluice_last_error());
    }
    meet();
    await_all();
}

struct sluice_request request(uint32_t opcode, uint32_t peer, uint32_t bytes)
{
    bool inwards = opcode == SLUICE_OP_RECEIVE || opcode == SLUICE_OP_READ;
    struct sluice_request work = {.opcode = opcode, .peer = peer, .sge_count = bytes > 0};
    size_t offset = (size_t)((inwards ? in(peer) : out(peer)) - scene.memory);
    must(bytes == 0 || sluice_mr_sge(scene.mr, offset, bytes, &work.sge) == 0, "element: %s",
         sluice_last_error());
    if (opcode == SLUICE_OP_WRITE || opcode == SLUICE_OP_READ) {
        must(sluice_remote_mr_slice(&scene.remote[peer], (size_t)(in(scene.rank) - scene.memory),
                                    SLICE, &work.remote) == 0,
             "slice: %s", sluice_last_error());
    }
    return work;
}

struct sluice_completion do_one(const struct sluice_request *work, int64_t deadline)
{
    struct sluice_completion completion = {.error = 1};
    int64_t began = sim_own_time();
    int result = sluice_multichannel_submit(scene.all, work, 1, deadline, &completion);
    must(completion.error == result, "submit returned %d: %s", result, sluice_last_error());
    in_time(began, deadline, "a request");
    return completion;
}

void succeeds(const struct sluice_request *work, const char *what)
{
    struct sluice_completion completion = do_one(work, PATIENCE);
    must(completion.error == 0, "%s: %s", what, sluice_last_error());
}

void fails(const struct sluice_request *work, uint32_t class, int64_t within, const char *what)
{
    int64_t began = sim_own_time(), took;
    struct sluice_completion completion = do_one(work, PATIENCE);
    took = (sim_own_time() - began) / SLUICE_MS(1);
    must(completion.error != 0, "%s: succeeded", what);
    must(completion.error_class == class, "%s: %s instead of %s: %s", what,
         sluice_error_class_name(completion.error_class), sluice_error_class_name(class),
         sluice_last_error());
    must(took <= within, "%s: took %ld ms", what, (long)took);
}

void post(const struct sluice_request *work)
{
    must(sluice_multichannel_post(scene.all, work, 1, PATIENCE, NULL) == 1, "post: %s",
         sluice_last_error());
}

void all_fail(uint32_t count, uint32_t class, int64_t within, const char *what)
{
    int64_t began = sim_own_time(), took;
    uint32_t first = 0;
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_completion completion;
        int result = sluice_multichannel_next(scene.all, PATIENCE, &completion);
        must(result == 0, "%s: result %u: %s", what, i, sluice_last_error());
        first += completion.error_class == class;
        must(completion.error_class == class || completion.error_class == SLUICE_CLASS_CANCELLED,
             "%s: result %u is %s instead of %s", what, i,
             sluice_error_class_name(completion.error_class), sluice_error_class_name(class));
    }
    took = (sim_own_time() - began) / SLUICE_MS(1);
    must(first > 0, "%s: no request failed as %s", what, sluice_error_class_name(class));
    must(took <= within, "%s: took %ld ms", what, (long)took);
}

static uint8_t value(uint32_t from, uint32_t to, uint32_t step, uint32_t at)
{
    return (uint8_t)(from * 31 + to * 17 + step * 7 + at * 3);
}

void exchange(uint32_t a, uint32_t b, uint32_t times)
{
    uint32_t peer = scene.rank == a ? b : a;
    for (uint32_t step = 0; step < times; step++) {
        uint32_t bytes = step % 4 == 3 ? 40000 : 64;
        struct sluice_request send = request(SLUICE_OP_SEND, peer, bytes),
                              receive = request(SLUICE_OP_RECEIVE, peer, bytes);
        struct sluice_completion results[2];
        for (uint32_t at = 0; at < bytes; at++) {
            out(peer)[at] = value(scene.rank, peer, step, at);
        }
        must(sluice_multichannel_scatter_gather(scene.all, &send, 1, &receive, 1, PATIENCE,
                                                results) == 0,
             "ranks %u and %u exchange a message: %s", scene.rank, peer, sluice_last_error());
        for (uint32_t at = 0; at < bytes; at++) {
            must(in(peer)[at] == value(peer, scene.rank, step, at), "byte %u from rank %u is wrong",
                 at, peer);
        }
    }
}

void bystanders(void)
{
    if (scene.ranks == SCENE_RANKS && scene.rank != scene.victim) {
        exchange(0, 2, 20);
    }
}
