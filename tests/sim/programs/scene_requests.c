/* SPDX-License-Identifier: MIT */
/* Scenarios of requests that are wrong, and of queues and memory that run out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "scenarios.h"

/* Rank 0 makes the mistakes, with the memory of rank 1. */
#define IS_CALLER (scene.rank == 0)

/* Keys and ranges that rank 1 lends, beside its large region. */
struct lent {
    struct sluice_remote_mr readable, writable, other_pd, gone, adjacent;
};

static struct lent *lent(void)
{
    return sim_shared(sizeof(struct lent));
}

static uint64_t sum_of_memory(void)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < 2 * SCENE_RANKS * (uint32_t)SLICE; i++) {
        sum = sum * 31 + scene.memory[i];
    }
    return sum;
}

static struct sluice_mr *lend(struct sluice_pd *pd, uint32_t access, struct sluice_remote_mr *to)
{
    struct sluice_mr *mr = sluice_mr_alloc(pd, 8192, access);
    must(mr != NULL && sluice_mr_remote(mr, to) == 0, "memory: %s", sluice_last_error());
    return mr;
}

/* One write and one read of a range must fail as an access error; then both connect again. */
static void is_denied(const struct sluice_remote_mr *remote, const char *what)
{
    static const uint32_t opcodes[] = {SLUICE_OP_WRITE, SLUICE_OP_READ};
    for (uint32_t i = 0; i < 2; i++) {
        if (IS_CALLER) {
            struct sluice_request work = request(opcodes[i], scene.victim, 64);
            work.remote = *remote;
            fails(&work, SLUICE_CLASS_ACCESS, ABOUT_NOW, what);
        }
        connect_again(scene.victim);
    }
}

static struct sluice_remote_mr moved(const struct sluice_remote_mr *from, int64_t by)
{
    struct sluice_remote_mr to = *from;
    to.addr += (uint64_t)by;
    return to;
}

/* Does a scenario with all that rank 1 lends, and requires that its memory stays as it was. */
static void with_lent_memory(void (*run)(void))
{
    struct sluice_pd *pd;
    struct sluice_mr *mrs[5];
    uint64_t before;
    scene_open(NULL);
    pd = sluice_pd_alloc(scene.context);
    must(pd != NULL, "pd: %s", sluice_last_error());
    if (scene.rank == scene.victim) {
        uint32_t all =
            SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE;
        mrs[0] = lend(scene.pd, SLUICE_ACCESS_REMOTE_READ, &lent()->readable);
        mrs[1] = lend(scene.pd, SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE,
                      &lent()->writable);
        mrs[2] = lend(pd, all, &lent()->other_pd);
        mrs[3] = lend(scene.pd, all, &lent()->adjacent);
        mrs[4] = lend(scene.pd, all, &lent()->gone);
        must(sluice_mr_deregister(mrs[4]) == 0, "deregister: %s", sluice_last_error());
    }
    meet();
    before = sum_of_memory();
    run();
    meet();
    must(!(scene.rank == scene.victim) || sum_of_memory() == before || IS_CALLER,
         "a request that was denied has changed memory");
    for (uint32_t i = 0; i < 4 && scene.rank == scene.victim; i++) {
        must(sluice_mr_deregister(mrs[i]) == 0, "deregister: %s", sluice_last_error());
    }
    bystanders();
    sluice_pd_free(pd);
    scene_close();
}

static void use_wrong_keys(void)
{
    struct sluice_remote_mr wrong = scene.remote[scene.victim];
    is_denied(&lent()->gone, "a key of memory that was deregistered");
    is_denied(&lent()->other_pd, "a key of another domain");
    for (uint32_t i = 0; i < 4; i++) {
        wrong.rkey = (uint32_t)agreed(UINT32_MAX);
        is_denied(&wrong, "a random key");
    }
}

void b1_wrong_keys(void)
{
    with_lent_memory(use_wrong_keys);
}

