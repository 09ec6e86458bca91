/* SPDX-License-Identifier: MIT */
/* Descriptors: their table, poll(2) and epoll(7), eventfd(2) and timerfd_create(2). */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <ucontext.h>
#include <unistd.h>

#include "calls.h"
#include "random.h"
#include "report.h"
#include "system.h"

/* A task that waits for an object. */
struct sim_waiter {
    struct sim_waiter *next;
    struct sim_task *task;
};

/* An object in the list of an epoll. */
struct sim_watch {
    struct sim_watch *next; /* of the object */
    struct sim_watch *next_of_epoll;
    struct sim_watch *next_ready; /* of the epoll */
    struct epoll *epoll;
    struct sim_object *object;
    int fd;
    struct epoll_event event;
    bool listed;   /* among those that may be ready */
    bool disabled; /* by EPOLLONESHOT */
};

struct epoll {
    struct sim_object base; /* the first field */
    struct sim_watch *watches, *ready, **ready_end;
};

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

static sigjmp_buf fault;
static volatile sig_atomic_t copying;

static void on_fault(int number, siginfo_t *info, void *context)
{
    const ucontext_t *at = context;
    long where = at->uc_mcontext.gregs[REG_RIP];
    if (copying) {
        copying = 0;
        siglongjmp(fault, 1);
    }
    signal(number, SIG_DFL);
    if (sim_task != NULL) {
        where -= (long)(uintptr_t)sim_task->process->image.base;
    }
    sim_fail("signal %d at address %p, by the code at %#lx of the module", number, info->si_addr,
             where);
}

void sim_catch_faults(void)
{
    static char stack[64 * 1024];
    const stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action = {.sa_sigaction = on_fault,
                               .sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK};
    sigaltstack(&alternate, NULL);
    sigaction(SIGSEGV, &action, NULL);
    sigaction(SIGBUS, &action, NULL);
}

bool sim_copy(void *to, const void *from, size_t bytes)
{
    if (sigsetjmp(fault, 0) != 0) {
        return false;
    }
    copying = 1;
    memcpy(to, from, bytes);
    copying = 0;
    return true;
}

void sim_object_init(struct sim_object *object, const struct sim_class *class)
{
    *object = (struct sim_object){.class = class, .references = 1, .real = -1};
}

void sim_object_hold(struct sim_object *object)
{
    object->references++;
}

static void unwatch(struct sim_watch *watch)
{
    struct sim_watch **at = &watch->object->watches;
    struct epoll *epoll = watch->epoll;
    while (*at != watch) {
        at = &(*at)->next;
    }
    *at = watch->next;
    for (at = &epoll->watches; *at != watch;) {
        at = &(*at)->next_of_epoll;
    }
    *at = watch->next_of_epoll;
    if (watch->listed) {
        for (at = &epoll->ready; *at != watch;) {
            at = &(*at)->next_ready;
        }
        *at = watch->next_ready;
        if (epoll->ready_end == &watch->next_ready) {
            epoll->ready_end = at;
        }
    }
    free(watch);
}

void sim_object_drop(struct sim_object *object)
{
    if (--object->references > 0) {
        return;
    }
    while (object->watches != NULL) {
        unwatch(object->watches);
    }
    if (object->real >= 0) {
        close(object->real);
    }
    if (object->class->free != NULL) {
        object->class->free(object);
    } else {
        free(object);
    }
}

void sim_object_changed(struct sim_object *object)
{
    for (struct sim_waiter *at = object->waiters; at != NULL; at = at->next) {
        sim_wake(at->task);
    }
    for (struct sim_watch *at = object->watches; at != NULL; at = at->next) {
        if (!at->listed) {
            at->listed = true;
            at->next_ready = NULL;
            *at->epoll->ready_end = at;
            at->epoll->ready_end = &at->next_ready;
        }
        sim_object_changed(&at->epoll->base);
    }
}

int sim_descriptor_make(struct sim_object *object)
{
    struct sim_process *process = sim_task->process;
    int fd = 3, error = EMFILE;
    while (fd < process->descriptor_room && process->descriptors[fd].object != NULL) {
        fd++;
    }
    if (sim_fault_is_due("descriptor", &error) || fd >= process->descriptor_limit) {
        sim_object_drop(object);
        return sim_error(error);
    }
    if (fd >= process->descriptor_room) {
        int room = 2 * process->descriptor_room + 16;
        process->descriptors =
            realloc(process->descriptors, (size_t)room * sizeof *process->descriptors);
        sim_require(process->descriptors != NULL, "no memory for descriptors");
        memset(process->descriptors + process->descriptor_room, 0,
               (size_t)(room - process->descriptor_room) * sizeof *process->descriptors);
        process->descriptor_room = room;
    }
    process->descriptors[fd].object = object;
    return fd;
}

