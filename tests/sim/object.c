/* SPDX-License-Identifier: MIT */
/* Objects behind descriptors, and the calls that wait for them: poll(2) and epoll(7). */
#include <poll.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "calls.h"

/* A task that waits for an object. */
struct sim_waiter {
    LIST_ENTRY(sim_waiter) place;
    struct sim_task *task;
};

/* An object in the list of an epoll. */
struct sim_watch {
    LIST_ENTRY(sim_watch) of_object, of_epoll;
    TAILQ_ENTRY(sim_watch) of_ready; /* in the epoll */
    struct epoll *epoll;
    struct sim_object *object;
    int fd;
    struct epoll_event event;
    bool listed;   /* among those that may be ready */
    bool disabled; /* by EPOLLONESHOT */
};

TAILQ_HEAD(ready, sim_watch);

struct epoll {
    struct sim_object base; /* the first field */
    LIST_HEAD(, sim_watch) watches;
    struct ready ready;
};

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
    LIST_REMOVE(watch, of_object);
    LIST_REMOVE(watch, of_epoll);
    if (watch->listed) {
        TAILQ_REMOVE(&watch->epoll->ready, watch, of_ready);
    }
    free(watch);
}

void sim_object_drop(struct sim_object *object)
{
    if (--object->references > 0) {
        return;
    }
    while (!LIST_EMPTY(&object->watches)) {
        unwatch(LIST_FIRST(&object->watches));
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
    struct sim_waiter *waiter;
    struct sim_watch *watch;
    LIST_FOREACH(waiter, &object->waiters, place)
    {
        sim_wake(waiter->task);
    }
    LIST_FOREACH(watch, &object->watches, of_object)
    {
        if (!watch->listed) {
            watch->listed = true;
            TAILQ_INSERT_TAIL(&watch->epoll->ready, watch, of_ready);
        }
        sim_object_changed(&watch->epoll->base);
    }
}

static int check_all(struct pollfd *fds, nfds_t count)
{
    int ready = 0;
    for (nfds_t i = 0; i < count; i++) {
        struct sim_object *object = sim_descriptor_peek(fds[i].fd);
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

/* A call that waits, on the stack of its task. The program may close the objects meanwhile. */
struct sim_poll {
    LIST_ENTRY(sim_poll) place; /* in its process */
    struct sim_waiter *waiters;
    struct sim_object **objects;
    nfds_t count;
};

static void begin_poll(struct sim_poll *poll, const struct pollfd *fds)
{
    for (nfds_t i = 0; i < poll->count; i++) {
        struct sim_object *object = sim_descriptor_peek(fds[i].fd);
        poll->objects[i] = object;
        poll->waiters[i].task = sim_task;
        if (object != NULL) {
            sim_object_hold(object);
            LIST_INSERT_HEAD(&object->waiters, &poll->waiters[i], place);
        }
    }
    LIST_INSERT_HEAD(&sim_task->process->polls, poll, place);
}

static void end_poll(struct sim_poll *poll)
{
    LIST_REMOVE(poll, place);
    for (nfds_t i = 0; i < poll->count; i++) {
        if (poll->objects[i] != NULL) {
            LIST_REMOVE(&poll->waiters[i], place);
            sim_object_drop(poll->objects[i]);
        }
    }
}

/* The tasks that wait will never go on. */
void sim_polls_end(struct sim_process *process)
{
    while (!LIST_EMPTY(&process->polls)) {
        end_poll(LIST_FIRST(&process->polls));
    }
}

static int poll_until(struct pollfd *fds, nfds_t count, int64_t until)
{
    struct sim_waiter few[4], *waiters = few;
    struct sim_object *fewer[4], **objects = fewer;
    int ready = check_all(fds, count);
    bool in_time = true;
    if (count > 4) {
        waiters = sim_alloc(count, sizeof *waiters);
        objects = sim_alloc(count, sizeof(struct sim_object *));
    }
    while (ready == 0 && in_time && until > sim_task->now) {
        struct sim_poll poll = {.waiters = waiters, .objects = objects, .count = count};
        begin_poll(&poll, fds);
        in_time = sim_wait(until);
        end_poll(&poll);
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

SYS(int, ppoll, struct pollfd *fds, nfds_t count, const struct timespec *timeout, const void *mask)
{
    sim_call();
    return poll_until(fds, count, after(timeout));
}

SYS(int, poll, struct pollfd *fds, nfds_t count, int timeout)
{
    const struct timespec time = {timeout / 1000, timeout % 1000 * 1000000L};
    return sys_ppoll(fds, count, timeout < 0 ? NULL : &time, NULL);
}

SYS(int, nanosleep, const struct timespec *time, struct timespec *left)
{
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
    struct sim_watch *watch;
    while ((watch = TAILQ_FIRST(&epoll->ready)) != NULL && readiness(watch) == 0) {
        watch->listed = false;
        TAILQ_REMOVE(&epoll->ready, watch, of_ready);
    }
    return watch != NULL;
}

static short epoll_ready(struct sim_object *object)
{
    return has_ready((struct epoll *)object) ? POLLIN : 0;
}

static void epoll_free(struct sim_object *object)
{
    struct epoll *epoll = (struct epoll *)object;
    while (!LIST_EMPTY(&epoll->watches)) {
        unwatch(LIST_FIRST(&epoll->watches));
    }
    free(epoll);
}

static const struct sim_class epoll_class = {"epoll", epoll_ready, NULL, NULL, epoll_free};

SYS(int, epoll_create1, int flags)
{
    struct epoll *epoll = sim_alloc(1, sizeof *epoll);
    sim_call();
    sim_object_init(&epoll->base, &epoll_class);
    TAILQ_INIT(&epoll->ready);
    return sim_descriptor_make(&epoll->base);
}

static struct sim_watch *find_watch(const struct epoll *epoll, int fd,
                                    const struct sim_object *object)
{
    struct sim_watch *at = LIST_FIRST(&object->watches);
    while (at != NULL && (at->epoll != epoll || at->fd != fd)) {
        at = LIST_NEXT(at, of_object);
    }
    return at;
}

static struct sim_watch *watch_object(struct epoll *epoll, int fd, struct sim_object *object)
{
    struct sim_watch *watch = sim_alloc(1, sizeof *watch);
    watch->epoll = epoll;
    watch->object = object;
    watch->fd = fd;
    LIST_INSERT_HEAD(&object->watches, watch, of_object);
    LIST_INSERT_HEAD(&epoll->watches, watch, of_epoll);
    return watch;
}

SYS(int, epoll_ctl, int epoll_fd, int operation, int fd, struct epoll_event *event)
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
    if (operation == EPOLL_CTL_ADD && sim_fault_is_due("epoll_ctl")) {
        return sim_error(ENOMEM);
    }
    watch = find_watch(epoll, fd, object);
    if ((operation == EPOLL_CTL_ADD) != (watch == NULL)) {
        return sim_error(watch == NULL ? ENOENT : EEXIST);
    }
    if (operation == EPOLL_CTL_DEL) {
        unwatch(watch);
        return 0;
    }
    if (watch == NULL) {
        watch = watch_object(epoll, fd, object);
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
    struct ready kept = TAILQ_HEAD_INITIALIZER(kept);
    int count = 0;
    while (count < most && has_ready(epoll)) {
        struct sim_watch *watch = TAILQ_FIRST(&epoll->ready);
        short ready = readiness(watch);
        TAILQ_REMOVE(&epoll->ready, watch, of_ready);
        events[count++] = (struct epoll_event){.events = (uint32_t)(unsigned short)ready,
                                               .data = watch->event.data};
        watch->disabled = (watch->event.events & EPOLLONESHOT) != 0;
        if ((watch->event.events & (EPOLLET | EPOLLONESHOT)) != 0) {
            watch->listed = false;
        } else {
            TAILQ_INSERT_TAIL(&kept, watch, of_ready);
        }
    }
    TAILQ_CONCAT(&epoll->ready, &kept, of_ready);
    return count;
}

SYS(int, epoll_wait, int fd, struct epoll_event *events, int most, int timeout)
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
