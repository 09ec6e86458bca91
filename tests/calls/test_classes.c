/* SPDX-License-Identifier: MIT */
/*
 * Every class of errors on every transport: each row of the table below is a class, each column a
 * transport, and each cell a cause that provokes the class there, or the reason why none does.
 * Further causes are in the tests of their topics; sluice_errors(7) documents the same for users.
 */
#include "../support/pair.h"
#include "../support/process.h"

#include <dlfcn.h>
#include <sys/resource.h>

#define LENGTH 1000
/* Deep enough that a queue pair has to get its memory from the kernel. */
#define DEPTH 16384

/* A hub of two peers, of which the second is a bystander; and memory on both sides. */
struct bench {
    struct star star;
    struct memory near, far;
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    struct sluice_completion completion; /* of the request that fails */
    bool all_fail;                       /* the second peer fails, too */
};

static void bench_open(struct bench *bench)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    struct sluice_context *context = open_context();
    struct sluice_context_info info = context_info(context);
    sluice_context_close(context);
    attr.send_depth = info.max_send_depth < DEPTH ? info.max_send_depth : DEPTH;
    star_open(&bench->star, 2, &attr);
    bench->near = side_memory(&bench->star.sides, 0, LENGTH);
    bench->far = side_memory(&bench->star.sides, 1, LENGTH);
    bench->sge = memory_sge(&bench->near, 0, LENGTH);
    bench->remote = memory_remote(&bench->far, 0, LENGTH);
    /* Both peers are connected first: a cause must not strike while the library connects. */
    star_works(&bench->star, 0);
    star_works(&bench->star, 1);
}

static void bench_close(struct bench *bench)
{
    if (!bench->all_fail)
        star_works(&bench->star, 1);
    star_close(&bench->star);
}

/* Makes a request of the hub to its first peer. Returns its result. */
static int ask(struct bench *bench, uint32_t opcode, int64_t deadline)
{
    struct sluice_request request = request_of(opcode, 0, &bench->sge);
    if (opcode == SLUICE_OP_WRITE)
        request.remote = bench->remote;
    return sluice_multichannel_submit(bench->star.hub, &request, 1, deadline, &bench->completion);
}

/* The causes. Each returns the result of the call that failed. */

static int nothing(struct bench *bench)
{
    return ask(bench, SLUICE_OP_WRITE, DEADLINE);
}

static int closed_end(struct bench *bench)
{
    sluice_channel_close(bench->star.spokes[0]);
    bench->star.spokes[0] = NULL;
    return ask(bench, SLUICE_OP_WRITE, DEADLINE);
}

static int no_receive(struct bench *bench)
{
    return ask(bench, SLUICE_OP_SEND, SLUICE_MS(100));
}

static int foreign_key(struct bench *bench)
{
    bench->remote.rkey ^= 0x5a5a5a5a;
    return ask(bench, SLUICE_OP_WRITE, DEADLINE);
}

static int short_receive(struct bench *bench)
{
    struct sluice_sge sge = memory_sge(&bench->far, 0, 10);
    struct sluice_handle handle = post_of(bench->star.spokes[0], SLUICE_OP_RECEIVE, &sge);
    int result = ask(bench, SLUICE_OP_SEND, DEADLINE);
    await(bench->star.spokes[0], handle, SLUICE_CLASS_TRUNCATED);
    return result;
}

/* A receive that waits beside the request that fails. */
static int neighbour(struct bench *bench)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &bench->sge);
    struct sluice_handle handle;
    require_result(sluice_multichannel_post(bench->star.hub, &receive, 1, DEADLINE, &handle), 1);
    require_result(foreign_key(bench), -EACCES);
    require_ok(sluice_multichannel_wait(bench->star.hub, &handle, DEADLINE, &bench->completion));
    return bench->completion.error;
}

static int own_key(struct bench *bench)
{
    bench->sge.lkey ^= 0x01010101;
    return ask(bench, SLUICE_OP_WRITE, DEADLINE);
}

/* Grows the stack in advance, as a limit would prevent that later. */
static void __attribute__((noinline)) grow_stack(void)
{
    volatile char room[256 * 1024];
    for (size_t i = 0; i < sizeof(room); i += 1024)
        room[i] = 1;
}

/* The queue pair of a peer cannot be reset, as there is no memory for it. */
static int no_queue_pair(struct bench *bench)
{
    struct sluice_endpoint endpoint;
    struct rlimit all, none;
    int result;
    require(getrlimit(RLIMIT_AS, &all) == 0, "%m");
    none = all;
    none.rlim_cur = 0;
    grow_stack();
    require(setrlimit(RLIMIT_AS, &none) == 0, "%m");
    result = sluice_multichannel_peer_reset(bench->star.hub, 0, &endpoint);
    require(setrlimit(RLIMIT_AS, &all) == 0, "%m");
    return result;
}

/* The pretend device reports an error of its port while a receive waits. */
static int port_error(struct bench *bench)
{
    bool (*tell)(uint32_t device, uint32_t port, int event) =
        (bool (*)(uint32_t, uint32_t, int))dlsym(RTLD_DEFAULT, "fake_verbs_port_event");
    const int event = 10; /* IBV_EVENT_PORT_ERR, where there may be no header of it */
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &bench->sge);
    struct sluice_handle handle;
    require(tell, "no pretend device");
    bench->all_fail = true;
    require_result(sluice_multichannel_post(bench->star.hub, &receive, 1, DEADLINE, &handle), 1);
    require(tell(0, 1, event), "the event has no recipient");
    require_ok(sluice_multichannel_wait(bench->star.hub, &handle, DEADLINE, &bench->completion));
    return bench->completion.error;
}

