/* SPDX-License-Identifier: MIT */
/*
 * Peers are added and removed: a removed peer leaves nothing behind, and other peers are
 * unaffected.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sluice/verbs.h>

#include "../support/heap.h"
#include "members/fixture.h"

/* The lowest free index is taken first; without one, the next. */
TEST_WITH(server, indices_are_used_again, (8))
{
    struct sluice_completion completion;
    require_equal(sluice_multichannel_peers(server->all), 0);
    require_error(sluice_multichannel_peer_state(server->all, 0), -EINVAL, "none yet");
    require_error(sluice_multichannel_send(server->all, 0, NULL, 0, DEADLINE), -EINVAL, "none yet");
    require_null(sluice_verbs_multichannel_qp(server->all, 0), ERANGE, "none yet");
    require_ok(sluice_multichannel_wait_connected(server->all, 0));
    require_ok(sluice_multichannel_flush(server->all, 0));
    require_result(sluice_multichannel_next(server->all, 0, &completion), -ENOENT);
    require_ok(sluice_multichannel_poll(server->all, &completion, 1));
    for (uint32_t i = 0; i < 6; i++) {
        client_comes(server, i);
        client_works(server, i);
    }
    client_goes(server, 4, false);
    client_goes(server, 1, true);
    client_goes(server, 5, true);
    for (uint32_t i = 0; i < 4; i++) {
        client_works(server, client_comes(server, (uint32_t[]){1, 4, 5, 6}[i]));
    }
    for (uint32_t i = 0; i < 7; i++) {
        client_works(server, i);
        client_goes(server, i, i % 2 == 0);
    }
    require_equal(sluice_multichannel_peers(server->all), 7);
    client_works(server, client_comes(server, 0));
}

/* A multichannel that was made with peers keeps them beside those that are added. */
TEST(added_to_those_there_were)
{
    struct server server;
    struct star star;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 8, .receive_depth = 8};
    star_open(&star, 3, &attr);
    server_open(&server, 8);
    sluice_multichannel_close(server.all);
    server.all = star.hub;
    struct sides sides = server.sides;
    server.sides = star.sides;
    server.memory = side_memory(&star.sides, 0, 4096);
    server.far = side_memory(&star.sides, 1, 4096);
    for (uint32_t i = 3; i < 9; i++) {
        client_works(&server, client_comes(&server, i));
        star_works(&star, i % 3);
    }
    require_ok(sluice_multichannel_peer_remove(star.hub, 1));
    sluice_channel_close(star.spokes[1]);
    star.spokes[1] = NULL;
    client_works(&server, client_comes(&server, 1));
    star_works(&star, 0);
    star_works(&star, 2);
    for (uint32_t i = 0; i < 9; i++) {
        sluice_channel_close(server.clients[i]);
    }
    star_close(&star);
    sides_close(&sides);
}

/* Returns the bytes that the process has allocated and not freed. */
static size_t bytes_used(void)
{
    return heap_bytes() + mapped_heap_bytes();
}

/* Descriptors, memory and objects of the device. */
TEST_WITH(server, nothing_is_left_behind, (4))
{
    const int cycles = short_run() ? 300 : 10000;
    size_t bytes = 0;
    int fds = 0;
    int qps = 0;
    client_comes(server, 0);
    for (int cycle = 0; cycle < cycles; cycle++) {
        client_comes(server, 1);
        if (cycle % 16 == 0) {
            client_works(server, 1);
        }
        client_goes(server, 1, cycle % 2 == 0);
        if (cycle == 99) {
            fds = count_fds();
            qps = count_objects("qp");
            bytes = bytes_used();
        }
        if (cycle % 100 == 50) {
            client_works(server, 0);
        }
    }
    require(settle_fds(fds) <= fds, "%d fds, were %d", count_fds(), fds);
    require(count_objects("qp") == qps, "%d queue pairs, were %d", count_objects("qp"), qps);
    /*
     * Descriptors that are still being closed take some memory, which does not grow with the
     * cycles.
     */
    require(SANITIZED || bytes_used() < bytes + (size_t)cycles * 32 + 65536, "%zu bytes, were %zu",
            bytes_used(), bytes);
    require_equal(sluice_multichannel_peers(server->all), 2);
}

