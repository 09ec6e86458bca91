/* SPDX-License-Identifier: MIT */
/*
 * An event loop with epoll(7): a station receives from three sensors, each a
 * process with a channel of its own, and prints a report on a timer. The loop
 * does not poll while nothing happens: it sleeps until a channel has something
 * to do, a deadline is due, or the timer fires.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <sluice.h>

#include "workers.h"

#define SENSORS 3u
#define READINGS 20u
#define SIZE 64     /* bytes of a message */
#define RECEIVES 4u /* posted for each sensor */
#define BATCH 4     /* results of a poll */
#define TURN 64     /* results of a channel in a row */

/* A sensor that is silent for this long is lost. */
#define SILENCE SLUICE_S(10)

/* A sensor, in the station. */
struct sensor {
    uint32_t rank;
    struct sluice_channel *channel;
    struct sluice_request receives[RECEIVES]; /* user_data: the index in this array */
    int64_t due; /* when the library must be called if there is no event before */
    uint32_t heard;
};

static int64_t now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return SLUICE_S(time.tv_sec) + time.tv_nsec;
}

/* Connects; both sides send their endpoint over the socket and receive the other's. */
static struct sluice_channel *connect_to_peer(struct sluice_pd *pd, int socket)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(pd, NULL);
    struct sluice_endpoint ours, theirs;

    if (prepared == NULL || sluice_prepared_channel_endpoint(prepared, &ours) != 0 ||
        give(socket, &ours, sizeof(ours)) != 0 || take(socket, &theirs, sizeof(theirs)) != 0) {
        sluice_prepared_channel_free(prepared);
        return NULL;
    }
    return sluice_prepared_channel_handshake(prepared, &theirs);
}

static int post_receive(struct sensor *sensor, const struct sluice_request *receive)
{
    return sluice_channel_post(sensor->channel, receive, 1, SILENCE, NULL) == 1
               ? 0
               : complain("station", "post a receive");
}

static int hear(struct sensor *sensor, const struct sluice_completion *completion)
{
    const struct sluice_request *receive = &sensor->receives[completion->user_data];
    struct sluice_error first = {.size = sizeof(first)};

    if (completion->error != 0) {
        sluice_channel_error(sensor->channel, &first);
        fprintf(stderr, "07-event-loop: sensor %u: %s\n", sensor->rank, first.text);
        return -1;
    }
    if (++sensor->heard == 1)
        printf("sensor %u: %.*s\n", sensor->rank, (int)completion->bytes,
               (const char *)(uintptr_t)receive->sge.addr);
    return post_receive(sensor, receive);
}

/*
 * Takes results, at most TURN of them, so that a busy channel does not keep the
 * loop from the others and the timer; arms the channel if there were no more.
 * Afterwards the loop may sleep on the fd, until due at the latest. A poll takes
 * many results at once, because each call has a cost.
 */
static int serve(struct sensor *sensor)
{
    struct sluice_completion completions[BATCH];
    int64_t due = 0;
    int got, taken = 0;

    do {
        got = sluice_channel_poll(sensor->channel, completions, BATCH);
        for (int i = 0; i < got; i++)
            if (hear(sensor, &completions[i]) != 0)
                return -1;
        taken += got;
    } while (got > 0 && taken < TURN);
    if (got < 0)
        return complain("station", "poll");
    /* If something has arrived meanwhile, due is 0, and the loop comes back at once. */
    if (got == 0 && sluice_channel_arm(sensor->channel, &due) < 0)
        return complain("station", "arm");
    sensor->due = due == SLUICE_FOREVER ? SLUICE_FOREVER : now() + due;
    return 0;
}

/* Returns the milliseconds until a channel must be served anyway, for epoll_wait(2). */
static int time_to_sleep(const struct sensor *sensors)
{
    int64_t due = SLUICE_FOREVER;

    for (uint32_t i = 0; i < SENSORS; i++)
        if (sensors[i].due < due)
            due = sensors[i].due;
    if (due == SLUICE_FOREVER)
        return -1;
    due -= now();
    if (due <= 0)
        return 0;
    return due < SLUICE_S(1000) ? (int)((due + 999999) / 1000000) : INT_MAX;
}

static uint32_t report(const struct sensor *sensors, const char *when)
{
    uint32_t heard = 0;

    printf("%s:", when);
    for (uint32_t i = 0; i < SENSORS; i++) {
        printf(" %u", sensors[i].heard);
        heard += sensors[i].heard;
    }
    printf(" readings\n");
    return heard;
}

/* Adds a descriptor to the epoll set. The data of its events: the sensor, or NULL for the timer. */
static int watch(int epoll, int fd, struct sensor *sensor)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = sensor};

    if (fd >= 0 && epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0)
        return 0;
    perror("07-event-loop: epoll_ctl");
    return -1;
}

static int serve_event(const struct epoll_event *event, int timer, const struct sensor *sensors)
{
    uint64_t ticks;

    if (event->data.ptr != NULL)
        return serve(event->data.ptr);
    if (read(timer, &ticks, sizeof(ticks)) == (ssize_t)sizeof(ticks))
        report(sensors, "so far");
    return 0;
}

