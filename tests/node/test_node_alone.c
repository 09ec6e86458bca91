/* SPDX-License-Identifier: MIT */
/*
 * Nodes that open by themselves what they are not given: an exchange, as the environment selects, a
 * device, and a domain; and close these, in any order in which the program ends its own objects.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "../exchange/parties.h"
#include "../support/pair.h"
#include "../support/process.h"
#include "../support/ranks.h"

#define TEXT 2000

/* Sets the variables that a launcher would set for a rank. */
static void be_rank(uint32_t rank, uint32_t ranks, uint16_t port)
{
    char text[64];
    snprintf(text, sizeof(text), "%u", rank);
    require(setenv("SLUICE_RANK", text, 1) == 0, "rank %u", rank);
    snprintf(text, sizeof(text), "%u", ranks);
    require(setenv("SLUICE_RANKS", text, 1) == 0, "%u ranks", ranks);
    snprintf(text, sizeof(text), "127.0.0.1:%u", (unsigned)port);
    require(setenv("SLUICE_ROOT", text, 1) == 0, "%s", text);
    require(setenv("SLUICE_DEVICE", test_device(), 1) == 0, "%s", test_device());
}

/* Sends a message to itself, in memory of the domain. */
static void works(struct sluice_node *node, struct sluice_pd *pd)
{
    struct sluice_multichannel *all = sluice_node_multichannel(node);
    uint32_t rank = sluice_node_rank(node);
    struct sluice_handle handle;
    struct sluice_completion completion;
    struct memory memory;
    memory_open(&memory, pd, 128);
    struct sluice_sge in = memory_sge(&memory, 0, 64), out = memory_sge(&memory, 64, 64);
    pattern_fill(memory.bytes + 64, 64, 7);
    require_ok(sluice_multichannel_post_receive(all, rank, &in, 1, DEADLINE, &handle));
    require_ok(sluice_multichannel_send(all, rank, &out, 1, DEADLINE));
    require_ok(sluice_multichannel_wait(all, &handle, DEADLINE, &completion));
    pattern_check(memory.bytes, 64, 7);
    memory_close(&memory);
}

TEST(nothing_is_given, .group = "self")
{
    be_rank(0, 1, find_port());
    int before = count_fds();
    for (int turn = 0; turn < 3; turn++) {
        struct sluice_node *node = made(sluice_node_open(NULL, NULL, NULL, DEADLINE));
        require_result(sluice_node_ranks(node), 1);
        struct sluice_pd *pd = made(sluice_node_pd(node));
        struct sluice_context *context = made(sluice_node_context(node));
        struct sluice_exchange *exchange = made(sluice_node_exchange(node));
        require(strcmp(context_info(context).device, test_device()) == 0, "%s",
                context_info(context).device);
        works(node, pd);
        uint32_t own = 5, all = 0;
        require_ok(sluice_exchange_allgather(exchange, &own, &all, sizeof(own), DEADLINE));
        require(all == 5, "%u", all);
        /* The domain and the context end only with the node. */
        sluice_pd_free(pd);
        require(strstr(sluice_last_error(), "domain belongs to a node"), "%s", sluice_last_error());
        sluice_context_close(context);
        require(strstr(sluice_last_error(), "context belongs to a node"), "%s",
                sluice_last_error());
        sluice_exchange_close(exchange);
        require(strstr(sluice_last_error(), "exchange belongs to a node"), "%s",
                sluice_last_error());
        pd = sluice_node_pd(node);
        works(node, pd);
        /* Objects made of them may outlive the node. */
        struct sluice_mr *mr = made(sluice_mr_alloc(pd, 100, SLUICE_ACCESS_LOCAL_WRITE));
        if (turn == 1) {
            require_ok(sluice_node_shutdown(node, DEADLINE));
        }
        sluice_node_close(node);
        memset(sluice_mr_addr(mr), 1, 100);
        require_ok(sluice_mr_deregister(mr));
    }
    require(settle_fds(before) <= before, "%d descriptors, were %d", count_fds(), before);
}

