/* SPDX-License-Identifier: MIT */
/*
 * Every exit from the verbs transport: whichever call to libibverbs, allocation or descriptor
 * fails, the failure is reported, nothing is left behind, and the next attempt works.
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/process.h"
#include "check.h"

/*
 * The linker redirects the library's calls to these. Those of this file and of the device count as
 * well.
 */
static uint32_t fail_system;
static const char *system_failed;

void *__real_calloc(size_t count, size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__real_realloc(void *memory, size_t size);
void *__wrap_realloc(void *memory, size_t size);
void *__real_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset);
int __real_eventfd(unsigned int value, int flags);
int __wrap_eventfd(unsigned int value, int flags);
int __real_epoll_create1(int flags);
int __wrap_epoll_create1(int flags);
int __real_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event);

static bool system_fails(const char *call, int error)
{
    if (fail_system == 0 || --fail_system > 0) {
        return false;
    }
    system_failed = call;
    errno = error;
    return true;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return system_fails("calloc", ENOMEM) ? NULL : __real_calloc(count, size);
}

void *__wrap_realloc(void *memory, size_t size)
{
    return system_fails("realloc", ENOMEM) ? NULL : __real_realloc(memory, size);
}

void *__wrap_mmap(void *addr, size_t length, int protection, int flags, int fd, off_t offset)
{
    return system_fails("mmap", ENOMEM) ? MAP_FAILED
                                        : __real_mmap(addr, length, protection, flags, fd, offset);
}

int __wrap_eventfd(unsigned int value, int flags)
{
    return system_fails("eventfd", EMFILE) ? -1 : __real_eventfd(value, flags);
}

int __wrap_epoll_create1(int flags)
{
    return system_fails("epoll_create1", EMFILE) ? -1 : __real_epoll_create1(flags);
}

int __wrap_epoll_ctl(int epoll, int operation, int fd, struct epoll_event *event)
{
    return system_fails("epoll_ctl", ENOSPC) ? -1 : __real_epoll_ctl(epoll, operation, fd, event);
}

/* How far a life came. */
enum stage {
    IN_LIST,
    IN_OPEN,
    IN_MEMORY,
    IN_CONNECT,
    IN_TRAFFIC,
    IN_RESET,
    IN_MULTICHANNEL,
    IN_PEER_RESET,
    IN_EXCHANGE,
    IN_SHUTDOWN,
    IN_CLOSE
};

static const char *const stage_names[] = {"list",     "open",     "memory",       "connect",
                                          "traffic",  "reset",    "multichannel", "peer reset",
                                          "exchange", "shutdown", "close"};

#define PEERS 4

struct life {
    enum stage stage;
    const char *failed; /* the call that did */
    enum stage failed_in;
    int error;    /* positive errno value of what failed */
    bool shaking; /* the failed call was a handshake */
    char text[400];
    int fd; /* of a dmabuf */
    uint8_t bytes[256];
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mrs[3];
    struct sluice_channel *channels[2];
    struct sluice_prepared_channel *prepared[2];
    struct sluice_multichannel *all;
};

/* A new failure happened in the stage that ends now. */
static void enter(struct life *life, enum stage stage)
{
    if (!life->failed) {
        life->failed = system_failed ? system_failed : fake_verbs_failed();
        life->failed_in = life->stage;
    }
    life->stage = stage;
}

/* Notes a failure; result is that of a call, or -errno of a constructor. */
static bool went_well(struct life *life, int64_t result)
{
    if (result >= 0) {
        return true;
    }
    life->error = (int)-result;
    snprintf(life->text, sizeof(life->text), "%s", sluice_last_error());
    return false;
}

static bool was_made(struct life *life, const void *object)
{
    return went_well(life, object ? 0 : -errno);
}

static bool list_devices(struct life *life)
{
    enter(life, IN_LIST);
    struct sluice_device_list *list = sluice_device_list_get();
    bool made = was_made(life, list);
    sluice_device_list_free(list);
    return made;
}

static bool open_device(struct life *life)
{
    enter(life, IN_OPEN);
    life->context = sluice_context_open("fake0", NULL);
    return was_made(life, life->context);
}

static bool make_memory(struct life *life)
{
    enter(life, IN_MEMORY);
    life->pd = sluice_pd_alloc(life->context);
    if (!was_made(life, life->pd)) {
        return false;
    }
    life->mrs[0] = sluice_mr_register(life->pd, life->bytes, sizeof(life->bytes), ACCESS_ALL);
    if (!was_made(life, life->mrs[0])) {
        return false;
    }
    life->mrs[1] = sluice_mr_alloc(life->pd, 10000, ACCESS_ALL);
    if (!was_made(life, life->mrs[1])) {
        return false;
    }
    life->mrs[2] = sluice_mr_register_dmabuf(life->pd, life->fd, 0, 4096, 0x10000, ACCESS_ALL);
    return was_made(life, life->mrs[2]);
}