/* The bytes of the peer's address were changed in transit. */
static int damaged_endpoint(struct bench *bench)
{
    struct sluice_endpoint ours, theirs;
    struct sluice_prepared_channel *prepared = made(sluice_channel_reset(bench->star.spokes[0]));
    require_ok(sluice_prepared_channel_endpoint(prepared, &theirs));
    sluice_prepared_channel_free(prepared);
    bench->star.spokes[0] = NULL;
    require_ok(sluice_multichannel_peer_reset(bench->star.hub, 0, &ours));
    theirs.bytes[40] ^= 1;
    return sluice_multichannel_peer_handshake(bench->star.hub, 0, &theirs);
}

/* The table. */

enum column { SELF, SHM, TCP, PRETEND, RDMA, COLUMNS };

static const char *const columns[COLUMNS] = {
    "soft within a process", "soft over shared memory",       "soft over TCP",
    "a pretend device",      "a device, as rxe in the guest",
};

struct cell {
    int (*cause)(struct bench *bench);
    int result;       /* of the call, if not that of the class: only the peer fails with it */
    const char *none; /* without a cause: the reason why the class cannot occur there */
};

struct row {
    enum sluice_error_class error_class;
    struct cell cells[COLUMNS];
};

#define ALL_BY(cause, result)                                                \
    {                                                                        \
        {cause, result, NULL}, {cause, result, NULL}, {cause, result, NULL}, \
            {cause, result, NULL}, {cause, result, NULL},                    \
    }

static const struct row rows[] = {
    {SLUICE_CLASS_NONE, ALL_BY(nothing, 0)},
    {SLUICE_CLASS_PEER_LOST, ALL_BY(closed_end, 0)},
    {SLUICE_CLASS_TIMEOUT, ALL_BY(no_receive, 0)},
    {SLUICE_CLASS_ACCESS, ALL_BY(foreign_key, 0)},
    {SLUICE_CLASS_TRUNCATED, ALL_BY(short_receive, 0)},
    {SLUICE_CLASS_CANCELLED, ALL_BY(neighbour, 0)},
    {SLUICE_CLASS_LOCAL, ALL_BY(own_key, 0)},
    {SLUICE_CLASS_DEVICE,
     {
         [SELF] = {no_queue_pair, -ENOMEM, NULL},
         [SHM] = {no_queue_pair, -ENOMEM, NULL},
         [TCP] = {no_queue_pair, -ENOMEM, NULL},
         [PRETEND] = {port_error, 0, NULL},
         [RDMA] = {no_queue_pair, -ENOMEM, NULL},
     }},
    /* After the connection, only a peer on soft can send false data: see test_hostile. */
    {SLUICE_CLASS_PROTOCOL, ALL_BY(damaged_endpoint, -EPROTO)},
};
_Static_assert(COUNT(rows) == SLUICE_CLASS_PROTOCOL + 1, "a row for each class");

static enum column column_here(void)
{
    static const enum column of_wire[] = {[WIRE_SELF] = SELF, [WIRE_TCP] = TCP, [WIRE_SHM] = SHM};
    if (device_is_soft())
        return of_wire[current_wire()];
    return device_is_pretend() ? PRETEND : RDMA;
}

/* The errno value of the class, by sluice_errors(7). */
static int errno_of(enum sluice_error_class error_class)
{
    static const int values[] = {0,          -ECONNRESET, -ETIMEDOUT, -EACCES, -EMSGSIZE,
                                 -ECANCELED, -EFAULT,     -EIO,       -EPROTO};
    return values[error_class];
}

static void require_cell(const struct row *row, const struct cell *cell, const struct bench *bench,
                         int result)
{
    const enum sluice_error_class wanted =
        row->error_class == SLUICE_CLASS_LOCAL ? class_of_own_mistakes() : row->error_class;
    const char *where = columns[column_here()], *what = sluice_error_class_name(row->error_class);
    require(result == (cell->result != 0 ? cell->result : errno_of(wanted)),
            "%s on %s: the call returned %d: %s", what, where, result, sluice_last_error());
    if (cell->result == 0)
        require_class(&bench->completion, wanted);
    if (row->error_class == SLUICE_CLASS_NONE || row->error_class == SLUICE_CLASS_CANCELLED)
        return;
    /* The failure is the first error of its peer, which has failed. */
    struct sluice_error error = peer_error(bench->star.hub, 0);
    require(error.error_class == wanted, "%s on %s: %s, %s", what, where,
            sluice_error_class_name(error.error_class), error.text);
    /* An error of memory does not depend on the port. */
    if (error.status == SLUICE_STATUS_LOC_PROT_ERR)
        require(strstr(error.text, "SGEs lie in memory") && strstr(error.text, "LOCAL_WRITE") &&
                    !strstr(error.text, "port"),
                "%s", error.text);
    require(!device_is_soft() || wanted != SLUICE_CLASS_LOCAL ||
                error.status == SLUICE_STATUS_LOC_PROT_ERR,
            "%s", error.text);
    require_result(sluice_multichannel_peer_state(bench->star.hub, 0), SLUICE_STATE_FAILED);
}

TEST(each_class_is_produced, .times = (int)COUNT(rows))
{
    const struct row *row = &rows[_i];
    const struct cell *cell = &row->cells[column_here()];
    struct bench bench = {0};
    require(row->error_class == (enum sluice_error_class)_i, "row %d", _i);
    require((cell->cause != NULL) != (cell->none != NULL), "a cause, or a reason");
    /* A sanitizer's allocator ends the program when memory is exhausted. */
    if (cell->cause == NULL || (SANITIZED && cell->cause == no_queue_pair))
        return;
    bench_open(&bench);
    require_cell(row, cell, &bench, cell->cause(&bench));
    bench_close(&bench);
}

int main(void)
{
    return run_tests("classes", 20);
}
