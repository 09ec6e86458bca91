/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/target.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "connect/stream.h"

/* The longest wait for an answer, while other addresses are tried. */
#define ANSWER_TIME SLUICE_S(10)
/*
 * How long a listener that received the proof may take to prove itself, before the proof is sent to
 * another one.
 */
#define PROOF_TIME SLUICE_S(1)

enum stage { STAGE_FIRST, STAGE_HEAD, STAGE_BODY, STAGE_READY, STAGE_REPLY, STAGE_VERDICT };

void slu_target_init(struct slu_target *target)
{
    memset(target, 0, sizeof *target);
    target->chosen = SLU_DIAL_MOST;
}

void slu_target_end(struct slu_target *target)
{
    slu_dial_end(&target->dial);
    for (uint32_t i = 0; i < target->dial.count; i++) {
        if (target->talks[i] != NULL)
            slu_proof_forget(&target->talks[i]->session, sizeof target->talks[i]->session);
        free(target->talks[i]);
        target->talks[i] = NULL;
    }
}

static void fail(struct slu_target *target, uint32_t index, int error, const char *why)
{
    slu_dial_fail(&target->dial, index, error, why);
    if (index != target->chosen)
        return;
    target->chosen = SLU_DIAL_MOST;
    target->proven = false;
}

static bool send_bytes(const struct slu_target *target, uint32_t index, const void *bytes,
                       uint32_t count)
{
    struct slu_talk talk = {.fd = target->dial.attempts[index].fd};

    return slu_talk_say(&talk, bytes, count);
}

static void send_hello(struct slu_target *target, uint32_t index)
{
    struct slu_target_talk *talk = target->talks[index];
    uint32_t count = SLU_HEAD_BYTES + target->body_bytes;
    struct slu_head head = {
        .word = target->purpose, .bytes = target->body_bytes, .means = target->means};

    if (talk == NULL)
        talk = target->talks[index] =
            malloc(sizeof *talk + count + SLU_HEAD_BYTES + SLU_BODY_BYTES);
    if (talk == NULL) {
        fail(target, index, ENOMEM, NULL);
        return;
    }
    talk->stage = STAGE_FIRST;
    talk->proof_sent = target->means == SLU_MEANS_NONE && target->dial.count == 1;
    talk->got = 0;
    talk->want = SLU_HEAD_FIRST;
    talk->said_bytes = count;
    if (slu_head_make(slu_session_hello_magic, &head, talk->bytes) < 0) {
        fail(target, index, EIO, "no random numbers");
        return;
    }
    if (head.bytes > 0)
        memcpy(talk->bytes + SLU_HEAD_BYTES, target->body, head.bytes);
    /* The buffer of the answer, which is still empty, has room for it. */
    if (talk->proof_sent) {
        memset(talk->bytes + count, 0, SLU_PROOF_BYTES);
        count += SLU_PROOF_BYTES;
    }
    if (!send_bytes(target, index, talk->bytes, count))
        fail(target, index, ECONNRESET, "it hung up");
}

/* Receives wanted bytes. Returns 1 if all have come, 0 if not yet, or -1 if no more will come. */
static int receive(struct slu_target *target, uint32_t index, uint8_t *bytes)
{
    struct slu_target_talk *talk = target->talks[index];
    uint8_t *at = bytes + talk->got;
    size_t left = talk->got < talk->want ? talk->want - talk->got : 0;
    int error = slu_stream_receive(target->dial.attempts[index].fd, &at, &left);

    talk->got = talk->want - (uint32_t)left;
    return error < 0 ? -1 : left == 0;
}

static bool is_same(const struct slu_head *head)
{
    return head->written == SLU_SESSION_VERSION;
}

/* Checks the first 16 bytes of an answer. Returns false if it ends here. */
static bool check_first(struct slu_target *target, uint32_t index, const uint8_t *bytes)
{
    struct slu_head head;

    if (!slu_head_first(slu_session_answer_magic, bytes, &head)) {
        fail(target, index, EPROTO, "what answers is not a listener of sluice");
    } else if (!slu_head_fits(&head) || (head.word == SLU_REPLY_VERSION && !is_same(&head))) {
        target->foreign = true;
        fail(target, index, EPROTO, slu_head_text(&head, target->text));
    } else if (head.word == SLU_REPLY_PURPOSE) {
        fail(target, index, EPROTO, "it listens for another purpose");
    } else if (head.word != SLU_REPLY_GO_ON && head.word != SLU_REPLY_DENIED) {
        fail(target, index, EPROTO, "what answers is not a listener of sluice");
    } else {
        return true;
    }
    return false;
}

static const char *means_text(const struct slu_target *target, uint32_t other)
{
    if (target->means == SLU_MEANS_NONE)
        return "it requires a secret, and this side has none; name its file by "
               "SLUICE_SECRET_FILE or secret_file";
    return other == SLU_MEANS_NONE ? "it has no secret, and this side has one"
                                   : "its secret is of another kind";
}

