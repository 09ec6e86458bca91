/* SPDX-License-Identifier: MIT */
/*
 * One request more than a queue is deep: a blocking call and a scope wait for room, a posted
 * post fails, and each request completes once; the full queue of one peer does not affect the
 * others.
 */
#include <pthread.h>

#include "../support/fault.h"

#define DEPTH 8
#define PEERS 3
/* The peer whose queue is full. */
#define FULL 0
#define BYTES 500

static const struct sluice_channel_attr shallow = {
    .size = sizeof(shallow), .send_depth = DEPTH, .receive_depth = DEPTH, .read_depth = 2};

/* The other side of the full queue, which comes late, in a thread of its own. */
struct late {
    struct star *star;
    pthread_t thread;
    int64_t delay;
    uint32_t opcode; /* what it does */
    uint32_t count;
    struct memory memory;
    uint32_t done;
};

static void *come_late(void *argument)
{
    struct late *late = argument;
    let_pass(late->delay);
    for (; late->done < late->count; late->done++) {
        uint8_t *bytes = late->memory.bytes + (size_t)late->done * BYTES;
        struct sluice_sge sge = memory_sge(&late->memory, (size_t)late->done * BYTES, BYTES);
        struct sluice_channel *spoke = late->star->spokes[FULL];
        if (late->opcode == SLUICE_OP_SEND) {
            pattern_fill(bytes, BYTES, 100 + late->done);
            require_ok(sluice_channel_send(spoke, &sge, 1, DEADLINE));
        } else {
            require_ok(sluice_channel_receive(spoke, &sge, 1, DEADLINE, NULL));
            pattern_check(bytes, BYTES, late->done);
        }
    }
    return NULL;
}

static void start_late(struct late *late, struct star *star, uint32_t opcode, uint32_t count)
{
    *late = (struct late){.star = star, .delay = SLUICE_MS(30), .opcode = opcode, .count = count};
    memory_open(&late->memory, star->sides.pds[1], (size_t)count * BYTES);
    pthread_create(&late->thread, NULL, come_late, late);
}

static void join_late(struct late *late)
{
    pthread_join(late->thread, NULL);
    require(late->done == late->count, "%u of %u", late->done, late->count);
    memory_close(&late->memory);
}

/* Requests to the peer, one more than fit and one to spare. */
struct list {
    struct star star;
    struct memory memory;
    struct sluice_sge sges[DEPTH + 2];
    struct sluice_request requests[DEPTH + 2];
    struct sluice_completion completions[DEPTH + 2];
    struct sluice_handle handles[DEPTH + 2];
    struct tally tally;
};

static void list_open(struct list *list, uint32_t opcode)
{
    star_open(&list->star, PEERS, &shallow);
    memory_open(&list->memory, list->star.sides.pds[0], COUNT(list->requests) * (size_t)BYTES);
    for (uint32_t i = 0; i < COUNT(list->requests); i++) {
        list->sges[i] = memory_sge(&list->memory, (size_t)i * BYTES, BYTES);
        list->requests[i] = request_of(opcode, FULL, &list->sges[i]);
        list->requests[i].user_data = 40 + i;
        if (opcode == SLUICE_OP_SEND) {
            pattern_fill(list->memory.bytes + (size_t)i * BYTES, BYTES, i);
        }
    }
    tally_open(&list->tally, 40, COUNT(list->requests));
}

static void list_close(struct list *list)
{
    struct sluice_completion completion;
    require_result(sluice_multichannel_poll(list->star.hub, &completion, 1), 0);
    memory_close(&list->memory);
    star_close(&list->star);
}

/*
 * Requires that the first count requests of the list completed, once each, and with the right data.
 */
static void check_list(struct list *list, uint32_t count)
{
    require(list->tally.done == count, "%u of %u", list->tally.done, count);
    for (uint32_t i = 0; i < count; i++) {
        require(list->tally.ends[i] == 1, "request %u: %u", i, list->tally.ends[i]);
        pattern_check(list->memory.bytes + (size_t)i * BYTES, BYTES,
                      list->requests[i].opcode == SLUICE_OP_SEND ? i : 100 + i);
    }
}

static void count_results(struct list *list, uint32_t from, uint32_t count)
{
    for (uint32_t i = from; i < from + count; i++) {
        require_class(&list->completions[i], SLUICE_CLASS_NONE);
        tally_count(&list->tally, &list->completions[i]);
    }
}

