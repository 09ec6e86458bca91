/* SPDX-License-Identifier: MIT */
/* Descriptors: their table, and the counters and timers that are made as one. */
#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "calls.h"

struct counter {
    struct sim_object base;
    uint64_t count;
};

struct timer {
    struct sim_object base;
    struct sim_event event;
    bool expired;
};

int sim_error(int error)
{
    sim_task->error = error;
    return -1;
}

void sim_call(void)
{
    sim_tick(300);
}

int sim_descriptor_make(struct sim_object *object)
{
    struct sim_process *process = sim_task->process;
    int fd = process->descriptor_least > 3 ? process->descriptor_least : 3;
    while (fd < process->descriptor_room && process->descriptors[fd].object != NULL) {
        fd++;
    }
    if (sim_fault_is_due("descriptor") || fd >= process->descriptor_limit) {
        sim_object_drop(object);
        return sim_error(EMFILE);
    }
    if (fd >= process->descriptor_room) {
        process->descriptors =
            sim_grow(process->descriptors, &process->descriptor_room, sizeof *process->descriptors);
    }
    process->descriptors[fd].object = object;
    process->descriptor_least = fd + 1;
    return fd;
}

struct sim_object *sim_descriptor_peek(int fd)
{
    const struct sim_process *process = sim_task->process;
    return fd >= 0 && fd < process->descriptor_room ? process->descriptors[fd].object : NULL;
}

struct sim_object *sim_descriptor(int fd)
{
    struct sim_object *object = sim_descriptor_peek(fd);
    if (object == NULL) {
        sim_error(EBADF);
    }
    return object;
}

void sim_descriptors_close(struct sim_process *process)
{
    for (int i = 0; i < process->descriptor_room; i++) {
        struct sim_object *object = process->descriptors[i].object;
        process->descriptors[i].object = NULL;
        if (object != NULL) {
            sim_object_drop(object);
        }
    }
}

void sim_descriptors_list(const struct sim_process *process)
{
    for (int fd = 0; fd < process->descriptor_room; fd++) {
        if (process->descriptors[fd].object != NULL) {
            sim_trace("rank %u still has descriptor %d, a %s", process->rank, fd,
                      process->descriptors[fd].object->class->name);
        }
    }
}

uint32_t sim_descriptors_open(const struct sim_process *process)
{
    uint32_t count = 0;
    for (int i = 0; i < process->descriptor_room; i++) {
        count += process->descriptors[i].object != NULL;
    }
    return count;
}

SYS(int, close, int fd)
{
    struct sim_object *object;
    sim_call();
    object = sim_descriptor(fd);
    if (object == NULL) {
        return -1;
    }
    sim_task->process->descriptors[fd].object = NULL;
    if (fd < sim_task->process->descriptor_least) {
        sim_task->process->descriptor_least = fd;
    }
    /* The kernel forgets a watch only with the last reference, and so does this. */
    sim_object_drop(object);
    return 0;
}

static int duplicate(struct sim_object *object, int least)
{
    sim_require(least <= 3, "fcntl(F_DUPFD_CLOEXEC) with a least descriptor above 3");
    sim_object_hold(object);
    return sim_descriptor_make(object);
}

SYS(int, fcntl, int fd, int command, ...)
{
    struct sim_object *object = sim_descriptor_peek(fd);
    va_list arguments;
    int argument, result;
    va_start(arguments, command);
    argument = va_arg(arguments, int);
    va_end(arguments);
    sim_call();
    if (fd >= 0 && fd <= 2) {
        return 0; /* the standard streams are open */
    }
    if (object == NULL) {
        return sim_error(EBADF);
    }
    switch (command) {
    case F_DUPFD_CLOEXEC:
        return duplicate(object, argument);
    case F_GETFD:
        return FD_CLOEXEC;
    case F_SETFD:
        return 0;
    case F_GETFL:
        return object->flags;
    case F_SETFL:
        object->flags = argument;
        return 0;
    case F_ADD_SEALS:
    case F_GET_SEALS:
        result = fcntl(object->real, command, argument);
        return result < 0 ? sim_error(errno) : result;
    default:
        sim_fail("fcntl(2) with command %d is not simulated", command);
    }
}

