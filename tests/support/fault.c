/* SPDX-License-Identifier: MIT */
#include "fault.h"

#include <signal.h>
#include <stdio.h>
#include <time.h>

#include "heap.h"

/* Free lists of threads count as used, and vary by this much. */
#define HEAP_SLACK ((size_t)32 << 10)

void tally_open(struct tally *tally, uint64_t first, uint32_t size)
{
    memset(tally, 0, sizeof(*tally));
    require(size <= TALLY_MAX, "%u", size);
    tally->first = first;
    tally->size = size;
}

void tally_count(struct tally *tally, const struct sluice_completion *completion)
{
    uint64_t index = completion->user_data - tally->first;
    require(index < tally->size, "a completion of user data %llu, which was never posted",
            (unsigned long long)completion->user_data);
    require(tally->ends[index]++ == 0, "request %llu completed twice", (unsigned long long)index);
    tally->done++;
}

/* The one that is not NULL is polled. */
static void take(struct tally *tally, struct sluice_channel *channel,
                 struct sluice_multichannel *multichannel, uint32_t done, int64_t within)
{
    struct sluice_completion completions[16];
    int64_t end = clock_now() + within;
    while (tally->done < done) {
        int got = channel ? sluice_channel_poll(channel, completions, COUNT(completions))
                          : sluice_multichannel_poll(multichannel, completions, COUNT(completions));
        require(got >= 0, "%s", sluice_last_error());
        for (int i = 0; i < got; i++) {
            tally_count(tally, &completions[i]);
        }
        require(got > 0 || clock_now() < end, "%u of %u requests completed in %lld ms", tally->done,
                done, (long long)within / 1000000);
        if (got == 0) {
            let_pass(SLUICE_MS(1));
        }
    }
}

void tally_channel(struct tally *tally, struct sluice_channel *channel, uint32_t done,
                   int64_t within)
{
    take(tally, channel, NULL, done, within);
}

void tally_multichannel(struct tally *tally, struct sluice_multichannel *multichannel,
                        uint32_t done, int64_t within)
{
    take(tally, NULL, multichannel, done, within);
}

void tally_close_channel(struct tally *tally, struct sluice_channel *channel)
{
    struct sluice_completion completion;
    take(tally, channel, NULL, tally->size, DEADLINE);
    require_result(sluice_channel_poll(channel, &completion, 1), 0);
}

void tally_close_multichannel(struct tally *tally, struct sluice_multichannel *multichannel)
{
    struct sluice_completion completion;
    take(tally, NULL, multichannel, tally->size, DEADLINE);
    require_result(sluice_multichannel_poll(multichannel, &completion, 1), 0);
}

struct census census_take(void)
{
    /* rdma(8) counts objects of the kernel, and prints nothing if there are none. */
    int qps = count_objects("qp");
    int mrs = count_objects("mr");
    struct census census = {.fds = count_fds(), .qps = qps, .mrs = mrs};
    census.heap = heap_bytes();
    return census;
}

void census_check(const struct census *before)
{
    int fds = settle_fds(before->fds);
    struct census now = census_take();
    require(fds <= before->fds, "%d fds, were %d", fds, before->fds);
    require(now.qps <= before->qps, "%d queue pairs, were %d", now.qps, before->qps);
    require(now.mrs <= before->mrs, "%d memory regions, were %d", now.mrs, before->mrs);
    require(now.heap <= before->heap + HEAP_SLACK, "%zu bytes of the heap, were %zu", now.heap,
            before->heap);
}

/*
 * The first rank sends, writes and reads. The second one answers each send; its memory is the
 * target.
 */
#define PASS_BYTES 3000
#define PASS_ROUNDS (BYSTANDER_TRANSFERS / 4)

static void pass_first(struct mesh *mesh, uint32_t peer, struct memory *memory)
{
    struct sluice_remote_mr remote;
    struct sluice_sge sge = memory_sge(memory, 0, PASS_BYTES);
    require_ok(sluice_multichannel_receive(mesh->all, peer, &sge, 1, DEADLINE, NULL));
    require_ok(sluice_remote_mr_unpack(memory->bytes, &remote));
    for (uint32_t i = 0; i < PASS_ROUNDS; i++) {
        pattern_fill(memory->bytes, PASS_BYTES, i);
        require_ok(sluice_multichannel_send(mesh->all, peer, &sge, 1, DEADLINE));
        require_ok(sluice_multichannel_receive(mesh->all, peer, &sge, 1, DEADLINE, NULL));
        pattern_check(memory->bytes, PASS_BYTES, 1000 + i);
        pattern_fill(memory->bytes, PASS_BYTES, 2000 + i);
        require_ok(sluice_multichannel_write(mesh->all, peer, &sge, 1, &remote, DEADLINE));
        memset(memory->bytes, 0, PASS_BYTES);
        require_ok(sluice_multichannel_read(mesh->all, peer, &sge, 1, &remote, DEADLINE));
        pattern_check(memory->bytes, PASS_BYTES, 2000 + i);
    }
    require_ok(sluice_multichannel_send(mesh->all, peer, &sge, 1, DEADLINE));
}