static void use_wrong_ranges(void)
{
    const struct sluice_remote_mr *right = &lent()->adjacent;
    struct sluice_remote_mr wrong = moved(right, -1);
    is_denied(&wrong, "a range that begins before its region");
    wrong = moved(right, 8192 - 63);
    is_denied(&wrong, "a range that ends behind its region");
    wrong = moved(right, 1 << 30);
    is_denied(&wrong, "a range far behind its region");
}

void b2_wrong_ranges(void)
{
    with_lent_memory(use_wrong_ranges);
}

static void use_wrapping_ranges(void)
{
    struct sluice_remote_mr wrong = lent()->adjacent;
    struct sluice_remote_mr slice;
    must(sluice_remote_mr_slice(&wrong, UINT64_MAX, 64, &slice) < 0 &&
             sluice_remote_mr_slice(&wrong, 64, UINT64_MAX, &slice) < 0 &&
             sluice_remote_mr_slice(&wrong, 8192 - 63, 64, &slice) < 0,
         "a slice that wraps");
    wrong.addr = UINT64_MAX - 10;
    for (uint32_t i = 0; i < 2 && IS_CALLER; i++) {
        struct sluice_request work = request(SLUICE_OP_WRITE, scene.victim, 64);
        work.remote = wrong;
        must(sluice_multichannel_submit(scene.all, &work, 1, PATIENCE, NULL) == -ERANGE,
             "a write to a range that wraps, or is too short: %s", sluice_last_error());
        wrong = lent()->adjacent;
        wrong.length = 63;
    }
}

void b3_wrapping_ranges(void)
{
    with_lent_memory(use_wrapping_ranges);
}

static void use_missing_rights(void)
{
    struct sluice_request work;
    if (IS_CALLER) {
        work = request(SLUICE_OP_WRITE, scene.victim, 64);
        work.remote = lent()->readable;
        fails(&work, SLUICE_CLASS_ACCESS, ABOUT_NOW, "a write to memory for reading");
    }
    connect_again(scene.victim);
    if (IS_CALLER) {
        work = request(SLUICE_OP_READ, scene.victim, 64);
        work.remote = lent()->writable;
        fails(&work, SLUICE_CLASS_ACCESS, ABOUT_NOW, "a read of memory for writing");
    }
    connect_again(scene.victim);
    if (IS_CALLER) {
        work = request(SLUICE_OP_READ, scene.victim, 64);
        work.remote = lent()->readable;
        succeeds(&work, "a read of memory for reading");
        work = request(SLUICE_OP_WRITE, scene.victim, 64);
        work.remote = lent()->writable;
        succeeds(&work, "a write to memory for writing");
    }
}

void b4_missing_rights(void)
{
    with_lent_memory(use_missing_rights);
}

static void use_no_bytes(void)
{
    struct sluice_request work = request(SLUICE_OP_WRITE, scene.victim, 0);
    work.remote.rkey = (uint32_t)agreed(UINT32_MAX);
    if (IS_CALLER) {
        succeeds(&work, "a write of no bytes with a wrong key");
    }
}

void b5_no_bytes(void)
{
    with_lent_memory(use_no_bytes);
}

/* Memory is deregistered while a peer reads and writes it: each request is done or denied. */
void b7_withdrawn(void)
{
    struct sluice_mr *mr = NULL;
    scene_open(NULL);
    if (scene.rank == scene.victim) {
        mr =
            lend(scene.pd,
                 SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE,
                 &lent()->adjacent);
    }
    meet();
    if (IS_CALLER) {
        struct sluice_completion completion;
        do {
            struct sluice_request work =
                request(below(2) == 0 ? SLUICE_OP_WRITE : SLUICE_OP_READ, scene.victim, 8192);
            work.remote = lent()->adjacent;
            completion = do_one(&work, PATIENCE);
        } while (completion.error == 0);
        /* A device may fall silent in the middle of an answer. */
        must(completion.error_class == SLUICE_CLASS_ACCESS ||
                 (scene.device && completion.error_class == SLUICE_CLASS_PEER_LOST),
             "memory that was withdrawn: %s", sluice_last_error());
    } else if (scene.rank == scene.victim) {
        sim_pause((int64_t)below(SLUICE_MS(1)));
        must(sluice_mr_deregister(mr) == 0, "deregister: %s", sluice_last_error());
    }
    connect_again(scene.victim);
    bystanders();
    scene_close();
}

