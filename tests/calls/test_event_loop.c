/* SPDX-License-Identifier: MIT */
/*
 * Event loops: the fd of a channel or multichannel in poll(2) and epoll(7), and the protocol of
 * arming, checking and sleeping, by which no event is missed.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

static const struct sluice_request receive_nothing = {.opcode = SLUICE_OP_RECEIVE};

/* Returns whether the fd of the channel becomes readable within this many milliseconds. */
static bool is_readable(const struct sluice_channel *channel, int milliseconds)
{
    struct pollfd fd = {.fd = sluice_channel_fd(channel), .events = POLLIN};
    return poll(&fd, 1, milliseconds) == 1;
}

/* Polls until there is nothing left, and arms; repeats that if arming finds something. */
static int settle(struct sluice_channel *channel)
{
    struct sluice_completion completion;
    int64_t due = -1;
    int taken = 0;
    int tries = 0;
    do {
        while (sluice_channel_poll(channel, &completion, 1) == 1) {
            taken++;
        }
        require(tries++ < 1000, "it never comes to rest%s", "");
    } while (sluice_channel_arm(channel, &due) == 1);
    require(due > 0, "%lld", (long long)due);
    return taken;
}

/* Waits for a completion as an event loop does. */
static struct sluice_completion loop_once(struct sluice_channel *channel)
{
    struct sluice_completion completion = {0};
    int64_t due = 0;
    while (sluice_channel_poll(channel, &completion, 1) == 0) {
        int result = sluice_channel_arm(channel, &due);
        require(result == 0 || result == 1, "%s", sluice_last_error());
        if (result == 0) {
            int64_t left = due < DEADLINE ? due : DEADLINE;
            require(is_readable(channel, (int)(left / 1000000) + 1) || due < DEADLINE,
                    "the fd stays quiet%s", "");
        }
    }
    return completion;
}

TEST(fds_are_what_they_should_be)
{
    struct pair pair;
    int64_t due = 0;
    require_error(sluice_channel_fd(NULL), -EINVAL, "channel");
    require_error(sluice_channel_arm(NULL, &due), -EINVAL, "channel");
    require_error(sluice_channel_wake(NULL), -EINVAL, "channel");
    require_error(sluice_multichannel_fd(NULL), -EINVAL, "multichannel");
    require_error(sluice_multichannel_arm(NULL, &due), -EINVAL, "multichannel");
    require_error(sluice_multichannel_wake(NULL), -EINVAL, "multichannel");
    pair_open(&pair, NULL);
    int fd = sluice_channel_fd(pair.channels[0]);
    require(fd >= 0 && fd != sluice_channel_fd(pair.channels[1]), "%d", fd);
    require(fcntl(fd, F_GETFD) == FD_CLOEXEC, "fd %d is inherited by other programs", fd);
    pair_works(&pair);
    require_result(sluice_channel_fd(pair.channels[0]), fd);
    require_result(sluice_channel_arm(pair.channels[0], NULL), 0);
    pair_close(&pair);
}

/*
 * Without a message the fd is not readable; after one it is, once armed, until the message was
 * polled.
 */
TEST_WITH(pair, a_message_makes_the_fd_readable, (NULL))
{
    pair_works(pair);
    struct sluice_channel *channel = pair->channels[0];
    for (uint32_t i = 0; i < 20; i++) {
        post(channel, &receive_nothing);
        require_result(settle(channel), 0);
        require(!is_readable(channel, 1), "round %u", i);
        require_ok(sluice_channel_send_immediate(pair->channels[1], NULL, 0, i, DEADLINE));
        require(is_readable(channel, (int)(DEADLINE / 1000000)), "round %u", i);
        require(loop_once(channel).immediate == i, "round %u", i);
        require_result(settle(channel), 0);
    }
}

/* Calls that only read; each takes completions from the transport. */
static void read_state(const struct sluice_channel *channel)
{
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
}

