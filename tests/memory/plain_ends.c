/* SPDX-License-Identifier: MIT */
/*
 * Plain memory stays registered as long as a request uses it, and can be unregistered once that has
 * ended in any way.
 */
#include <pthread.h>

#include "plain_memory.h"

/* How the first of three posted receives ends, and with it the others. */
enum end { CANCEL, LATE, BREAK, DETACH, RESET, SHUTDOWN, CLOSE, LOSE, ENDS };

static void lose_peer(struct plain *work)
{
    sluice_channel_close(work->pair.channels[1]);
    work->pair.channels[1] = NULL;
    require_ok(sluice_channel_flush(work->pair.channels[0], DEADLINE));
}

static void end_work(struct plain *work, enum end end, const struct sluice_handle *handle)
{
    struct sluice_channel **near = &work->pair.channels[0];
    struct sluice_request bad = plain_request(work, SLUICE_OP_WRITE, 15, 8);
    struct sluice_completion completion;

    switch (end) {
    case CANCEL:
        require(sluice_channel_cancel(*near, handle, &completion) == 0 && completion.error != 0,
                "%d", completion.error);
        break;
    case LATE:
        await(*near, *handle, SLUICE_CLASS_TIMEOUT);
        break;
    case BREAK:
        bad.remote.rkey ^= 0x5a5a;
        require_result(sluice_channel_submit(*near, &bad, 1, DEADLINE, NULL), -EACCES);
        break;
    case DETACH:
        require_ok(sluice_channel_detach(*near, handle));
        require_result(plain_forget(work, 0), -EBUSY);
        for (uint32_t i = 0; i < 3; i++)
            require_ok(sluice_channel_send(work->pair.channels[1], NULL, 0, DEADLINE));
        break;
    case RESET:
        pair_reset(&work->pair);
        break;
    case SHUTDOWN:
        require_result(sluice_channel_shutdown(*near, SLUICE_MS(1)), -ETIMEDOUT);
        break;
    case CLOSE:
        sluice_channel_close(*near);
        *near = NULL;
        break;
    default:
        lose_peer(work);
    }
    if (*near != NULL)
        require_ok(sluice_channel_flush(*near, DEADLINE));
}

TEST(memory_is_free_however_its_request_ends, .times = ENDS)
{
    struct sluice_handle handles[3];
    struct sluice_request list[3];
    struct plain work;

    /* A device does not notice the loss of its peer while nothing is sent. */
    if (_i == LOSE && !device_is_soft())
        return;
    plain_open_usual(&work);
    for (uint32_t i = 0; i < 3; i++)
        list[i] = plain_request(&work, SLUICE_OP_RECEIVE, 2 * i, 64);
    require_result(sluice_channel_post(work.pair.channels[0], list, 3,
                                       _i == LATE ? SLUICE_MS(20) : DEADLINE, handles),
                   3);
    for (uint32_t i = 0; i < 3; i++)
        require_result(plain_forget(&work, 2 * i), -EBUSY);
    end_work(&work, (enum end)_i, &handles[0]);
    for (uint32_t i = 0; i < 3; i++)
        require_ok(plain_forget(&work, 2 * i));
    plain_close(&work);
}

/* Memory of posted requests is never evicted, and all of it may be once they are complete. */
TEST(posted_memory_is_not_evicted)
{
    const struct sluice_mr_cache_attr limits = {.size = sizeof limits, .max_regions = 3};
    struct sluice_completion completion;
    struct sluice_request receive, write;
    struct plain work;

    plain_open(&work, ACCESS_ALL, &limits, (struct sluice_channel_attr){0});
    struct sluice_channel *near = work.pair.channels[0];
    for (uint32_t i = 0; i < 3; i++) {
        receive = plain_request(&work, SLUICE_OP_RECEIVE, 2 * i, 64);
        post(near, &receive);
    }
    write = plain_request(&work, SLUICE_OP_WRITE, 8, 64);
    require_error(sluice_channel_submit(near, &write, 1, DEADLINE, NULL), -ENOBUFS, "3 regions");
    /* A longer range replaces one that is posted, which stays beside it. */
    receive = plain_request(&work, SLUICE_OP_RECEIVE, 2, BYTES + 1);
    require_result(sluice_channel_post(near, &receive, 1, DEADLINE, NULL), -ENOBUFS);
    memset(work.far.bytes, 3, 64);
    struct sluice_sge far = memory_sge(&work.far, 0, 64);
    for (uint32_t i = 0; i < 3; i++) {
        require_ok(sluice_channel_send(work.pair.channels[1], &far, 1, DEADLINE));
        require_ok(sluice_channel_next(near, DEADLINE, &completion));
        value_check(plain_page(&work, 2 * i), 64, 3);
    }
    require_ok(sluice_channel_submit(near, &write, 1, DEADLINE, NULL));
    require(plain_query(&work).regions <= 3, "%u regions", plain_query(&work).regions);
    plain_close(&work);
}

struct writer {
    struct plain *work;
    struct pair pair;
    uint32_t number;
};

/* Each thread writes its own pages through a shared cache, which has no room for all of them. */
static void *write_pages(void *argument)
{
    struct writer *writer = argument;
    struct plain *work = writer->work;

    for (uint32_t round = 0; round < (short_run() ? 200u : 2000u); round++) {
        uint32_t page = 4 * writer->number + round % 4;
        struct sluice_request write = plain_request(work, SLUICE_OP_WRITE, page, 64);
        int error;

        memset(plain_page(work, page), (int)(round % 250) + 1, 64);
        error = sluice_channel_submit(writer->pair.channels[0], &write, 1, DEADLINE, NULL);
        /* All regions may be in use by the others at this time. */
        require(error == 0 || error == -ENOBUFS, "%d: %s", error, sluice_last_error());
        if (error == 0)
            value_check(work->far.bytes + (size_t)page * BYTES, 64, (uint8_t)(round % 250 + 1));
        if (round % 16 == 0)
            (void)!plain_forget(work, (page + 4) % PAGES);
    }
    return NULL;
}

TEST(threads_share_the_cache_of_their_channels)
{
    enum { THREADS = 3 };
    const struct sluice_mr_cache_attr limits = {.size = sizeof limits, .max_regions = 3};
    struct writer writers[THREADS];
    pthread_t threads[THREADS];
    struct plain work;

    plain_open(&work, ACCESS_ALL, &limits, (struct sluice_channel_attr){0});
    for (uint32_t i = 0; i < THREADS; i++) {
        struct plain other = work;

        plain_connect(&other, (struct sluice_channel_attr){0});
        writers[i] = (struct writer){&work, other.pair, i};
    }
    for (uint32_t i = 0; i < THREADS; i++)
        require(pthread_create(&threads[i], NULL, write_pages, &writers[i]) == 0, "%s",
                strerror(errno));
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    require_error(sluice_mr_cache_destroy(work.cache), -EBUSY, "4 channels");
    for (uint32_t i = 0; i < THREADS; i++) {
        sluice_channel_close(writers[i].pair.channels[0]);
        sluice_channel_close(writers[i].pair.channels[1]);
    }
    plain_close(&work);
}
