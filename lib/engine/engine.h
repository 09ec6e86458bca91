/* SPDX-License-Identifier: MIT */
/*
 * The completion engine. A channel or a multichannel has one, so that polling n peers costs the
 * same as polling one. A channel is an engine with one peer.
 *
 * A queue pair completes its requests in order, so the requests of each of its queues form a ring.
 * Every accepted request has an entry in that ring. The life of an entry:
 *
 * FREE --take--> PENDING --completion--> DONE --seen--> SEEN | +--completion of a blocking
 * call's--> FREE
 *
 * An entry keeps its result until its place in the ring is taken again, so asking twice gives the
 * same answer. A result is unseen until its owner has retrieved it. If the place is needed before
 * that, a success moves to ring/aside.c and a failure to the bounded list of ring/failure.c. When
 * no place for results is left, the oldest unseen success is forgotten. Unseen results are
 * retrieved in the order of completion, across all peers: see struct slu_order.
 *
 * Credits: a request needs room in its queue pair and room in the completion queue. Both are
 * counted here, separately for sends and receives, so that parked receives cannot starve sends. A
 * driver is never asked for more than fits.
 *
 * This header is what channels, scopes, nodes and buffers use of the engine. README.md names its
 * layers.
 */
#ifndef SLU_ENGINE_ENGINE_H
#define SLU_ENGINE_ENGINE_H

#include "engine/peer/peer.h"
#include "engine/peer/words.h"
#include "engine/poll/poll.h"
#include "engine/post/pool.h"
#include "engine/post/post.h"
#include "engine/progress/wait.h"
#include "engine/request/parts.h"

/*
 * Creates an engine. own is how many requests of the library itself, beside those of the program,
 * may be in flight to a peer. None of them displaces an unseen result of the program.
 */
struct slu_engine *slu_engine_create(struct sluice_pd *pd, uint32_t peers, uint32_t own,
                                     const struct sluice_channel_attr *attr);
void slu_engine_destroy(struct slu_engine *engine);
/*
 * Checks whether a channel can have these attributes: 0, or the error that slu_engine_create()
 * would give.
 */
int slu_channel_check(const struct sluice_pd *pd, const struct sluice_channel_attr *attr);
/* Returns a tag for an engine or a scope, unique in the process. 0 is never given out. */
uint64_t slu_next_tag(void);
int slu_engine_shutdown(struct slu_engine *engine, int64_t deadline);
/*
 * Fails the peers whose byte in which is not 0, or all if which is NULL, without waiting. The drain
 * bound of each begins now, so a following reset, shutdown or close waits for it only once.
 */
void slu_engine_begin_drain(struct slu_engine *engine, const uint8_t *which);
/*
 * Gives an engine without peers this many that are absent until they are used. lazy outlives the
 * engine. Returns 0, or an error with a text, and the engine is to be destroyed.
 */
int slu_engine_use_lazy(struct slu_engine *engine, struct slu_lazy *lazy, uint32_t peers);
/* Ends the connection of a peer, and makes the peer absent. Its rings and results stay. */
void slu_peer_vanish(struct slu_engine *engine, struct slu_peer *peer);
/* For the user of such an engine: tells whether it waits for nothing of a peer. */
bool slu_peer_rests(const struct slu_engine *engine, uint32_t index);
/* Returns the peer of a request by its id, and whether it is a receive. Any thread may call it. */
uint32_t slu_lazy_peer_of(uint64_t id, bool *receives);
/* Adds a prepared peer and writes its endpoint. Returns the peer's index, or an error. */
int slu_peer_add(struct slu_engine *engine, struct sluice_endpoint *endpoint);
/* Drains the work of a peer, then removes it. */
void slu_peer_remove(struct slu_engine *engine, struct slu_peer *peer);
/* Reads the endpoint of a peer, whose queue pair must exist. */
void slu_peer_endpoint(const struct slu_engine *engine, const struct slu_peer *peer,
                       struct sluice_endpoint *endpoint);
int slu_peer_connect(struct slu_engine *engine, struct slu_peer *peer,
                     const struct sluice_endpoint *remote);
int slu_peer_reset(struct slu_engine *engine, struct slu_peer *peer);
/* Does the same for a peer that was never connected, and does not count it as a reset. */
int slu_peer_renew(struct slu_engine *engine, struct slu_peer *peer);
/* Waits until the peer, or every connected peer if it is NULL, has shown a sign of life. */
int slu_wait_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);
/* Does the same, but a wake does not end it: the wake ends the program's next wait instead. */
int slu_await_connected(struct slu_engine *engine, struct slu_peer *peer, int64_t timeout);
/* Returns the state of a peer to the program: enters the engine, and polls first. */
int slu_peer_state(struct slu_engine *engine, struct slu_peer *peer);
/*
 * Answer the program, whose struct may be of another version. Both enter the engine, and poll
 * first.
 */
int slu_peer_query(struct slu_engine *engine, struct slu_peer *peer,
                   struct sluice_channel_info *info);
int slu_peer_first_error(struct slu_engine *engine, struct slu_peer *peer,
                         struct sluice_error *error);
/* Reads the counters of a peer, or of all if peer is NULL. */
int slu_counters(const struct slu_engine *engine, const struct slu_peer *peer,
                 struct sluice_counters *counters);

#endif
