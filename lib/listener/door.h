/* SPDX-License-Identifier: MIT */
/*
 * Letting in for who has more to wait for than a listener: those that come go on side by side,
 * as with sluice_accept(), one peer of a multichannel for each; nothing here waits. A listener
 * is used with one door, and not with sluice_accept().
 */
#ifndef SLU_DOOR_H
#define SLU_DOOR_H

#include "listener/listener.h"

/* What becomes of who has come. */
struct slu_welcome {
    struct sluice_multichannel *multichannel; /* whose peer it is to be */
    struct sluice_private_data own;           /* what it is told */
};

struct slu_door {
    struct sluice_listener *listener;
    /* Looks who it is, and fills the welcome: 0; or a negative errno, and it hears the text. */
    int (*judge)(struct slu_door *door, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome);
    /*
     * Whether a peer that is connected now has a place, before it is told that it is let in: 0; or
     * a negative errno, and it hears the text. Any number may be under way, and hold no place.
     */
    int (*admit)(struct slu_door *door, const struct sluice_multichannel *multichannel);
};

/* One that is in. */
struct slu_entrant {
    struct sluice_multichannel *multichannel;
    uint32_t peer;
};

/*
 * Goes on with all, as far as nothing has to be waited for: true, and one that is in now. It is to
 * be called again when the descriptor of the listener is readable.
 */
bool slu_door_step(struct slu_door *door, struct slu_entrant *entrant);
/* Peers of the multichannel that are let in, and that slu_door_step() has not returned yet. */
uint32_t slu_door_count(const struct slu_door *door,
                        const struct sluice_multichannel *multichannel);

#endif