/* Requests of other peers in flight go on when the arrays move. */
TEST_WITH(server, come_and_go_beside_traffic, (8))
{
    const uint32_t guests = short_run() ? 40 : 100;
    struct sluice_completion completion;
    client_comes(server, 0);
    client_comes(server, 1);
    for (uint32_t i = 0; i < guests; i++) {
        struct sluice_request receive = client_request(server, SLUICE_OP_RECEIVE, i % 2, i);
        struct sluice_handle handle;
        require_result(sluice_multichannel_post(server->all, &receive, 1, SLUICE_FOREVER, &handle),
                       1);
        client_comes(server, 2 + i);
        require_result(sluice_multichannel_wait(server->all, &handle, 0, &completion), -ETIMEDOUT);
        require_ok(sluice_channel_send(server->clients[i % 2], NULL, 0, DEADLINE));
        require_ok(sluice_multichannel_wait(server->all, &handle, DEADLINE, &completion));
        require(completion.user_data == i && completion.error == 0, "%d", completion.error);
    }
    for (uint32_t i = 0; i < guests; i++) {
        struct sluice_request receive = client_request(server, SLUICE_OP_RECEIVE, i % 2, i);
        struct sluice_handle handle;
        require_result(sluice_multichannel_post(server->all, &receive, 1, SLUICE_FOREVER, &handle),
                       1);
        require_ok(sluice_channel_send(server->clients[i % 2], NULL, 0, DEADLINE));
        client_goes(server, 2 + i, i % 3 == 0);
        require_ok(sluice_multichannel_wait(server->all, &handle, DEADLINE, &completion));
        require(completion.user_data == i && completion.error == 0, "%d", completion.error);
    }
    client_works(server, 0);
}

/* A child inherits nothing that it could add to; its parent goes on. */
TEST_WITH(server, child_of_fork_cannot_add_peers, (8))
{
    struct sluice_endpoint endpoint;
    int status;
    client_comes(server, 0);
    client_comes(server, 1);
    pid_t child = fork();
    require(child >= 0, "fork: %s", strerror(errno));
    if (child == 0) {
        bool refused = sluice_multichannel_peer_add(server->all, &endpoint) == -EINVAL &&
                       sluice_multichannel_peer_remove(server->all, 0) == -EINVAL;
        _exit(refused ? 0 : 1);
    }
    client_goes(server, 1, false);
    client_works(server, client_comes(server, 1));
    client_works(server, client_comes(server, 2));
    require(waitpid(child, &status, 0) == child && status == 0, "the child ended with %#x", status);
    client_works(server, 0);
}

/* A thread that frees memory of posted requests, and other memory, again and again. */
struct asker {
    struct sluice_pd *pd;
    struct sluice_mr *busy;
    atomic_bool ends;
    atomic_uint asked;
};

static void *ask_for_memory(void *argument)
{
    struct asker *asker = argument;
    uint8_t bytes[64];
    while (!atomic_load(&asker->ends)) {
        struct sluice_mr *mr =
            made(sluice_mr_register(asker->pd, bytes, sizeof(bytes), SLUICE_ACCESS_LOCAL_WRITE));
        require_ok(sluice_mr_deregister(mr));
        require_result(sluice_mr_deregister(asker->busy), -EBUSY);
        atomic_fetch_add(&asker->asked, 1);
    }
    return NULL;
}

/* Another thread scans the arrays for posted memory while they move, and finds all of it. */
TEST_WITH(server, memory_is_scanned_meanwhile, (8))
{
    const uint32_t guests = short_run() ? 40 : 200;
    struct sluice_completion completion;
    struct sluice_handle handle;
    pthread_t thread;
    client_comes(server, 0);
    struct sluice_request receive = client_request(server, SLUICE_OP_RECEIVE, 0, 1);
    require_result(sluice_multichannel_post(server->all, &receive, 1, SLUICE_FOREVER, &handle), 1);
    struct asker asker = {.pd = server->sides.pds[0], .busy = server->memory.mr};
    require(pthread_create(&thread, NULL, ask_for_memory, &asker) == 0, "no thread");
    for (uint32_t i = 1; i <= guests; i++) {
        client_comes(server, i);
    }
    for (uint32_t i = 1; i <= guests; i++) {
        client_goes(server, i, i % 2 == 0);
        client_comes(server, i);
    }
    while (atomic_load(&asker.asked) < 10) {
        client_goes(server, guests, false);
        client_comes(server, guests);
    }
    atomic_store(&asker.ends, true);
    pthread_join(thread, NULL);
    require_ok(sluice_channel_send(server->clients[0], NULL, 0, DEADLINE));
    require_ok(sluice_multichannel_wait(server->all, &handle, DEADLINE, &completion));
    require(completion.error == 0 && completion.user_data == 1, "%d", completion.error);
}

