/* SPDX-License-Identifier: MIT */
/*
 * The calls of an exchange. A wrong argument changes nothing. A call that failed breaks the
 * exchange for good, because no rank knows how far the others came.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#include "base/environment.h"
#include "exchange/exchange.h"

/* Memory for an alltoall made of allgathers, which takes several rounds. */
#define ROUND_BYTES ((size_t)16 << 20)

/*
 * Identifies a host: equal values mean the same kernel since its start and the same /dev/shm. So
 * containers that cannot share memory count as different hosts, and those that can as one, whatever
 * their names and networks are.
 */
struct host {
    char kernel[64]; /* the boot id, or the host's name if there is none */
    uint64_t shm_device, shm_inode;
};

static bool is_exchange(const struct sluice_exchange *exchange)
{
    return exchange != NULL && exchange->magic == SLU_MAGIC_EXCHANGE;
}

static int not_exchange(const struct sluice_exchange *exchange)
{
    return slu_misuse(EINVAL, "not an exchange, or one that was closed before%s",
                      slu_none_hint(exchange));
}

/* Checks that all calls make before anything else. */
static int check_call(const struct sluice_exchange *exchange, int64_t deadline)
{
    if (!is_exchange(exchange))
        return not_exchange(exchange);
    if (deadline < 0)
        return slu_misuse(EINVAL, "deadline %lld is negative", (long long)deadline);
    return 0;
}

static int check_bytes(const struct sluice_exchange *exchange, const void *from, const void *to,
                       size_t bytes)
{
    if (bytes > SLUICE_MAX_EXCHANGE_BYTES)
        return slu_misuse(EINVAL, "%zu bytes for each rank: must be 0 to %u", bytes,
                          SLUICE_MAX_EXCHANGE_BYTES);
    if (bytes > SIZE_MAX / exchange->ranks)
        return slu_misuse(EINVAL,
                          "%zu bytes of each of %u ranks are more than the address space has",
                          bytes, exchange->ranks);
    if (bytes > 0 && (from == NULL || to == NULL))
        return slu_misuse(EINVAL, "the buffers of %zu bytes for each rank must not be NULL", bytes);
    return 0;
}

/* With a deadline of 0 nothing is sent, because that could not be taken back. */
static int check_whole(const struct sluice_exchange *exchange, int64_t deadline)
{
    if (exchange->broken)
        return slu_fail(ENOTCONN, "a call of this exchange has failed before: close it, and open "
                                  "a new one in all ranks");
    if (deadline == 0)
        return slu_fail(ETIMEDOUT, "the deadline is 0: nothing was sent to other ranks");
    return 0;
}

static int check_transfer(const struct sluice_exchange *exchange, const void *from, const void *to,
                          size_t bytes, int64_t deadline)
{
    int error = check_call(exchange, deadline);

    if (error == 0)
        error = check_bytes(exchange, from, to, bytes);
    return error == 0 ? check_whole(exchange, deadline) : error;
}

/* Notes the deadline of a call that is sound. Returns error. */
static int note_time(struct sluice_exchange *exchange, int64_t deadline, int error)
{
    if (error == 0)
        exchange->time = exchange->whole != 0 ? exchange->whole : deadline;
    return error;
}

/* Ends a call of the provider. A failure breaks the exchange. */
static int end_call(struct sluice_exchange *exchange, int error)
{
    exchange->broken = exchange->broken || error < 0;
    return slu_exchange_say_time(exchange, error);
}

bool slu_exchange_reserve(struct sluice_exchange *exchange)
{
    size_t bytes = sizeof(struct host);

    if (exchange->provider->alltoall == NULL && ROUND_BYTES / exchange->ranks > bytes)
        bytes = slu_least(ROUND_BYTES / exchange->ranks, SLUICE_MAX_EXCHANGE_BYTES);
    exchange->room = calloc(exchange->ranks, bytes);
    exchange->room_bytes = bytes;
    return exchange->room != NULL;
}

int slu_exchange_abandon(struct sluice_exchange *exchange)
{
    SLU_KEEP_ERRNO;
    struct slu_text text;
    int error;

    slu_text_save(&text);
    error = slu_fail(ENOMEM, "rank %u cannot take part: %s", exchange->rank, text.bytes);
    if (exchange->broken)
        return error;
    slu_text_save(&text);
    exchange->broken = true;
    if (exchange->provider->abandon != NULL)
        exchange->provider->abandon(exchange);
    slu_text_restore(&text);
    return error;
}

static int call_allgather(struct sluice_exchange *exchange, const void *own, void *all,
                          size_t bytes, int64_t until)
{
    return end_call(exchange, exchange->provider->allgather(exchange, own, all, bytes, until));
}

