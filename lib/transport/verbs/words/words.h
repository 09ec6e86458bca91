/* SPDX-License-Identifier: MIT */
/*
 * Words that two sides write to each other: hints of receives, and farewells. Each queue pair has a
 * place for them in a region that its peer may write to.
 */
#ifndef SLU_VERBS_WORDS_H
#define SLU_VERBS_WORDS_H

#include "transport/verbs/verbs.h"

/* Number of queue pairs whose places share a region. */
#define SLU_VERBS_PLACES 32

/* Places in one region. */
struct slu_verbs_places {
    struct slu_verbs_places *next;
    struct ibv_mr *ibv;
    struct slu_verbs_place *all;
    uint32_t used; /* places from here on were never taken */
    uint32_t free_count;
    uint32_t free[SLU_VERBS_PLACES]; /* places that were given back */
};

/* A hint consists of the words before the farewell, as in earlier versions. */
#define SLU_VERBS_HINT_BYTES offsetof(struct slu_verbs_words, farewell)
_Static_assert(offsetof(struct slu_verbs_words, wanted) + 8 == SLU_VERBS_HINT_BYTES, "neighbours");

/*
 * places.c: takes a place for a queue pair; or none, without an error, if the device registers no
 * memory for it.
 */
int slu_verbs_place_take(struct slu_verbs_qp *qp);
void slu_verbs_place_give(struct slu_verbs_qp *qp);
/* Writes words of the place to an address at the peer, by a request of our own. */
int slu_verbs_words_write(struct slu_verbs_qp *qp, const void *words, size_t length, uint64_t addr);
/* Frees all places of a protection domain, which has no more queue pairs. */
void slu_verbs_places_free(struct slu_verbs_pd *pd);

/* hint.c: takes a place to which the peer writes hints of its receives. */
int slu_verbs_hint_open(struct slu_verbs_qp *qp);
void slu_verbs_hint_close(struct slu_verbs_qp *qp);
void slu_verbs_hint_endpoint(const struct slu_verbs_qp *qp, struct slu_endpoint *endpoint);
/* Counts receives that were posted. */
void slu_verbs_hint_received(struct slu_verbs_qp *qp, uint32_t count);
/*
 * If the peer was asked for hints, waits a bounded time for a receive for the message, if the call
 * blocks.
 */
void slu_verbs_hint_await(struct slu_verbs_qp *qp, bool blocking);
void slu_verbs_qp_slow(struct slu_qp *qp);
/*
 * Returns whether a request of our own, which no probe waits for, has failed and was not reported
 * yet.
 */
bool slu_verbs_own_failure(struct slu_verbs_qp *qp, struct slu_alert *alert);

/* farewell.c: chooses the word that the peer writes if it closes the connection. */
int slu_verbs_farewell_open(struct slu_verbs_qp *qp);
/* Begins to notify the peer that this side closes the connection, if the peer supports it. */
void slu_verbs_qp_farewell(struct slu_qp *qp, enum slu_farewell why);
/* Continues a farewell, when no request of our own is in flight. */
void slu_verbs_farewell_step(struct slu_verbs_qp *qp);
/* Waits until the peer was notified, for a bounded time. */
void slu_verbs_farewell_await(struct slu_verbs_qp *qp);
const char *slu_verbs_qp_loss(const struct slu_qp *qp, bool *closed);
bool slu_verbs_qp_untaken(const struct slu_qp *qp, uint64_t *untaken);

#endif
