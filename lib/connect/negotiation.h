/* SPDX-License-Identifier: MIT */
/*
 * The listener's side of a connect by address: an acceptor whose peers send a hello, receive a
 * challenge, and prove that they know the secret. The socket of a peer that has proven it goes to
 * the user, who sends a verdict; or first a reply that the verdict is pending. All others are
 * denied, without a reason. A hello proves nothing, so a replayed one gains nothing.
 */
#ifndef SLU_CONNECT_NEGOTIATION_H
#define SLU_CONNECT_NEGOTIATION_H

#include "connect/acceptor.h"
#include "connect/session.h"

/* The bytes that a peer at a place has sent. */
struct slu_negotiation {
    struct slu_head hello;
    uint32_t hello_bytes, said_bytes; /* of hello head and body; and with the answer */
    uint8_t said[SLU_SAID_BYTES];
};

/* Returns the body of a hello. */
static inline const uint8_t *slu_negotiation_body(const struct slu_negotiation *negotiation)
{
    return negotiation->said + SLU_HEAD_BYTES;
}

struct slu_negotiations {
    struct slu_acceptor acceptor; /* the user adds listeners, passes events and ticks, closes it */
    enum slu_purpose purpose;
    uint32_t means;
    const uint8_t *secret; /* of the user; NULL: none */
    size_t secret_bytes;
    const void *answer; /* body of each answer, of the user, SLU_BODY_BYTES at most */
    uint32_t answer_bytes;
    /*
     * The peer has proven itself and waits for a reply. The callee owns fd, which is in no epoll
     * set and does not block, and the session. negotiation is valid during the call.
     */
    void (*proven)(struct slu_negotiations *negotiations, const struct slu_negotiation *negotiation,
                   const struct slu_session *session, int fd);
    /* A complete hello had other means, or a proof was wrong. For logs; may be NULL. */
    void (*denied)(struct slu_negotiations *negotiations, const struct slu_negotiation *negotiation,
                   int fd);
    /* A hello had these versions, which do not fit. For logs; may be NULL. */
    void (*foreign)(struct slu_negotiations *negotiations, const struct slu_head *head, int fd);
    struct slu_negotiation at[SLU_PLACES];
};

/*
 * Initializes the struct, which is large. The user then sets purpose, means, secret, answer and
 * callbacks.
 */
void slu_negotiations_init(struct slu_negotiations *negotiations, int epoll, uint64_t tag);

/*
 * Sends a proven peer its verdict, ADMITTED, REFUSED or BUSY, once; or at once PENDING, if the
 * verdict comes later. Returns false if the peer has gone or takes nothing; the caller then closes
 * the socket. The body of a refusal is its text.
 */
bool slu_negotiation_reply(int fd, const struct slu_session *session, enum slu_reply_code word,
                           const void *body, uint32_t count);
/* Sends the verdict ADMITTED in one packet with what the caller sends next. */
bool slu_negotiation_admit(int fd, const struct slu_session *session, const void *body,
                           uint32_t count);

#endif
