/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/negotiation.h"

#include <string.h>
#include <sys/epoll.h>

#include "base/macros.h"

enum stage { STAGE_FIRST, STAGE_HEAD, STAGE_BODY, STAGE_PROOF };

static enum slu_received receive(struct slu_acceptor *acceptor, struct slu_pending_conn *conn);

void slu_negotiations_init(struct slu_negotiations *negotiations, int epoll, uint64_t tag)
{
    slu_acceptor_init(&negotiations->acceptor, epoll, tag);
    negotiations->acceptor.receive = receive;
    negotiations->acceptor.hello = SLU_HEAD_FIRST;
    negotiations->acceptor.magic = slu_session_hello_magic;
    negotiations->acceptor.magic_bytes = SLU_SESSION_MAGIC_BYTES;
}

bool slu_negotiation_reply(int fd, const struct slu_session *session, enum slu_reply_code word,
                           const void *body, uint32_t count)
{
    uint8_t reply[SLU_REPLY_BYTES + SLU_BODY_BYTES];
    struct slu_talk talk = {.fd = fd};

    return slu_talk_say(&talk, reply, slu_reply_make(session, word, body, count, reply));
}

bool slu_negotiation_admit(int fd, const struct slu_session *session, const void *body,
                           uint32_t count)
{
    uint8_t reply[SLU_REPLY_BYTES + SLU_BODY_BYTES];
    struct slu_talk talk = {.fd = fd};

    return slu_talk_begin(&talk, reply,
                          slu_reply_make(session, SLU_REPLY_ADMITTED, body, count, reply));
}

/*
 * Sends only the head of an answer, and ends the connection. Reads what has come meanwhile, because
 * closing a socket with unread bytes could discard the answer.
 */
static enum slu_received refuse(const struct slu_negotiations *negotiations,
                                const struct slu_talk *talk, enum slu_reply_code word)
{
    struct slu_head head = {.word = word, .means = negotiations->means};
    uint8_t bytes[SLU_HEAD_BYTES], rest[SLU_HEAD_BYTES + SLU_BODY_BYTES + SLU_PROOF_BYTES];

    if (slu_head_make(slu_session_answer_magic, &head, bytes) == 0)
        slu_talk_say(talk, bytes, sizeof bytes);
    (void)!recv(talk->fd, rest, sizeof rest, MSG_DONTWAIT);
    return SLU_RECEIVED_DROP;
}

static enum slu_received receive_first(struct slu_negotiations *negotiations,
                                       struct slu_pending_conn *conn)
{
    struct slu_talk *talk = &conn->talk;
    struct slu_head head;

    if (!slu_head_first(slu_session_hello_magic, talk->bytes, &head))
        return SLU_RECEIVED_DROP;
    if (!slu_head_fits(&head)) {
        if (negotiations->foreign != NULL)
            negotiations->foreign(negotiations, &head, talk->fd);
        return refuse(negotiations, talk, SLU_REPLY_VERSION);
    }
    if (head.word != negotiations->purpose)
        return refuse(negotiations, talk, SLU_REPLY_PURPOSE);
    conn->stage = STAGE_HEAD;
    talk->want = SLU_HEAD_BYTES;
    return SLU_RECEIVED_MORE;
}

/* Answers a hello that has come completely. */
static enum slu_received answer(struct slu_negotiations *negotiations,
                                struct slu_negotiation *negotiation, struct slu_pending_conn *conn)
{
    struct slu_head head = {
        .word = SLU_REPLY_GO_ON, .bytes = negotiations->answer_bytes, .means = negotiations->means};
    uint8_t *at = negotiation->said + negotiation->hello_bytes;
    bool said;