/* A receive may be longer than its message, and as long; a shorter one fails at both ends. */
void b8_lengths(void)
{
    static const uint32_t sizes[] = {1, 63, 64, 65, 4096, 100000};
    scene_open(NULL);
    for (uint32_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int more = -1; more <= 1; more++) {
            struct sluice_request send = request(SLUICE_OP_SEND, scene.victim, sizes[i]),
                                  receive = request(SLUICE_OP_RECEIVE, 0,
                                                    (uint32_t)((int)sizes[i] + more));
            meet();
            if (scene.rank == scene.victim && more < 0) {
                fails(&receive, SLUICE_CLASS_TRUNCATED, ABOUT_NOW, "a receive that is too short");
            } else if (scene.rank == scene.victim) {
                struct sluice_completion completion = do_one(&receive, PATIENCE);
                must(completion.error == 0 && completion.bytes == sizes[i],
                     "a receive of %u bytes: %s", sizes[i], sluice_last_error());
            } else if (IS_CALLER && more < 0) {
                fails(&send, SLUICE_CLASS_TRUNCATED, ABOUT_NOW, "a send that is too long");
            } else if (IS_CALLER) {
                succeeds(&send, "a send");
            }
            if (more < 0) {
                connect_again(scene.victim);
            }
        }
    }
    bystanders();
    scene_close();
}

/* Local memory that was deregistered, or never registered, is named. */
void b9_local_memory(void)
{
    scene_open(NULL);
    for (uint32_t i = 0; i < 2; i++) {
        struct sluice_request work = request(SLUICE_OP_WRITE, scene.victim, 64);
        struct sluice_completion completion;
        if (i == 0) {
            work.sge.lkey ^= 0x5a5a00;
        } else {
            work.sge.addr -= (uint64_t)1 << 40;
        }
        if (IS_CALLER) {
            completion = do_one(&work, PATIENCE);
            must(completion.error_class == SLUICE_CLASS_LOCAL, "own memory named wrongly: %s",
                 sluice_last_error());
        }
        connect_again(scene.victim);
    }
    bystanders();
    scene_close();
}

/* More requests than there is room for: posts find none, nothing is lost, and the order is kept. */
void c1_floods(void)
{
    enum { MESSAGES = 200 };
    scene_open(NULL);
    meet();
    if (IS_CALLER) {
        uint32_t posted = 0, refused = 0, done = 0;
        while (done < MESSAGES) {
            struct sluice_request work = request(SLUICE_OP_SEND, scene.victim, 64);
            struct sluice_completion completion;
            int result = -EAGAIN;
            work.user_data = posted;
            work.flags = SLUICE_IMMEDIATE;
            work.immediate = posted;
            if (posted < MESSAGES) {
                result = sluice_multichannel_post(scene.all, &work, 1, PATIENCE, NULL);
                must(result == 1 || result == -EAGAIN, "post: %s", sluice_last_error());
            }
            posted += result == 1;
            refused += result == -EAGAIN;
            if (result == -EAGAIN) {
                must(sluice_multichannel_next(scene.all, PATIENCE, &completion) == 0 &&
                         completion.error == 0 && completion.user_data >= done,
                     "message %u: %s", done, sluice_last_error());
                /* The oldest successes are forgotten when their places are needed. */
                done = (uint32_t)completion.user_data + 1;
            }
        }
        must(refused > 0, "no post found the queue full");
    } else if (scene.rank == scene.victim) {
        for (uint32_t i = 0; i < MESSAGES; i++) {
            struct sluice_request work = request(SLUICE_OP_RECEIVE, 0, 64);
            struct sluice_completion completion = do_one(&work, PATIENCE);
            must(completion.error == 0 && completion.immediate == i, "message %u: %s", i,
                 sluice_last_error());
        }
    }
    bystanders();
    meet();
    scene_close();
}

