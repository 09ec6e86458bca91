/* SPDX-License-Identifier: MIT */
/*
 * Connections within one process, on the wire of the running test: a pair of
 * channels, and a star (a multichannel and a channel for each of its peers).
 */
#ifndef SUPPORT_PAIR_H
#define SUPPORT_PAIR_H

#include "memory.h"

/* Where the two ends live: on the self wire, both are the same. */
struct sides {
    struct sluice_context *contexts[2];
    struct sluice_pd *pds[2];
};

void sides_open(struct sides *sides);
void sides_close(struct sides *sides);

/*
 * Registers memory on one side. It is closed before the channels of a pair or a star are, so no
 * request may use it then.
 */
struct memory side_memory(struct sides *sides, int side, size_t length);
struct memory side_memory_at(struct sides *sides, int side, size_t length, uint32_t access,
                             size_t shift);

/* A pair of connected channels. */
struct pair {
    struct sides sides;
    struct sluice_channel *channels[2];
};

void pair_open(struct pair *pair, const struct sluice_channel_attr *attr);
/* Connects, again or for the first time, on sides that are open. */
void pair_connect(struct pair *pair, const struct sluice_channel_attr *attr);
/* The same in two steps, with attributes of their own; a test may change what is between them. */
struct halves {
    struct sluice_prepared_channel *prepared[2];
    struct sluice_endpoint endpoints[2]; /* their own */
};
void halves_prepare(struct halves *halves, const struct sides *sides,
                    const struct sluice_channel_attr *first,
                    const struct sluice_channel_attr *second);
void halves_connect(struct halves *halves, struct pair *pair);
/* Resets both ends and connects them again. */
void pair_reset(struct pair *pair);
void pair_close(struct pair *pair);

/* Prepares a channel and returns its endpoint; must succeed. */
struct sluice_prepared_channel *prepare_channel(struct sluice_pd *pd,
                                                const struct sluice_channel_attr *attr,
                                                struct sluice_endpoint *endpoint);

/* Passes a few bytes in both directions, which must succeed. */
void pair_works(struct pair *pair);

#define STAR_PEERS 16

/* A hub, and its peers. A spoke that is NULL is skipped. */
struct star {
    struct sides sides;
    uint32_t peers;
    struct sluice_multichannel *hub;
    struct sluice_channel *spokes[STAR_PEERS];
};

void star_open(struct star *star, uint32_t peers, const struct sluice_channel_attr *attr);
void star_close(struct star *star);
/* Passes a few bytes in both directions between the hub and a peer. */
void star_works(struct star *star, uint32_t peer);
/* Resets a peer on both sides and connects it again. */
void star_reset(struct star *star, uint32_t peer);
/* Fails a peer of the hub: writes to it with a key that does not exist. */
void star_break(struct star *star, uint32_t peer);

/* A multichannel connected to itself: peer 2 i with peer 2 i + 1. */
struct sluice_multichannel *loop_open(struct sluice_pd *pd, uint32_t peers,
                                      const struct sluice_channel_attr *attr);

/*
 * Requires that each request that succeeded is in the histogram of its operation, once, if there
 * are histograms. Pairs and stars are checked when they are closed.
 */
void channel_is_timed(const struct sluice_channel *channel);
void multichannel_is_timed(const struct sluice_multichannel *multichannel);

/* A request, to be filled in further. */
struct sluice_request request_of(uint32_t opcode, uint32_t peer, const struct sluice_sge *sge);

/* The first error of a channel or peer; there must be one. */
struct sluice_error channel_error(const struct sluice_channel *channel);
struct sluice_error peer_error(const struct sluice_multichannel *multichannel, uint32_t peer);

/* Reads the counters or the information of a channel, which must succeed. */
struct sluice_counters channel_counters(const struct sluice_channel *channel);
struct sluice_channel_info channel_info(const struct sluice_channel *channel);

/* Posts one request to a channel; waits for one, which must end with this class. */
struct sluice_handle post(struct sluice_channel *channel, const struct sluice_request *request);
/* Posts a request of this operation with one element, or without if that is NULL. */
struct sluice_handle post_of(struct sluice_channel *channel, uint32_t opcode,
                             const struct sluice_sge *sge);
struct sluice_completion await(struct sluice_channel *channel, struct sluice_handle handle,
                               enum sluice_error_class error_class);

/* Waits for a posted list, all of which must succeed. */
void await_list(struct sluice_list *list);

#define DEADLINE SLUICE_S(20)
/* The number of values of enum sluice_opcode. */
#define OPCODES (SLUICE_OP_FETCH_ADD + 1)

#endif