/* When it returns, no buffer is touched, and memory can be deregistered. */
TEST_WITH(server, removed_with_work_in_flight, (8))
{
    struct memory near;
    size_t length = (size_t)4 << 20;
    client_comes(server, 0);
    for (int cycle = 0; cycle < 4; cycle++) {
        struct memory far;
        client_comes(server, 1);
        memory_open(&near, server->sides.pds[0], length);
        memory_open(&far, server->sides.pds[1], length);
        struct sluice_sge near_sge = memory_sge(&near, 0, length);
        struct sluice_sge far_sge = memory_sge(&far, 0, length);
        struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 1, &near_sge);
        struct sluice_completion completion;
        int result;
        for (int i = 0; i < 3; i++) {
            require_result(sluice_multichannel_post(server->all, &receive, 1, DEADLINE, NULL), 1);
        }
        if (cycle % 2 == 0) {
            post_of(server->clients[1], SLUICE_OP_SEND, &far_sge);
        }
        struct span begin = span_begin();
        client_goes(server, 1, false);
        require_took(span_since(begin), 0, SLUICE_S(10));
        memset(near.bytes, 0x33, length);
        client_works(server, 0);
        value_check(near.bytes, length, 0x33);
        memory_close(&near);
        memory_close(&far);
        for (int i = 0; i < 3; i++) {
            result = sluice_multichannel_poll(server->all, &completion, 1);
            require_result(result, 1);
            require((completion.flags & SLUICE_PEER_REMOVED) != 0, "%#x", completion.flags);
            require(completion.error == 0 || completion.error == -ECANCELED, "%d",
                    completion.error);
        }
    }
}

/* All queues of all peers can be full, however the queues of the device have grown. */
TEST_WITH(server, all_queues_full, (8))
{
    const uint32_t guests = short_run() ? 30 : 120;
    struct sluice_completion completions[64];
    uint32_t left = guests * 8;
    for (uint32_t i = 0; i < guests; i++) {
        client_comes(server, i);
    }
    for (uint32_t round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < guests; i++) {
            struct sluice_request receive = client_request(server, SLUICE_OP_RECEIVE, i, i);
            for (int k = 0; k < 8; k++) {
                require_result(sluice_multichannel_post(server->all, &receive, 1, DEADLINE, NULL),
                               1);
            }
            require_result(sluice_multichannel_post(server->all, &receive, 1, DEADLINE, NULL),
                           -EAGAIN);
        }
        for (uint32_t i = 0; i < guests; i++) {
            if (round == 1) {
                client_goes(server, i, false);
                continue;
            }
            for (int k = 0; k < 8; k++) {
                require_ok(sluice_channel_send(server->clients[i], NULL, 0, DEADLINE));
            }
        }
        for (left = guests * 8; left > 0;) {
            int count = sluice_multichannel_poll(server->all, completions, 64);
            require(count >= 0, "%s", sluice_last_error());
            for (int k = 0; k < count; k++) {
                require_class(&completions[k],
                              round == 0 ? SLUICE_CLASS_NONE : SLUICE_CLASS_CANCELLED);
            }
            left -= (uint32_t)count;
        }
    }
    client_works(server, client_comes(server, 0));
}

/*
 * Many peers are added and removed, in any order, while others exchange messages and sleep on the
 * fd.
 */
TEST_WITH(server, three_hundred_come_and_go, (2))
{
    const uint32_t guests = short_run() ? 60 : 300;
    const int rounds = short_run() ? 200 : 1500;
    unsigned seed = 1;
    for (uint32_t i = 0; i < 3; i++) {
        client_comes(server, i);
    }
    for (int round = 0; round < rounds; round++) {
        seed = seed * 1103515245 + 12345;
        uint32_t index = 3 + (seed >> 16) % guests;
        if (server->clients[index] != NULL) {
            client_goes(server, index, seed % 2 == 0);
        } else {
            uint32_t free = 3;
            while (server->clients[free] != NULL) {
                free++;
            }
            client_comes(server, free);
            if (round % 8 == 0) {
                client_works(server, free);
            }
        }
        if (round % 4 == 0) {
            client_works(server, (uint32_t)round / 4 % 3);
        }
    }
}

/* A client that closes or fails is found lost and removed, and another one is added. */
TEST_WITH(server, lost_and_replaced, (4))
{
    struct sluice_completion completion;
    client_comes(server, 0);
    for (int life = 0; life < 10; life++) {
        struct sluice_request receive = client_request(server, SLUICE_OP_RECEIVE, 1, 5);
        client_works(server, client_comes(server, 1));
        require_result(sluice_multichannel_post(server->all, &receive, 1, DEADLINE, NULL), 1);
        if (device_is_soft()) {
            sluice_channel_close(server->clients[1]);
            server->clients[1] = NULL;
            completion = server_next(server);
            require(completion.error < 0 && completion.flags == 0, "%d", completion.error);
            require_result(sluice_multichannel_peer_state(server->all, 1), SLUICE_STATE_FAILED);
        }
        client_goes(server, 1, true);
        client_works(server, 0);
        while (sluice_multichannel_poll(server->all, &completion, 1) == 1) {
        }
    }
}

int main(void)
{
    return run_tests("members", device_is_soft() ? 60 : 600);
}