static void read_info(const struct sluice_channel *channel)
{
    require(channel_info(channel).send_depth > 0, "no depth%s", "");
}

static void read_error(const struct sluice_channel *channel)
{
    struct sluice_error error = {.size = sizeof(error)};
    require_result(sluice_channel_error(channel, &error), 0);
}

static void (*const readers[])(const struct sluice_channel *) = {read_state, read_info, read_error};

/*
 * A channel that was armed stays armed when its state is read, before and after a message comes,
 * and for edge-triggered loops as well.
 */
TEST_WITH(pair, reading_the_state_keeps_the_channel_armed, (NULL), .times = COUNT(readers))
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    struct sluice_channel *channel = pair->channels[0];
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    require_ok(epoll_ctl(epoll, EPOLL_CTL_ADD, sluice_channel_fd(channel), &event));
    for (uint32_t i = 0; i < 20; i++) {
        post(channel, &receive_nothing);
        require_result(settle(channel), 0);
        while (epoll_wait(epoll, &event, 1, 0) > 0) {
        }
        readers[_i](channel);
        readers[_i](channel);
        /* On a device the completion of a hint may make it readable at any time. */
        require(!device_is_soft() || !is_readable(channel, 1), "round %u", i);
        require_ok(sluice_channel_send_immediate(pair->channels[1], NULL, 0, i, DEADLINE));
        if (i % 2 == 0) {
            require_result(epoll_wait(epoll, &event, 1, (int)(DEADLINE / 1000000)), 1);
        }
        readers[_i](channel);
        require(is_readable(channel, (int)(DEADLINE / 1000000)), "round %u", i);
        require_result(epoll_wait(epoll, &event, 1, (int)(DEADLINE / 1000000)), 1);
        require(loop_once(channel).immediate == i, "round %u", i);
    }
    close(epoll);
}

/* A send completes because the peer receives; writes and reads complete without its program. */
TEST_WITH(pair, own_requests_make_the_fd_readable, (NULL))
{
    struct memory memory = side_memory(&pair->sides, 0, 1 << 20);
    struct sluice_sge sge = memory_sge(&memory, 0, memory.length);
    struct memory other = side_memory(&pair->sides, 1, 1 << 20);
    struct sluice_sge into = memory_sge(&other, 0, other.length);
    post_of(pair->channels[0], SLUICE_OP_SEND, &sge);
    require_result(settle(pair->channels[0]), 0);
    post_of(pair->channels[1], SLUICE_OP_RECEIVE, &into);
    struct sluice_completion received = loop_once(pair->channels[1]);
    require(received.bytes == other.length, "%llu", (unsigned long long)received.bytes);
    struct sluice_completion sent = loop_once(pair->channels[0]);
    require_class(&sent, SLUICE_CLASS_NONE);
    struct sluice_request read = request_of(SLUICE_OP_READ, 0, &sge);
    read.remote = memory_remote(&other, 0, other.length);
    post(pair->channels[0], &read);
    struct sluice_completion completion = loop_once(pair->channels[0]);
    require_class(&completion, SLUICE_CLASS_NONE);
}

/* Another call has taken the completion from the device already, so no fd would become readable. */
TEST_WITH(pair, unread_result_forbids_to_sleep, (NULL))
{
    int64_t due = 7;
    struct sluice_channel *channel = pair->channels[0];
    struct sluice_handle handle = post(channel, &receive_nothing);
    post(channel, &receive_nothing);
    require_ok(sluice_channel_send(pair->channels[1], NULL, 0, DEADLINE));
    require_ok(sluice_channel_send(pair->channels[1], NULL, 0, DEADLINE));
    /* The wait for the first may take the second as well. */
    await(channel, handle, SLUICE_CLASS_NONE);
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    require_result(sluice_channel_arm(channel, &due), 1);
    require(due == 0, "%lld", (long long)due);
    require_result(sluice_channel_arm(channel, NULL), 1);
    require_result(settle(channel), 1);
}

