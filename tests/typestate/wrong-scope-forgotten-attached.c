/* SPDX-License-Identifier: MIT */
/* expect: -Wanalyzer-malloc-leak */
#include <sluice.h>

int attach_and_leave(struct sluice_channel *channel, struct sluice_scope_report *report)
{
    struct sluice_scope *scope =
        sluice_scope_attach(sluice_channel_scope_begin(channel, SLUICE_S(1)), report);

    return scope ? 0 : report->error;
}