/* Adds to an error of TCP why PMIx, which was tried first, could not be used. */
static int fail_after_pmix(int error, const char *pmix)
{
    struct slu_text text;

    slu_text_save(&text);
    return slu_fail(-error, "%s; PMIx was tried first: %s", text.bytes, pmix);
}

static int open_over_tcp(struct sluice_exchange *exchange, struct slu_launch *launch, int64_t until)
{
    int error = 0;

    if (launch->pmi)
        error = slu_pmi_find_root(launch, until);
    if (error == 0)
        error = slu_tcp_open(exchange, launch, until);
    explicit_bzero(launch->secret, sizeof launch->secret);
    return error;
}

/* Opens the provider that the launch asks for, or the first that is available. */
static int open_provider(struct sluice_exchange *exchange, const struct sluice_exchange_attr *attr,
                         int64_t deadline, int64_t until)
{
    struct slu_text pmix = {.bytes = ""};
    struct slu_launch launch;
    int error = slu_launch_read(attr, &launch);

    if (error < 0)
        return error;
    if (deadline == 0)
        return slu_fail(ETIMEDOUT, "the deadline is 0: no other rank was contacted");
    exchange->rank = launch.rank;
    exchange->ranks = launch.ranks;
    /* Over PMIx, only the server knows rank and ranks, and has not been queried yet. */
    if (launch.ranks != 0)
        slu_log_set_rank(launch.rank);
    memcpy(exchange->source, launch.source, sizeof exchange->source);
    memcpy(exchange->device, launch.device, sizeof exchange->device);
    if (launch.kind == SLUICE_EXCHANGE_PMIX)
        return slu_pmix_open(exchange, until);
    if (launch.kind == SLUICE_EXCHANGE_AUTO && slu_getenv("PMIX_RANK") != NULL) {
        struct slu_text before;

        slu_text_save(&before);
        error = slu_pmix_answers(until);
        if (error == 0)
            return slu_pmix_open(exchange, until);
        if (error != -ENOENT && error != -EOPNOTSUPP)
            return error;
        slu_text_save(&pmix);
        slu_text_restore(&before);
    }
    error = open_over_tcp(exchange, &launch, until);
    if (error < 0 && pmix.bytes[0] != '\0')
        return fail_after_pmix(error, pmix.bytes);
    return error;
}

struct sluice_exchange *sluice_exchange_open(const struct sluice_exchange_attr *attr,
                                             int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    struct sluice_exchange_attr known;
    struct sluice_exchange *exchange;
    int64_t until = slu_after(deadline);
    int saved = errno;
    int error;

    if (deadline < 0)
        return slu_misuse_null(EINVAL, "deadline %lld is negative", (long long)deadline);
    error = SLU_ATTR_COPY(sluice_exchange_attr, &known, attr);
    if (error == 0)
        error = slu_fork_prepare();
    if (error < 0)
        return slu_none(error);
    known.size = sizeof known;
    exchange = calloc(1, sizeof *exchange);
    if (exchange == NULL)
        return slu_fail_null(ENOMEM, "no memory for an exchange");
    exchange->time = deadline;
    error = slu_exchange_say_time(exchange, open_provider(exchange, &known, deadline, until));
    if (error < 0) {
        if (exchange->missing_count > SLU_NAMED)
            slu_exchange_log_missing(exchange);
        free(exchange->missing);
        free(exchange);
        return slu_none(error);
    }
    slu_log_set_rank(exchange->rank);
    exchange->magic = SLU_MAGIC_EXCHANGE;
    errno = saved;
    slu_made();
    return exchange;
}

void sluice_exchange_close(struct sluice_exchange *exchange)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (!slu_may_end(exchange, SLU_MAGIC_EXCHANGE, "exchange"))
        return;
    if (exchange->owned) {
        slu_refuse_owned("exchange");
        return;
    }
    exchange->provider->close(exchange);
    exchange->magic = SLU_MAGIC_DEAD;
    free(exchange->room);
    free(exchange->missing);
    free(exchange);
}

int sluice_exchange_query(const struct sluice_exchange *exchange, struct sluice_exchange_info *info)
{
    struct sluice_exchange_info known = {.size = sizeof known};
    int error;

    if (!is_exchange(exchange))
        return not_exchange(exchange);
    error = SLU_INFO_CHECK(sluice_exchange_info, info);
    if (error < 0)
        return error;
    known.kind = exchange->provider->kind;
    known.rank = exchange->rank;
    known.ranks = exchange->ranks;
    memcpy(known.source, exchange->source, sizeof known.source);
    memcpy(known.device, exchange->device, sizeof known.device);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}

