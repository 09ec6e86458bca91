/* SPDX-License-Identifier: MIT */
/*
 * Inside of an exchange: what carries the bytes is a provider. exchange.c checks
 * arguments, remembers that an exchange is broken and who was missing, and makes
 * of allgather what a provider has not.
 */
#ifndef SLU_EXCHANGE_H
#define SLU_EXCHANGE_H

#include <limits.h>

#include "base/base.h"
#include "base/descriptor.h"

#include <sluice/exchange.h>

/* until is a time of slu_now(). Each returns 0 or a negative errno value, with a text. */
struct slu_exchange_provider {
    uint32_t kind; /* enum sluice_exchange_kind */
    int (*allgather)(struct sluice_exchange *exchange, const void *own, void *all, size_t bytes,
                     int64_t until);
    /* NULL: made of allgather, of an exchange that has reserved. */
    int (*alltoall)(struct sluice_exchange *exchange, const void *to, void *from, size_t bytes,
                    int64_t until);
    int (*barrier)(struct sluice_exchange *exchange, int64_t until);
    /*
     * This rank has no memory to make the call that all make: tells the others, who wait
     * for it, with the thread's text if it can. NULL: nobody can be told, so that what the
     * calls of an exchange take is there from its beginning (slu_exchange_reserve()).
     */
    void (*abandon)(struct sluice_exchange *exchange);
    void (*close)(struct sluice_exchange *exchange);
};

struct sluice_exchange {
    uint32_t magic;
    bool owned; /* by a node, which alone ends it */
    uint32_t rank, ranks;
    char source[64];
    char device[64]; /* of this rank in the host file; empty: none */
    const struct slu_exchange_provider *provider;
    void *state;       /* the provider's */
    uint8_t *room;     /* reserved for calls; NULL: they allocate what they need */
    size_t room_bytes; /* of it for each rank */
    bool broken;       /* a call has failed */
    uint32_t *missing; /* ranks of the call that failed, ascending; or NULL */
    uint32_t missing_count;
};

/* Missing ranks that a text names; of more, the log has all. */
#define SLU_NAMED 8

/* Addresses of rank 0, and the secret it makes for a job that has none. */
#define SLU_ROOTS 8
#define SLU_SECRET_BYTES 32

/* In a launch that is being read: what nobody has said so far. */
#define SLU_RANK_UNKNOWN UINT32_MAX

/* What the attributes, the environment and the host file say of this process. */
struct slu_launch {
    uint32_t kind;             /* enum sluice_exchange_kind; AUTO: as it turns out */
    uint32_t rank, ranks;      /* PMIX: 0, for its server tells them */
    char source[64];           /* of rank and ranks, in words */
    char root[256];            /* "host:port" of rank 0; empty: not known */
    char job[64];              /* empty: none */
    const char *secret_file;   /* of program or environment; empty: none */
    const char *launcher;      /* whose variables say rank and ranks; NULL: no launcher's. Static */
    const char *rank_source;   /* who says rank, if program or user do. Static */
    const char *tcp_field;     /* the attribute because of which it is TCP; NULL: none. Static */
    const char *root_source;   /* who names root, in words; NULL: nobody. Static */
    const char *secret_source; /* the same of secret_file */
    bool pmi;                  /* there is no root, but a PMI-1 server that knows it */
    char device[64];           /* of this rank in the host file, if SLUICE_DEVICE names none */

    /* What the PMI-1 server brought. */
    int listener; /* of rank 0, which listens already; -1: none */
    uint32_t root_count;
    char roots[SLU_ROOTS][64]; /* "host:port", one for each address of rank 0 */
    uint32_t secret_count;     /* 0: none */
    uint8_t secret[SLU_SECRET_BYTES];
};

/* launch.c: 0, or -ENOENT, -EINVAL, ... with a text that names the variable or the line. */
int slu_launch_read(const struct sluice_exchange_attr *attr, struct slu_launch *launch);

/* "host:port", "[1:2::3]:port": 0, or -EINVAL with a text that names the source. */
int slu_launch_check_root(const char *root, const char *source);

/* The error; if it is one, its text then says whose file it was, unless that is NULL. */
int slu_launch_name_source(int error, const char *source);

/*
 * host_file.c: completes the launch by a file. A rank that is SLU_RANK_UNKNOWN is the
 * one whose host this is; ranks that are not 0 must be as many as the file has; a root
 * that is not empty stays. -EINVAL: line and rank are in the text; -EOPNOTSUPP, -ENOMEM.
 */
int slu_host_file_read(const char *path, struct slu_launch *launch);

/*
 * pmix.c: whether the server of which a launcher tells answers: 0; -ENOENT or
 * -EOPNOTSUPP, and then TCP may do; or another error. All with a text.
 */
int slu_pmix_answers(int64_t until);
/* Sets rank, ranks, source, provider and state. */
int slu_pmix_open(struct sluice_exchange *exchange, int64_t until);

/*
 * pmi.c: all ranks call it together, with launch->pmi; completes the launch. A negative
 * errno has a text, and nothing is open then.
 */
int slu_pmi_find_root(struct slu_launch *launch, int64_t until);

/* tcp.c: rank and ranks are set; sets provider and state. The launch's listener is gone then. */
int slu_tcp_open(struct sluice_exchange *exchange, const struct slu_launch *launch, int64_t until);

/* The memory that calls will take, with rank and provider set. False: there is none. */
bool slu_exchange_reserve(struct sluice_exchange *exchange);

/*
 * For a call that this rank has no memory for, before it has said anything: who waits for
 * it must not be met by its next one. Breaks the exchange and tells the others, if they
 * can be told. The thread's text says what there is no memory for; returns -ENOMEM.
 */
int slu_exchange_abandon(struct sluice_exchange *exchange);

/* missing.c: keeps the ranks for which missing[] is true. */
void slu_exchange_set_missing(struct sluice_exchange *exchange, const bool *missing);
/* Logs all of them, as "3-7,12": an exchange that did not open cannot be queried. */
void slu_exchange_log_missing(const struct sluice_exchange *exchange);

#endif