/* The other side of an opcode. */
static uint32_t counterpart(uint32_t opcode)
{
    return opcode == SLUICE_OP_SEND ? SLUICE_OP_RECEIVE : SLUICE_OP_SEND;
}

static const uint32_t kinds[] = {SLUICE_OP_SEND, SLUICE_OP_RECEIVE};

/* A list that is longer than the queue. */
TEST(blocking_list_waits_for_room)
{
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        struct list list;
        struct late late;
        list_open(&list, kinds[kind]);
        start_late(&late, &list.star, counterpart(kinds[kind]), DEPTH + 1);
        require_ok(sluice_multichannel_submit(list.star.hub, list.requests, DEPTH + 1, DEADLINE,
                                              list.completions));
        join_late(&late);
        count_results(&list, 0, DEPTH + 1);
        check_list(&list, DEPTH + 1);
        star_pass(&list.star, 1);
        list_close(&list);
    }
}

/* The queue is full of posted requests: a blocking call takes the next place. */
TEST(blocking_call_waits_for_room)
{
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        struct list list;
        struct late late;
        struct sluice_completion completion = {0};
        list_open(&list, kinds[kind]);
        require_result(
            sluice_multichannel_post(list.star.hub, list.requests, DEPTH, DEADLINE, list.handles),
            DEPTH);
        star_works(&list.star, 1);
        start_late(&late, &list.star, counterpart(kinds[kind]), DEPTH + 1);
        if (kinds[kind] == SLUICE_OP_SEND) {
            require_ok(
                sluice_multichannel_send(list.star.hub, FULL, &list.sges[DEPTH], 1, DEADLINE));
        } else {
            require_ok(sluice_multichannel_receive(list.star.hub, FULL, &list.sges[DEPTH], 1,
                                                   DEADLINE, &completion));
        }
        join_late(&late);
        completion.user_data = 40 + DEPTH;
        tally_count(&list.tally, &completion);
        tally_multichannel(&list.tally, list.star.hub, DEPTH + 1, DEADLINE);
        check_list(&list, DEPTH + 1);
        star_pass(&list.star, 2);
        list_close(&list);
    }
}

/* A request that finds no room in time fails alone; requests in the queue stay there. */
TEST(blocking_call_that_finds_no_room_fails_alone)
{
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        struct list list;
        struct late late;
        list_open(&list, kinds[kind]);
        require_result(
            sluice_multichannel_post(list.star.hub, list.requests, DEPTH, DEADLINE, list.handles),
            DEPTH);
        require_result(sluice_multichannel_submit(list.star.hub, &list.requests[DEPTH], 2,
                                                  SLUICE_MS(30), &list.completions[DEPTH]),
                       -ETIMEDOUT);
        for (uint32_t i = DEPTH; i < DEPTH + 2; i++) {
            const struct sluice_completion *late_one = &list.completions[i];
            /* The peer had no error of its own, so the cause is that of the request. */
            require(late_one->error == -ETIMEDOUT && late_one->cause == SLUICE_STATUS_DEADLINE,
                    "%d, cause %u", late_one->error, late_one->cause);
            require(late_one->error_class == SLUICE_CLASS_TIMEOUT && late_one->user_data == 40 + i,
                    "class %u, user data %llu", late_one->error_class,
                    (unsigned long long)late_one->user_data);
        }
        require_result(sluice_multichannel_peer_state(list.star.hub, FULL), SLUICE_STATE_READY);
        start_late(&late, &list.star, counterpart(kinds[kind]), DEPTH);
        tally_multichannel(&list.tally, list.star.hub, DEPTH, DEADLINE);
        join_late(&late);
        check_list(&list, DEPTH);
        list_close(&list);
    }
}

