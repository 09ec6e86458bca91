/* SPDX-License-Identifier: MIT */
/* A hub that has a pool of receives, and its peers, which are plain channels. */
#ifndef POOL_FIXTURE_H
#define POOL_FIXTURE_H

#include "../../support/pair.h"

#define PEERS 5
#define POOL 8
#define SHARE 4
#define PLACE ((size_t)1 << 20)
#define STRIPES 3
#define STRIPE_LEAST 4096

/* The hub has place i of its memory for the receive with user data i. */
struct shared {
    struct star star;
    struct memory here, there;
};

/* The same, where each peer has several queue pairs. */
struct striped {
    struct shared shared;
};

/* Opens a star whose hub alone has these attributes, but for those of stripes. */
void shared_star_open(struct star *star, uint32_t peers, const struct sluice_channel_attr *attr);
void shared_open(struct shared *shared, uint32_t peers, uint32_t pool);
void shared_close(struct shared *shared);
void striped_open(struct striped *striped, uint32_t peers, uint32_t pool);
void striped_close(struct striped *striped);
/* Posts a receive of this length to the pool. */
struct sluice_handle post_receive(struct shared *shared, uint32_t place, size_t length);
/* Posts a message of a peer, with its number as immediate. */
struct sluice_handle post_message(struct shared *shared, uint32_t peer, size_t length);
struct sluice_completion next_result(struct shared *shared);
/* Requires that a result is that of a message of this length, from the peer that it names. */
void check_message(const struct shared *shared, const struct sluice_completion *completion,
                   size_t length);
/* One length for each way of a message, and none. */
#define LENGTHS 8
extern const size_t lengths[LENGTHS];

#endif
