/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/session.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/error.h"
#include "base/random.h"

#define VERSION_AT 8
#define READABLE_AT 10
#define WORD_AT 12
#define COUNT_AT 16
#define MEANS_AT 20
#define CHALLENGE_AT 32

const uint8_t slu_session_hello_magic[SLU_SESSION_MAGIC_BYTES] = {'s', 'l', 'u', 'd',
                                                                  'o', 'o', 'r', '?'};
const uint8_t slu_session_answer_magic[SLU_SESSION_MAGIC_BYTES] = {'s', 'l', 'u', 'd',
                                                                   'o', 'o', 'r', '!'};

int slu_head_make(const uint8_t magic[SLU_SESSION_MAGIC_BYTES], const struct slu_head *head,
                  uint8_t bytes[SLU_HEAD_BYTES])
{
    int error;

    memset(bytes, 0, SLU_HEAD_BYTES);
    memcpy(bytes, magic, SLU_SESSION_MAGIC_BYTES);
    slu_put(bytes + VERSION_AT, SLU_SESSION_VERSION, 2);
    slu_put(bytes + READABLE_AT, SLU_SESSION_READABLE, 2);
    slu_put(bytes + WORD_AT, head->word, 4);
    slu_put(bytes + COUNT_AT, head->bytes, 4);
    slu_put(bytes + MEANS_AT, head->means, 4);
    error = slu_random(bytes + CHALLENGE_AT, SLU_CHALLENGE_BYTES);
    return error == 0 ? 0 : slu_fail(-error, "no random numbers: %s", strerrordesc_np(-error));
}

bool slu_head_first(const uint8_t magic[SLU_SESSION_MAGIC_BYTES], const uint8_t *bytes,
                    struct slu_head *head)
{
    uint64_t value;

    *head = (struct slu_head){0};
    slu_get(bytes + VERSION_AT, &value, 2);
    head->written = (uint16_t)value;
    slu_get(bytes + READABLE_AT, &value, 2);
    head->readable = value != 0 ? (uint16_t)value : head->written;
    slu_get(bytes + WORD_AT, &value, 4);
    head->word = (uint32_t)value;
    return memcmp(bytes, magic, SLU_SESSION_MAGIC_BYTES) == 0;
}

bool slu_head_fits(const struct slu_head *head)
{
    static const struct slu_versions known = {NULL, SLU_SESSION_VERSION, SLU_SESSION_OLDEST};

    return slu_versions_fit(&known, head->written, head->readable);
}

const char *slu_head_text(const struct slu_head *head, char text[SLU_HEAD_TEXT])
{
    snprintf(text, SLU_HEAD_TEXT,
             "it speaks version %u of the greeting, readable from version %u on; this library "
             "speaks version %d, and reads from %d on",
             head->written, head->readable, SLU_SESSION_VERSION, SLU_SESSION_OLDEST);
    return text;
}

bool slu_head_read(const uint8_t bytes[SLU_HEAD_BYTES], struct slu_head *head)
{
    uint64_t value;

    slu_head_first(bytes, bytes, head);
    slu_get(bytes + COUNT_AT, &value, 4);
    head->bytes = (uint32_t)value;
    slu_get(bytes + MEANS_AT, &value, 4);
    head->means = (uint32_t)value;
    slu_get(bytes + MEANS_AT + 4, &value, 8);
    return slu_head_fits(head) && (value == 0 || head->written > SLU_SESSION_VERSION) &&
           head->bytes <= SLU_BODY_BYTES;
}

void slu_session_make(const uint8_t *secret, size_t secret_bytes, const uint8_t *said, size_t count,
                      struct slu_session *session)
{
    static const uint8_t nothing[1];
    struct slu_proof_span part = {said, count};

    slu_proof_make(secret != NULL ? secret : nothing, secret != NULL ? secret_bytes : 0,
                   "sluice session", &part, 1, session->key);
}

void slu_session_prove(const struct slu_session *session, uint8_t proof[SLU_PROOF_BYTES])
{
    slu_proof_make(session->key, sizeof session->key, "sluice dials", NULL, 0, proof);
}

