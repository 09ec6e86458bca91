/* SPDX-License-Identifier: MIT */
/* What the secret of a job signs in a greeting, and how it is told of in words. */
#include "config.h"

#include "connect/proof.h"
#include "exchange/tcp.h"

const char *slu_secret_means(uint8_t means)
{
    return means == TCP_MUNGE    ? "munge (see SLUICE_MUNGE)"
           : means == TCP_SECRET ? "a secret"
                                 : "none";
}

void slu_secret_sign(const struct slu_secret *secret, enum tcp_role role,
                     const uint8_t rank_hello[TCP_HELLO_BYTES],
                     const uint8_t root_hello[TCP_HELLO_BYTES], uint8_t mac[TCP_MAC_BYTES])
{
    const struct slu_part hellos[] = {{rank_hello, TCP_HELLO_BYTES}, {root_hello, TCP_HELLO_BYTES}};

    _Static_assert(TCP_MAC_BYTES == SLU_PROOF_BYTES, "the size of a signature");
    slu_proof_make(secret->bytes, secret->count,
                   role == TCP_ROLE_RANK ? "sluice: a rank" : "sluice: rank 0", hellos, 2, mac);
}

bool slu_secret_equal(const uint8_t a[TCP_MAC_BYTES], const uint8_t b[TCP_MAC_BYTES])
{
    return slu_proof_equal(a, b, TCP_MAC_BYTES);
}
