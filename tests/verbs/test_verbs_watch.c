/* SPDX-License-Identifier: MIT */
/*
 * A thread of the library reads the asynchronous events of a device, also while the program is busy
 * elsewhere, sleeps in its own event loop, or is about to make the object of an event.
 */
#include <dirent.h>
#include <sluice/verbs.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "../support/process.h"
#include "check.h"
#include "ports.h"

/* As many channels as a program has files for, in one set of epoll(7). */
#define LOOP_PAIRS 300
#define LOOP_FILES 4096

struct loop {
    struct sides sides;
    struct pair pairs[LOOP_PAIRS];
    int epoll;
    uint32_t ready; /* channels that became readable since the last call */
    bool is_ready[2 * LOOP_PAIRS];
};

static struct sluice_channel *channel_of(const struct loop *loop, uint32_t i)
{
    return loop->pairs[i / 2].channels[i % 2];
}

static void allow_files(void)
{
    struct rlimit limit;
    require_ok(getrlimit(RLIMIT_NOFILE, &limit));
    require(limit.rlim_max >= LOOP_FILES, "the hard limit of open files is %llu, %d are needed",
            (unsigned long long)limit.rlim_max, LOOP_FILES);
    limit.rlim_cur = limit.rlim_cur > LOOP_FILES ? limit.rlim_cur : LOOP_FILES;
    require_ok(setrlimit(RLIMIT_NOFILE, &limit));
}

static void loop_add(struct loop *loop, uint32_t i)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u32 = i};
    struct sluice_channel *channel = channel_of(loop, i);
    require(epoll_ctl(loop->epoll, EPOLL_CTL_ADD, sluice_channel_fd(channel), &event) == 0,
            "channel %u: %s", i, strerror(errno));
    post_of(channel, SLUICE_OP_RECEIVE, NULL);
    require_result(sluice_channel_arm(channel, NULL), 0);
}

static void loop_open_all(struct loop *loop)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .send_depth = 1, .receive_depth = 1};
    sides_open(&loop->sides);
    loop->epoll = epoll_create1(EPOLL_CLOEXEC);
    require(loop->epoll >= 0, "%s", strerror(errno));
    for (uint32_t i = 0; i < LOOP_PAIRS; i++) {
        loop->pairs[i].sides = loop->sides;
        pair_connect(&loop->pairs[i], &attr);
    }
    for (uint32_t i = 0; i < 2 * LOOP_PAIRS; i++) {
        loop_add(loop, i);
    }
}

/* Waits until this many channels were readable. */
static void loop_look(struct loop *loop, uint32_t wanted)
{
    struct epoll_event events[64];
    int64_t start = fair_now();
    memset(loop->is_ready, 0, sizeof(loop->is_ready));
    loop->ready = 0;
    while (loop->ready < wanted) {
        int count = epoll_wait(loop->epoll, events, COUNT(events), 100);
        for (int i = 0; i < count; i++) {
            loop->ready += !loop->is_ready[events[i].data.u32];
            loop->is_ready[events[i].data.u32] = true;
        }
        require(fair_now() - start < DEADLINE, "%u of %u", loop->ready, wanted);
    }
}

/* An event reaches the affected channels, and wakes no others. */
TEST(many_channels_in_an_event_loop)
{
    static struct loop loop;
    struct sluice_completion completion;
    allow_files();
    loop_open_all(&loop);
    for (uint32_t i = 0; i < 2 * LOOP_PAIRS; i += 2 * LOOP_PAIRS - 1) {
        require(fake_verbs_qp_event(qpn_of(i), IBV_EVENT_QP_FATAL, false), "no queue pair");
        loop_look(&loop, 1);
        require(loop.is_ready[i], "another one than %u", i);
        require_ok(sluice_channel_next(channel_of(&loop, i), DEADLINE, &completion));
        require_class(&completion, SLUICE_CLASS_DEVICE);
        require_result(sluice_channel_arm(channel_of(&loop, i), NULL), 0);
        require(epoll_wait(loop.epoll, &(struct epoll_event){0}, 1, 0) <= 0, "others wake");
    }
    fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
    loop_look(&loop, 2 * LOOP_PAIRS);
    for (uint32_t i = 1; i < 2 * LOOP_PAIRS - 1; i++) {
        require_ok(sluice_channel_next(channel_of(&loop, i), DEADLINE, &completion));
        require(completion.vendor == IBV_EVENT_PORT_ERR, "vendor code %u", completion.vendor);
    }
    for (uint32_t i = 0; i < LOOP_PAIRS; i++) {
        sluice_channel_close(loop.pairs[i].channels[0]);
        sluice_channel_close(loop.pairs[i].channels[1]);
    }
    close(loop.epoll);
    sides_close(&loop.sides);
}