TEST(a_domain_is_given, .group = "self")
{
    be_rank(0, 1, find_port());
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct sluice_node *node = made(sluice_node_open(pd, NULL, NULL, DEADLINE));
    require(sluice_node_pd(node) == pd && sluice_node_context(node) == context, "others");
    require(sluice_node_exchange(node), "%s", sluice_last_error());
    works(node, pd);
    /* The program's own domain may be freed at any time. */
    sluice_pd_free(pd);
    sluice_context_close(context);
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    sluice_node_close(node);
}

TEST(an_exchange_is_given, .group = "self")
{
    be_rank(0, 1, find_port());
    struct sluice_exchange *exchange = made(sluice_exchange_open(NULL, DEADLINE));
    struct sluice_node *node = made(sluice_node_open(NULL, exchange, NULL, DEADLINE));
    require_null(sluice_node_exchange(node), EINVAL, "did not open its exchange");
    works(node, sluice_node_pd(node));
    sluice_pd_free(sluice_node_pd(node));
    require(strstr(sluice_last_error(), "domain belongs to a node"), "%s", sluice_last_error());
    sluice_node_close(node);
    require_ok(sluice_exchange_barrier(exchange, DEADLINE));
    sluice_exchange_close(exchange);
}

/* A failure at any step leaves nothing behind. */
TEST(each_failure_leaves_nothing, .group = "self")
{
    const struct sluice_node_attr attr = {.size = sizeof(attr), .barrier = 4};
    be_rank(0, 1, find_port());
    int before = count_fds();
    require_null(sluice_node_open(NULL, NULL, &attr, DEADLINE), EINVAL, "sluice_node_attr.barrier");
    require(setenv("SLUICE_DEVICE", "nosuch0", 1) == 0, "no device");
    require_null(sluice_node_open(NULL, NULL, NULL, DEADLINE), ENODEV, "nosuch0");
    require(unsetenv("SLUICE_RANK") == 0 && unsetenv("SLUICE_RANKS") == 0, "no rank");
    require_null(sluice_node_open(NULL, NULL, NULL, DEADLINE), ENOENT,
                 "nothing says which rank this is SLUICE_RANK=0 SLUICE_RANKS=1");
    require_null(sluice_node_open(NULL, NULL, NULL, -1), EINVAL, "deadline -1");
    require_null(sluice_node_open(NULL, NULL, NULL, 0), ETIMEDOUT, "deadline is 0");
    require(settle_fds(before) <= before, "%d descriptors, were %d", count_fds(), before);
}

/* The whole of a program of four ranks. */
static void take_part(struct rank *rank)
{
    const uint16_t *port = rank->argument;
    struct sluice_peer_remote_mr remotes[4];
    uint64_t own = 10 + rank->index, all[4];
    be_rank(rank->index, rank->size, *port);
    struct sluice_node *node = made(sluice_node_open(NULL, NULL, NULL, DEADLINE));
    require_result(sluice_node_rank(node), rank->index);
    require_result(sluice_node_ranks(node), rank->size);
    struct memory memory;
    memory_open(&memory, sluice_node_pd(node), 40);
    struct sluice_sge sge = memory_sge(&memory, 32, 8);
    require_ok(sluice_node_share_mr(node, memory.mr, remotes, DEADLINE));
    require_ok(sluice_node_allgather(node, &own, all, sizeof(own), DEADLINE));
    memcpy(memory.bytes + 32, &own, sizeof(own));
    for (uint32_t i = 0; i < rank->size; i++) {
        struct sluice_remote_mr slice;
        require(all[i] == 10 + i, "%llu of rank %u", (unsigned long long)all[i], i);
        require_ok(sluice_remote_mr_slice(&remotes[i].remote, 8 * rank->index, 8, &slice));
        require_ok(sluice_multichannel_write(sluice_node_multichannel(node), i, &sge, 1, &slice,
                                             DEADLINE));
    }
    require_ok(sluice_node_barrier(node, NULL, 0, 0, DEADLINE));
    require(memcmp(memory.bytes, all, sizeof(all)) == 0, "what all wrote");
    require_ok(sluice_node_shutdown(node, DEADLINE));
    sluice_node_close(node);
    memory_close(&memory);
}

