/* SPDX-License-Identifier: MIT */
/*
 * A door lets peers in for a thread that also waits for other things. The peers that come are let
 * in side by side, as by sluice_accept(), each as a channel or as one peer of a multichannel. No
 * function here waits. A listener is used with one door, and not with sluice_accept().
 */
#ifndef SLU_DOOR_H
#define SLU_DOOR_H

#include "listener/listener.h"

/* How a connection is let in. */
struct slu_welcome {
    struct sluice_multichannel *multichannel; /* where it becomes a peer; NULL: a channel */
    struct sluice_pd *pd;                     /* of the channel */
    const struct sluice_channel_attr *attr;
    struct sluice_private_data own; /* private data to send to it */
};

struct slu_door {
    struct sluice_listener *listener;
    /*
     * Decides whether a connection may be let in, and fills the welcome. Returns 0; or a negative
     * errno value with a text, which the other side receives.
     */
    int (*judge)(struct slu_door *door, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome);
    /*
     * Decides whether there is a place for a peer that has connected but does not yet know that it
     * is let in. Returns 0; or a negative errno value with a text, which the peer receives.
     * Admissions under way have no place yet, however many there are. Without effect over rdma_cm.
     */
    int (*admit)(struct slu_door *door, const struct sluice_multichannel *multichannel);
};

/* An admitted peer. */
struct slu_entrant {
    struct sluice_multichannel *multichannel; /* NULL: a channel */
    uint32_t peer;
    struct sluice_channel *channel;
};

/*
 * Advances all admissions as far as possible without waiting. Returns true with one peer that is
 * now admitted. Call it again when the descriptor of the listener is readable.
 */
bool slu_door_step(struct slu_door *door, struct slu_entrant *entrant);
/*
 * Returns the number of peers of the multichannel, or of channels (NULL), that are admitted and
 * that slu_door_step() has not returned yet.
 */
uint32_t slu_door_count(const struct slu_door *door,
                        const struct sluice_multichannel *multichannel);

#endif
