/* SPDX-License-Identifier: MIT */
/*
 * Texts for failures of requests and peers: what failed, with which peer, why, and what to try.
 * Nothing is said twice, and the text fits the thread's buffer.
 */
#include "config.h"

#include "engine/peer/words.h"

#include <stdio.h>
#include <string.h>

#define POST_FIRST "post receives before sends, as scatter_gather does"
#define TAKE_PART "see whether the peer took part, or allow more time"

const char *slu_say_pending(uint32_t sends, uint32_t receives, char text[SLU_PENDING_BYTES])
{
    char received[24];

    snprintf(received, sizeof received, "%u receive%s", receives, SLU_S(receives));
    if (sends == 0)
        snprintf(text, SLU_PENDING_BYTES, "%s", received);
    else
        snprintf(text, SLU_PENDING_BYTES, "%u %s%s%s", sends,
                 sends == 1 ? "send, write or read" : "sends, writes and reads",
                 receives > 0 ? ", and " : "", receives > 0 ? received : "");
    return text;
}

#define HEARD_BYTES 40

/* Writes ", heard last 12 ms ago,", or nothing if that is not known. */
static const char *say_heard(const struct slu_late *late, char text[HEARD_BYTES])
{
    char ago[SLU_DURATION_BYTES];

    text[0] = '\0';
    if (late->stand.heard >= 0)
        snprintf(text, HEARD_BYTES, ", heard last %s ago,",
                 slu_say_duration(late->stand.heard, ago));
    return text;
}

/* Explains a deadline when sends of this side wait for receives of the peer. */
static void explain_unready(const struct slu_late *late, uint32_t opcode, char *text, size_t size)
{
    char heard[HEARD_BYTES];
    bool own = opcode == SLUICE_OP_SEND;

    if (late->stand.sending)
        snprintf(text, size, "both sides were sending, and neither had posted a receive: %s",
                 POST_FIRST);
    else
        snprintf(text, size, "the peer%s posted no receive for %s%s", say_heard(late, heard),
                 own ? "it" : "what was sent before it",
                 late->receives
                     ? ""
                     : ", nor had this side posted one; if both were sending, " POST_FIRST);
}

/* Explains a deadline on a transport that knows more than whether a request succeeded. */
static void explain_known(const struct slu_late *late, uint32_t opcode, char *text, size_t size)
{
    char heard[HEARD_BYTES];

    if (!late->stand.connected && !late->heard)
        snprintf(text, size,
                 "the peer was never heard: see whether it was started, and has done "
                 "its handshake");
    else if (opcode == SLUICE_OP_RECEIVE)
        snprintf(text, size, "the peer%s sent nothing for it: %s", say_heard(late, heard),
                 TAKE_PART);
    else if (late->stand.unready)
        explain_unready(late, opcode, text, size);
    else if (late->stand.heard >= 0)
        snprintf(text, size, "the peer was heard last %s ago: %s",
                 slu_say_duration(late->stand.heard, heard), TAKE_PART);
    else
        snprintf(text, size, "%s", TAKE_PART);
}

/* Explains a deadline on a device, which does not report what it was answered before the end. */
static void explain_unknown(const struct slu_late *late, uint32_t opcode, char *text, size_t size)
{
    bool sends = opcode == SLUICE_OP_SEND;

    if (opcode == SLUICE_OP_RECEIVE)
        snprintf(text, size, "the peer %s sent nothing for it: %s",
                 late->heard ? "was heard before, but" : "was never heard, and", TAKE_PART);
    else
        snprintf(text, size, "the peer %s%s%s",
                 late->heard ? "was heard before" : "was never heard",
                 !sends        ? ": " TAKE_PART
                 : late->heard ? ": it posted no receive, or does not answer any more"
                               : ": it is not there yet, or posted no receive",
                 sends && !late->receives ? "; if both sides were sending, " POST_FIRST : "");
}

/* Describes a deadline that ended the connection. */
static void say_late(const struct slu_late *late, uint32_t opcode, char *text, size_t size)
{
    char time[SLU_DURATION_BYTES];
    char why[200];

    if (late->stand.waits != NULL)
        snprintf(why, sizeof why, "%s", late->stand.waits);
    else if (late->stand.known)
        explain_known(late, opcode, why, sizeof why);
    else
        explain_unknown(late, opcode, why, sizeof why);
    snprintf(text, size, "deadline of %s passed (%s): %s", slu_say_duration(late->time, time),
             sluice_error_class_name(SLUICE_CLASS_TIMEOUT), why);
}

