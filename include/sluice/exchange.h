/* SPDX-License-Identifier: MIT */
/*
 * An exchange: how the processes of one program, which cannot reach each other
 * yet, hand each other what they need for it, such as endpoints. Each process is
 * a rank, 0 to ranks - 1. All ranks make the same calls in the same order, each
 * with the same number of bytes.
 *
 * A call blocks until all ranks have made it, or its deadline passes. Then it
 * fails, sluice_exchange_missing() names the ranks that were not there, and the
 * exchange is broken: all later calls fail with -ENOTCONN. With a deadline of 0,
 * however, nothing is begun and nothing is broken: -ETIMEDOUT. One thread at
 * a time uses an exchange; different exchanges are independent, but over PMIx a
 * process has one at a time.
 */
#ifndef SLUICE_EXCHANGE_H
#define SLUICE_EXCHANGE_H

#include <stddef.h>
#include <stdint.h>

#include <sluice/macros.h>

#ifdef __cplusplus
extern "C" {
#endif

struct sluice_exchange;

/* The largest number of ranks, and of bytes that a rank gives to one other. */
#define SLUICE_MAX_RANKS 65536
#define SLUICE_EXCHANGE_MAX_BYTES (UINT32_C(1) << 20)

/* What carries the bytes. */
enum sluice_exchange_kind {
    SLUICE_EXCHANGE_AUTO = 0, /* TCP if a field that is of TCP is given, or PMIx does not answer */
    SLUICE_EXCHANGE_TCP = 1,  /* through rank 0 */
    SLUICE_EXCHANGE_PMIX = 2, /* the launcher's server; no MPI is needed in the program */
    SLUICE_EXCHANGE_OWN = 3   /* functions of the program; only told by a query */
};

/*
 * Where the others are. What is 0 or NULL is taken from the environment, see
 * sluice_environment(7): from variables of SLUICE_*, then from those of the
 * launcher, then from the host file. All fields but size and kind are for TCP; with kind
 * PMIX, or SLUICE_EXCHANGE=pmix, the call fails if one of them is given.
 */
struct sluice_exchange_attr {
    uint32_t size;           /* set to sizeof(struct sluice_exchange_attr) */
    uint32_t kind;           /* enum sluice_exchange_kind */
    uint32_t rank;           /* own; 0 without ranks: not given, SLUICE_ZERO: rank 0 */
    uint32_t ranks;          /* 1 to SLUICE_MAX_RANKS; 0: from SLUICE_RANKS or a host file */
    const char *root;        /* TCP: "host:port" of rank 0, which listens there */
    const char *host_file;   /* TCP: hosts and ports of all ranks, in JSON */
    const char *secret_file; /* TCP: what all ranks know and nobody else; mode 0600 */
    const char *job;         /* TCP: name of this run, at most 63 bytes; other jobs are refused */
};

/* What an exchange is. */
struct sluice_exchange_info {
    uint32_t size; /* set to sizeof(struct sluice_exchange_info) */
    uint32_t kind; /* enum sluice_exchange_kind, never AUTO */
    uint32_t rank;
    uint32_t ranks;
    char source[64]; /* where rank and ranks came from, in words */
    char device[64]; /* for sluice_context_open(): what the host file says of this rank; empty if
                        there is no host file or it names none, or if SLUICE_DEVICE is set */
};

/* What attributes of NULL would be taken from: who started this process. */
struct sluice_launch_info {
    uint32_t size;       /* set to sizeof(struct sluice_launch_info) */
    uint32_t kind;       /* enum sluice_exchange_kind; AUTO: PMIx if its server answers, or TCP */
    uint32_t rank;       /* if ranks is not 0 */
    uint32_t ranks;      /* 0: only the server of PMIx knows both */
    uint32_t local_rank; /* of this process among those of its host; 0 as well if nothing tells */
    uint32_t reserved;   /* 0 */
    char launcher[32];   /* whose variables these are; empty: they were set by hand, or by a file */
    char source[64];     /* where rank and ranks came from, in words */
    char local_source[64]; /* the variable that told local_rank; empty: none did */
    char root[256];        /* "host:port" of rank 0; empty: not known before the exchange is open */
    char job[64];          /* name of this run; empty: none */
};

/* Ends it; what is in flight is lost. NULL is allowed. The others notice in their next call. */
SLUICE_EXPORT void sluice_exchange_close(struct sluice_exchange *exchange);

/*
 * Opens the exchange and waits until all ranks are there. attr NULL: all from
 * the environment. NULL and errno on failure: EINVAL (of attr or the environment:
 * what the text names), ENOENT (nothing says which rank this is), ETIMEDOUT (a
 * rank did not come: the text names it), EACCES (the secret is another one, or
 * others may read its file, or own it), EPROTO (what answered is not of this
 * job, or of another version), EEXIST (two processes say that they are this rank),
 * E2BIG (a field that is not known is set), EADDRINUSE, ECONNRESET (rank 0 was
 * there and is gone), EBUSY (PMIx: there is one already), ENOTCONN (PMIx: the
 * client of its server is the parent), EOPNOTSUPP (this library was built without
 * what is asked for), ENOMEM, EMFILE (rank 0 takes a file descriptor for each rank).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_exchange_close)
struct sluice_exchange *sluice_exchange_open(const struct sluice_exchange_attr *attr,
                                             int64_t deadline);

/*
 * Tells what the environment says of this process, as sluice_exchange_open() would read it
 * without attributes; nothing is opened and nobody is asked. Set info->size first. -ENOENT:
 * nothing says which rank this is; -EINVAL: NULL or too small a size, or a variable or the
 * host file is wrong, as the text says; -E2BIG: a size above 4096; -EOPNOTSUPP: there is a host
 * file, and this library was built without jansson; -ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_launch(struct sluice_launch_info *info);

/*
 * Functions of the program that carry the bytes instead: each returns 0 or a
 * negative errno value, and blocks as those below do.
 */
struct sluice_exchange_provider {
    uint32_t size; /* set to sizeof(struct sluice_exchange_provider) */
    uint32_t reserved;
    int (*allgather)(void *argument, const void *own, void *all, size_t bytes, int64_t deadline);
    /* NULL: the library makes it of allgather. No deadline is 0. */
    int (*alltoall)(void *argument, const void *to, void *from, size_t bytes, int64_t deadline);
    int (*barrier)(void *argument, int64_t deadline);
    /* Called by sluice_exchange_close(); may be NULL. */
    void (*close)(void *argument);
};

/*
 * An exchange of the program's own. The memory of its calls is allocated here, because
 * a rank that ran out of memory later could not tell the others, which would wait. So
 * they do if one has no memory to open a node. NULL and errno: EINVAL, E2BIG, ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_exchange_close)
struct sluice_exchange *sluice_exchange_wrap(const struct sluice_exchange_provider *provider,
                                             void *argument, uint32_t rank, uint32_t ranks);

/* -EINVAL: NULL, or too small a size; -E2BIG: a size above 4096. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_query(const struct sluice_exchange *exchange,
                                                         struct sluice_exchange_info *info);

/*
 * Each rank gives bytes, 0 to SLUICE_EXCHANGE_MAX_BYTES, at own. all has room for
 * ranks * bytes, and what rank i gave is then at i * bytes. 0; -EINVAL;
 * -ETIMEDOUT: the deadline passed; -ECONNRESET: a rank is gone; -EPROTO: the ranks
 * do not agree on the call or its bytes; -ENOTCONN: it had failed before;
 * -ENOMEM: this rank, or another one, cannot take part; or what the provider said.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_allgather(struct sluice_exchange *exchange,
                                                             const void *own, void *all,
                                                             size_t bytes, int64_t deadline);

/* The same, but each rank is given a part of its own: that for rank i is at to + i * bytes. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_alltoall(struct sluice_exchange *exchange,
                                                            const void *to, void *from,
                                                            size_t bytes, int64_t deadline);

/* Returns when all ranks are here. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_barrier(struct sluice_exchange *exchange,
                                                           int64_t deadline);

/*
 * Of the call that failed: how many ranks were missing, of which the first
 * capacity are written, ascending; or 0 if that is not known. -EINVAL: NULL.
 */
SLUICE_EXPORT int sluice_exchange_missing(const struct sluice_exchange *exchange, uint32_t *ranks,
                                          uint32_t capacity);

/*
 * Which of the ranks on this host this one is, by its rank, and how many there
 * are; all ranks call it together. Errors as sluice_exchange_allgather().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_locality(struct sluice_exchange *exchange,
                                                            uint32_t *local_rank,
                                                            uint32_t *local_ranks,
                                                            int64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
