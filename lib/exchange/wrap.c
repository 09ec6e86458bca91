/* SPDX-License-Identifier: MIT */
/*
 * A provider made of the program's own functions. They are called only from the thread that uses
 * the exchange.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/caller_name.h"
#include "exchange/exchange.h"

struct own {
    struct slu_exchange_provider table; /* has the functions that the program has */
    struct sluice_exchange_provider given;
    void *argument;
    uint8_t room[]; /* one byte for each rank, if there is no barrier */
};

/*
 * Returns the relative time that the program's functions take. It is never 0: an exchange of sluice
 * that they may call would not tell the other ranks, which wait, that the time is up.
 */
static int64_t left_until(int64_t until)
{
    int64_t now = slu_now();

    if (until == SLUICE_FOREVER)
        return SLUICE_FOREVER;
    return until > now ? until - now : 1;
}

/* Adds a text, which the program's errors do not have. */
static int name_error(const char *function, int error)
{
    if (error == 0)
        return 0;
    if (error > 0)
        return slu_misuse(EINVAL,
                          "%s of sluice_exchange_provider returned %d, must be 0 or a negative "
                          "errno value",
                          function, error);
    return slu_fail(-error, "%s of sluice_exchange_provider failed: %s", function,
                    strerror(-error));
}

static int gather_bytes(const struct own *own, const void *bytes, void *all, size_t count,
                        int64_t until)
{
    int error;

    slu_program_enter();
    error = own->given.allgather(own->argument, bytes, all, count, left_until(until));
    slu_program_leave();
    return name_error("allgather", error);
}

/*
 * An allgather of no bytes becomes a barrier, since functions such as MPI_Allgather() then need not
 * wait.
 */
static int call_barrier(struct sluice_exchange *exchange, int64_t until)
{
    struct own *own = exchange->state;
    uint8_t byte = 0;
    int error;

    if (own->given.barrier == NULL)
        return gather_bytes(own, &byte, own->room, 1, until);
    slu_program_enter();
    error = own->given.barrier(own->argument, left_until(until));
    slu_program_leave();
    return name_error("barrier", error);
}

static int call_allgather(struct sluice_exchange *exchange, const void *bytes, void *all,
                          size_t count, int64_t until)
{
    return count == 0 ? call_barrier(exchange, until)
                      : gather_bytes(exchange->state, bytes, all, count, until);
}

static int call_alltoall(struct sluice_exchange *exchange, const void *to, void *from, size_t bytes,
                         int64_t until)
{
    const struct own *own = exchange->state;
    int error;

    if (bytes == 0)
        return call_barrier(exchange, until);
    slu_program_enter();
    error = own->given.alltoall(own->argument, to, from, bytes, left_until(until));
    slu_program_leave();
    return name_error("alltoall", error);
}

static void call_close(struct sluice_exchange *exchange)
{
    struct own *own = exchange->state;

    if (own->given.close != NULL) {
        slu_program_enter();
        own->given.close(own->argument);
        slu_program_leave();
    }
    free(own);
}

static int check_provider(const struct sluice_exchange_provider *known, uint32_t rank,
                          uint32_t ranks)
{
    if (known->reserved != 0)
        return slu_misuse(EINVAL, "sluice_exchange_provider.reserved is %u, must be 0",
                          known->reserved);
    if (known->allgather == NULL)
        return slu_misuse(EINVAL, "sluice_exchange_provider.allgather must not be NULL");
    if (ranks == 0 || ranks > SLUICE_MAX_RANKS)
        return slu_misuse(EINVAL, "%u ranks: must be 1 to %u", ranks, SLUICE_MAX_RANKS);
    if (rank >= ranks)
        return slu_misuse(EINVAL, "rank %u: there are ranks 0..%u", rank, ranks - 1);
    return 0;
}

/* Allocates all memory that calls will need. */
static struct own *make_own(const struct sluice_exchange_provider *known, void *argument,
                            uint32_t ranks)
{
    struct own *own = calloc(1, sizeof *own + (known->barrier == NULL ? ranks : 0));

    if (own == NULL)
        return NULL;
    own->given = *known;
    own->argument = argument;
    own->table = (struct slu_exchange_provider){
        .kind = SLUICE_EXCHANGE_OWN,
        .allgather = call_allgather,
        .alltoall = known->alltoall != NULL ? call_alltoall : NULL,
        .barrier = call_barrier,
        .close = call_close,
    };
    return own;
}

struct sluice_exchange *sluice_exchange_wrap(const struct sluice_exchange_provider *provider,
                                             void *argument, uint32_t rank, uint32_t ranks)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_exchange_provider known;
    struct sluice_exchange *exchange;
    int error;

    if (provider == NULL)
        return slu_misuse_null(EINVAL, "struct sluice_exchange_provider must not be NULL");
    error = SLU_ATTR_COPY(sluice_exchange_provider, &known, provider);
    if (error == 0)
        error = check_provider(&known, rank, ranks);
    if (error == 0)
        error = slu_fork_prepare();
    if (error < 0) {
        return slu_none(error);
    }
    exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL)
        return slu_fail_null(ENOMEM, "no memory for an exchange");
    exchange->rank = rank;
    exchange->ranks = ranks;
    exchange->state = make_own(&known, argument, ranks);
    if (exchange->state != NULL) {
        exchange->provider = &((struct own *)exchange->state)->table;
        if (slu_exchange_reserve(exchange)) {
            snprintf(exchange->source, sizeof exchange->source, "the program");
            exchange->magic = SLU_MAGIC_EXCHANGE;
            slu_made();
            return exchange;
        }
    }
    free(exchange->state);
    free(exchange);
    return slu_fail_null(ENOMEM, "no memory for an exchange of %u ranks", ranks);
}