static bool all_are_read(const void *argument)
{
    (void)argument;
    return fake_verbs_unread_events() == 0 && fake_verbs_unacked_events() == 0;
}

/* If the program never polls, events are read all the same, and reported once it does. */
TEST_WITH(pair, program_that_is_busy_elsewhere, (NULL))
{
    fake_verbs_qp_event(qpn_of(0), IBV_EVENT_QP_FATAL, false);
    for (int i = 0; i < 100; i++) {
        fake_verbs_port_event(0, 1, IBV_EVENT_PKEY_CHANGE);
    }
    await_device(all_are_read, NULL, "events that are read");
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
    require_result(sluice_channel_state(pair->channels[1]), SLUICE_STATE_READY);
}

static int count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;
    require(tasks, "%s", strerror(errno));
    for (struct dirent *task = readdir(tasks); task; task = readdir(tasks)) {
        count += task->d_name[0] != '.';
    }
    closedir(tasks);
    return count;
}

/* A joined thread takes some time to vanish. */
static void await_threads(int most)
{
    int64_t start = fair_now();
    while (count_threads() > most) {
        require(fair_now() - start < DEADLINE, "%d threads, at most %d wanted", count_threads(),
                most);
        let_pass(SLUICE_MS(1));
    }
}

/*
 * A context has one thread, from its first channel on; a context that wraps the program's has none.
 * The thread takes no processor time, and is gone with the context.
 */
TEST(one_thread_of_a_context)
{
    struct sides sides;
    struct pair pairs[2];
    sides_open(&sides);
    int without = count_threads(), files = count_fds();
    for (int i = 0; i < 2; i++) {
        pairs[i].sides = sides;
        pair_connect(&pairs[i], NULL);
        pair_works(&pairs[i]);
        require(count_threads() == without + 1, "%d threads, %d before", count_threads(), without);
    }
    struct sluice_context *wrapped =
        made(sluice_verbs_context_wrap(sluice_verbs_context(sides.contexts[0]), NULL));
    struct sluice_pd *pd = sluice_pd_alloc(wrapped);
    struct sluice_endpoint endpoint;
    sluice_prepared_channel_free(prepare_channel(pd, NULL, &endpoint));
    require(count_threads() == without + 1, "%d threads, %d before", count_threads(), without);
    sluice_pd_free(pd);
    sluice_context_close(wrapped);
    int64_t used = cpu_used();
    let_pass(SLUICE_MS(100));
    require(cpu_used() - used < SLUICE_MS(50), "%lld us", (long long)(cpu_used() - used) / 1000);
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(pairs[i].channels[0]);
        sluice_channel_close(pairs[i].channels[1]);
    }
    require(count_fds() == files + 1, "%d files, %d before", count_fds(), files);
    sides_close(&sides);
    await_threads(without);
}

/* A device that has failed stays readable for ever, which must not keep a thread awake. */
TEST_WITH(pair, dead_device_keeps_no_thread_awake, (NULL))
{
    int threads = count_threads();
    fake_verbs_port_event(0, 0, IBV_EVENT_DEVICE_FATAL);
    fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
    await_threads(threads - 1);
    require_result(sluice_channel_state(pair->channels[0]), SLUICE_STATE_FAILED);
    require(fake_verbs_unread_events() == 1, "%u events are unread", fake_verbs_unread_events());
}

/* A change of the port while a queue pair is made, and how many times in a row it happens. */
static void (*change)(uint32_t number);
static uint32_t changes, most_changes;