void c3_no_receive(void)
{
    scene_open(NULL);
    meet();
    if (IS_CALLER) {
        struct sluice_request work = request(SLUICE_OP_SEND, scene.victim, 100000);
        int64_t began = sim_own_time();
        struct sluice_completion completion = do_one(&work, SLUICE_MS(300));
        must(completion.error_class == SLUICE_CLASS_TIMEOUT &&
                 sim_own_time() - began >= SLUICE_MS(300),
             "a send without a receive: %s", sluice_last_error());
    }
    bystanders();
    connect_again(scene.victim);
    if (scene.rank < 2 && scene.ranks > 1) {
        exchange(0, 1, 4);
    }
    scene_close();
}

/* A write to a peer that has failed is refused, and not done after it connects again. */
void c5_posted_too_late(void)
{
    scene_open(NULL);
    meet();
    if (IS_CALLER) {
        struct sluice_request work = request(SLUICE_OP_WRITE, scene.victim, 64);
        struct sluice_remote_mr right = work.remote;
        memset(out(scene.victim), 0x77, 64);
        work.remote.rkey ^= 0x5a5a00;
        fails(&work, SLUICE_CLASS_ACCESS, ABOUT_NOW, "a wrong key");
        work.remote = right;
        must(do_one(&work, PATIENCE).error == -ENOTCONN, "a write to a peer that has failed: %s",
             sluice_last_error());
    }
    connect_again(scene.victim);
    sim_pause(SLUICE_MS(50));
    must(scene.rank != scene.victim || *in(0) != 0x77, "a refused write was done later");
    bystanders();
    scene_close();
}

/* A list to several peers is refused for the peer that has failed, and done for the others. */
void c6_part_of_a_list(void)
{
    scene_open(NULL);
    meet();
    if (IS_CALLER) {
        struct sluice_request works[3];
        struct sluice_completion results[3];
        struct sluice_request wrong = request(SLUICE_OP_WRITE, scene.victim, 64);
        wrong.remote.rkey ^= 0x5a5a00;
        fails(&wrong, SLUICE_CLASS_ACCESS, ABOUT_NOW, "a wrong key");
        for (uint32_t i = 0; i < scene.ranks; i++) {
            works[i] = request(SLUICE_OP_WRITE, i, 64);
        }
        must(sluice_multichannel_submit(scene.all, works, scene.ranks, PATIENCE, results) ==
                 -ENOTCONN,
             "a list to a peer that has failed: %s", sluice_last_error());
        for (uint32_t i = 0; i < scene.ranks; i++) {
            must(results[i].error == (i == scene.victim ? -ENOTCONN : 0), "request %u: %d", i,
                 results[i].error);
        }
    }
    meet();
    bystanders();
    scene_close();
}

