/* SPDX-License-Identifier: MIT */
/*
 * A duty is what a thread must serve while it waits for the other side of a connect: an agent
 * without a thread of its own serves its peers and its listener. Otherwise two agents that connect
 * to each other at the same time would wait for each other.
 */
#ifndef SLU_CONNECT_DUTY_H
#define SLU_CONNECT_DUTY_H

#include <poll.h>
#include <stdint.h>

struct slu_duty {
    int fd; /* readable if there is something to serve */
    /*
     * Serves without waiting, and keeps the thread's text. Returns when to serve again if the
     * descriptor is not readable.
     */
    int64_t (*serve)(struct slu_duty *duty);
};

/*
 * Waits as poll(2) does, until then at most, and serves meanwhile. duty NULL: there is none. The
 * array has room for one more descriptor. Returns how many of the count have events.
 */
int slu_duty_poll(struct slu_duty *duty, struct pollfd *fds, uint32_t count, int64_t until);

#endif