struct ibv_qp *__real_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);
struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr);

struct ibv_qp *__wrap_ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr)
{
    if (changes < most_changes) {
        change(changes++);
        await_device(all_are_read, NULL, "events that are read");
    }
    return __real_ibv_create_qp(pd, attr);
}

/* A pair exists already, so events are read at once. */
static void begin_changes(struct pair *pair, void (*function)(uint32_t number), uint32_t most)
{
    pair_open(pair, NULL);
    change = function;
    changes = 0;
    most_changes = most;
}

/* Connects another pair, the first end of which is made while the port changes. */
static void connect_again(struct pair *pair, const struct pair *first)
{
    pair->sides = first->sides;
    connect_sides(pair, NULL, NULL);
    require_equal(changes, most_changes);
}

static void close_both(struct pair *first, const struct pair *second)
{
    for (int i = 0; i < 2; i++) {
        sluice_channel_close(second->channels[i]);
    }
    pair_close(first);
}

static void lose_gid(uint32_t number)
{
    (void)number;
    clear_gid(PORT1, 3);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
}

/* The address that was just chosen is removed: the endpoint has the next best one. */
TEST(gid_that_goes_meanwhile)
{
    struct pair first, second;
    begin_changes(&first, lose_gid, 1);
    connect_again(&second, &first);
    require_equal(channel_info(second.channels[0]).gid_index, 1);
    require_result(sluice_channel_state(first.channels[0]), SLUICE_STATE_FAILED);
    close_both(&first, &second);
}

static void change_lid(uint32_t number)
{
    fake_verbs_lock();
    PORT1->lid = (uint16_t)(9 + number);
    fake_verbs_unlock();
    fake_verbs_port_event(0, 1, IBV_EVENT_LID_CHANGE);
}

/* The LID changes twice in a row. */
TEST(lid_that_changes_meanwhile)
{
    struct pair first, second;
    PORT1->link_layer = IBV_LINK_LAYER_INFINIBAND;
    PORT1->lid = 7;
    PORT1->gid[0].type = 1 + IBV_GID_TYPE_IB;
    begin_changes(&first, change_lid, 2);
    connect_again(&second, &first);
    struct sluice_channel_info info = channel_info(second.channels[0]);
    require(strstr(info.address, "LID 10") && strstr(info.remote_address, "LID 10"), "%s, %s",
            info.address, info.remote_address);
    close_both(&first, &second);
}

static void take_port_down(uint32_t number)
{
    (void)number;
    fake_verbs_lock();
    PORT1->state = IBV_PORT_DOWN;
    fake_verbs_unlock();
    fake_verbs_port_event(0, 1, IBV_EVENT_PORT_ERR);
}

TEST(port_that_goes_down_meanwhile)
{
    struct pair pair;
    begin_changes(&pair, take_port_down, 1);
    require_null(sluice_channel_prepare(pair.sides.pds[0], NULL), ENETDOWN, "port 1 fake0 down");
    require_equal(changes, 1);
    pair_close(&pair);
}

/* The reset of a channel uses the address at that time. */
TEST(gid_that_goes_in_a_reset)
{
    struct pair pair;
    begin_changes(&pair, lose_gid, 1);
    pair_reset(&pair);
    pair_works(&pair);
    require_equal(changes, 1, channel_info(pair.channels[0]).gid_index, 1);
    pair_close(&pair);
}

/* A port that changes all the time causes an error, and no endless loop. */
TEST(lid_that_never_stays)
{
    struct pair pair;
    PORT1->link_layer = IBV_LINK_LAYER_INFINIBAND;
    PORT1->lid = 7;
    begin_changes(&pair, change_lid, 1000);
    require_null(sluice_channel_prepare(pair.sides.pds[0], NULL), EADDRNOTAVAIL, "port 1 fake0");
    require(changes > 1 && changes < 1000, "%u", changes);
    most_changes = 0;
    pair_close(&pair);
}

int main(void)
{
    return run_verbs("verbs_watch", WIRE_SELF, 60);
}