int sluice_exchange_allgather(struct sluice_exchange *exchange, const void *own, void *all,
                              size_t bytes, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    int64_t until = slu_after(deadline);
    int error = note_time(exchange, deadline, check_transfer(exchange, own, all, bytes, deadline));

    return error < 0 ? error : call_allgather(exchange, own, all, bytes, until);
}

/*
 * In each round every rank gives the next part of its data, as much as the room holds, and copies
 * what is for itself.
 */
static int alltoall_in_rounds(struct sluice_exchange *exchange, const uint8_t *to, uint8_t *from,
                              size_t bytes, int64_t until)
{
    size_t begin = exchange->rank * bytes, end = begin + bytes;
    size_t whole = exchange->ranks * bytes;
    int error = 0;

    for (size_t first = 0; first < whole && error == 0; first += exchange->room_bytes) {
        size_t given = slu_least(exchange->room_bytes, whole - first);
        size_t ours = first > begin ? first : begin;
        size_t after = slu_least(first + given, end);

        error = call_allgather(exchange, to + first, exchange->room, given, until);
        for (size_t i = 0; i < exchange->ranks && error == 0 && ours < after; i++)
            memcpy(from + i * bytes + (ours - begin), exchange->room + i * given + (ours - first),
                   after - ours);
    }
    return error;
}

int sluice_exchange_alltoall(struct sluice_exchange *exchange, const void *to, void *from,
                             size_t bytes, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    int64_t until = slu_after(deadline);
    int error = note_time(exchange, deadline, check_transfer(exchange, to, from, bytes, deadline));

    if (error < 0)
        return error;
    if (exchange->provider->alltoall != NULL)
        return end_call(exchange, exchange->provider->alltoall(exchange, to, from, bytes, until));
    if (bytes == 0)
        return call_allgather(exchange, to, from, 0, until);
    return alltoall_in_rounds(exchange, to, from, bytes, until);
}

int sluice_exchange_barrier(struct sluice_exchange *exchange, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    int64_t until = slu_after(deadline);
    int error = check_call(exchange, deadline);

    if (error == 0)
        error = note_time(exchange, deadline, check_whole(exchange, deadline));
    return error < 0 ? error : end_call(exchange, exchange->provider->barrier(exchange, until));
}

int sluice_exchange_missing(const struct sluice_exchange *exchange, uint32_t *ranks,
                            uint32_t capacity)
{
    if (!is_exchange(exchange))
        return not_exchange(exchange);
    if (ranks == NULL && capacity > 0)
        return slu_misuse(EINVAL, "room for %u ranks must not be NULL", capacity);
    for (uint32_t i = 0; i < capacity && i < exchange->missing_count; i++)
        ranks[i] = exchange->missing[i];
    return (int)exchange->missing_count;
}

static void identify_host(struct host *host)
{
    struct stat status;
    struct utsname name;

    memset(host, 0, sizeof *host);
    slu_fd_read_text("/proc/sys/kernel/random/boot_id", host->kernel, sizeof host->kernel);
    if (host->kernel[0] == '\0' && uname(&name) == 0)
        memcpy(host->kernel, name.nodename, strnlen(name.nodename, sizeof host->kernel - 1));
    if (stat("/dev/shm", &status) == 0) {
        host->shm_device = status.st_dev;
        host->shm_inode = status.st_ino;
    }
}

int sluice_exchange_locality(struct sluice_exchange *exchange, uint32_t *local_rank,
                             uint32_t *local_ranks, int64_t deadline)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;
    struct host own;
    struct host *made = NULL, *all;
    uint32_t before = 0, count = 0;
    int error = check_call(exchange, deadline);

    if (error == 0 && (local_rank == NULL || local_ranks == NULL))
        error = slu_misuse(EINVAL, "local_rank and local_ranks must not be NULL");
    if (error == 0)
        error = check_whole(exchange, deadline);
    if (error < 0)
        return error;
    if (exchange->room == NULL)
        made = calloc(exchange->ranks, sizeof *made);
    all = exchange->room != NULL ? (struct host *)(void *)exchange->room : made;
    if (all == NULL) {
        slu_fail(ENOMEM, "no memory for the hosts of %u ranks", exchange->ranks);
        return slu_exchange_abandon(exchange);
    }
    identify_host(&own);
    error = sluice_exchange_allgather(exchange, &own, all, sizeof own, deadline);
    for (uint32_t i = 0; error == 0 && i < exchange->ranks; i++) {
        bool same = memcmp(&all[i], &own, sizeof own) == 0;

        count += same;
        before += same && i < exchange->rank;
    }
    free(made);
    if (error < 0)
        return error;
    *local_rank = before;
    *local_ranks = count;
    return 0;
}
