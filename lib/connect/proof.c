/* SPDX-License-Identifier: MIT */
#include "config.h"

#include "connect/proof.h"

#include <errno.h>
#include <sodium.h>
#include <stdatomic.h>
#include <string.h>

#include "base/error.h"
#include "base/fork.h"

#define LABEL_BYTES 16

/*
 * sodium_init() takes a lock of libsodium each time. In a child of fork(2) that could belong to a
 * thread that does not exist there, so this lock surrounds it.
 */
static struct slu_fork_lock lock = {.lock = PTHREAD_MUTEX_INITIALIZER, .waits = true};
static atomic_bool ready;

int slu_proof_init(void)
{
    _Static_assert(SLU_PROOF_BYTES == crypto_auth_hmacsha256_BYTES, "the size of a proof");
    if (!ready) {
        slu_fork_lock(&lock);
        ready = sodium_init() >= 0;
        pthread_mutex_unlock(&lock.lock);
    }
    return ready ? 0 : slu_fail(EOPNOTSUPP, "libsodium cannot be used on this host");
}

void slu_proof_make(const uint8_t *key, size_t key_bytes, const char *label,
                    const struct slu_proof_span *parts, size_t count,
                    uint8_t proof[SLU_PROOF_BYTES])
{
    crypto_auth_hmacsha256_state state;
    uint8_t name[LABEL_BYTES] = {0};

    memcpy(name, label, strnlen(label, LABEL_BYTES - 1));
    crypto_auth_hmacsha256_init(&state, key, key_bytes);
    crypto_auth_hmacsha256_update(&state, name, sizeof name);
    for (size_t i = 0; i < count; i++)
        crypto_auth_hmacsha256_update(&state, parts[i].bytes, parts[i].count);
    crypto_auth_hmacsha256_final(&state, proof);
    sodium_memzero(&state, sizeof state);
}

bool slu_proof_equal(const uint8_t *a, const uint8_t *b, size_t count)
{
    return sodium_memcmp(a, b, count) == 0;
}

void slu_proof_forget(void *bytes, size_t count)
{
    sodium_memzero(bytes, count);
}