static void post_two(const struct star *star, uint32_t peer)
{
    struct sluice_request receive = request_of(SLUICE_OP_RECEIVE, peer, NULL);
    for (int i = 0; i < 2; i++) {
        require_result(sluice_multichannel_post(star->hub, &receive, 1, DEADLINE, NULL), 1);
    }
}

/* A spilled failure must be reported before the program sleeps as well. */
TEST_WITH(star, an_old_failure_forbids_to_sleep, (2, ATTR(.receive_depth = 2)))
{
    struct sluice_completion completion;
    post_two(star, 0);
    star_break(star, 0);
    star_reset(star, 0);
    /* There are four slots: these requests take those of the failures. */
    post_two(star, 0);
    post_two(star, 1);
    for (int left = 2; left > 0; left--) {
        require_result(sluice_multichannel_arm(star->hub, NULL), 1);
        require_result(sluice_multichannel_poll(star->hub, &completion, 1), 1);
        require(completion.peer == 0 && completion.error != 0, "%d", completion.error);
    }
    do {
        require_result(sluice_multichannel_poll(star->hub, &completion, 1), 0);
    } while (sluice_multichannel_arm(star->hub, NULL) == 1);
}

/* A deadline takes effect only in a call of the library: arm returns its time. */
TEST_WITH(pair, arm_returns_the_next_deadline, (NULL))
{
    int64_t due = 0;
    struct sluice_channel *channel = pair->channels[0];
    pair_works(pair);
    require_result(settle(pair->channels[1]), 0);
    require_result(settle(channel), 0);
    require_result(sluice_channel_arm(channel, &due), 0);
    require(due == SLUICE_FOREVER, "%lld", (long long)due);
    require_result(sluice_channel_post(channel, &receive_nothing, 1, SLUICE_FOREVER, NULL), 1);
    require_result(sluice_channel_post(channel, &receive_nothing, 1, SLUICE_MS(300), NULL), 1);
    require_result(sluice_channel_arm(channel, &due), 0);
    require(due > 0 && due <= SLUICE_MS(300), "%lld", (long long)due);
    int64_t used = cpu_used();
    require(!is_readable(channel, (int)(due / 1000000) + 1), "it came by itself%s", "");
    used = cpu_used() - used;
    require(used < (SANITIZED ? SLUICE_MS(60) : SLUICE_MS(20)), "%lld ns", (long long)used);
    require_result(sluice_channel_arm(channel, &due), 1);
    require(due == 0, "%lld", (long long)due);
    for (int i = 0; i < 2; i++) {
        struct sluice_completion completion = loop_once(channel);
        require(completion.error != 0, "receive %d succeeded", i);
    }
    require_result(settle(channel), 0);
}

TEST_WITH(pair, a_wake_makes_the_fd_readable_until_the_next_poll, (NULL))
{
    struct sluice_channel *channel = pair->channels[0];
    pair_works(pair);
    require_result(settle(pair->channels[1]), 0);
    post(channel, &receive_nothing);
    for (int i = 0; i < 20; i++) {
        require_result(settle(channel), 0);
        require(!is_readable(channel, 1), "round %d", i);
        require_ok(sluice_channel_wake(channel));
        require(is_readable(channel, 0), "round %d", i);
        require_result(sluice_channel_arm(channel, NULL), 1);
        require_result(settle(channel), 0);
        require_result(settle(pair->channels[1]), 0);
        require(!is_readable(pair->channels[1], 0), "the other one was woken%s", "");
    }
    /* A blocking call may consume the event that makes the fd readable, but not the wake. */
    require_ok(sluice_channel_wake(channel));
    struct sluice_handle handle = post(pair->channels[1], &receive_nothing);
    require_ok(sluice_channel_send(channel, NULL, 0, DEADLINE));
    await(pair->channels[1], handle, SLUICE_CLASS_NONE);
    require_result(sluice_channel_arm(channel, NULL), 1);
    require_result(settle(channel), 0);
}

