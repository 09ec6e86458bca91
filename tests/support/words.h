/* SPDX-License-Identifier: MIT */
/* A star whose hub does atomic operations on eight words of its peers' side. */
#ifndef SUPPORT_WORDS_H
#define SUPPORT_WORDS_H

#include "pair.h"

#define ACCESS (ACCESS_ALL | SLUICE_ACCESS_REMOTE_ATOMIC)
#define WORDS 8
#define BYTES (WORDS * sizeof(uint64_t))
#define START UINT64_C(0x0123456789abcdef)

/* Word i is START + i, and the results are 0. The hub uses peer 1; peer 0 is a bystander. */
struct fixture {
    struct star star;
    struct memory near;
    struct memory far;
    uint64_t *results;
    uint64_t *words;
};

void fixture_open(struct fixture *fixture, const struct sluice_channel_attr *attr, uint32_t access);
/* Checks that peer 0 works. */
void fixture_close(struct fixture *fixture);

struct sluice_sge result_sge(const struct fixture *fixture, uint32_t index);
struct sluice_remote_mr word_of(const struct fixture *fixture, uint32_t index);
struct sluice_request add_request(const struct fixture *fixture, uint32_t word,
                                  const struct sluice_sge *result, uint64_t addend);
struct sluice_request swap_request(const struct fixture *fixture, uint32_t word,
                                   const struct sluice_sge *result, uint64_t expected,
                                   uint64_t desired);

void require_word(uint64_t got, uint64_t wanted, const char *what);
/* Requires that all words but those of the mask are unchanged. */
void check_others(const struct fixture *fixture, uint32_t touched);
bool device_has_atomics(void);

#endif
