/* SPDX-License-Identifier: MIT */
/* Adds to the helper's epoll set, and wakes the helper. */
#include "transport/soft/helper/helper.h"

#include <unistd.h>

int slu_soft_helper_add(struct soft_helper *helper, int op, int fd, uint32_t events,
                        enum helper_event kind, uint32_t index)
{
    struct epoll_event event = {.events = events, .data.u64 = (uint64_t)kind << 32 | index};
    return epoll_ctl(helper->epoll, op, fd, &event);
}

void slu_soft_helper_wake(struct soft_context *context)
{
    uint64_t one = 1;
    SLU_KEEP_ERRNO;
    if (SLU_UNCANCELLED(write(context->helper->event, &one, sizeof(one))) < 0 && errno != EAGAIN)
        slu_log(SLUICE_LOG_ERROR, "cannot wake the helper thread: %s", strerrordesc_np(errno));
}

void slu_soft_helper_wake_before(struct soft_helper *helper, int64_t time)
{
    if (time < atomic_load(&helper->wakes_at))
        slu_soft_helper_wake(helper->context);
}
