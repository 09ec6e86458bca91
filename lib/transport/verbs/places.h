/* SPDX-License-Identifier: MIT */
/*
 * What peers write to each other beside the data of the program: hints of receives (hint.c) and
 * farewells (farewell.c). Each queue pair has a place in a region that its peer may write to.
 */
#ifndef SLU_VERBS_PLACES_H
#define SLU_VERBS_PLACES_H

#include "transport/verbs/verbs.h"

/* Of how many queue pairs a region has the places. */
#define SLU_VERBS_PLACES 32

/* What a side tells the other, in the byte order of little endian. */
struct slu_verbs_words {
    _Atomic uint64_t receives; /* that it has posted since it was connected */
    _Atomic uint64_t wanted;   /* not 0: it wants to be told those of the other */
    _Atomic uint64_t farewell; /* what the endpoint of the other has for it: it has closed */
};

/* A hint is the words before the farewell, which earlier versions have as well. */
#define SLU_VERBS_HINT_BYTES offsetof(struct slu_verbs_words, farewell)
_Static_assert(offsetof(struct slu_verbs_words, wanted) + 8 == SLU_VERBS_HINT_BYTES, "neighbours");

/* Each queue pair has one: two lines of the cache, of which the peer writes the first. */
struct slu_verbs_place {
    struct slu_verbs_words heard;
    uint64_t unused[5];
    struct slu_verbs_words said; /* what is in flight to the peer */
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
