/* SPDX-License-Identifier: MIT */
/* Requests to a PMI-1 server: one line each, with one line as the answer. */
#ifndef SLU_EXCHANGE_PMI_H
#define SLU_EXCHANGE_PMI_H

#include <stdint.h>
#include <sys/types.h>

#define PMI_LINE_BYTES 4096

struct pmi_talk {
    int fd; /* a socket */
    int64_t until;
    const char *command; /* of the last request */
    char line[PMI_LINE_BYTES];
};

/*
 * pmi_wire.c. Each function returns 0, or with a text -ETIMEDOUT, -ECONNRESET (the server hung up),
 * -EPROTO (an invalid answer or a refusal), or an error of poll(2).
 */

/* Sends "cmd=COMMAND" and what follows, and receives a line "cmd=KIND ...". */
int slu_pmi_request(struct pmi_talk *talk, const char *command, const char *kind,
                    const char *format, ...) __attribute__((format(printf, 4, 5)));
/* Copies a word, or reads a number, that the answer must have. */
int slu_pmi_word(const struct pmi_talk *talk, const char *name, char *word, size_t size);
int slu_pmi_number(const struct pmi_talk *talk, const char *name, uint32_t *number);
/* Checks that the request succeeded: rc is 0. */
int slu_pmi_success(const struct pmi_talk *talk);
/* Sends the line as it is; waits until the socket is ready for events of poll(2), or a signal. */
int slu_pmi_send(const struct pmi_talk *talk);
int slu_pmi_wait(const struct pmi_talk *talk, short events);

#endif
