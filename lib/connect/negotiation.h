/* SPDX-License-Identifier: MIT */
/*
 * Whoever listens at an address: an acceptor whose strangers say hello, hear a challenge,
 * and prove that they know the secret. Who has proven it stands: its socket goes to the
 * user, who then gives a verdict, or tells it that it stands and gives the verdict later. Who
 * has not is denied, and hears nothing.
 *
 * A hello proves nothing, and so is worth nothing when it is said again: all who have not
 * proven themselves compete for the places of the acceptor, those who spoke before those
 * who are silent, and then by age. Nobody who stands has a place.
 */
#ifndef SLU_CONNECT_NEGOTIATION_H
#define SLU_CONNECT_NEGOTIATION_H

#include "connect/acceptor.h"
#include "connect/session.h"

/* Of somebody at a place: all that was said. */
struct slu_negotiation {
    struct slu_head hello;
    uint32_t hello_bytes, said_bytes; /* head and body; and with our answer */
    uint8_t said[SLU_SAID_BYTES];
};

/* The body of a hello. */
static inline const uint8_t *slu_negotiation_body(const struct slu_negotiation *offer)
{
    return offer->said + SLU_HEAD_BYTES;
}

struct slu_negotiations {
    struct slu_acceptor acceptor; /* the user adds listeners, hands on events, ticks, closes it */
    enum slu_purpose purpose;
    uint32_t means;
    const uint8_t *secret; /* the user's; NULL: there is none */
    size_t secret_bytes;
    const void *answer; /* the user's body of each answer, SLU_BODY_BYTES at most */
    uint32_t answer_bytes;
    /*
     * It stands, and is to be told: fd is the callee's, in no epoll set, and does not block.
     * So is the session; offer ends with the call.
     */
    void (*proven)(struct slu_negotiations *offers, const struct slu_negotiation *offer,
                   const struct slu_session *session, int fd);
    /* For the record, may be NULL: a whole hello of other means, or a proof that is none. */
    void (*denied)(struct slu_negotiations *offers, const struct slu_negotiation *offer, int fd);
    /* The same: a hello of that version. */
    void (*foreign)(struct slu_negotiations *offers, uint32_t version, int fd);
    struct slu_negotiation at[SLU_PLACES];
};

/* The struct is large. The user sets purpose, means, secret, answer and calls afterwards. */
void slu_negotiations_init(struct slu_negotiations *offers, int epoll, uint64_t tag);

/*
 * To somebody who stands a verdict: ADMITTED, REFUSED or BUSY, once; or STANDS, at once, if it
 * comes later. False: the other side has gone or takes nothing, and the socket is to be closed.
 * Text of a refusal: the body.
 */
bool slu_negotiation_reply(int fd, const struct slu_session *session, enum slu_reply_code word,
                           const void *body, uint32_t count);

#endif
