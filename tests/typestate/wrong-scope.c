/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(block_of_channel, "-Wincompatible-pointer-types", struct sluice_channel *channel,
      const struct sluice_sge *sge)
{
    SLUICE_SCOPE(scope, channel, NULL) {
        return sluice_scope_post_send(scope, 0, sge, 1, NULL);
    }
    return -1;
}

WRONG(end_in_block, "-Wanalyzer-double-free", struct sluice_channel *channel)
{
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        sluice_scope_end(scope, NULL);
    }
}

WRONG(forgotten_attached, "-Wanalyzer-malloc-leak", struct sluice_channel *channel,
      struct sluice_scope_report *report)
{
    struct sluice_scope *scope =
        sluice_scope_attach(sluice_channel_scope_begin(channel, SLUICE_S(1)), report);
    return scope ? 0 : report->error;
}

WRONG(forgotten_end, "-Wanalyzer-malloc-leak", struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));
    return scope != NULL;
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));
    free(scope);
}

WRONG(ignored_begin, "-Wunused-result", struct sluice_channel *channel)
{
    sluice_channel_scope_begin(channel, SLUICE_S(1));
}

WRONG(ignored_post_send, "-Wunused-result", struct sluice_scope *scope,
      const struct sluice_sge *sge)
{
    sluice_scope_post_send(scope, 0, sge, 1, NULL);
}

WRONG(ignored_post, "-Wunused-result", struct sluice_scope *scope,
      const struct sluice_request *request)
{
    sluice_scope_post(scope, request, 1, NULL);
}

WRONG(ignored_scatter, "-Wunused-result", struct sluice_scope *scope,
      const struct sluice_request *requests)
{
    sluice_scope_post_scatter_send(scope, requests, 2, NULL);
}

WRONG(keep_from_block, "-Wuse-after-free", struct sluice_channel *channel,
      const struct sluice_sge *sge)
{
    struct sluice_scope *kept = NULL;
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        kept = scope;
    }
    return sluice_scope_post_send(kept, 0, sge, 1, NULL);
}

WRONG(of_pd, "-Wincompatible-pointer-types", struct sluice_pd *pd)
{
    return sluice_channel_scope_begin(pd, SLUICE_S(1));
}

WRONG(post_after_end, "-Wuse-after-free", struct sluice_multichannel *mc,
      const struct sluice_request *request)
{
    struct sluice_scope *scope = sluice_multichannel_scope_begin(mc, SLUICE_S(1));
    sluice_scope_end(scope, NULL);
    return sluice_scope_post(scope, request, 1, NULL);
}

WRONG(post_by_channel, "-Wincompatible-pointer-types", struct sluice_channel *channel,
      const struct sluice_sge *sge)
{
    SLUICE_SCOPE(scope, sluice_channel_scope_begin(channel, SLUICE_S(1)), NULL) {
        return sluice_scope_post_send(channel, 0, sge, 1, NULL);
    }
    return -1;
}

WRONG(second_end, "-Wuse-after-free", struct sluice_channel *channel)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(channel, SLUICE_S(1));
    sluice_scope_end(scope, NULL);
    return sluice_scope_end(scope, NULL);
}