/* Connects two prepared channels; a handshake consumes its own, also if it fails. */
static bool connect_prepared(struct life *life)
{
    struct sluice_endpoint endpoints[2];
    for (int i = 0; i < 2; i++) {
        require_ok(sluice_prepared_channel_endpoint(life->prepared[i], &endpoints[i]));
    }
    for (int i = 0; i < 2; i++) {
        struct sluice_prepared_channel *prepared = life->prepared[i];
        life->prepared[i] = NULL;
        life->channels[i] = sluice_prepared_channel_handshake(prepared, &endpoints[!i]);
        if (!was_made(life, life->channels[i])) {
            life->shaking = true;
            return false;
        }
    }
    return true;
}

static bool make_channels(struct life *life)
{
    enter(life, IN_CONNECT);
    for (int i = 0; i < 2; i++) {
        life->prepared[i] = sluice_channel_prepare(life->pd, NULL);
        if (!was_made(life, life->prepared[i])) {
            return false;
        }
    }
    return connect_prepared(life);
}

/* The device is eager: all requests are done when the post returns. */
static bool pass_data(struct life *life)
{
    struct sluice_sge sge, landing;
    struct sluice_remote_mr remote;
    struct sluice_handle handle;
    struct sluice_completion completion;
    enter(life, IN_TRAFFIC);
    require_ok(sluice_mr_sge(life->mrs[0], 0, 100, &sge));
    require_ok(sluice_mr_sge(life->mrs[1], 0, 100, &landing));
    require_ok(sluice_mr_remote(life->mrs[1], &remote));
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, 0, &landing);
    if (!went_well(life, sluice_channel_post(life->channels[1], &receive, 1, DEADLINE, &handle)) ||
        !went_well(life, sluice_channel_send(life->channels[0], &sge, 1, DEADLINE)) ||
        !went_well(life, sluice_channel_wait(life->channels[1], &handle, 0, &completion)) ||
        !went_well(life, completion.error)) {
        return false;
    }
    return went_well(life, sluice_channel_write(life->channels[0], &sge, 1, &remote, DEADLINE)) &&
           went_well(life, sluice_channel_read(life->channels[0], &sge, 1, &remote, DEADLINE));
}

static bool reset_channels(struct life *life)
{
    enter(life, IN_RESET);
    for (int i = 0; i < 2; i++) {
        struct sluice_channel *channel = life->channels[i];
        life->channels[i] = NULL;
        life->prepared[i] = sluice_channel_reset(channel);
        if (!was_made(life, life->prepared[i])) {
            return false;
        }
    }
    return connect_prepared(life);
}

/* A multichannel opens even if a peer has failed, whose error has the reason. */
static bool peers_are_well(struct life *life)
{
    for (uint32_t i = 0; i < PEERS; i++) {
        if (sluice_multichannel_peer_state(life->all, i) != SLUICE_STATE_READY) {
            struct sluice_error error = peer_error(life->all, i);
            life->error = -error.error;
            life->shaking = true;
            snprintf(life->text, sizeof(life->text), "%s", error.text);
            return false;
        }
    }
    return true;
}

static bool make_multichannel(struct life *life)
{
    enter(life, IN_MULTICHANNEL);
    life->all = make_loop(life->pd, PEERS, NULL);
    return was_made(life, life->all) && peers_are_well(life);
}

static bool reset_peers(struct life *life)
{
    struct sluice_endpoint endpoints[2];
    enter(life, IN_PEER_RESET);
    if (!went_well(life, sluice_multichannel_peer_reset(life->all, 2, &endpoints[0])) ||
        !went_well(life, sluice_multichannel_peer_reset(life->all, 3, &endpoints[1]))) {
        return false;
    }
    life->shaking =
        !went_well(life, sluice_multichannel_peer_handshake(life->all, 2, &endpoints[1])) ||
        !went_well(life, sluice_multichannel_peer_handshake(life->all, 3, &endpoints[0]));
    return !life->shaking && peers_are_well(life);
}

