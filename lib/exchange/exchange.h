/* SPDX-License-Identifier: MIT */
/*
 * Internals of an exchange. A provider carries the bytes. exchange.c checks arguments, keeps
 * whether the exchange is broken and which ranks were missing, and implements alltoall by
 * allgathers for a provider that has none.
 */
#ifndef SLU_EXCHANGE_H
#define SLU_EXCHANGE_H

#include <limits.h>

#include "base/base.h"
#include "base/descriptor.h"

#include <sluice/exchange.h>

/* until is a time of slu_now(). Each function returns 0, or a negative errno value with a text. */
struct slu_exchange_provider {
    uint32_t kind; /* enum sluice_exchange_kind */
    int (*allgather)(struct sluice_exchange *exchange, const void *own, void *all, size_t bytes,
                     int64_t until);
    /* NULL: made of allgathers, with the memory of slu_exchange_reserve(). */
    int (*alltoall)(struct sluice_exchange *exchange, const void *to, void *from, size_t bytes,
                    int64_t until);
    int (*barrier)(struct sluice_exchange *exchange, int64_t until);
    /*
     * Called if this rank has no memory for a call that all ranks make. Tells the others, which
     * wait for this rank, with the thread's text if possible. NULL: they cannot be told, so the
     * memory for calls is allocated when the exchange is opened (slu_exchange_reserve()).
     */
    void (*abandon)(struct sluice_exchange *exchange);
    void (*close)(struct sluice_exchange *exchange);
};

struct sluice_exchange {
    uint32_t magic;
    bool owned; /* by a node, which alone may close it */
    uint32_t rank, ranks;
    char source[64];
    char device[64]; /* of this rank in the host file; empty: none */
    const struct slu_exchange_provider *provider;
    void *state;       /* the provider's */
    uint8_t *room;     /* reserved for calls; NULL: calls allocate what they need */
    size_t room_bytes; /* bytes of room for each rank */
    bool broken;       /* a call has failed */
    int64_t time;      /* the deadline of the call, for texts */
    int64_t whole;     /* that of the program, if its call makes several of these; 0: none */
    uint32_t *missing; /* ranks missing in the call that failed, ascending; or NULL */
    uint32_t missing_count;
};

/* The most missing ranks that a text names. The log names all. */
#define SLU_NAMED 8

/* The most addresses of rank 0, and the bytes of the secret it makes for a job without one. */
#define SLU_ROOTS 8
#define SLU_SECRET_BYTES 32

/* A rank that no source has named so far, while a launch is read. */
#define SLU_RANK_UNKNOWN UINT32_MAX

/* The facts about this process in attributes, environment and host file. */
struct slu_launch {
    uint32_t kind;             /* enum sluice_exchange_kind; AUTO: not decided yet */
    uint32_t rank, ranks;      /* PMIX: 0, since only its server knows them */
    char source[64];           /* of rank and ranks, for texts */
    char root[256];            /* "host:port" of rank 0; empty: not known */
    char job[64];              /* empty: none */
    const char *secret_file;   /* of the program or the environment; empty: none */
    const char *launcher;      /* whose variables named the rank; NULL: none. Static */
    const char *rank_source;   /* what named the rank, if program or user did. Static */
    const char *tcp_field;     /* the attribute that selected TCP; NULL: none. Static */
    const char *root_source;   /* what named root, for texts; NULL: nothing. Static */
    const char *secret_source; /* what named secret_file */
    bool pmi;                  /* no root is known, but a PMI-1 server that has it */
    char device[64];           /* of this rank in the host file, unless SLUICE_DEVICE is set */

    /* Read from the PMI-1 server. */
    int listener; /* of rank 0, already listening; -1: none */
    uint32_t root_count;
    char roots[SLU_ROOTS][64]; /* "host:port", one for each address of rank 0 */
    uint32_t secret_count;     /* 0: none */
    uint8_t secret[SLU_SECRET_BYTES];
};

/*
 * launch.c. Reads attributes, environment and host file. Returns 0, or a negative errno value with
 * a text that names the variable or the line.
 */
int slu_launch_read(const struct sluice_exchange_attr *attr, struct slu_launch *launch);

/* Checks for "host:port" or "[1:2::3]:port". -EINVAL has a text that names the source. */
int slu_launch_check_root(const char *root, const char *source);

/*
 * host_file.c. Completes a launch from a host file. If the rank is SLU_RANK_UNKNOWN, it becomes the
 * one whose host this is. If ranks is not 0, the file must have as many. A root that is set stays.
 * -EINVAL (the text names line and rank), -EOPNOTSUPP, -ENOMEM.
 */
int slu_host_file_read(const char *path, struct slu_launch *launch);

/*
 * pmix.c. Checks whether the PMIx server answers that the launcher's variables promise. -ENOENT and
 * -EOPNOTSUPP allow TCP instead; other errors do not. All have a text.
 */
int slu_pmix_answers(int64_t until);
/* Opens an exchange over PMIx: sets rank, ranks, source, provider and state. */
int slu_pmix_open(struct sluice_exchange *exchange, int64_t until);

/*
 * pmi.c. Completes a launch that has launch->pmi set; all ranks must call it together. After an
 * error, nothing is left open.
 */
int slu_pmi_find_root(struct slu_launch *launch, int64_t until);

/*
 * tcp.c. Opens an exchange over TCP, with rank and ranks set: sets provider and state. Consumes the
 * listener of the launch.
 */
int slu_tcp_open(struct sluice_exchange *exchange, const struct slu_launch *launch, int64_t until);

/*
 * Allocates the memory that calls will need, with rank and provider set. Returns false without
 * memory.
 */
bool slu_exchange_reserve(struct sluice_exchange *exchange);

/*
 * Gives up a call for which this rank has no memory, before it has sent anything of it, so that its
 * next call does not meet this call of the others. Breaks the exchange and tells the others if
 * possible. The thread's text says what there is no memory for. Returns -ENOMEM.
 */
int slu_exchange_abandon(struct sluice_exchange *exchange);
/*
 * Adds the length of the deadline to the text of a timeout, if the text names the deadline of this
 * rank and no length. Returns error.
 */
int slu_exchange_say_time(const struct sluice_exchange *exchange, int error);

/* missing.c. Keeps the ranks for which missing[] is true. */
void slu_exchange_set_missing(struct sluice_exchange *exchange, const bool *missing);
/* Logs the missing ranks as "3-7,12", for an exchange that did not open and cannot be queried. */
void slu_exchange_log_missing(const struct sluice_exchange *exchange);

#endif
