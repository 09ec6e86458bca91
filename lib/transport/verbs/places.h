/* SPDX-License-Identifier: MIT */
/*
 * Memory for words that peers write to each other beside the data of the program: hints of receives
 * (hint.c) and farewells (farewell.c). Each queue pair has a place in a region that its peer may
 * write to.
 */
#ifndef SLU_VERBS_PLACES_H
#define SLU_VERBS_PLACES_H

#include "transport/verbs/verbs.h"

/* Number of queue pairs whose places share a region. */
#define SLU_VERBS_PLACES 32

/* Words that a side writes to the other, in little endian. */
struct slu_verbs_words {
    _Atomic uint64_t receives; /* number posted since the connection was made */
    _Atomic uint64_t wanted;   /* not 0: this side wants hints of the other's receives */
    _Atomic uint64_t farewell; /* farewell word from the other's endpoint: this side has closed */
};

/* A hint consists of the words before the farewell, as in earlier versions. */
#define SLU_VERBS_HINT_BYTES offsetof(struct slu_verbs_words, farewell)
_Static_assert(offsetof(struct slu_verbs_words, wanted) + 8 == SLU_VERBS_HINT_BYTES, "neighbours");

/* The place of a queue pair: two cache lines, of which the peer writes the first. */
struct slu_verbs_place {
    struct slu_verbs_words heard;
    uint64_t unused[5];
    struct slu_verbs_words said; /* source of the write in flight to the peer */
    uint64_t unused2[5];
};
_Static_assert(sizeof(struct slu_verbs_place) == 128, "two lines of the cache");

/* Places in one region. */
struct slu_verbs_places {
    struct slu_verbs_places *next;
    struct ibv_mr *ibv;
    struct slu_verbs_place *all;
    uint32_t used; /* places from here on were never taken */
    uint32_t free_count;
    uint32_t free[SLU_VERBS_PLACES]; /* places that were given back */
};

#endif
