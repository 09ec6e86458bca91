/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include <sluice.h>

int serve_one(struct sluice_pd *pd, struct sluice_multichannel *multichannel, uint32_t *peer,
              struct sluice_incoming_info *info)
{
    struct sluice_listener *listener = sluice_listen(":0", NULL);
    struct sluice_incoming *incoming;
    struct sluice_channel *channel;

    if (listener == NULL)
        return -1;
    channel = sluice_accept(listener, pd, NULL, SLUICE_S(1));
    sluice_channel_close(channel);
    incoming = sluice_listener_next(listener, SLUICE_S(1));
    if (incoming != NULL && sluice_incoming_query(incoming, info) == 0 && info->channels == 1) {
        if (sluice_incoming_accept_into(incoming, multichannel, NULL, SLUICE_S(1), peer, 1) < 0)
            *peer = 0;
    } else if (incoming != NULL) {
        sluice_incoming_refuse(incoming, "one at a time");
    }
    sluice_listener_close(listener);
    return 0;
}

/* A loop does both whenever the descriptor of the listener is readable. */
int serve_all(struct sluice_listener *listener, struct sluice_pd *pd)
{
    static struct sluice_admitted admitted;
    struct sluice_incoming *incoming;
    int count = 0;

    admitted.size = sizeof(admitted);
    while ((incoming = sluice_listener_next(listener, 0)) != NULL)
        count += sluice_incoming_admit(incoming, pd, NULL, NULL, SLUICE_S(1), 1) == 0;
    while (sluice_listener_admitted(listener, 0, &admitted) == 0)
        sluice_channel_close(admitted.channel);
    return count;
}
