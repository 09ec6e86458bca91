/* SPDX-License-Identifier: MIT */
/* The block of a scope, left in every way, and one inside of another. */
#include <stddef.h>

#include <sluice.h>

int send_to_each(struct sluice_multichannel *mc, struct sluice_channel *channel,
                 const struct sluice_sge *sges, uint32_t count);

int send_to_each(struct sluice_multichannel *mc, struct sluice_channel *channel,
                 const struct sluice_sge *sges, uint32_t count)
{
    struct sluice_scope_report report = {};
    uint32_t i;

    report.size = sizeof(report);
    for (i = 0; i < count; i++) {
        SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
            if (sluice_scope_post_receive(scope, 0, &sges[i], 1, NULL))
                break;
            if (!sges[i].length)
                continue;
            if (sges[i].length == 1)
                return -1;
            if (sges[i].length == 2)
                goto out;
        }
    }
out:
    SLUICE_SCOPE(outer, sluice_multichannel_scope_begin(mc, SLUICE_S(1)), &report) {
        SLUICE_SCOPE(inner, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL)
            report.said = sluice_scope_post_send(inner, 0, sges, count, NULL);
        if (!report.said)
            report.said = sluice_scope_post_send(outer, 0, sges, count, NULL);
    }
    return report.error;
}