/* In a scope only results of the scope count. */
TEST_WITH(pair, a_scope_may_be_waited_for_in_a_loop, (NULL))
{
    struct sluice_completion completion;
    struct sluice_channel *channel = pair->channels[0];
    struct sluice_scope *scope = made(sluice_channel_scope_begin(channel, SLUICE_FOREVER));
    require_result(sluice_scope_post(scope, &receive_nothing, 1, NULL), 1);
    do {
        require_result(sluice_scope_poll(scope, &completion, 1), 0);
    } while (sluice_channel_arm(channel, NULL) == 1);
    require_ok(sluice_channel_send(pair->channels[1], NULL, 0, DEADLINE));
    require(is_readable(channel, (int)(DEADLINE / 1000000)), "nothing came%s", "");
    require_result(sluice_channel_arm(channel, NULL), 1);
    /* Another call may have taken the completion from the device: it counts all the same. */
    require_result(sluice_channel_state(channel), SLUICE_STATE_READY);
    require_result(sluice_channel_arm(channel, NULL), 1);
    int seen = 0;
    do {
        seen += sluice_scope_poll(scope, &completion, 1);
    } while (sluice_channel_arm(channel, NULL) == 1);
    require(seen == 1, "%d", seen);
    require_ok(sluice_scope_end(scope, NULL));
}

/* Once its last result was read, a failed channel no longer wakes the event loop. */
TEST_WITH(pair, a_failed_channel_is_quiet, (NULL))
{
    struct sluice_channel *channel = pair->channels[0];
    pair_works(pair);
    post(channel, &receive_nothing);
    sluice_channel_close(pair->channels[1]);
    pair->channels[1] = NULL;
    struct sluice_completion completion = loop_once(channel);
    require_class(&completion, SLUICE_CLASS_PEER_LOST);
    require_result(settle(channel), 0);
    int64_t used = cpu_used();
    require(!is_readable(channel, 300), "the fd of a failed channel is readable%s", "");
    used = cpu_used() - used;
    require(used < (SANITIZED ? SLUICE_MS(60) : SLUICE_MS(20)), "%lld ns", (long long)used);
}

TEST_WITH(star, an_idle_epoll_takes_no_cpu, (4, NULL), .times = 2)
{
    struct epoll_event event = {.events = EPOLLIN | (_i ? EPOLLET : 0)};
    struct sluice_completion completion;
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    require(epoll >= 0, "%s", strerror(errno));
    for (uint32_t i = 0; i < star->peers; i++) {
        star_works(star, i);
        require_ok(epoll_ctl(epoll, EPOLL_CTL_ADD, sluice_channel_fd(star->spokes[i]), &event));
    }
    require_ok(epoll_ctl(epoll, EPOLL_CTL_ADD, sluice_multichannel_fd(star->hub), &event));
    for (uint32_t i = 0; i < star->peers; i++) {
        require_result(settle(star->spokes[i]), 0);
    }
    do {
        require_result(sluice_multichannel_poll(star->hub, &completion, 1), 0);
    } while (sluice_multichannel_arm(star->hub, NULL) == 1);
    /* An event from before the channel was armed does not count. */
    epoll_wait(epoll, &event, 1, 0);
    int64_t used = cpu_used();
    int ready = epoll_wait(epoll, &event, 1, 300);
    /* A process that was stopped goes on with EINTR. */
    require(ready == 0 || (ready < 0 && errno == EINTR), "%d are ready, errno %d", ready, errno);
    used = cpu_used() - used;
    require(used < (SANITIZED ? SLUICE_MS(60) : SLUICE_MS(20)), "%lld ns", (long long)used);
    close(epoll);
}

/*
 * Two processes, connected by several channels and a multichannel. One sends some messages at a
 * time, and goes on when they were answered; the other has all fds in one epoll. A lost wake-up
 * leaves both waiting.
 */
