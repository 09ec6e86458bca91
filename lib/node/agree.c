/* SPDX-License-Identifier: MIT */
/* Shared by open.c and connect.c: how ranks agree on whether one of them has failed. */
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "node/node.h"

/* Time that a failed rank has to report it, even if its own deadline has passed. */
#define REPORT_TIME SLUICE_MS(100)

int64_t slu_agree_time(int64_t until, int error)
{
    int64_t least = error < 0 ? REPORT_TIME : 1;
    int64_t left;

    if (until == SLUICE_FOREVER)
        return SLUICE_FOREVER;
    left = until - slu_now();
    return left > least ? left : least;
}

int slu_agree_choose(int error, const struct slu_text *text, int result)
{
    if (error < 0)
        slu_text_restore(text);
    return error < 0 ? error : result;
}

int slu_agree_exchanged(int result)
{
    char text[SLU_TEXT_BYTES];

    if (result != -EPROTO)
        return result;
    snprintf(text, sizeof text, "%s", sluice_last_error());
    return slu_fail(EPROTO,
                    "%.240s; do all ranks open the node, with the same sluice_node_attr.connect?",
                    text);
}

int slu_agree_check_reports(const struct sluice_node_endpoint *reports, uint32_t ranks,
                            uint32_t self, const char *what)
{
    struct slu_node_failure failure;

    for (uint32_t i = 0; i < ranks; i++)
        if (i != self && slu_node_failure_decode(&reports[i], &failure))
            return slu_fail(ECANCELED, "rank %u could not %s (%s): %s", i, what,
                            strerror(failure.error), failure.text);
    return 0;
}

int slu_agree_check_peers(const struct slu_engine *engine)
{
    struct sluice_error cause;

    for (uint32_t i = 0; i < engine->peer_count; i++)
        if (slu_peer_error(engine, &engine->peers[i], &cause))
            return slu_fail(-cause.error, "rank %u: %s", i, slu_error_reason(&cause));
    return 0;
}