TEST(four_ranks, .group = "processes", .unless = device_is_pretend)
{
    uint16_t port = find_port();
    group_run(4, take_part, &port, 60);
}

/* Rank 1 has no device; all ranks get the reason at once. */
static void lack_a_device(struct rank *rank)
{
    const uint16_t *port = rank->argument;
    be_rank(rank->index, rank->size, *port);
    if (rank->index == 1) {
        require(setenv("SLUICE_DEVICE", "nosuch0", 1) == 0, "no device");
    }
    int64_t start = fair_now();
    require_null(sluice_node_open(NULL, NULL, NULL, 3 * DEADLINE),
                 rank->index == 1 ? ENODEV : ECANCELED,
                 rank->index == 1 ? "nosuch0" : "rank 1 could not open its node nosuch0");
    require(fair_now() - start < DEADLINE, "%lld ms", (long long)(fair_now() - start) / 1000000);
}

TEST(a_rank_without_a_device, .group = "processes", .unless = device_is_pretend)
{
    uint16_t port = find_port();
    group_run(4, lack_a_device, &port, 60);
}

/* The lines of the log at level warn, one behind the other. */
static void keep_lines(uint32_t level, const char *line, void *user)
{
    char *text = user;
    size_t used = strlen(text);
    if (level == SLUICE_LOG_WARN) {
        snprintf(text + used, TEXT - used, "%s\n", line);
    }
}

/* Opens a node of one rank with these. The log must have these words, or, if NULL, no line. */
static void open_with(struct sluice_pd *pd, struct sluice_exchange *exchange, const char *words)
{
    char text[TEXT] = "";
    require_ok(sluice_log_set(SLUICE_LOG_WARN, keep_lines, text));
    struct sluice_node *node = made(sluice_node_open(pd, exchange, NULL, DEADLINE));
    sluice_node_close(node);
    require_ok(sluice_log_set(SLUICE_LOG_WARN, NULL, NULL));
    require(words ? strstr(text, words) != NULL : !strstr(text, "earlier"), "%s", text);
}

static struct sluice_pd *fail_to_open(void)
{
    struct sluice_pd *pd = sluice_pd_alloc(sluice_context_open("no-such-device", NULL));
    require(!pd, "%s", "there is such a device");
    return pd;
}

/* The node opens all the same, and logs a warning. */
TEST(objects_that_failed_to_open_are_given, .group = "self")
{
    const struct sluice_exchange_attr wrong = {.size = sizeof(wrong), .kind = 99};
    struct sides sides;
    sides_open(&sides);
    be_rank(0, 1, find_port());
    open_with(NULL, NULL, NULL);
    open_with(fail_to_open(), NULL,
              "NULL for the exchange and the protection domain, and opens its own; earlier: no "
              "device 'no-such-device'");
    /* That failure was reported, and a node was opened since, so it is no longer mentioned. */
    open_with(NULL, NULL, NULL);
    struct sluice_exchange *exchange = made(sluice_exchange_open(NULL, DEADLINE));
    open_with(fail_to_open(), exchange,
              "NULL for the protection domain, and opens its own; earlier: no device");
    open_with(sides.pds[0], sluice_exchange_open(&wrong, DEADLINE),
              "NULL for the exchange, and opens its own; earlier: sluice_exchange_attr.kind is 99");
    fail_to_open();
    open_with(sides.pds[0], exchange, NULL);
    sluice_exchange_close(exchange);
    sides_close(&sides);
}

int main(void)
{
    return RUN_GROUPS("node_alone", {"self", WIRE_SELF, 60}, {"processes", WIRE_SHM, 120});
}