#define CHANNELS 3
#define BURST 4
#define RECEIVES 16

struct joined {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_channel *channels[CHANNELS];
    struct sluice_multichannel *all;
};

static void join(struct joined *joined, struct rank *rank)
{
    struct sluice_prepared_channel *prepared[CHANNELS];
    struct sluice_endpoint mine[2][CHANNELS + 1], theirs[2][CHANNELS + 1];
    memset(mine, 0, sizeof(mine));
    joined->context = open_context();
    joined->pd = made(sluice_pd_alloc(joined->context));
    for (int i = 0; i < CHANNELS; i++) {
        prepared[i] = prepare_channel(joined->pd, NULL, &mine[0][i]);
    }
    struct sluice_prepared_multichannel *made =
        made(sluice_multichannel_prepare(joined->pd, 1, NULL));
    require_ok(sluice_prepared_multichannel_endpoints(made, &mine[0][CHANNELS], 1));
    memcpy(mine[1], mine[0], sizeof(mine[0]));
    rank_exchange(rank, mine, theirs, sizeof(mine[0]));
    for (int i = 0; i < CHANNELS; i++) {
        joined->channels[i] =
            made(sluice_prepared_channel_handshake(prepared[i], &theirs[!rank->index][i]));
    }
    joined->all =
        made(sluice_prepared_multichannel_handshake(made, &theirs[!rank->index][CHANNELS], 1));
}

static void part(struct joined *joined)
{
    for (int i = 0; i < CHANNELS; i++) {
        sluice_channel_close(joined->channels[i]);
    }
    sluice_multichannel_close(joined->all);
    sluice_pd_free(joined->pd);
    sluice_context_close(joined->context);
}

static uint32_t messages(void)
{
    return short_run() ? 1000 : 10000;
}

/* The multichannel is number CHANNELS. */
static void post_to(struct joined *joined, int number, const struct sluice_request *request)
{
    int posted =
        number < CHANNELS
            ? sluice_channel_post(joined->channels[number], request, 1, SLUICE_FOREVER, NULL)
            : sluice_multichannel_post(joined->all, request, 1, SLUICE_FOREVER, NULL);
    require(posted == 1, "%d: %s", posted, sluice_last_error());
}

static int poll_one(struct joined *joined, int number, struct sluice_completion *completion)
{
    int got = number < CHANNELS ? sluice_channel_poll(joined->channels[number], completion, 1)
                                : sluice_multichannel_poll(joined->all, completion, 1);
    require(got == 0 || (got == 1 && completion->error == 0), "%d: %s", got, sluice_last_error());
    return got;
}

static int arm_one(struct joined *joined, int number)
{
    return number < CHANNELS ? sluice_channel_arm(joined->channels[number], NULL)
                             : sluice_multichannel_arm(joined->all, NULL);
}

static int fd_of(const struct joined *joined, int number)
{
    return number < CHANNELS ? sluice_channel_fd(joined->channels[number])
                             : sluice_multichannel_fd(joined->all);
}

/* The meaning of a message, in its immediate. */
enum { MORE, LAST_OF_BURST, LAST_OF_ALL };

static void send_message(struct joined *joined, int number, uint32_t immediate)
{
    const struct sluice_request send = {
        .opcode = SLUICE_OP_SEND, .flags = SLUICE_IMMEDIATE, .immediate = immediate};
    post_to(joined, number, &send);
}

