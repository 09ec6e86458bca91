/* SPDX-License-Identifier: MIT */
/*
 * The simulated system calls: what a process has by descriptors, and helpers of those who make
 * them. A simulated call has the name of the real one behind sys_, see SYS() in calls.h.
 */
#ifndef SIM_SYSTEM_H
#define SIM_SYSTEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "process.h"
#include "task.h"

struct sim_watch;
struct sim_waiter;
struct sim_object;

/* A kind of object. Functions that are NULL fail with EINVAL. */
struct sim_class {
    const char *name;
    /* Returns which of POLLIN, POLLOUT, POLLERR, POLLHUP and POLLRDHUP hold. */
    short (*ready)(struct sim_object *object);
    ssize_t (*read)(struct sim_object *object, void *bytes, size_t count);
    ssize_t (*write)(struct sim_object *object, const void *bytes, size_t count);
    void (*free)(struct sim_object *object);
};

/* An open file, to which descriptors refer. */
struct sim_object {
    const struct sim_class *class;
    uint32_t references;
    LIST_HEAD(, sim_waiter) waiters;
    LIST_HEAD(, sim_watch) watches;
    int real; /* a descriptor of the host behind it, or -1 */
    int flags;
};

/* Ends a call with an error. */
int sim_error(int error);
/* A call takes time, and others may have a turn. */
void sim_call(void);

void sim_object_init(struct sim_object *object, const struct sim_class *class);
void sim_object_hold(struct sim_object *object);
void sim_object_drop(struct sim_object *object);
/* Has waiting tasks look again: the object may be ready for something else. */
void sim_object_changed(struct sim_object *object);

/* Makes a descriptor of an object, which takes over the caller's reference; or fails. */
int sim_descriptor_make(struct sim_object *object);
/* Returns the object, or NULL. */
struct sim_object *sim_descriptor_peek(int fd);
/* Returns the object, or NULL with EBADF. */
struct sim_object *sim_descriptor(int fd);

/* Copies as the kernel does: false if the memory is not there, once faults are caught. */
void sim_catch_faults(void);
bool sim_copy(void *to, const void *from, size_t bytes);

/* Returns whether a fault is due at this call, which then fails. */
bool sim_fault_is_due(const char *call);

/* Returns the simulated call or the pure function of that name, or NULL. */
void *sim_resolve(const char *name);

#endif