/* In a scope: one by one, and all at once. */
static void fill_scope(struct list *list, uint32_t at_once)
{
    struct sluice_scope_report report = {.size = sizeof(report)};
    struct late late;
    struct sluice_scope *scope = made(sluice_multichannel_scope_begin(list->star.hub, DEADLINE));
    start_late(&late, &list->star, counterpart(list->requests[0].opcode), DEPTH + 1);
    for (uint32_t i = 0; i < DEPTH + 1; i += at_once) {
        require_result(sluice_scope_post(scope, &list->requests[i], at_once, &list->handles[i]),
                       at_once);
    }
    for (uint32_t i = 0; i < DEPTH + 1; i++) {
        require_ok(sluice_scope_wait(scope, &list->handles[i], DEADLINE, &list->completions[i]));
    }
    require_ok(sluice_scope_end(scope, &report));
    require(report.posted == DEPTH + 1 && report.failed == 0 && report.unseen == 0,
            "%u posted, %u failed, %u unseen", report.posted, report.failed, report.unseen);
    join_late(&late);
    count_results(list, 0, DEPTH + 1);
    check_list(list, DEPTH + 1);
}

TEST(scope_waits_for_room)
{
    static const uint32_t pieces[] = {1, DEPTH + 1};
    for (size_t i = 0; i < COUNT(kinds) * COUNT(pieces); i++) {
        struct list list;
        list_open(&list, kinds[i % COUNT(kinds)]);
        fill_scope(&list, pieces[i / COUNT(kinds)]);
        star_pass(&list.star, 1);
        list_close(&list);
    }
}

/* Posted: as many as fit are posted, and none of the rest until there is room again. */
TEST(posted_post_to_a_full_queue_fails)
{
    for (size_t kind = 0; kind < COUNT(kinds); kind++) {
        struct list list;
        struct late late;
        struct sluice_completion completion;
        list_open(&list, kinds[kind]);
        memset(list.handles, 0xcc, sizeof(list.handles));
        require_result(sluice_multichannel_post(list.star.hub, list.requests, DEPTH + 1, DEADLINE,
                                                list.handles),
                       DEPTH);
        value_check(&list.handles[DEPTH], sizeof(list.handles[0]), 0xcc);
        for (int i = 0; i < 3; i++) {
            require_result(sluice_multichannel_post(list.star.hub, &list.requests[DEPTH], 1,
                                                    DEADLINE, &list.handles[DEPTH]),
                           -EAGAIN);
            star_works(&list.star, 1);
        }
        value_check(&list.handles[DEPTH], sizeof(list.handles[0]), 0xcc);
        require_result(sluice_multichannel_poll(list.star.hub, &completion, 1), 0);
        star_pass(&list.star, 2);
        start_late(&late, &list.star, counterpart(kinds[kind]), DEPTH + 1);
        tally_multichannel(&list.tally, list.star.hub, 1, DEADLINE);
        require_result(sluice_multichannel_post(list.star.hub, &list.requests[DEPTH], 1, DEADLINE,
                                                &list.handles[DEPTH]),
                       1);
        tally_multichannel(&list.tally, list.star.hub, DEPTH + 1, DEADLINE);
        join_late(&late);
        check_list(&list, DEPTH + 1);
        list_close(&list);
    }
}

/* One-sided requests need no answer of the peer's program, so they make room by themselves. */
TEST(one_sided_work_drains_by_itself)
{
    struct list list;
    struct memory far;
    list_open(&list, SLUICE_OP_WRITE);
    memory_open(&far, list.star.sides.pds[1], list.memory.length);
    pattern_fill(list.memory.bytes, list.memory.length, 7);
    for (uint32_t i = 0; i < COUNT(list.requests); i++) {
        list.requests[i].remote = memory_remote(&far, (size_t)i * BYTES, BYTES);
    }
    for (uint32_t posted = 0; posted < COUNT(list.requests);) {
        int got = sluice_multichannel_post(list.star.hub, &list.requests[posted],
                                           COUNT(list.requests) - posted, DEADLINE, NULL);
        require(got > 0 || got == -EAGAIN, "%d: %s", got, sluice_last_error());
        posted += got > 0 ? (uint32_t)got : 0;
    }
    tally_close_multichannel(&list.tally, list.star.hub);
    pattern_check(far.bytes, far.length, 7);
    memory_close(&far);
    list_close(&list);
}

/* Again and again, on the same objects and on new ones, nothing is left behind. */
TEST(full_queues_leave_nothing)
{
    struct census census = {0};
    for (int i = 0; i < 6; i++) {
        struct list list;
        list_open(&list, SLUICE_OP_SEND);
        fill_scope(&list, 1);
        list_close(&list);
        if (i == 1) {
            let_pass(SLUICE_MS(50));
            census = census_take();
        }
    }
    census_check(&census);
}

int main(void)
{
    return run_tests("fault_depth", 40);
}