/* Each peer sends to its partner. */
static bool exchange(struct life *life)
{
    struct sluice_request sends[PEERS], receives[PEERS];
    struct sluice_sge from[PEERS], to[PEERS];
    struct sluice_completion completions[2 * PEERS];
    enter(life, IN_EXCHANGE);
    for (uint32_t i = 0; i < PEERS; i++) {
        require_ok(sluice_mr_sge(life->mrs[0], 10 * i, 10, &from[i]));
        require_ok(sluice_mr_sge(life->mrs[1], 10 * i, 10, &to[i]));
        sends[i] = request_of(SLUICE_OP_SEND, i, &from[i]);
        receives[i] = request_of(SLUICE_OP_RECEIVE, i, &to[i]);
    }
    return went_well(life, sluice_multichannel_scatter_gather(life->all, sends, PEERS, receives,
                                                              PEERS, SLUICE_MS(200), completions));
}

static bool shut_down(struct life *life)
{
    enter(life, IN_SHUTDOWN);
    return went_well(life, sluice_multichannel_shutdown(life->all, DEADLINE)) &&
           went_well(life, sluice_channel_shutdown(life->channels[0], DEADLINE));
}

static void close_all(struct life *life)
{
    enter(life, IN_CLOSE);
    sluice_multichannel_close(life->all);
    for (int i = 0; i < 2; i++) {
        sluice_prepared_channel_free(life->prepared[i]);
        sluice_channel_close(life->channels[i]);
    }
    for (int i = 0; i < 3; i++) {
        require_ok(sluice_mr_deregister(life->mrs[i]));
    }
    sluice_pd_free(life->pd);
    sluice_context_close(life->context);
}

/* Makes, uses and ends one of each. Returns whether it came to its end. */
static bool live(struct life *life, int fd)
{
    *life = (struct life){.fd = fd};
    errno = 0;
    return list_devices(life) && open_device(life) && make_memory(life) && make_channels(life) &&
           pass_data(life) && reset_channels(life) && make_multichannel(life) &&
           reset_peers(life) && exchange(life) && shut_down(life);
}

enum failing { FAIL_NOTHING, FAIL_CALL, FAIL_SYSTEM };

/*
 * Lists the calls whose failure a life may survive without a report, by stage; all others must be
 * reported. A partition key that cannot be read is not needed. Further: a device that cannot be
 * queried is described as such; a device that cannot be opened while one is chosen can be opened
 * later; the limit of inline data is then 0; and an object ends even if a call at its end
 * fails, also the farewell to its peer.
 */
static bool may_go_unnoticed(enum stage stage, const char *call)
{
    static const char *const unneeded[] = {
        [IN_LIST] =
            "calloc eventfd ibv_get_device_list ibv_open_device ibv_query_device ibv_query_port "
            "ibv_query_gid_table",
        [IN_OPEN] = "calloc eventfd ibv_alloc_pd ibv_create_cq ibv_create_qp ibv_open_device "
                    "ibv_query_device "
                    "ibv_query_port ibv_query_gid_table",
        [IN_CONNECT] = "ibv_reg_mr", /* for hints of receives */
        [IN_RESET] = "realloc ibv_modify_qp ibv_poll_cq ibv_post_send",
        [IN_PEER_RESET] = "realloc ibv_modify_qp ibv_poll_cq ibv_post_send",
        [IN_SHUTDOWN] = "realloc ibv_modify_qp ibv_poll_cq ibv_get_async_event ibv_post_send",
        [IN_CLOSE] = "realloc ibv_post_send",
    };
    return strcmp(call, "ibv_query_pkey") == 0 ||
           (unneeded[stage] && strstr(unneeded[stage], call));
}

#define CALL_ERRNO EXDEV

/* Returns whether a call of that stage has a closed list of errors. */
static bool is_closed(enum stage stage)
{
    return stage == IN_CONNECT || stage == IN_RESET || stage == IN_MULTICHANNEL ||
           stage == IN_PEER_RESET;
}

/* The errno values of sluice_channel_prepare(3), and those that only its handshake has. */
static bool is_listed(int error, bool handshake)
{
    static const int listed[] = {EINVAL,        EOPNOTSUPP, EACCES, ENETDOWN,
                                 EADDRNOTAVAIL, EMFILE,     EIO,    ENOMEM};
    static const int of_handshake[] = {EPROTO, EHOSTUNREACH, ENETUNREACH, ETIMEDOUT};
    bool found = false;
    for (size_t i = 0; i < COUNT(listed); i++) {
        found |= error == listed[i];
    }
    for (size_t i = 0; i < COUNT(of_handshake) && handshake; i++) {
        found |= error == of_handshake[i];
    }
    return found;
}