/* Checks a whole head. */
static bool check_head(struct slu_target *target, uint32_t index, const uint8_t *bytes)
{
    struct slu_target_talk *talk = target->talks[index];

    if (!slu_head_read(bytes, &talk->answer)) {
        fail(target, index, EPROTO, "what answers is not a listener of sluice");
    } else if (talk->answer.means != target->means) {
        target->other_means = talk->answer.means;
        fail(target, index, EACCES, means_text(target, talk->answer.means));
    } else if (talk->answer.word != SLU_REPLY_GO_ON) {
        fail(target, index, EACCES, "it denied the connection");
    } else {
        return true;
    }
    return false;
}

/* The listener has proven itself, so the other attempts are given up. */
static void set_proven(struct slu_target *target, uint32_t index)
{
    target->chosen = index;
    target->proven = true;
    for (uint32_t i = 0; i < target->dial.count; i++)
        if (i != index && target->dial.attempts[i].state != SLU_DIAL_NONE)
            slu_dial_fail(&target->dial, i, ECANCELED, "another address was faster");
}

/* Handles a whole reply: a verdict, or that it is pending. */
static enum slu_target_state handle_reply(struct slu_target *target, uint32_t index, int word)
{
    struct slu_target_talk *talk = target->talks[index];
    bool due = talk->stage == STAGE_REPLY;

    if (word == SLU_REPLY_DENIED && due) {
        fail(target, index, EACCES, "it denied the connection: its secret differs");
    } else if (word < 0 || (word == SLU_REPLY_PENDING && !due)) {
        fail(target, index, EPROTO, "what answers is not a listener of sluice");
    } else if (!slu_reply_proves(&talk->session, talk->bytes, talk->want - SLU_REPLY_BYTES)) {
        fail(target, index, EACCES, "it does not know the secret");
    } else if (word == SLU_REPLY_BUSY) {
        fail(target, index, EAGAIN, "its queue is full");
    } else {
        if (due)
            set_proven(target, index);
        if (word != SLU_REPLY_PENDING)
            return word == SLU_REPLY_ADMITTED ? SLU_TARGET_ADMITTED : SLU_TARGET_REFUSED;
        talk->stage = STAGE_VERDICT;
        talk->got = 0;
        talk->want = SLU_REPLY_BYTES;
        return SLU_TARGET_PENDING;
    }
    return SLU_TARGET_ON;
}

static enum slu_target_state receive_reply(struct slu_target *target, uint32_t index)
{
    struct slu_target_talk *talk = target->talks[index];
    uint32_t count;
    int received;

    while ((received = receive(target, index, talk->bytes)) == 1) {
        int word = slu_reply_read(talk->bytes, &count);

        /* If the verdict has come already, the next call of the user reads it. */
        if (word < 0 || talk->want == SLU_REPLY_BYTES + count)
            return handle_reply(target, index, word);
        talk->want = SLU_REPLY_BYTES + count;
    }
    if (received < 0)
        fail(target, index, ECONNRESET, "it hung up");
    return SLU_TARGET_ON;
}

enum slu_target_state slu_target_prove(struct slu_target *target)
{
    uint32_t index = target->chosen;
    struct slu_target_talk *talk = target->talks[index];
    uint8_t proof[SLU_PROOF_BYTES] = {0};

    slu_session_make(target->secret, target->secret_bytes, talk->bytes, talk->said_bytes,
                     &talk->session);
    if (target->means != SLU_MEANS_NONE)
        slu_session_prove(&talk->session, proof);
    talk->stage = STAGE_REPLY;
    talk->got = 0;
    talk->want = SLU_REPLY_BYTES;
    talk->since = slu_now();
    /* The proof went with the hello, so the reply may come with the answer. */
    if (talk->proof_sent)
        return receive_reply(target, index);
    if (!send_bytes(target, index, proof, sizeof proof))
        fail(target, index, ECONNRESET, "it hung up");
    return SLU_TARGET_ON;
}

/* Tells whether the proof may be sent to one more listener. */
static bool may_choose(const struct slu_target *target, int64_t now)
{
    return target->chosen == SLU_DIAL_MOST ||
           (!target->proven && target->talks[target->chosen]->stage == STAGE_REPLY &&
            now - target->talks[target->chosen]->since >= PROOF_TIME);
}

static enum slu_target_state choose(struct slu_target *target, uint32_t index)
{
    if (!may_choose(target, slu_now()))
        return SLU_TARGET_ON;
    target->chosen = index;
    return target->ask ? SLU_TARGET_CHALLENGED : slu_target_prove(target);
}

/* Receives the answer in three stages: the first bytes, the head and the body. */
static enum slu_target_state receive_answer(struct slu_target *target, uint32_t index)
{
    struct slu_target_talk *talk = target->talks[index];
    uint8_t *answer = talk->bytes + talk->said_bytes;
    int received;

    while ((received = receive(target, index, answer)) == 1 && talk->stage < STAGE_BODY) {
        if (talk->stage == STAGE_FIRST ? !check_first(target, index, answer)
                                       : !check_head(target, index, answer))
            return SLU_TARGET_ON;
        talk->want = SLU_HEAD_BYTES + (talk->stage == STAGE_HEAD ? talk->answer.bytes : 0);
        talk->stage++;
    }
    if (received < 0) {
        fail(target, index, ECONNRESET, "it hung up");
        return SLU_TARGET_ON;
    }
    if (received == 0)
        return SLU_TARGET_ON;
    talk->said_bytes += talk->want;
    talk->stage = STAGE_READY;
    return choose(target, index);
}

