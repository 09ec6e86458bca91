/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(accept_twice, "-Wuse-after-free", struct sluice_listener *listener, struct sluice_pd *pd)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    struct sluice_channel *channel = sluice_incoming_accept(incoming, pd, NULL, NULL, 0);
    sluice_channel_close(channel);
    channel = sluice_incoming_accept(incoming, pd, NULL, NULL, 0);
    sluice_channel_close(channel);
}

WRONG(admit_twice, "-Wuse-after-free", struct sluice_listener *listener, struct sluice_pd *pd)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    int error = sluice_incoming_admit(incoming, pd, NULL, NULL, 0, 1);
    return error + sluice_incoming_admit(incoming, pd, NULL, NULL, 0, 2);
}

WRONG(forgotten_channel, "-Wanalyzer-malloc-leak", struct sluice_pd *pd)
{
    struct sluice_channel *channel = sluice_connect("host:1", pd, NULL, NULL, 0);
    return sluice_channel_state(channel);
}

WRONG(forgotten_incoming, "-Wanalyzer-malloc-leak", struct sluice_listener *listener,
      struct sluice_incoming_info *info)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    return sluice_incoming_query(incoming, info);
}

WRONG(forgotten_listener, "-Wanalyzer-malloc-leak", void)
{
    struct sluice_listener *listener = sluice_listen(":0", NULL);
    return sluice_listener_fd(listener);
}

WRONG(free, "-Wmismatched-dealloc", void)
{
    struct sluice_listener *listener = sluice_listen(":0", NULL);
    free(listener);
}

WRONG(ignored_accept, "-Wunused-result", struct sluice_listener *listener, struct sluice_pd *pd)
{
    sluice_accept(listener, pd, NULL, 0);
}

WRONG(ignored_connect, "-Wunused-result", struct sluice_multichannel *multichannel, uint32_t *peers)
{
    sluice_connect_into("host:1", multichannel, NULL, 0, peers, 1);
}

WRONG(query_after_admit, "-Wuse-after-free", struct sluice_listener *listener,
      struct sluice_multichannel *multichannel, struct sluice_incoming_info *info)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    int error = sluice_incoming_admit_into(incoming, multichannel, NULL, SLUICE_S(1), 0);
    return error + sluice_incoming_query(incoming, info);
}

WRONG(query_after_refusal, "-Wuse-after-free", struct sluice_listener *listener,
      struct sluice_incoming_info *info)
{
    struct sluice_incoming *incoming = sluice_listener_next(listener, 0);
    sluice_incoming_refuse(incoming, NULL);
    return sluice_incoming_query(incoming, info);
}