static struct sim_object *peek(int fd)
{
    const struct sim_process *process = sim_task->process;
    return fd >= 0 && fd < process->descriptor_room ? process->descriptors[fd].object : NULL;
}

struct sim_object *sim_descriptor(int fd)
{
    struct sim_object *object = peek(fd);
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

uint32_t sim_descriptors_open(const struct sim_process *process)
{
    uint32_t count = 0;
    for (int i = 0; i < process->descriptor_room; i++) {
        count += process->descriptors[i].object != NULL;
    }
    return count;
}

int sys_close(int fd)
{
    struct sim_object *object;
    sim_call();
    object = sim_descriptor(fd);
    if (object == NULL) {
        return -1;
    }
    sim_task->process->descriptors[fd].object = NULL;
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

int sys_fcntl(int fd, int command, ...)
{
    struct sim_object *object = peek(fd);
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

ssize_t sys_read(int fd, void *bytes, size_t count)
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

ssize_t sys_write(int fd, const void *bytes, size_t count)
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

/* poll(2) */

static int check_all(struct pollfd *fds, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct sim_object *object = peek(fds[i].fd);
        if (fds[i].fd < 0 || (object == NULL && fds[i].fd <= 2)) {
            fds[i].revents = 0;
        } else if (object == NULL) {
            fds[i].revents = POLLNVAL;
        } else {
            fds[i].revents =
                (short)(object->class->ready(object) & (fds[i].events | POLLERR | POLLHUP));
        }
        ready += fds[i].revents != 0;
    }
    return ready;
}

static void remove_waiter(struct sim_object *object, const struct sim_waiter *waiter)
{
    struct sim_waiter **at = &object->waiters;
    while (*at != waiter) {
        at = &(*at)->next;
    }
    *at = waiter->next;
}

static int poll_until(struct pollfd *fds, nfds_t count, int64_t until)
{
    struct sim_waiter few[4], *waiters = few;
    struct sim_object *fewer[4], **objects = fewer;
    int ready = check_all(fds, count);
    bool in_time = true;
    if (count > 4) {
        waiters = calloc(count, sizeof *waiters);
        objects = calloc(count, sizeof(struct sim_object *));
        sim_require(waiters != NULL && objects != NULL, "no memory for poll(2)");
    }
    while (ready == 0 && in_time && until > sim_task->now) {
        for (nfds_t i = 0; i < count; i++) {
            objects[i] = peek(fds[i].fd);
            waiters[i].task = sim_task;
            if (objects[i] != NULL) {
                sim_object_hold(objects[i]);
                waiters[i].next = objects[i]->waiters;
                objects[i]->waiters = &waiters[i];
            }
        }
        in_time = sim_wait(until);
        for (nfds_t i = 0; i < count; i++) {
            if (objects[i] != NULL) {
                remove_waiter(objects[i], &waiters[i]);
                sim_object_drop(objects[i]);
            }
        }
        ready = check_all(fds, count);
    }
    if (waiters != few) {
        free(waiters);
        free(objects);
    }
    return ready;
}

static int64_t after(const struct timespec *timeout)
{
    return timeout == NULL ? INT64_MAX
                           : sim_task->now + timeout->tv_sec * 1000000000 + timeout->tv_nsec;
}

int sys_ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask)
{
    (void)mask;
    sim_call();
    return poll_until(fds, count, after(timeout));
}

int sys_poll(struct pollfd *fds, nfds_t count, int timeout)
{
    const struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    return sys_ppoll(fds, count, timeout < 0 ? NULL : &time, NULL);
}

int sys_nanosleep(const struct timespec *time, struct timespec *left)
{
    (void)left;
    sim_call();
    sim_wait(after(time));
    return 0;
}

/* epoll(7) */

static short epoll_events(const struct sim_watch *watch)
{
    return (short)(watch->event.events & (EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLPRI)) | POLLERR |
           POLLHUP;
}

static short readiness(const struct sim_watch *watch)
{
    return watch->disabled
               ? 0
               : (short)(watch->object->class->ready(watch->object) & epoll_events(watch));
}

/* Takes those off the list that are not ready, up to the first one that is. */
static bool has_ready(struct epoll *epoll)
{
    struct sim_watch **at = &epoll->ready;
    while (*at != NULL) {
        struct sim_watch *watch = *at;
        if (readiness(watch) != 0) {
            return true;
        }
        watch->listed = false;
        *at = watch->next_ready;
        if (epoll->ready_end == &watch->next_ready) {
            epoll->ready_end = at;
        }
    }
    return false;
}

static short epoll_ready(struct sim_object *object)
{
    return has_ready((struct epoll *)object) ? POLLIN : 0;
}

static void epoll_free(struct sim_object *object)
{
    struct epoll *epoll = (struct epoll *)object;
    while (epoll->watches != NULL) {
        unwatch(epoll->watches);
    }
    free(epoll);
}

static const struct sim_class epoll_class = {"epoll", epoll_ready, NULL, NULL, epoll_free};

int sys_epoll_create1(int flags)
{
    struct epoll *epoll = calloc(1, sizeof *epoll);
    (void)flags;
    sim_require(epoll != NULL, "no memory for epoll(7)");
    sim_call();
    sim_object_init(&epoll->base, &epoll_class);
    epoll->ready_end = &epoll->ready;
    return sim_descriptor_make(&epoll->base);
}

static struct sim_watch *find_watch(const struct epoll *epoll, int fd,
                                    const struct sim_object *object)
{
    struct sim_watch *at = object->watches;
    while (at != NULL && (at->epoll != epoll || at->fd != fd)) {
        at = at->next;
    }
    return at;
}

static int watch_object(struct epoll *epoll, int fd, struct sim_object *object)
{
    struct sim_watch *watch = calloc(1, sizeof *watch);
    sim_require(watch != NULL, "no memory for epoll(7)");
    watch->epoll = epoll;
    watch->object = object;
    watch->fd = fd;
    watch->next = object->watches;
    object->watches = watch;
    watch->next_of_epoll = epoll->watches;
    epoll->watches = watch;
    return 0;
}

int sys_epoll_ctl(int epoll_fd, int operation, int fd, struct epoll_event *event)
{
    struct epoll *epoll;
    struct sim_object *object;
    struct sim_watch *watch;
    sim_call();
    epoll = (struct epoll *)sim_descriptor(epoll_fd);
    object = sim_descriptor(fd);
    if (epoll == NULL || object == NULL) {
        return -1;
    }
    sim_require(epoll->base.class == &epoll_class, "epoll_ctl(2) of %s", epoll->base.class->name);
    watch = find_watch(epoll, fd, object);
    if ((operation == EPOLL_CTL_ADD) != (watch == NULL)) {
        return sim_error(watch == NULL ? ENOENT : EEXIST);
    }
    if (operation == EPOLL_CTL_DEL) {
        unwatch(watch);
        return 0;
    }
    if (watch == NULL) {
        watch_object(epoll, fd, object);
        watch = find_watch(epoll, fd, object);
    }
    watch->event = *event;
    watch->disabled = false;
    if (readiness(watch) != 0) {
        sim_object_changed(object);
    }
    return 0;
}

/* Takes events from the list. Level-triggered ones stay on it. */
static int take_events(struct epoll *epoll, struct epoll_event *events, int most)
{
    struct sim_watch *kept = NULL, **kept_end = &kept;
    int count = 0;
    while (count < most && has_ready(epoll)) {
        struct sim_watch *watch = epoll->ready;
        short ready = readiness(watch);
        epoll->ready = watch->next_ready;
        if (epoll->ready == NULL) {
            epoll->ready_end = &epoll->ready;
        }
        watch->next_ready = NULL;
        events[count++] = (struct epoll_event){.events = (uint32_t)(unsigned short)ready,
                                               .data = watch->event.data};
        watch->disabled = (watch->event.events & EPOLLONESHOT) != 0;
        if ((watch->event.events & (EPOLLET | EPOLLONESHOT)) != 0) {
            watch->listed = false;
            continue;
        }
        *kept_end = watch;
        kept_end = &watch->next_ready;
    }
    if (kept != NULL) {
        *epoll->ready_end = kept;
        epoll->ready_end = kept_end;
    }
    return count;
}

int sys_epoll_wait(int fd, struct epoll_event *events, int most, int timeout)
{
    struct pollfd self = {.fd = fd, .events = POLLIN};
    struct epoll *epoll;
    sim_call();
    epoll = (struct epoll *)sim_descriptor(fd);
    if (epoll == NULL) {
        return -1;
    }
    poll_until(&self, 1, timeout < 0 ? INT64_MAX : sim_task->now + INT64_C(1000000) * timeout);
    return take_events(epoll, events, most);
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

int sys_eventfd(unsigned initial, int flags)
{
    struct counter *counter = calloc(1, sizeof *counter);
    (void)flags;
    sim_require(counter != NULL, "no memory for an eventfd");
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
    (void)count;
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

int sys_timerfd_create(int clock, int flags)
{
    struct timer *timer = calloc(1, sizeof *timer);
    (void)clock;
    (void)flags;
    sim_require(timer != NULL, "no memory for a timer");
    sim_call();
    sim_object_init(&timer->base, &timer_class);
    timer->event.happen = expire;
    return sim_descriptor_make(&timer->base);
}

int sys_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    struct timer *timer;
    int64_t at = value->it_value.tv_sec * INT64_C(1000000000) + value->it_value.tv_nsec;
    (void)old;
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
