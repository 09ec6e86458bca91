/* SPDX-License-Identifier: MIT */
#include "launch.h"

void event_ended(struct launcher *launcher, const struct frame_ended *ended)
{
    if (!launcher->remote)
        verdict_ended(launcher, ended);
    else if (!launcher->orphan)
        frame_add_ended(&launcher->up.unsent, ended);
}

void event_failed(struct launcher *launcher, const struct frame_failed *failed)
{
    if (!launcher->remote)
        verdict_failed(launcher, failed);
    else if (!launcher->orphan)
        frame_add_failed(&launcher->up.unsent, failed);
}

void signal_all(struct launcher *launcher, int number)
{
    ranks_signal(launcher, number);
    children_signal(launcher, number);
}