static void send_bursts(struct joined *joined, struct rank *rank)
{
    uint32_t random = 1;
    for (uint32_t sent = 0; sent < messages();) {
        bool asked[CHANNELS + 1] = {false};
        struct sluice_completion completion;
        random = random * 1103515245 + 12345;
        for (int i = 0; i <= CHANNELS; i++) {
            if ((random >> (16 + i) & 1) == 0) {
                continue;
            }
            uint32_t count = (random >> 24 & (BURST - 1)) + 1;
            asked[i] = true;
            post_to(joined, i, &receive_nothing);
            for (uint32_t left = count; left-- > 0; sent++) {
                send_message(joined, i, left == 0 ? LAST_OF_BURST : MORE);
            }
            /* Sends the messages, and waits for the answer. */
            for (uint32_t left = count; left > 0;) {
                left -= (uint32_t)poll_one(joined, i, &completion);
            }
        }
        for (int i = 0; i <= CHANNELS; i++) {
            while (asked[i] && poll_one(joined, i, &completion) == 0) {
                ;
            }
        }
    }
    send_message(joined, 0, LAST_OF_ALL);
    rank_barrier(rank);
}

struct served {
    uint32_t messages, sleeps;
    bool over;
};

/* Takes completions and answers, until the object may be slept on. */
static void serve(struct joined *joined, int number, struct served *served)
{
    static const struct sluice_request answer = {.opcode = SLUICE_OP_SEND};
    struct sluice_completion completion;
    do {
        while (poll_one(joined, number, &completion) == 1) {
            if (completion.opcode != SLUICE_OP_RECEIVE) {
                continue;
            }
            served->messages++;
            served->over |= completion.immediate == LAST_OF_ALL;
            post_to(joined, number, &receive_nothing);
            if (completion.immediate == LAST_OF_BURST) {
                post_to(joined, number, &answer);
            }
        }
    } while (arm_one(joined, number) == 1);
}

static void serve_bursts(struct joined *joined, struct rank *rank, uint32_t edge)
{
    struct epoll_event events[CHANNELS + 1];
    struct served served = {0};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    require(epoll >= 0, "%s", strerror(errno));
    for (int i = 0; i <= CHANNELS; i++) {
        struct epoll_event event = {.events = EPOLLIN | edge, .data.u32 = (uint32_t)i};
        require_ok(epoll_ctl(epoll, EPOLL_CTL_ADD, fd_of(joined, i), &event));
        serve(joined, i, &served);
    }
    while (!served.over) {
        int count = epoll_wait(epoll, events, CHANNELS + 1, (int)(DEADLINE / 1000000));
        if (count < 0 && errno == EINTR) {
            continue; /* the process was stopped, and goes on */
        }
        require(count > 0, "a wake-up was lost after %u messages", served.messages);
        served.sleeps++;
        for (int i = 0; i < count; i++) {
            serve(joined, (int)events[i].data.u32, &served);
        }
    }
    require(served.messages > messages(), "%u messages only", served.messages);
    require(served.sleeps > messages() / 100, "%u sleeps only, which proves nothing",
            served.sleeps);
    close(epoll);
    rank_barrier(rank);
}

static void run_loop(struct rank *rank)
{
    struct joined joined;
    join(&joined, rank);
    for (int i = 0; i <= CHANNELS && rank->index == 1; i++) {
        for (int n = 0; n < RECEIVES; n++) {
            post_to(&joined, i, &receive_nothing);
        }
    }
    rank_barrier(rank);
    if (rank->index == 0) {
        send_bursts(&joined, rank);
    } else {
        serve_bursts(&joined, rank, *(const uint32_t *)rank->argument);
    }
    part(&joined);
}

TEST(no_wakeup_of_another_process_is_lost, .times = 2, .group = "processes")
{
    const uint32_t edge = _i ? EPOLLET : 0;
    group_run(2, run_loop, &edge, 60);
}

int main(void)
{
    const struct tests cases[] = {
        {"self", WIRE_SELF, 60},
        {"tcp", WIRE_TCP, 60},
        {"processes", WIRE_SHM, 120},
    };
    /* The pretend device of check-verbs.sh lives in a single process. */
    return run_groups("event_loop", cases, COUNT(cases) - (getenv("SLUICE_FAKE_VERBS") != NULL));
}