/* Returns the errno value that must be reported, or 0 if it varies. */
static int errno_of(const struct life *life)
{
    static const char *const others[] = {"calloc",  "realloc",       "mmap",
                                         "eventfd", "epoll_create1", "epoll_ctl"};
    static const int other_errno[] = {ENOMEM, ENOMEM, ENOMEM, EMFILE, EMFILE, ENOMEM};
    static const char passed_on[] =
        "ibv_query_device ibv_alloc_pd ibv_reg_mr ibv_reg_dmabuf_mr ibv_create_comp_channel "
        "ibv_create_cq ibv_create_qp ibv_modify_qp";
    if (life->failed_in == IN_OPEN && strcmp(life->failed, "eventfd") == 0) {
        return 0; /* without /sys/class/infiniband there is no RDMA that could lack descriptors */
    }
    for (size_t i = 0; i < COUNT(others); i++) {
        if (strcmp(life->failed, others[i]) == 0) {
            return other_errno[i];
        }
    }
    if (!strstr(passed_on, life->failed)) {
        return 0;
    }
    return is_closed(life->failed_in) ? EIO : CALL_ERRNO;
}

/* Runs a life with the n-th fallible step failing. Returns false if there is no n-th. */
static bool unwinds(uint32_t n, enum failing what, int fd)
{
    struct life life;
    int fds = count_fds();
    system_failed = NULL;
    fail_system = what == FAIL_SYSTEM ? n : 0;
    fake_verbs_fail(what == FAIL_CALL ? n : 0, FAKE_ALL_BUT_ENDS, CALL_ERRNO);
    bool done = live(&life, fd);
    bool failed = system_failed || fake_verbs_failed();
    close_all(&life);
    const char *where = stage_names[life.failed_in];
    check_nothing_left();
    require(count_fds() == fds, "%d fds, were %d: failure %u, %s in %s", count_fds(), fds, n,
            life.failed, where);
    require(done || failed, "nothing failed, but '%s'", life.text);
    require(done || (life.error > 0 && life.text[0]), "failure %u, %s in %s: %d '%s'", n,
            life.failed, where, life.error, life.text);
    require(done || errno_of(&life) == 0 || life.error == errno_of(&life),
            "failure %u, %s in %s: %s", n, life.failed, where, strerror(life.error));
    require(!done || !failed || may_go_unnoticed(life.failed_in, life.failed),
            "failure %u, %s in %s: ignored", n, life.failed, where);
    /* Failures that were ordered and did not happen are withdrawn. */
    fail_system = 0;
    fake_verbs_fail(0, 0, 0);
    return failed;
}

/*
 * With completion queues for all, and for a channel only. The shortest run with ThreadSanitizer has
 * only the first, because a life has one thread of its own.
 */
static const int cq_limits[] = {32767, 256};

static bool one_limit_is_enough(void)
{
#ifdef __SANITIZE_THREAD__
    return shortest_run();
#else
    return false;
#endif
}

static void walk(enum failing what, int limit)
{
    uint32_t n = 0;
    if (limit != cq_limits[0] && one_limit_is_enough()) {
        return;
    }
    int fd = memfd_create("dmabuf", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, 4096) == 0, "%s", strerror(errno));
    fake_verbs.dmabuf = true;
    fake_verbs.eager = true;
    fake_verbs.hurry = 100;
    fake_verbs.device[0].max_cqe = limit;
    require(!unwinds(0, FAIL_NOTHING, fd), "something failed");
    /* The next life passes the step that failed before; each eighth goes on to its end. */
    while (unwinds(++n, what, fd)) {
        require(n % 8 != 0 || !unwinds(0, FAIL_NOTHING, fd), "something failed");
    }
    require(!unwinds(0, FAIL_NOTHING, fd), "something failed");
    require(n > 50, "only %u calls can fail", n);
    close(fd);
}

TEST(every_call_fails_once, .times = COUNT(cq_limits))
{
    walk(FAIL_CALL, cq_limits[_i]);
}

TEST(every_allocation_fails_once, .times = COUNT(cq_limits))
{
    walk(FAIL_SYSTEM, cq_limits[_i]);
}

/*
 * Errno values that drivers and kernels return, and one that neither does; the first FEW are of
 * different kinds.
 */
#define FEW 4
static const int odd_errors[] = {EXDEV,  EAGAIN, ETIMEDOUT,    4711,        ENOSPC, ENOSYS,
                                 ENFILE, EPERM,  EHOSTUNREACH, ENETUNREACH, EPROTO, E2BIG,
                                 ESTALE, EBUSY,  ENOENT,       EDQUOT};