static int loop(int epoll, int timer, struct sensor *sensors)
{
    struct epoll_event events[SENSORS + 1];
    uint32_t heard;

    do {
        int count = epoll_wait(epoll, events, SENSORS + 1, time_to_sleep(sensors));

        for (int i = 0; i < count; i++)
            if (serve_event(&events[i], timer, sensors) != 0)
                return -1;
        heard = 0;
        for (uint32_t i = 0; i < SENSORS; i++) {
            if (sensors[i].due <= now() && serve(&sensors[i]) != 0)
                return -1;
            heard += sensors[i].heard;
        }
    } while (heard < SENSORS * READINGS);
    return report(sensors, "all") == heard ? 0 : -1;
}

/* Connects to a sensor, which may send once it has received our byte. */
static int welcome(struct sluice_pd *pd, struct sluice_mr *mr, int socket, struct sensor *sensor)
{
    sensor->channel = connect_to_peer(pd, socket);
    if (sensor->channel == NULL)
        return complain("station", "connect");
    for (uint32_t n = 0; n < RECEIVES; n++) {
        size_t place = ((size_t)(sensor->rank - 1) * RECEIVES + n) * SIZE;
        struct sluice_request *receive = &sensor->receives[n];

        *receive =
            (struct sluice_request){.opcode = SLUICE_OP_RECEIVE, .sge_count = 1, .user_data = n};
        if (sluice_mr_sge(mr, place, SIZE, &receive->sge) != 0)
            return complain("station", "name the memory");
        if (post_receive(sensor, receive) != 0)
            return -1;
    }
    return give(socket, "", 1);
}

static int run_station(struct sluice_pd *pd, struct sluice_mr *mr, const struct workers *workers)
{
    const struct itimerspec period = {{0, 50000000}, {0, 50000000}};
    struct sensor sensors[SENSORS] = {{0}};
    int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    int result = watch(epoll, timer, NULL);

    for (uint32_t i = 0; i < SENSORS && result == 0; i++) {
        sensors[i].rank = i + 1;
        result = welcome(pd, mr, workers->sockets[i + 1], &sensors[i]);
        if (result == 0)
            result = watch(epoll, sluice_channel_fd(sensors[i].channel), &sensors[i]);
        /* Take what arrived before the fd was watched. */
        if (result == 0)
            result = serve(&sensors[i]);
    }
    timerfd_settime(timer, 0, &period, NULL);
    if (result == 0)
        result = loop(epoll, timer, sensors);
    for (uint32_t i = 0; i < SENSORS; i++)
        sluice_channel_close(sensors[i].channel);
    close(epoll);
    close(timer);
    return result;
}

/* Sends the readings of a sensor, with pauses. */
static int send_readings(struct sluice_channel *channel, struct sluice_mr *mr)
{
    srand((unsigned)getpid());
    for (uint32_t i = 0; i < READINGS; i++) {
        const struct timespec pause = {0, 1000000L * (rand() % 10)};
        int length = snprintf(sluice_mr_addr(mr), SIZE, "it is %d degrees", rand() % 40);
        struct sluice_sge sge;

        nanosleep(&pause, NULL);
        if (sluice_mr_sge(mr, 0, (size_t)length, &sge) != 0 ||
            sluice_channel_send(channel, &sge, 1, SILENCE) != 0)
            return complain("sensor", "send");
    }
    return 0;
}

/* Each process has a device, a domain and memory of its own. */
static int run_sensor(int socket)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);
    struct sluice_pd *pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    struct sluice_mr *mr = pd != NULL ? sluice_mr_alloc(pd, SIZE, SLUICE_ACCESS_LOCAL_WRITE) : NULL;
    struct sluice_channel *channel = mr != NULL ? connect_to_peer(pd, socket) : NULL;
    char byte;
    int result;

    if (channel == NULL || take(socket, &byte, 1) != 0)
        result = complain("sensor", "connect");
    else
        result = send_readings(channel, mr);
    /* Closing first would break the channel for rank 0, so wait for its byte. */
    if (result == 0)
        result = take(socket, &byte, 1);
    sluice_channel_close(channel);
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return result;
}

int main(void)
{
    struct workers workers = {0};
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    int result;

    /* Start the processes first: open objects do not survive a fork. */
    if (workers_start(&workers, SENSORS + 1, run_sensor) != 0)
        return workers_end(&workers, -1) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
    context = sluice_context_open(NULL, NULL);
    pd = context != NULL ? sluice_pd_alloc(context) : NULL;
    mr = pd != NULL
             ? sluice_mr_alloc(pd, (size_t)SENSORS * RECEIVES * SIZE, SLUICE_ACCESS_LOCAL_WRITE)
             : NULL;
    result = mr != NULL ? run_station(pd, mr, &workers) : complain("station", "set up");
    sluice_mr_deregister(mr);
    sluice_pd_free(pd);
    sluice_context_close(context);
    return workers_end(&workers, result) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
