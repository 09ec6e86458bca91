/* SPDX-License-Identifier: MIT */
/* Waits for another thread that is expected to finish soon. */
#include "transport/soft/core/soft.h"

#include <sched.h>
#include <time.h>

void slu_soft_pause(unsigned time)
{
    if (time < 100) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    } else if (time < 200) {
        sched_yield();
    } else {
        struct timespec pause = {0, time < 1000 ? 50000 : 1000000};
        SLU_KEEP_ERRNO;
        SLU_UNCANCELLED(nanosleep(&pause, NULL));
    }
}
