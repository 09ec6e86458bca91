/* SPDX-License-Identifier: MIT */
/*
 * An exchange: the processes of one program pass each other what they need to connect, such as
 * endpoints. Each process is a rank, 0 to ranks - 1. All ranks make the same calls in the same
 * order, each with the same number of bytes.
 *
 * A call blocks until all ranks have made it, or its deadline passes. If the deadline passes, the
 * call fails, sluice_exchange_missing() names the missing ranks, and the exchange is broken: all
 * later calls fail with -ENOTCONN. With a deadline of 0, however, nothing is begun and nothing is
 * broken: -ETIMEDOUT. One thread at a time uses an exchange. Different exchanges are independent,
 * but over PMIx a process may have only one at a time.
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

/* The largest number of ranks, and of bytes that a rank gives to another rank. */
#define SLUICE_MAX_RANKS 65536
#define SLUICE_MAX_EXCHANGE_BYTES (UINT32_C(1) << 20)

/* The medium that carries the bytes. */
enum sluice_exchange_kind {
    SLUICE_EXCHANGE_AUTO = 0, /* TCP if a field for TCP is given, or PMIx does not answer */
    SLUICE_EXCHANGE_TCP = 1,  /* through rank 0 */
    SLUICE_EXCHANGE_PMIX = 2, /* the launcher's server; no MPI is needed in the program */
    SLUICE_EXCHANGE_OWN = 3   /* functions of the program; only a query returns it */
};

/*
 * Where to find the other ranks. Fields that are 0 or NULL are taken from the environment, see
 * sluice_environment(7): from variables of SLUICE_*, then from those of the launcher, then from the
 * host file. All fields but size and kind are for TCP; with kind PMIX, or SLUICE_EXCHANGE=pmix, the
 * call fails if one of them is given.
 */
struct sluice_exchange_attr {
    uint32_t size;           /* set to sizeof(struct sluice_exchange_attr) */
    uint32_t kind;           /* enum sluice_exchange_kind */
    uint32_t rank;           /* own; 0 without ranks: not given, SLUICE_ZERO: rank 0 */
    uint32_t ranks;          /* 1 to SLUICE_MAX_RANKS; 0: from SLUICE_RANKS or a host file */
    const char *root;        /* TCP: "host:port" of rank 0, which listens there */
    const char *host_file;   /* TCP: hosts and ports of all ranks, in JSON */
    const char *secret_file; /* TCP: file with the secret of all ranks; mode 0600 */
    const char *job;         /* TCP: name of this run, at most 63 bytes; other jobs are refused */
};

/* Description of an exchange. */
struct sluice_exchange_info {
    uint32_t size; /* set to sizeof(struct sluice_exchange_info) */
    uint32_t kind; /* enum sluice_exchange_kind, never AUTO */
    uint32_t rank;
    uint32_t ranks;
    char source[64]; /* where rank and ranks came from, in words */
    char device[64]; /* for sluice_context_open(): the device of this rank in the host file; empty
                        if there is no host file or it names no device, or if SLUICE_DEVICE is
                        set */
};

/*
 * Description of this process from the environment: its launcher, and the values that default
 * attributes would take.
 */
struct sluice_launch_info {
    uint32_t size;         /* set to sizeof(struct sluice_launch_info) */
    uint32_t kind;         /* enum sluice_exchange_kind; AUTO: PMIx if its server answers, or TCP */
    uint32_t rank;         /* valid if ranks is not 0 */
    uint32_t ranks;        /* 0: only the server of PMIx knows both */
    uint32_t local_rank;   /* of this process among those of its host; also 0 if it is unknown */
    uint32_t reserved;     /* 0 */
    char launcher[32];     /* launcher that set the variables; empty: set by hand, or from a file */
    char source[64];       /* where rank and ranks came from, in words */
    char local_source[64]; /* the variable that has local_rank; empty: there is none */
    char root[256];        /* "host:port" of rank 0; empty: not known before the exchange is open */
    char job[64];          /* name of this run; empty: none */
};

/*
 * Closes an exchange; data in flight is lost. NULL is allowed. Other ranks find out in their next
 * call.
 */
SLUICE_EXPORT void sluice_exchange_close(struct sluice_exchange *exchange);

