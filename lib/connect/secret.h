/* SPDX-License-Identifier: MIT */
/*
 * A secret that only the two sides of a connection know. It is read from a file that no other user
 * can read, or given by the caller. It is never sent, only used for proofs and to seal.
 */
#ifndef SLU_CONNECT_SECRET_H
#define SLU_CONNECT_SECRET_H

#include <stddef.h>
#include <stdint.h>

#define SLU_SECRET_MIN 16
#define SLU_SECRET_MAX 4096

struct slu_secret {
    uint8_t *bytes; /* NULL: none */
    size_t count;
};

/*
 * Reads a file; an empty path means no secret. Returns 0, or with a text -EACCES (others may read
 * it), -EINVAL, -EOPNOTSUPP or another error.
 */
int slu_secret_read(const char *path, struct slu_secret *secret);
/*
 * Copies at most SLU_SECRET_MAX bytes. Returns 0, -ENOMEM or -EOPNOTSUPP; slu_secret_forget() is
 * needed in each case.
 */
int slu_secret_copy(const uint8_t *bytes, size_t count, struct slu_secret *secret);
void slu_secret_forget(struct slu_secret *secret);

#endif