static enum slu_target_state handle_news(struct slu_target *target, uint32_t index)
{
    bool was_up = index < target->dial.count && target->dial.attempts[index].state == SLU_DIAL_UP;

    if (!slu_dial_event(&target->dial, index))
        return SLU_TARGET_ON;
    if (!was_up) {
        send_hello(target, index);
        return SLU_TARGET_ON;
    }
    if (target->talks[index]->stage < STAGE_READY)
        return receive_answer(target, index);
    if (target->talks[index]->stage > STAGE_READY)
        return receive_reply(target, index);
    /* An attempt that waits for its turn receives nothing, so an event means its end. */
    fail(target, index, ECONNRESET, "it hung up");
    return SLU_TARGET_ON;
}

enum slu_target_state slu_target_wait(struct slu_target *target, int64_t until)
{
    uint32_t news = slu_dial_wait(&target->dial, until);
    enum slu_target_state state = SLU_TARGET_ON;

    for (uint32_t i = 0; i < target->dial.count && state == SLU_TARGET_ON; i++)
        if ((news & (UINT32_C(1) << i)) != 0)
            state = handle_news(target, i);
    return state;
}

/* Fails an attempt that is silent, and continues one whose turn it is. */
static enum slu_target_state check_attempt(struct slu_target *target, uint32_t index, int64_t now,
                                           int64_t *next)
{
    const struct slu_target_talk *talk = target->talks[index];
    int64_t late;

    if (target->dial.attempts[index].state != SLU_DIAL_UP || talk->stage == STAGE_VERDICT)
        return SLU_TARGET_ON;
    if (talk->stage == STAGE_READY && may_choose(target, now))
        return choose(target, index);
    late = (talk->stage == STAGE_REPLY ? talk->since : target->dial.attempts[index].since) +
           ANSWER_TIME;
    if (talk->stage == STAGE_REPLY && now < talk->since + PROOF_TIME &&
        talk->since + PROOF_TIME < *next)
        *next = talk->since + PROOF_TIME;
    if (talk->stage == STAGE_READY)
        return SLU_TARGET_ON;
    if (now >= late)
        fail(target, index, ETIMEDOUT, "it sends nothing");
    else if (late < *next)
        *next = late;
    return SLU_TARGET_ON;
}

/* The last three: there is no route. If no address has one, that may change. */
static const int final_errors[] = {EACCES,      EPROTO,       ECONNREFUSED,
                                   ENETUNREACH, EAFNOSUPPORT, EADDRNOTAVAIL};

static bool is_hopeless(const struct slu_target *target)
{
    if (!target->not_there)
        return slu_dial_all_failed(&target->dial, final_errors, 2);
    return slu_dial_all_failed(&target->dial, final_errors, 6) &&
           !slu_dial_all_failed(&target->dial, final_errors + 3, 3);
}

enum slu_target_state slu_target_tick(struct slu_target *target, int64_t now, int64_t *next)
{
    if (target->proven)
        return SLU_TARGET_ON;
    for (uint32_t i = 0; i < target->dial.count; i++) {
        enum slu_target_state state = check_attempt(target, i, now, next);

        if (state != SLU_TARGET_ON)
            return state;
    }
    if (is_hopeless(target))
        return SLU_TARGET_HOPELESS;
    slu_dial_tick(&target->dial, now, next);
    return SLU_TARGET_ON;
}

void slu_target_pass(struct slu_target *target, int error, const char *why)
{
    if (target->chosen < SLU_DIAL_MOST)
        fail(target, target->chosen, error, why);
}

const uint8_t *slu_target_answer(const struct slu_target *target, uint32_t *count)
{
    const struct slu_target_talk *talk = target->talks[target->chosen];

    *count = talk->answer.bytes;
    return talk->bytes + talk->said_bytes - talk->answer.bytes;
}

const uint8_t *slu_target_verdict(const struct slu_target *target, uint32_t *count)
{
    const struct slu_target_talk *talk = target->talks[target->chosen];

    *count = talk->want - SLU_REPLY_BYTES;
    return talk->bytes + SLU_REPLY_BYTES;
}

int slu_target_take(struct slu_target *target, struct slu_session *session)
{
    int fd;

    *session = target->talks[target->chosen]->session;
    fd = slu_dial_take(&target->dial, target->chosen);
    slu_target_end(target);
    return fd;
}

int slu_target_explain(const struct slu_target *target, char *text, size_t size)
{
    slu_dial_explain(&target->dial, text, size);
    for (uint32_t i = 0; i < 3; i++)
        for (uint32_t k = 0; k < target->dial.count; k++)
            if (target->dial.attempts[k].error == final_errors[i] &&
                slu_dial_all_failed(&target->dial, final_errors, 6))
                return -final_errors[i];
    return -ETIMEDOUT;
}