static void pass_second(struct mesh *mesh, uint32_t peer, struct memory *memory)
{
    struct memory target;
    memory_open(&target, mesh->pd, PASS_BYTES);
    struct sluice_remote_mr remote = memory_remote(&target, 0, PASS_BYTES);
    struct sluice_sge sge = memory_sge(memory, 0, PASS_BYTES);
    sluice_remote_mr_pack(&remote, memory->bytes);
    require_ok(sluice_multichannel_send(mesh->all, peer, &sge, 1, DEADLINE));
    for (uint32_t i = 0; i < PASS_ROUNDS; i++) {
        require_ok(sluice_multichannel_receive(mesh->all, peer, &sge, 1, DEADLINE, NULL));
        pattern_check(memory->bytes, PASS_BYTES, i);
        pattern_fill(memory->bytes, PASS_BYTES, 1000 + i);
        require_ok(sluice_multichannel_send(mesh->all, peer, &sge, 1, DEADLINE));
    }
    require_ok(sluice_multichannel_receive(mesh->all, peer, &sge, 1, DEADLINE, NULL));
    memory_close(&target);
}

void mesh_pass(struct mesh *mesh, const struct rank *rank, uint32_t first, uint32_t second)
{
    struct memory memory;
    require(rank->index == first || rank->index == second, "rank %u", rank->index);
    memory_open(&memory, mesh->pd, PASS_BYTES);
    if (rank->index == first) {
        pass_first(mesh, second, &memory);
    } else {
        pass_second(mesh, first, &memory);
    }
    memory_close(&memory);
}

void star_pass(struct star *star, uint32_t peer)
{
    struct memory near, far;
    memory_open(&near, star->sides.pds[0], PASS_BYTES);
    memory_open(&far, star->sides.pds[1], PASS_BYTES);
    struct sluice_sge near_sge = memory_sge(&near, 0, PASS_BYTES);
    struct sluice_sge far_sge = memory_sge(&far, 0, PASS_BYTES);
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &far_sge);
    struct sluice_request send = request_of(SLUICE_OP_SEND, 0, &far_sge);
    for (uint32_t i = 0; i < BYSTANDER_TRANSFERS / 2; i++) {
        pattern_fill(near.bytes, PASS_BYTES, i);
        struct sluice_handle handle = post(star->spokes[peer], &receive);
        require_ok(sluice_multichannel_send(star->hub, peer, &near_sge, 1, DEADLINE));
        await(star->spokes[peer], handle, SLUICE_CLASS_NONE);
        pattern_check(far.bytes, PASS_BYTES, i);
        pattern_fill(far.bytes, PASS_BYTES, 1000 + i);
        handle = post(star->spokes[peer], &send);
        require_ok(sluice_multichannel_receive(star->hub, peer, &near_sge, 1, DEADLINE, NULL));
        await(star->spokes[peer], handle, SLUICE_CLASS_NONE);
        pattern_check(near.bytes, PASS_BYTES, 1000 + i);
    }
    memory_close(&near);
    memory_close(&far);
}

/*
 * The kernel destroys the objects of a killed process, the newest first (__uverbs_cleanup_ufile),
 * and so may destroy its regions before its queue pairs: these refuse a last request.
 */
static bool tells_of_death(uint32_t error_class, int32_t error)
{
    if (!device_is_soft() && error_class == SLUICE_CLASS_ACCESS) {
        return error == -EACCES;
    }
    if (!device_is_soft() && error_class == SLUICE_CLASS_TRUNCATED) {
        return error == -EMSGSIZE;
    }
    return error_class == SLUICE_CLASS_PEER_LOST && error == -ECONNRESET;
}

void require_death(const struct sluice_completion *completion)
{
    require(tells_of_death(completion->error_class, completion->error), "%d, class %s, status %s",
            completion->error, sluice_error_class_name(completion->error_class),
            sluice_status_name(completion->status));
}

void check_lost(const struct mesh *mesh, uint32_t peer)
{
    struct sluice_error error = peer_error(mesh->all, peer);
    char number[16];
    snprintf(number, sizeof(number), "%u", peer);
    require(tells_of_death(error.error_class, error.error), "%s", error.text);
    require(strstr(error.text, number), "peer %u is not in '%s'", peer, error.text);
    require_result(sluice_multichannel_peer_state(mesh->all, peer), SLUICE_STATE_FAILED);
}

static volatile sig_atomic_t alarms;

static void count_alarm(int number)
{
    (void)number;
    alarms = alarms + 1;
}

void storm_begin(struct storm *storm)
{
    struct sigaction action = {.sa_handler = count_alarm};
    struct itimerspec every = {{0, 1000000}, {0, 1000000}};
    struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM};
    timer_t timer;
    alarms = 0;
    sigaction(SIGALRM, &action, NULL);
    require(timer_create(CLOCK_MONOTONIC, &event, &timer) == 0, "%s", strerror(errno));
    timer_settime(timer, 0, &every, NULL);
    storm->timer = timer;
}

void storm_end(struct storm *storm)
{
    timer_delete(storm->timer);
    signal(SIGALRM, SIG_IGN);
}

unsigned storm_alarms(void)
{
    return (unsigned)alarms;
}
