/* SPDX-License-Identifier: MIT */
/*
 * What both sides of a connection know and nobody else: read from a file that nobody
 * else may read, or given; never sent, only used to prove and to seal.
 */
#ifndef SLU_CONNECT_SECRET_H
#define SLU_CONNECT_SECRET_H

#include <stddef.h>
#include <stdint.h>

#define SLU_SECRET_MIN 16
#define SLU_SECRET_MAX 4096

struct slu_secret {
    uint8_t *bytes; /* NULL: there is none */
    size_t count;
};

/* 0, or with a text -EACCES (others may read it), -EINVAL, -EOPNOTSUPP, ... Path empty: none. */
int slu_secret_read(const char *path, struct slu_secret *secret);
/* Of bytes, SLU_SECRET_MAX at most: 0, -ENOMEM, -EOPNOTSUPP; forget it in each case. */
int slu_secret_copy(const uint8_t *bytes, size_t count, struct slu_secret *secret);
void slu_secret_forget(struct slu_secret *secret);

#endif