/* A program of one process that uses most kinds of objects. Returns whether all of it worked. */
static bool use_everything(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL),
                          *other = context != NULL ? sluice_context_open(NULL, NULL) : NULL;
    struct sluice_pd *pds[2] = {context != NULL ? sluice_pd_alloc(context) : NULL,
                                other != NULL ? sluice_pd_alloc(other) : NULL};
    struct sluice_prepared_channel *prepared[2] = {NULL, NULL};
    struct sluice_channel *channels[2] = {NULL, NULL};
    struct sluice_mr *mrs[2] = {NULL, NULL};
    struct sluice_endpoint endpoints[2];
    bool well = pds[0] != NULL && pds[1] != NULL;
    for (uint32_t i = 0; i < 2 && well; i++) {
        mrs[i] = sluice_mr_alloc(pds[i], 70000,
                                 SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_READ |
                                     SLUICE_ACCESS_REMOTE_WRITE);
        prepared[i] = sluice_channel_prepare(pds[i], NULL);
        well = mrs[i] != NULL && prepared[i] != NULL &&
               sluice_prepared_channel_endpoint(prepared[i], &endpoints[i]) == 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        if (well) {
            channels[i] = sluice_prepared_channel_handshake(prepared[i], &endpoints[!i]);
            prepared[i] = NULL;
        }
        well = well && channels[i] != NULL;
        sluice_prepared_channel_free(prepared[i]);
    }
    for (uint32_t i = 0; i < 8 && well; i++) {
        struct sluice_sge sges[2];
        struct sluice_remote_mr remote;
        struct sluice_handle handle;
        struct sluice_completion completion;
        uint32_t bytes = i % 2 == 0 ? 64 : 70000;
        well = sluice_mr_sge(mrs[0], 0, bytes, &sges[0]) == 0 &&
               sluice_mr_sge(mrs[1], 0, bytes, &sges[1]) == 0 &&
               sluice_mr_remote(mrs[1], &remote) == 0 &&
               sluice_channel_post_receive(channels[1], &sges[1], 1, PATIENCE, &handle) == 0 &&
               sluice_channel_send(channels[0], &sges[0], 1, PATIENCE) == 0 &&
               sluice_channel_wait(channels[1], &handle, PATIENCE, &completion) == 0 &&
               completion.error == 0 &&
               sluice_channel_write(channels[0], &sges[0], 1, &remote, PATIENCE) == 0 &&
               sluice_channel_read(channels[0], &sges[0], 1, &remote, PATIENCE) == 0;
    }
    for (uint32_t i = 0; i < 2; i++) {
        sluice_channel_close(channels[i]);
        must(sluice_mr_deregister(mrs[i]) == 0, "deregister: %s", sluice_last_error());
        sluice_pd_free(pds[i]);
    }
    sluice_context_close(other);
    sluice_context_close(context);
    return well;
}

/* Rank 0 has the n-th call of a kind refused, for each n, until there is no such call any more. */
static void refuse_each(const char *call)
{
    for (uint64_t at = 0; at < 400 && sim_rank() == 0; at++) {
        bool well, refused;
        sim_refuse(sim_rank(), call, at, 1);
        well = use_everything();
        refused = sim_refused() > 0;
        must(well || refused, "%s %lu: %s", call, (unsigned long)at, sluice_last_error());
        sim_forget();
        if (!refused) {
            return;
        }
    }
}

void c8_no_room(void)
{
    static const char *const calls[] = {"descriptor", "memfd_create", "fallocate", "mmap", "open"};
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        refuse_each(calls[i]);
    }
}

void c9_refused_calls(void)
{
    static const char *const calls[] = {"malloc", "pthread_create", "socket",   "sendmsg",
                                        "readv",  "epoll_ctl",      "register", "post"};
    for (uint32_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        refuse_each(calls[i]);
    }
}

/* More than the device has is refused with a reason, and what it has works. */
void c10_limits(void)
{
    struct sluice_context_info info = {.size = sizeof info};
    struct sluice_channel_attr attr = {.size = sizeof attr};
    struct sluice_prepared_channel *prepared;
    scene_begin();
    must(sluice_context_query(scene.context, &info) == 0, "query: %s", sluice_last_error());
    attr.send_depth = info.max_send_depth + 1;
    must(sluice_channel_prepare(scene.pd, &attr) == NULL && errno == EINVAL,
         "a send queue of one more than there can be");
    attr.send_depth = info.max_send_depth;
    attr.max_sge = info.max_sge;
    prepared = sluice_channel_prepare(scene.pd, &attr);
    must(prepared != NULL || errno == ENOMEM || errno == EINVAL, "the largest queue: %s",
         sluice_last_error());
    sluice_prepared_channel_free(prepared);
    scene_end();
}

void c11_no_device(void)
{
    must(sluice_context_open("nothing0", NULL) == NULL && errno == ENODEV &&
             strstr(sluice_last_error(), "nothing0") != NULL,
         "a device that is not there: %s", sluice_last_error());
}
