/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/duty.h"

#include <stddef.h>

#include "base/clock.h"

int slu_duty_poll(struct slu_duty *duty, struct pollfd *fds, uint32_t count, int64_t until)
{
    int ready;

    if (duty == NULL)
        return poll(fds, count, slu_milliseconds(until));
    fds[count] = (struct pollfd){.fd = duty->fd, .events = POLLIN};
    do {
        int64_t due = duty->serve(duty);

        ready = poll(fds, count + 1, slu_milliseconds(slu_earlier(due, until)));
        ready -= ready > 0 && fds[count].revents != 0;
    } while (ready == 0 && !slu_is_late(until));
    return ready;
}