/*
 * Whatever errno a driver returns, calls with a closed list of errors return one of the list, with
 * the driver's errno in their text.
 */
static void keep_to_the_lists(int error)
{
    bool more = true;
    uint32_t found = 0;
    fake_verbs.eager = true;
    fake_verbs.dmabuf = true;
    int fd = memfd_create("dmabuf", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, 4096) == 0, "%s", strerror(errno));
    for (uint32_t n = 1; more; n++) {
        struct life life = {.fd = fd};
        require(open_device(&life) && make_memory(&life), "%s", life.text);
        fake_verbs_fail(n, FAKE_ALL_BUT_ENDS, error);
        bool done = make_channels(&life) && reset_channels(&life) && make_multichannel(&life) &&
                    reset_peers(&life);
        more = fake_verbs_failed() != NULL;
        const char *failed = more ? fake_verbs_failed() : "nothing";
        require(done || is_listed(life.error, life.shaking), "%s of %s in %s%s: %d, %s", failed,
                strerror(error), stage_names[life.stage], life.shaking ? ", handshake" : "",
                life.error, life.text);
        bool words = strstr(life.text, strerror(error)) != NULL;
        found += words;
        require(done || words || life.error == EIO || life.error == ENETDOWN ||
                    strcmp(failed, "ibv_query_gid_ex") == 0,
                "%s: no word of %s in '%s'", failed, strerror(error), life.text);
        fake_verbs_fail(0, 0, 0);
        close_all(&life);
        check_nothing_left();
    }
    require(found > 10, "the driver's words are in %u texts only", found);
    close(fd);
}

/* Which errno it is makes no difference to a sanitizer: in the shortest run one value is enough. */
static bool one_error_is_enough(void)
{
    return SANITIZED && shortest_run();
}

TEST(closed_lists_are_kept, .times = FEW)
{
    if (_i > 0 && one_error_is_enough()) {
        return;
    }
    keep_to_the_lists(odd_errors[_i]);
}

TEST(closed_lists_are_kept_for_all, .times = COUNT(odd_errors) - FEW, .unless = short_run)
{
    keep_to_the_lists(odd_errors[FEW + _i]);
}

/* A node registers its memory in the same call. */
TEST(closed_list_of_nodes_is_kept, .times = COUNT(odd_errors))
{
    struct sides sides;
    bool more = _i == 0 || !one_error_is_enough();
    for (uint32_t n = 1; more; n++) {
        sides_open(&sides);
        fake_verbs_fail(n, FAKE_ALL_BUT_ENDS, odd_errors[_i]);
        struct sluice_prepared_node *node = sluice_node_prepare(sides.pds[0], 0, 3, NULL);
        int error = errno;
        more = fake_verbs_failed() != NULL;
        require(node || (more && is_listed(error, false)), "%s of %s: %s, %s",
                more ? fake_verbs_failed() : "nothing", strerror(odd_errors[_i]), strerror(error),
                sluice_last_error());
        fake_verbs_fail(0, 0, 0);
        sluice_prepared_node_free(node);
        sides_close(&sides);
        check_nothing_left();
    }
}

/*
 * If the driver fails to destroy an object, the call reports nothing, as the program could not do
 * anything about it. All other objects are destroyed.
 */
TEST(ends_that_fail, .times = 6)
{
    static const enum fake_call calls[] = {
        FAKE_CLOSE_DEVICE, FAKE_DEALLOC_PD,           FAKE_DEREG_MR,
        FAKE_DESTROY_CQ,   FAKE_DESTROY_COMP_CHANNEL, FAKE_DESTROY_QP};
    struct life life;
    int fd = memfd_create("dmabuf", MFD_CLOEXEC);
    require(fd >= 0 && ftruncate(fd, 4096) == 0, "%s", strerror(errno));
    fake_verbs.dmabuf = true;
    fake_verbs.eager = true;
    fake_verbs.tolerate_misuse = true;
    require(live(&life, fd), "%s", life.text);
    fake_verbs_fail(1, FAKE_CALL(calls[_i]), EIO);
    close_all(&life);
    require(fake_verbs_failed(), "it did not fail");
    /* The object stays, and with it those objects that it uses. */
    uint32_t left = fake_verbs_alive();
    require(left >= 1 && left <= 4, "%u objects are left", left);
    close(fd);
}

int main(void)
{
    static const struct tests cases[] = {{"unwinding", WIRE_SELF, 120}};
    setenv("SLUICE_TEST_DEVICE", "fake0", 1);
    return run_groups("verbs", cases, COUNT(cases));
}
