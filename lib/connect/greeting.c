/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/greeting.h"

#include <string.h>

#include "base/bytes.h"
#include "base/random.h"

#define MAGIC_BYTES SLU_HELLO_MAGIC_BYTES
#define NUMBERS_AT 8
#define CHALLENGE_AT 16
#define HELLO_PROOF_AT (SLU_HELLO_BYTES - SLU_PROOF_BYTES)
#define ANSWER_PROOF_AT (SLU_ANSWER_BYTES - SLU_PROOF_BYTES)

const uint8_t slu_hello_magic[MAGIC_BYTES] = {'s', 'l', 'u', 'i', 'c', 'e'};
static const uint8_t answer_magic[MAGIC_BYTES] = {'S', 'L', 'U', 'I', 'C', 'E'};

static void put_first(uint8_t *bytes, const uint8_t magic[MAGIC_BYTES])
{
    memcpy(bytes, magic, MAGIC_BYTES);
    slu_put(bytes + MAGIC_BYTES, slu_versions_join(SLU_GREETING_VERSION, SLU_GREETING_READABLE, 8),
            2);
}

static bool fits(const uint8_t *bytes)
{
    static const struct slu_versions known = {NULL, SLU_GREETING_VERSION, SLU_GREETING_OLDEST};
    uint32_t written, readable;
    uint64_t joined;

    slu_get(bytes + MAGIC_BYTES, &joined, 2);
    slu_versions_split((uint32_t)joined, 8, &written, &readable);
    return slu_versions_fit(&known, written, readable);
}

bool slu_hello_fits(const uint8_t bytes[SLU_HELLO_FIRST_BYTES])
{
    return fits(bytes);
}

static void prove_hello(const uint8_t *bytes, const uint8_t *key, uint8_t proof[SLU_PROOF_BYTES])
{
    struct slu_proof_span part = {bytes, HELLO_PROOF_AT};

    slu_proof_make(key, SLU_SIDE_KEY, "sluice hello", &part, 1, proof);
}

int slu_hello_make(const struct slu_hello *hello, const uint8_t target_key[SLU_SIDE_KEY],
                   uint8_t bytes[SLU_HELLO_BYTES])
{
    int error;

    memset(bytes, 0, SLU_HELLO_BYTES);
    put_first(bytes, slu_hello_magic);
    slu_put(slu_put(bytes + NUMBERS_AT, hello->target, 4), hello->own, 4);
    error = slu_random(bytes + CHALLENGE_AT, SLU_CHALLENGE_BYTES);
    if (error == 0)
        prove_hello(bytes, target_key, bytes + HELLO_PROOF_AT);
    return error;
}

void slu_hello_read(const uint8_t bytes[SLU_HELLO_BYTES], struct slu_hello *hello)
{
    uint64_t value;

    slu_get(bytes + NUMBERS_AT, &value, 4);
    hello->target = (uint32_t)value;
    slu_get(bytes + NUMBERS_AT + 4, &value, 4);
    hello->own = (uint32_t)value;
}

bool slu_hello_proves(const uint8_t bytes[SLU_HELLO_BYTES], const uint8_t key[SLU_SIDE_KEY])
{
    uint8_t proof[SLU_PROOF_BYTES];

    prove_hello(bytes, key, proof);
    return slu_proof_equal(proof, bytes + HELLO_PROOF_AT, SLU_PROOF_BYTES);
}

static void prove_answer(const uint8_t *said, const uint8_t *key, uint8_t proof[SLU_PROOF_BYTES])
{
    struct slu_proof_span part = {said, SLU_HELLO_BYTES + ANSWER_PROOF_AT};

    slu_proof_make(key, SLU_SIDE_KEY, "sluice answer", &part, 1, proof);
}

int slu_answer_make(uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                    const uint8_t key[SLU_SIDE_KEY])
{
    uint8_t *answer = said + SLU_HELLO_BYTES;
    int error;

    memset(answer, 0, SLU_ANSWER_BYTES);
    put_first(answer, answer_magic);
    slu_put(answer + NUMBERS_AT, SLU_VERDICT_GO_ON, 4);
    error = slu_random(answer + CHALLENGE_AT, SLU_CHALLENGE_BYTES);
    if (error == 0)
        prove_answer(said, key, answer + ANSWER_PROOF_AT);
    return error;
}

void slu_denial_make(uint8_t bytes[SLU_DENIAL_BYTES])
{
    memset(bytes, 0, SLU_DENIAL_BYTES);
    put_first(bytes, answer_magic);
    slu_put(bytes + NUMBERS_AT, SLU_VERDICT_DENIED, 4);
}

int slu_answer_verdict(const uint8_t bytes[SLU_DENIAL_BYTES])
{
    uint64_t verdict;

    slu_get(bytes + NUMBERS_AT, &verdict, 8);
    if (memcmp(bytes, answer_magic, MAGIC_BYTES) != 0 || !fits(bytes))
        return -1;
    if (verdict == (uint64_t)SLU_VERDICT_DENIED << 32)
        return SLU_VERDICT_DENIED;
    return verdict == 0 ? SLU_VERDICT_GO_ON : -1;
}

bool slu_answer_proves(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                       const uint8_t key[SLU_SIDE_KEY])
{
    uint8_t proof[SLU_PROOF_BYTES];

    prove_answer(said, key, proof);
    return slu_proof_equal(proof, said + SLU_HELLO_BYTES + ANSWER_PROOF_AT, SLU_PROOF_BYTES);
}

void slu_greeting_prove(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                        enum slu_proof_part part, const struct slu_side *dialer,
                        const struct slu_side *acceptor, uint8_t proof[SLU_PROOF_BYTES])
{
    static const char *const labels[] = {
        [SLU_PROOF_DIALER] = "sluice dialer",
        [SLU_PROOF_ACCEPTOR] = "sluice acceptor",
        [SLU_PROOF_CHOICE] = "sluice choice",
    };
    const struct slu_proof_span parts[] = {{said, SLU_HELLO_BYTES + SLU_ANSWER_BYTES},
                                           {dialer->name, SLU_SIDE_NAME},
                                           {acceptor->name, SLU_SIDE_NAME}};
    uint8_t key[2 * SLU_SIDE_KEY];

    memcpy(key, dialer->key, SLU_SIDE_KEY);
    memcpy(key + SLU_SIDE_KEY, acceptor->key, SLU_SIDE_KEY);
    slu_proof_make(key, sizeof key, labels[part], parts, 3, proof);
    slu_proof_forget(key, sizeof key);
}

bool slu_greeting_proves(const uint8_t said[SLU_HELLO_BYTES + SLU_ANSWER_BYTES],
                         enum slu_proof_part part, const struct slu_side *dialer,
                         const struct slu_side *acceptor, const uint8_t given[SLU_PROOF_BYTES])
{
    uint8_t proof[SLU_PROOF_BYTES];

    slu_greeting_prove(said, part, dialer, acceptor, proof);
    return slu_proof_equal(proof, given, SLU_PROOF_BYTES);
}