static const char *hint_of(uint32_t status, uint32_t error_class)
{
    switch (status) {
    case SLUICE_STATUS_RNR_RETRY_EXC_ERR:
        return "the peer posted no receive for it";
    case SLUICE_STATUS_LOC_PROT_ERR:
        return "check that the SGEs lie in memory registered with this protection domain, with "
               "LOCAL_WRITE for a receive, read or atomic";
    default:
        return slu_class_hint((enum sluice_error_class)error_class);
    }
}

/* Returns the peer whose loss this one reported before it left, or this one. */
static uint32_t lost_of(const struct slu_engine *engine, uint32_t peer)
{
    return engine->farewells != NULL ? engine->farewells->lost(engine->farewells, peer) : peer;
}

/* Describes the status of an operation, or of the peer alone: status, class and what to try. */
static void say_status(const struct slu_engine *engine, const struct slu_peer *peer,
                       const struct sluice_error *error, char *text, size_t size)
{
    uint32_t lost = lost_of(engine, error->peer);
    const char *name = sluice_status_name(error->status);
    const char *error_class = sluice_error_class_name(error->error_class);
    const char *hint = hint_of(error->status, error->error_class);

    if (error->status == SLUICE_STATUS_DEADLINE)
        say_late(&peer->late, error->opcode, text, size);
    else if (error->error_class == SLUICE_CLASS_PEER_LOST && lost != error->peer)
        snprintf(text, size, "it has left, because it had lost %s %u (%s)", engine->peer_word, lost,
                 error_class);
    else if ((error->status == SLUICE_STATUS_RETRY_EXC_ERR ||
              error->status == SLUICE_STATUS_PEER_CLOSED) &&
             peer->loss != NULL)
        snprintf(text, size, "%s (%s)", peer->loss, error_class);
    else if (error->status == SLUICE_STATUS_LOC_LEN_ERR && error->opcode == SLUICE_OP_RECEIVE &&
             peer->long_message > 0)
        snprintf(text, size,
                 "%s (%s): the message has %llu bytes, and the receive posted for it %llu", name,
                 error_class, (unsigned long long)peer->long_message,
                 (unsigned long long)peer->short_receive);
    else if (error->opcode == SLUICE_OP_NONE || error->vendor == 0)
        snprintf(text, size, "%s (%s): %s", name, error_class, hint);
    else
        snprintf(text, size, "%s (%s, vendor code %#x): %s", name, error_class, error->vendor,
                 hint);
}

static void describe_peer(const struct slu_engine *engine, const struct slu_peer *peer,
                          struct sluice_error *error)
{
    const char *phrase = slu_opcode_phrase(error->opcode), *word = engine->peer_word;
    char words[280];

    say_status(engine, peer, error, words, sizeof words);
    if (peer->connect_error != 0)
        snprintf(error->text, sizeof error->text, "%s %u could not be connected: %.180s", word,
                 error->peer, peer->reason);
    else if (peer->reason[0] != '\0' && error->opcode == SLUICE_OP_NONE)
        snprintf(error->text, sizeof error->text, "%s %u: %s", word, error->peer, peer->reason);
    else if (peer->reason[0] != '\0')
        snprintf(error->text, sizeof error->text, "%s %s %u was refused by the driver: %.160s",
                 phrase, word, error->peer, peer->reason);
    else if (error->opcode == SLUICE_OP_NONE && error->status == SLUICE_STATUS_WR_FLUSH_ERR)
        snprintf(error->text, sizeof error->text, "%s %u: this side ended the connection", word,
                 error->peer);
    else if (error->opcode != SLUICE_OP_NONE)
        snprintf(error->text, sizeof error->text, "%s %s %u: %s", phrase, word, error->peer, words);
    else
        snprintf(error->text, sizeof error->text, "%s %u: %s", word, error->peer, words);
}

bool slu_peer_error(const struct slu_engine *engine, const struct slu_peer *peer,
                    struct sluice_error *error)
{
    enum sluice_error_class error_class;

