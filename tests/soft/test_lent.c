/* SPDX-License-Identifier: MIT */
/*
 * Large messages that a receiver reads from its peer's memory: they arrive, also where the kernel
 * does not permit that, or stops permitting it, and a message that its sender has withdrawn is not
 * received.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "../support/fault.h"

#define BIG ((size_t)1 << 20)
#define PIECES 4

/*
 * Returns whether the run is a short one by softroce/check-ptrace.sh, in an emulated guest. Other
 * runs prove what does not depend on Yama.
 */
static bool only_yama(void)
{
    return short_run() && getenv("SLUICE_TEST_PTRACE_SCOPE");
}

static atomic_uint lent, copied;

static void count_log(uint32_t level, const char *line, void *user)
{
    (void)level;
    (void)user;
    atomic_fetch_add(&lent, strstr(line, "can read large messages") != NULL);
    atomic_fetch_add(&copied, strstr(line, "copied twice") != NULL);
}

struct end {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channel;
    struct memory memory;
};

static void end_open(struct end *end, struct rank *rank)
{
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared;

    end->context = open_context();
    end->pd = sluice_pd_alloc(end->context);
    memory_open(&end->memory, end->pd, BIG);
    prepared = prepare_channel(end->pd, NULL, &endpoints[0]);
    endpoints[1] = endpoints[0];
    rank_exchange(rank, endpoints, endpoints, sizeof endpoints[0]);
    end->channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[!rank->index]));
    require_ok(sluice_channel_wait_connected(end->channel, DEADLINE));
}

static void end_close(struct end *end)
{
    sluice_channel_close(end->channel);
    memory_close(&end->memory);
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

/* Passes a message, in pieces at both ends, with other pieces each time. */
static void pass(struct end *end, uint32_t from, const struct rank *rank, uint32_t number)
{
    static const size_t sizes[] = {32768, 40000, 65536, 300001, BIG, 32767};
    size_t size = sizes[number % COUNT(sizes)];
    struct sluice_sge sges[PIECES];
    uint32_t count = number % 3 == 0 ? 1 : 2 + (rank->index + number) % (PIECES - 1);

    memory_split(&end->memory, 0, size, sges, count);
    if (rank->index == from) {
        pattern_fill(end->memory.bytes, size, number);
        require_ok(sluice_channel_send(end->channel, sges, count, DEADLINE));
        return;
    }
    memset(end->memory.bytes, 0, end->memory.length);
    require_ok(sluice_channel_receive(end->channel, sges, count, DEADLINE, NULL));
    pattern_check(end->memory.bytes, size, number);
    value_check(end->memory.bytes + size, end->memory.length - size, 0);
}

/* After 14 messages each size and each way to split it was passed in both directions. */
static void pass_many(struct end *end, const struct rank *rank, uint32_t first)
{
    uint32_t count = only_yama() ? 20 : 60;

    for (uint32_t i = 0; i < count; i++)
        pass(end, i / 7 % 2, rank, first + i);
}

static void lend(struct rank *rank)
{
    struct end end;

    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_log, NULL));
    end_open(&end, rank);
    pass_many(&end, rank, 1);
    rank_barrier(rank);
    end_close(&end);
    require_result((int)(atomic_load(&lent) + atomic_load(&copied)), 1);
}

TEST(lent_messages_arrive)
{
    group_run(2, lend, NULL, 60);
}

/* Forbids all threads of this process to read another one's memory from now on. */
static void forbid(void)
{
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const struct sock_fprog program = {COUNT(code), code};

    require(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0, "%s", strerror(errno));
    require(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0,
            "%s", strerror(errno));
}

static void lend_in_vain(struct rank *rank)
{
    const int *late = rank->argument;
    struct end end;

    require_ok(sluice_log_set(SLUICE_LOG_INFO, count_log, NULL));
    if (rank->index == 1 && !*late)
        forbid();
    end_open(&end, rank);
    if (*late)
        pass_many(&end, rank, 1);
    rank_barrier(rank);
    if (rank->index == 1 && *late)
        forbid();
    pass_many(&end, rank, 2);
    rank_barrier(rank);
    end_close(&end);
    if (rank->index == 1)
        require_result((int)atomic_load(&copied), 1);
}

TEST(messages_are_copied_where_reading_is_forbidden, .times = 2)
{
    group_run(2, lend_in_vain, &_i, 60);
}

/* A send is cancelled at any time, and its memory used for something else. */
static void take_back(struct rank *rank)
{
    uint32_t rounds = only_yama() ? 8 : short_run() ? 20 : 100;

    for (uint32_t round = 0; round < rounds; round++) {
        struct sluice_request request;
        struct sluice_sge sge;
        struct end end;
        int result;

        end_open(&end, rank);
        sge = memory_sge(&end.memory, 0, BIG);
        request = request_of(SLUICE_OP_SEND, 0, &sge);
        pass(&end, 0, rank, 4);
        rank_barrier(rank);
        if (rank->index == 0) {
            pattern_fill(end.memory.bytes, BIG, round);
            require_result(sluice_channel_post(end.channel, &request, 1, DEADLINE, NULL), 1);
            let_pass(1000 * (round * 7 % 200));
            sluice_channel_close(end.channel);
            end.channel = NULL;
            pattern_fill(end.memory.bytes, BIG, round + 1);
        } else {
            result = sluice_channel_receive(end.channel, &sge, 1, DEADLINE, NULL);
            require(result == 0 || result == -ECONNRESET, "%d: %s", result, sluice_last_error());
            if (result == 0)
                pattern_check(end.memory.bytes, BIG, round);
        }
        rank_barrier(rank);
        end_close(&end);
    }
}

TEST(withdrawn_message_is_not_received)
{
    group_run(2, take_back, NULL, 100);
}

int main(void)
{
    return RUN_ON_SOFT("lent", {"shm", WIRE_SHM, 200});
}