    if (negotiation->hello.means != negotiations->means) {
        if (negotiations->denied != NULL)
            negotiations->denied(negotiations, negotiation, conn->talk.fd);
        return refuse(negotiations, &conn->talk, SLU_REPLY_DENIED);
    }
    if (slu_head_make(slu_session_answer_magic, &head, at) < 0)
        return SLU_RECEIVED_DROP;
    if (head.bytes > 0)
        memcpy(at + SLU_HEAD_BYTES, negotiations->answer, head.bytes);
    negotiation->said_bytes = negotiation->hello_bytes + SLU_HEAD_BYTES + head.bytes;
    conn->spoke = true;
    conn->stage = STAGE_PROOF;
    conn->talk.got = 0;
    conn->talk.want = SLU_PROOF_BYTES;
    /*
     * Without a secret the dialer may have chosen this listener already. Then the reply goes into
     * one packet with the answer.
     */
    if (negotiations->means == SLU_MEANS_NONE && slu_talk_receive(&conn->talk) == SLU_TALK_WHOLE)
        said = slu_talk_begin(&conn->talk, at, SLU_HEAD_BYTES + head.bytes);
    else
        said = slu_talk_say(&conn->talk, at, SLU_HEAD_BYTES + head.bytes);
    return said ? SLU_RECEIVED_MORE : SLU_RECEIVED_DROP;
}

/* Receives the next part of the body, since a talk has less room than a body may have. */
static enum slu_received receive_body_next(struct slu_negotiations *negotiations,
                                           struct slu_negotiation *negotiation,
                                           struct slu_pending_conn *conn)
{
    uint32_t left = SLU_HEAD_BYTES + negotiation->hello.bytes - negotiation->hello_bytes;

    if (left == 0)
        return answer(negotiations, negotiation, conn);
    conn->stage = STAGE_BODY;
    conn->talk.got = 0;
    conn->talk.want = left < SLU_TALK_BYTES ? left : SLU_TALK_BYTES;
    return SLU_RECEIVED_MORE;
}

static void append_hello(struct slu_negotiation *negotiation, const struct slu_talk *talk)
{
    memcpy(negotiation->said + negotiation->hello_bytes, talk->bytes, talk->got);
    negotiation->hello_bytes += talk->got;
}

static enum slu_received receive_head(struct slu_negotiations *negotiations,
                                      struct slu_negotiation *negotiation,
                                      struct slu_pending_conn *conn)
{
    if (!slu_head_read(conn->talk.bytes, &negotiation->hello))
        return SLU_RECEIVED_DROP;
    negotiation->hello_bytes = 0;
    append_hello(negotiation, &conn->talk);
    return receive_body_next(negotiations, negotiation, conn);
}

static enum slu_received receive_proof(struct slu_negotiations *negotiations,
                                       struct slu_negotiation *negotiation,
                                       struct slu_pending_conn *conn)
{
    struct slu_session session;
    bool proves;

    slu_session_make(negotiations->secret, negotiations->secret_bytes, negotiation->said,
                     negotiation->said_bytes, &session);
    proves =
        negotiations->means == SLU_MEANS_NONE || slu_session_proves(&session, conn->talk.bytes);
    if (proves) {
        epoll_ctl(negotiations->acceptor.epoll, EPOLL_CTL_DEL, conn->talk.fd, NULL);
        negotiations->proven(negotiations, negotiation, &session, conn->talk.fd);
    } else {
        if (negotiations->denied != NULL)
            negotiations->denied(negotiations, negotiation, conn->talk.fd);
        slu_negotiation_reply(conn->talk.fd, &session, SLU_REPLY_DENIED, NULL, 0);
    }
    slu_proof_forget(&session, sizeof session);
    return proves ? SLU_RECEIVED_TAKEN : SLU_RECEIVED_DROP;
}

static enum slu_received receive(struct slu_acceptor *acceptor, struct slu_pending_conn *conn)
{
    struct slu_negotiations *negotiations =
        slu_container_of(acceptor, struct slu_negotiations, acceptor);
    struct slu_negotiation *negotiation = &negotiations->at[conn - acceptor->conns];

    switch ((enum stage)conn->stage) {
    case STAGE_FIRST:
        return receive_first(negotiations, conn);
    case STAGE_HEAD:
        return receive_head(negotiations, negotiation, conn);
    case STAGE_BODY:
        append_hello(negotiation, &conn->talk);
        return receive_body_next(negotiations, negotiation, conn);
    default:
        return receive_proof(negotiations, negotiation, conn);
    }
}
