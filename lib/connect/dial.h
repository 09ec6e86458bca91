/* SPDX-License-Identifier: MIT */
/*
 * Dialing somebody who has several addresses: one after the other, each while those before
 * it have not answered yet, so that no silent one holds up another. An address that fails
 * lets the next one begin at once, and is dialed again after a pause, which grows.
 *
 * It belongs to one thread at a time.
 */
#ifndef SLU_CONNECT_DIAL_H
#define SLU_CONNECT_DIAL_H

#include "connect/address.h"

#define SLU_DIAL_MOST 16

enum slu_dial_state {
    SLU_DIAL_NONE,       /* no socket */
    SLU_DIAL_CONNECTING, /* connect(2) is under way */
    SLU_DIAL_UP          /* connected: what is said there is the user's */
};

struct slu_dial_attempt {
    struct slu_address address;
    int fd; /* -1: none */
    enum slu_dial_state state;
    int error;       /* why it failed last, a positive errno; 0: it has not */
    const char *why; /* in words, static; NULL: those of the errno */
    uint32_t failures;
    int64_t since, next;
};

struct slu_dial {
    uint32_t count;
    struct slu_dial_attempt attempts[SLU_DIAL_MOST];
};

/* One more address; those that are too many, or there already, are left out. */
void slu_dial_add(struct slu_dial *dial, const struct slu_address *address);
/* Closes what is not taken. */
void slu_dial_end(struct slu_dial *dial);

/* Dials who is due, and fails who has taken too long to connect. *next: when it is due again. */
void slu_dial_tick(struct slu_dial *dial, int64_t now, int64_t *next);
/* Waits until then at most: which attempts have news, a bit for each. */
uint32_t slu_dial_wait(const struct slu_dial *dial, int64_t until);
/* News of an attempt: true if it is up, now or before. */
bool slu_dial_event(struct slu_dial *dial, uint32_t index);
/* One that is up leads nowhere, or is to be given up; why is static, or NULL. */
void slu_dial_fail(struct slu_dial *dial, uint32_t index, int error, const char *why);
/* The socket of one that is up, which is the caller's from now on. */
int slu_dial_take(struct slu_dial *dial, uint32_t index);

/* Whether all have failed with one of these errors, 0 for none, and nothing is under way. */
bool slu_dial_all_failed(const struct slu_dial *dial, const int *errors, uint32_t count);
/* "192.0.2.1:7471: Connection refused; [::1]:7471: no answer", as much as there is room for. */
void slu_dial_explain(const struct slu_dial *dial, char *text, size_t size);

#endif
