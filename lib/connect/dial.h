/* SPDX-License-Identifier: MIT */
/*
 * Dials a peer that has several addresses, each while those before it have not answered yet, and
 * again after pauses that grow. A dial belongs to one thread at a time.
 */
#ifndef SLU_CONNECT_DIAL_H
#define SLU_CONNECT_DIAL_H

#include "connect/address.h"
#include "connect/duty.h"

#define SLU_DIAL_MOST 16

enum slu_dial_state {
    SLU_DIAL_NONE,       /* no socket */
    SLU_DIAL_CONNECTING, /* connect(2) is in progress */
    SLU_DIAL_UP          /* connected; the user sends and receives */
};

struct slu_dial_attempt {
    struct slu_address address;
    int fd; /* -1: none */
    enum slu_dial_state state;
    int error;       /* errno value of the last failure; 0: none */
    const char *why; /* the reason as text, static; NULL: that of the errno value */
    uint32_t failures;
    int64_t since, next;
};

struct slu_dial {
    struct slu_duty *duty; /* served by waits; NULL: none */
    uint32_t count;
    struct slu_dial_attempt attempts[SLU_DIAL_MOST];
};

/* Adds an address, unless it is there already, or SLU_DIAL_MOST are. */
void slu_dial_add(struct slu_dial *dial, const struct slu_address *address);
/* Closes all sockets that were not taken. */
void slu_dial_end(struct slu_dial *dial);

/*
 * Dials addresses that are due, and fails those that take too long. Lowers *next to when it is due
 * again.
 */
void slu_dial_tick(struct slu_dial *dial, int64_t now, int64_t *next);
/* Waits until then at most. Returns a bit for each attempt that has an event. */
uint32_t slu_dial_wait(const struct slu_dial *dial, int64_t until);
/* Handles an event of an attempt. Returns true if it is connected. */
bool slu_dial_event(struct slu_dial *dial, uint32_t index);
/* Fails a connected attempt that leads nowhere, or is not needed; why is static, or NULL. */
void slu_dial_fail(struct slu_dial *dial, uint32_t index, int error, const char *why);
/* Returns the socket of a connected attempt, which the caller owns from now on. */
int slu_dial_take(struct slu_dial *dial, uint32_t index);

/*
 * Tells whether all have failed with one of these errors (0: with none), and no attempt is in
 * progress.
 */
bool slu_dial_all_failed(const struct slu_dial *dial, const int *errors, uint32_t count);
/* Writes "192.0.2.1:7471: Connection refused; [::1]:7471: no answer", cut to size. */
void slu_dial_explain(const struct slu_dial *dial, char *text, size_t size);

#endif