    *error = (struct sluice_error){.size = sizeof *error, .peer = slu_peer_index(engine, peer)};
    if (peer->state != SLUICE_STATE_FAILED)
        return false;
    error_class = slu_class_of(peer->cause_status, peer->cause_opcode);
    error->opcode = peer->cause_opcode;
    error->status = peer->cause_status;
    error->vendor = peer->cause_vendor;
    error->error_class = error_class;
    error->error = peer->connect_error != 0 ? peer->connect_error : slu_class_error(error_class);
    describe_peer(engine, peer, error);
    return true;
}

const char *slu_error_reason(const struct sluice_error *error)
{
    const char *colon = strstr(error->text, ": ");

    return colon != NULL ? colon + 2 : error->text;
}

/*
 * Returns the error of a request that was late and never posted, and whose peer was not failed for
 * it.
 */
static int fail_unposted(const struct slu_engine *engine,
                         const struct sluice_completion *completion, int64_t time)
{
    const char *phrase = slu_opcode_phrase(completion->opcode);
    char text[SLU_DURATION_BYTES];

    if (time == 0)
        return slu_fail(ETIMEDOUT, "%s %s %u: the deadline is 0: nothing was posted", phrase,
                        engine->peer_word, completion->peer);
    return slu_fail(ETIMEDOUT,
                    "%s %s %u: the queues had no room for it within %s (%s): it was not posted",
                    phrase, engine->peer_word, completion->peer, slu_say_duration(time, text),
                    sluice_error_class_name(SLUICE_CLASS_TIMEOUT));
}

int slu_fail_late(const struct slu_engine *engine, const struct sluice_completion *completion,
                  int64_t time)
{
    char text[SLU_DURATION_BYTES];

    return slu_fail(ETIMEDOUT,
                    "%s %s %u: it was not done within %s (%s); the %s was reset or removed since",
                    slu_opcode_phrase(completion->opcode), engine->peer_word, completion->peer,
                    slu_say_duration(time, text), sluice_error_class_name(SLUICE_CLASS_TIMEOUT),
                    engine->peer_word);
}

/*
 * Returns whether the first error of the peer says all that the failure of a request does. To say
 * the same twice would leave no room for what to try.
 */
static bool is_said_by(const struct sluice_error *cause, const struct sluice_completion *completion)
{
    if (cause->error_class == SLUICE_CLASS_PEER_LOST)
        return completion->error_class == SLUICE_CLASS_PEER_LOST;
    return cause->status == completion->status &&
           (cause->opcode == completion->opcode || cause->status == SLUICE_STATUS_DEADLINE);
}

int slu_fail_completion(const struct slu_engine *engine, const struct sluice_completion *completion,
                        int64_t time)
{
    const struct slu_peer *peer = &engine->peers[completion->peer];
    const char *phrase = slu_opcode_phrase(completion->opcode), *word = engine->peer_word;
    bool refused = completion->error == -ENOTCONN;
    struct sluice_error cause;
    bool known = slu_peer_error(engine, peer, &cause);
    char words[280];

    if (completion->status == SLUICE_STATUS_LOC_LEN_ERR && completion->bytes > 0)
        return slu_fail(-completion->error,
                        "%s %s %u: the message of %llu bytes is longer than the receive (%s): it "
                        "was dropped, and the connection goes on",
                        phrase, word, completion->peer, (unsigned long long)completion->bytes,
                        sluice_error_class_name(completion->error_class));
    if (completion->status == SLUICE_STATUS_DEADLINE &&
        (!known || cause.status != SLUICE_STATUS_DEADLINE || time == 0))
        return fail_unposted(engine, completion, time);
    if (known && peer->reason[0] == '\0' && is_said_by(&cause, completion)) {
        cause.opcode = completion->opcode;
        cause.vendor = completion->vendor;
        cause.error_class = completion->error_class;
        say_status(engine, peer, &cause, words, sizeof words);
        return slu_fail(-completion->error, "%s %s %u: %s", phrase, word, completion->peer, words);
    }
    if (known)
        return slu_fail(-completion->error, "%s %s %u: %s; first error of the %s: %s", phrase, word,
                        completion->peer,
                        refused ? "refused" : sluice_status_name(completion->status), word,
                        cause.text);
    return slu_fail(-completion->error, "%s %s %u: %s", phrase, word, completion->peer,
                    peer->state == SLUICE_STATE_REMOVED ? "refused, the peer was removed"
                    : refused                           ? "refused, the peer is not connected"
                                                        : sluice_status_name(completion->status));
}