bool slu_session_proves(const struct slu_session *session, const uint8_t proof[SLU_PROOF_BYTES])
{
    uint8_t wanted[SLU_PROOF_BYTES];

    slu_session_prove(session, wanted);
    return slu_proof_equal(wanted, proof, SLU_PROOF_BYTES);
}

static void prove_reply(const struct slu_session *session, const uint8_t *reply, uint32_t count,
                        uint8_t proof[SLU_PROOF_BYTES])
{
    const struct slu_proof_span parts[] = {{reply, SLU_REPLY_BYTES - SLU_PROOF_BYTES},
                                           {reply + SLU_REPLY_BYTES, count}};

    slu_proof_make(session->key, sizeof session->key, "sluice replies", parts, 2, proof);
}

uint32_t slu_reply_make(const struct slu_session *session, enum slu_reply_code word,
                        const void *body, uint32_t count,
                        uint8_t reply[SLU_REPLY_BYTES + SLU_BODY_BYTES])
{
    memset(reply, 0, SLU_REPLY_BYTES);
    slu_put(slu_put(reply, word, 4), count, 4);
    if (count > 0)
        memcpy(reply + SLU_REPLY_BYTES, body, count);
    if (word != SLU_REPLY_DENIED)
        prove_reply(session, reply, count, reply + SLU_REPLY_BYTES - SLU_PROOF_BYTES);
    return SLU_REPLY_BYTES + count;
}

int slu_reply_read(const uint8_t head[SLU_REPLY_BYTES], uint32_t *count)
{
    uint64_t word, bytes;

    /* The 8 bytes behind these are for later versions. */
    slu_get(slu_get(head, &word, 4), &bytes, 4);
    *count = bytes <= SLU_BODY_BYTES ? (uint32_t)bytes : 0;
    if (bytes > SLU_BODY_BYTES || word > SLU_REPLY_BUSY)
        return -1;
    if (word == SLU_REPLY_DENIED)
        return bytes == 0 ? SLU_REPLY_DENIED : -1;
    return word >= SLU_REPLY_PENDING ? (int)word : -1;
}

bool slu_reply_proves(const struct slu_session *session, const uint8_t *reply, uint32_t count)
{
    uint8_t wanted[SLU_PROOF_BYTES];

    prove_reply(session, reply, count, wanted);
    return slu_proof_equal(wanted, reply + SLU_REPLY_BYTES - SLU_PROOF_BYTES, SLU_PROOF_BYTES);
}

/* Each label has its own key, so the nonce can be zero. */
static void make_seal_key(const struct slu_session *session, const char *label,
                          uint8_t key[SLU_PROOF_BYTES])
{
    _Static_assert(crypto_secretbox_KEYBYTES == SLU_PROOF_BYTES, "the size of a key");
    _Static_assert(crypto_secretbox_MACBYTES == SLU_SEAL_BYTES, "the size of a seal");
    slu_proof_make(session->key, sizeof session->key, label, NULL, 0, key);
}

void slu_session_seal(const struct slu_session *session, const char *label, const void *bytes,
                      size_t count, uint8_t *sealed)
{
    static const uint8_t nonce[crypto_secretbox_NONCEBYTES];
    uint8_t key[SLU_PROOF_BYTES];

    make_seal_key(session, label, key);
    crypto_secretbox_easy(sealed, bytes, count, nonce, key);
    slu_proof_forget(key, sizeof key);
}

bool slu_session_open(const struct slu_session *session, const char *label, const uint8_t *sealed,
                      size_t count, void *bytes)
{
    static const uint8_t nonce[crypto_secretbox_NONCEBYTES];
    uint8_t key[SLU_PROOF_BYTES];
    bool is_right;

    make_seal_key(session, label, key);
    is_right = crypto_secretbox_open_easy(bytes, sealed, count + SLU_SEAL_BYTES, nonce, key) == 0;
    slu_proof_forget(key, sizeof key);
    return is_right;
}