/*
 * Opens the exchange and waits until all ranks are there. attr NULL: all from the environment. NULL
 * and errno on failure: EINVAL (in attr or the environment: the text names what is invalid), ENOENT
 * (the rank of this process is not given anywhere), ETIMEDOUT (a rank is missing: the text names
 * it), EACCES (the secrets differ, or others may read the file, or own it), EPROTO (the process
 * that answered is not of this job, or of another version), EEXIST (two processes claim this rank),
 * E2BIG (an unknown field is set), EADDRINUSE, ECONNRESET (rank 0 was connected and is gone), EBUSY
 * (PMIx: there is already an exchange), ENOTCONN (PMIx: the parent process is the client of the
 * server), EOPNOTSUPP (this library was built without what is requested), ENOMEM, EMFILE (rank 0
 * needs a file descriptor for each rank).
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_exchange_close)
struct sluice_exchange *sluice_exchange_open(const struct sluice_exchange_attr *attr,
                                             int64_t deadline);

/*
 * Describes this process from the environment, as sluice_exchange_open() would read it without
 * attributes. Nothing is opened, and no process is contacted. Set info->size first. -ENOENT: the
 * rank of this process is not given anywhere; -EINVAL: NULL or too small a size, or a variable or
 * the host file is invalid, as the text says; -E2BIG: a size above 4096; -EOPNOTSUPP: there is a
 * host file, and this library was built without jansson; -ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_launch_query(struct sluice_launch_info *info);

/*
 * Functions of the program that carry the bytes instead: each returns 0 or a negative errno value,
 * and blocks as the calls below do.
 */
struct sluice_exchange_provider {
    uint32_t size; /* set to sizeof(struct sluice_exchange_provider) */
    uint32_t reserved;
    int (*allgather)(void *argument, const void *own, void *all, size_t bytes, int64_t deadline);
    /* NULL: the library builds it from allgather. No deadline is 0. */
    int (*alltoall)(void *argument, const void *to, void *from, size_t bytes, int64_t deadline);
    int (*barrier)(void *argument, int64_t deadline);
    /* Called by sluice_exchange_close(); may be NULL. */
    void (*close)(void *argument);
};

/*
 * Makes an exchange of functions of the program. The memory for its calls is allocated here,
 * because a rank that ran out of memory later could not notify the others, which would wait. The
 * others do wait if a rank has no memory to open a node. NULL and errno: EINVAL, E2BIG, ENOMEM.
 */
SLUICE_EXPORT SLUICE_NODISCARD SLUICE_CONSUMED_BY(sluice_exchange_close)
struct sluice_exchange *sluice_exchange_wrap(const struct sluice_exchange_provider *provider,
                                             void *argument, uint32_t rank, uint32_t ranks);

/*
 * Describes an exchange; set info->size first. -EINVAL: NULL, or too small a size; -E2BIG: a size
 * above 4096.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_query(const struct sluice_exchange *exchange,
                                                         struct sluice_exchange_info *info);

/*
 * Gathers a value of each rank at all ranks. Each rank gives bytes, 0 to SLUICE_MAX_EXCHANGE_BYTES,
 * at own. all has room for ranks * bytes; the value of rank i is at i * bytes. 0; -EINVAL;
 * -ETIMEDOUT: the deadline passed; -ECONNRESET: a rank is gone; -EPROTO: the ranks do not agree on
 * the call or its bytes; -ENOTCONN: the exchange had failed before; -ENOMEM: this rank, or another
 * one, has no memory to take part; or the error of the provider.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_allgather(struct sluice_exchange *exchange,
                                                             const void *own, void *all,
                                                             size_t bytes, int64_t deadline);

/*
 * Passes a value from each rank to each rank, otherwise as sluice_exchange_allgather(): the value
 * for rank i is at to + i * bytes.
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_alltoall(struct sluice_exchange *exchange,
                                                            const void *to, void *from,
                                                            size_t bytes, int64_t deadline);

/* Returns when all ranks have called it. */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_barrier(struct sluice_exchange *exchange,
                                                           int64_t deadline);

/*
 * Returns how many ranks were missing in the call that failed, and writes the first capacity of
 * them, ascending; or 0 if that is not known. -EINVAL: NULL.
 */
SLUICE_EXPORT int sluice_exchange_missing(const struct sluice_exchange *exchange, uint32_t *ranks,
                                          uint32_t capacity);

/*
 * Writes the position of this rank among the ranks of its host, in the order of ranks, and how many
 * there are. All ranks call it together. Errors as sluice_exchange_allgather().
 */
SLUICE_EXPORT SLUICE_NODISCARD int sluice_exchange_locality(struct sluice_exchange *exchange,
                                                            uint32_t *local_rank,
                                                            uint32_t *local_ranks,
                                                            int64_t deadline);

#ifdef __cplusplus
}
#endif

#endif