SYS(ssize_t, read, int fd, void *bytes, size_t count)
{
    struct sim_object *object;
    sim_call();
    object = sim_descriptor(fd);
    if (object == NULL) {
        return -1;
    }
    return object->class->read != NULL ? object->class->read(object, bytes, count)
                                       : sim_error(EINVAL);
}

SYS(ssize_t, write, int fd, const void *bytes, size_t count)
{
    struct sim_object *object;
    sim_call();
    if (fd == STDOUT_FILENO || fd == STDERR_FILENO) {
        return write(STDERR_FILENO, bytes, count);
    }
    object = sim_descriptor(fd);
    if (object == NULL) {
        return -1;
    }
    return object->class->write != NULL ? object->class->write(object, bytes, count)
                                        : sim_error(EINVAL);
}

/* eventfd(2) */

static short counter_ready(struct sim_object *object)
{
    return (short)(POLLOUT | (((struct counter *)object)->count > 0 ? POLLIN : 0));
}

static ssize_t counter_read(struct sim_object *object, void *bytes, size_t count)
{
    struct counter *counter = (struct counter *)object;
    sim_require(count >= sizeof counter->count, "a short read of an eventfd");
    if (counter->count == 0) {
        return sim_error(EAGAIN);
    }
    memcpy(bytes, &counter->count, sizeof counter->count);
    counter->count = 0;
    return sizeof counter->count;
}

static ssize_t counter_write(struct sim_object *object, const void *bytes, size_t count)
{
    struct counter *counter = (struct counter *)object;
    uint64_t more;
    sim_require(count == sizeof more, "a short write of an eventfd");
    memcpy(&more, bytes, sizeof more);
    counter->count += more;
    sim_object_changed(object);
    return sizeof more;
}

static const struct sim_class counter_class = {"eventfd", counter_ready, counter_read,
                                               counter_write, NULL};

SYS(int, eventfd, unsigned initial, int flags)
{
    struct counter *counter = sim_alloc(1, sizeof *counter);
    sim_call();
    sim_object_init(&counter->base, &counter_class);
    counter->count = initial;
    return sim_descriptor_make(&counter->base);
}

/* timerfd_create(2) */

static short timer_ready(struct sim_object *object)
{
    return ((struct timer *)object)->expired ? POLLIN : 0;
}

static ssize_t timer_read(struct sim_object *object, void *bytes, size_t count)
{
    struct timer *timer = (struct timer *)object;
    uint64_t one = 1;
    if (!timer->expired) {
        return sim_error(EAGAIN);
    }
    timer->expired = false;
    memcpy(bytes, &one, sizeof one);
    return sizeof one;
}

static void timer_free(struct sim_object *object)
{
    sim_event_clear(&((struct timer *)object)->event);
    free(object);
}

static const struct sim_class timer_class = {"timerfd", timer_ready, timer_read, NULL, timer_free};

static void expire(struct sim_event *event)
{
    struct timer *timer = (struct timer *)((char *)event - offsetof(struct timer, event));
    timer->expired = true;
    sim_object_changed(&timer->base);
}

SYS(int, timerfd_create, int clock, int flags)
{
    struct timer *timer = sim_alloc(1, sizeof *timer);
    sim_call();
    sim_object_init(&timer->base, &timer_class);
    timer->event.happen = expire;
    return sim_descriptor_make(&timer->base);
}

SYS(int, timerfd_settime, int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    struct timer *timer;
    int64_t at = value->it_value.tv_sec * INT64_C(1000000000) + value->it_value.tv_nsec;
    sim_call();
    timer = (struct timer *)sim_descriptor(fd);
    if (timer == NULL) {
        return -1;
    }
    timer->expired = false;
    sim_event_clear(&timer->event);
    if (at != 0) {
        at += (flags & TFD_TIMER_ABSTIME) != 0 ? 0 : sim_task->now;
        sim_event_set(&timer->event, at > sim_task->now ? at : sim_task->now);
    }
    return 0;
}
