/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/negotiation.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/macros.h"

enum stage { STAGE_FIRST, STAGE_HEAD, STAGE_BODY, STAGE_PROOF };

static enum slu_heard hear(struct slu_acceptor *acceptor, struct slu_pending_conn *conn);

void slu_negotiations_init(struct slu_negotiations *offers, int epoll, uint64_t tag)
{
    slu_acceptor_init(&offers->acceptor, epoll, tag);
    offers->acceptor.hear = hear;
    offers->acceptor.hello = SLU_HEAD_FIRST;
    offers->acceptor.magic = slu_session_hello_magic;
    offers->acceptor.magic_bytes = SLU_SESSION_MAGIC_BYTES;
}

bool slu_negotiation_reply(int fd, const struct slu_session *session, enum slu_reply_code word,
                           const void *body, uint32_t count)
{
    uint8_t reply[SLU_REPLY_BYTES + SLU_BODY_BYTES];
    struct slu_talk talk = {.fd = fd};

    return slu_talk_say(&talk, reply, slu_reply_make(session, word, body, count, reply));
}

/*
 * Only the head of an answer: it goes no further. What was said meanwhile is read, for the
 * end of a connection with something unread would take the answer with it.
 */
static enum slu_heard end(const struct slu_negotiations *offers, const struct slu_talk *talk,
                          enum slu_reply_code word)
{
    struct slu_head head = {.version = SLU_SESSION_VERSION, .word = word, .means = offers->means};
    uint8_t bytes[SLU_HEAD_BYTES], rest[SLU_HEAD_BYTES + SLU_BODY_BYTES + SLU_PROOF_BYTES];

    if (slu_head_make(slu_session_answer_magic, &head, bytes) == 0)
        slu_talk_say(talk, bytes, sizeof bytes);
    (void)!recv(talk->fd, rest, sizeof rest, MSG_DONTWAIT);
    return SLU_HEARD_DROP;
}

static enum slu_heard hear_first(struct slu_negotiations *offers, struct slu_pending_conn *conn)
{
    struct slu_talk *talk = &conn->talk;
    struct slu_head head;

    if (!slu_head_first(slu_session_hello_magic, talk->bytes, &head))
        return SLU_HEARD_DROP;
    if (head.version != SLU_SESSION_VERSION) {
        if (offers->foreign != NULL)
            offers->foreign(offers, head.version, talk->fd);
        return end(offers, talk, SLU_REPLY_VERSION);
    }
    if (head.word != offers->purpose)
        return end(offers, talk, SLU_REPLY_PURPOSE);
    conn->stage = STAGE_HEAD;
    talk->want = SLU_HEAD_BYTES;
    return SLU_HEARD_MORE;
}

/* All of the hello is there. */
static enum slu_heard answer(struct slu_negotiations *offers, struct slu_negotiation *offer,
                             struct slu_pending_conn *conn)
{
    struct slu_head head = {.version = SLU_SESSION_VERSION,
                            .word = SLU_REPLY_GO_ON,
                            .bytes = offers->answer_bytes,
                            .means = offers->means};
    uint8_t *at = offer->said + offer->hello_bytes;
    bool said;

    if (offer->hello.means != offers->means) {
        if (offers->denied != NULL)
            offers->denied(offers, offer, conn->talk.fd);
        return end(offers, &conn->talk, SLU_REPLY_DENIED);
    }
    if (slu_head_make(slu_session_answer_magic, &head, at) < 0)
        return SLU_HEARD_DROP;
    if (head.bytes > 0)
        memcpy(at + SLU_HEAD_BYTES, offers->answer, head.bytes);
    offer->said_bytes = offer->hello_bytes + SLU_HEAD_BYTES + head.bytes;
    conn->spoke = true;
    conn->stage = STAGE_PROOF;
    conn->talk.got = 0;
    conn->talk.want = SLU_PROOF_BYTES;
    /* Without a secret it may have chosen us already: what we say to that goes with the answer. */
    if (offers->means == SLU_MEANS_NONE && slu_talk_hear(&conn->talk) == SLU_TALK_WHOLE)
        said = slu_talk_begin(&conn->talk, at, SLU_HEAD_BYTES + head.bytes);
    else
        said = slu_talk_say(&conn->talk, at, SLU_HEAD_BYTES + head.bytes);
    return said ? SLU_HEARD_MORE : SLU_HEARD_DROP;
}

/* The next part of the body; a talk has less room than a body may have. */
static enum slu_heard await_body(struct slu_negotiations *offers, struct slu_negotiation *offer,
                                 struct slu_pending_conn *conn)
{
    uint32_t left = SLU_HEAD_BYTES + offer->hello.bytes - offer->hello_bytes;

    if (left == 0)
        return answer(offers, offer, conn);
    conn->stage = STAGE_BODY;
    conn->talk.got = 0;
    conn->talk.want = left < SLU_TALK_BYTES ? left : SLU_TALK_BYTES;
    return SLU_HEARD_MORE;
}

static void keep(struct slu_negotiation *offer, const struct slu_talk *talk)
{
    memcpy(offer->said + offer->hello_bytes, talk->bytes, talk->got);
    offer->hello_bytes += talk->got;
}

static enum slu_heard hear_head(struct slu_negotiations *offers, struct slu_negotiation *offer,
                                struct slu_pending_conn *conn)
{
    if (!slu_head_read(conn->talk.bytes, &offer->hello))
        return SLU_HEARD_DROP;
    offer->hello_bytes = 0;
    keep(offer, &conn->talk);
    return await_body(offers, offer, conn);
}

static enum slu_heard hear_proof(struct slu_negotiations *offers, struct slu_negotiation *offer,
                                 struct slu_pending_conn *conn)
{
    struct slu_session session;
    bool proves;

    slu_session_make(offers->secret, offers->secret_bytes, offer->said, offer->said_bytes,
                     &session);
    proves = offers->means == SLU_MEANS_NONE || slu_session_proves(&session, conn->talk.bytes);
    if (proves) {
        epoll_ctl(offers->acceptor.epoll, EPOLL_CTL_DEL, conn->talk.fd, NULL);
        offers->proven(offers, offer, &session, conn->talk.fd);
    } else {
        if (offers->denied != NULL)
            offers->denied(offers, offer, conn->talk.fd);
        slu_negotiation_reply(conn->talk.fd, &session, SLU_REPLY_DENIED, NULL, 0);
    }
    slu_proof_forget(&session, sizeof session);
    return proves ? SLU_HEARD_TAKEN : SLU_HEARD_DROP;
}

static enum slu_heard hear(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    struct slu_negotiations *offers = slu_container_of(acceptor, struct slu_negotiations, acceptor);
    struct slu_negotiation *offer = &offers->at[conn - acceptor->conns];

    switch ((enum stage)conn->stage) {
    case STAGE_FIRST:
        return hear_first(offers, conn);
    case STAGE_HEAD:
        return hear_head(offers, offer, conn);
    case STAGE_BODY:
        keep(offer, &conn->talk);
        return await_body(offers, offer, conn);
    default:
        return hear_proof(offers, offer, conn);
    }
}
