/* SPDX-License-Identifier: MIT */
/* How the server of PMI-1 is talked to: a line, and a line for an answer. */
#ifndef SLU_EXCHANGE_PMI_H
#define SLU_EXCHANGE_PMI_H

#include <stdint.h>
#include <sys/types.h>

#define PMI_LINE_BYTES 4096

struct pmi_talk {
    int fd; /* a socket */
    int64_t until;
    const char *command; /* the last one */
    char line[PMI_LINE_BYTES];
};

/*
 * pmi_wire.c. Each returns 0, or with a text -ETIMEDOUT, -ECONNRESET (the server hung
 * up), -EPROTO (what it says makes no sense, or that it refuses), or of poll(2).
 */

/* Sends "cmd=COMMAND" and what follows, and hears a line "cmd=KIND ...". */
int slu_pmi_ask(struct pmi_talk *talk, const char *command, const char *kind, const char *format,
                ...) __attribute__((format(printf, 4, 5)));
/* What the answer must have. */
int slu_pmi_word(const struct pmi_talk *talk, const char *name, char *word, size_t size);
int slu_pmi_number(const struct pmi_talk *talk, const char *name, uint32_t *number);
/* That what was asked for was done: rc is 0. */
int slu_pmi_success(const struct pmi_talk *talk);
/* The line as it is; until the socket is ready for events of poll(2), or a signal comes. */
int slu_pmi_send(const struct pmi_talk *talk);
int slu_pmi_await(const struct pmi_talk *talk, short events);

#endif
