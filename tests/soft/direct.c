/* SPDX-License-Identifier: MIT */
#include "direct.h"

#include <stdio.h>
#include <stdlib.h>

/* Log lines about regions, counted by kind. */
atomic_uint mapped, denied, unreadable;

/* If there are many in a second, the log only counts the rest; add that number. */
static void count_log(uint32_t level, const char *line, void *user)
{
    unsigned count = 1;

    (void)level;
    (void)user;
    if (strstr(line, " more like this in "))
        count = (unsigned)strtoul(line, NULL, 10);
    atomic_fetch_add(&mapped, strstr(line, "has mapped a region") ? count : 0);
    atomic_fetch_add(&denied, strstr(line, "may not map a region") ? count : 0);
    atomic_fetch_add(&unreadable, strstr(line, "cannot read from its peer's") ? count : 0);
}

void hear_all(void)
{
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, count_log, NULL));
}

struct sluice_mr *alloc(const struct end *end, size_t length, uint32_t access)
{
    struct sluice_mr *mr = made(sluice_mr_alloc(end->pd, length, access));

    return mr;
}

struct sluice_remote_mr share(const struct end *end, const struct sluice_mr *mr)
{
    struct sluice_remote_mr remotes[2];

    require_ok(sluice_mr_remote(mr, &remotes[0]));
    remotes[1] = remotes[0];
    rank_exchange(end->rank, remotes, remotes, sizeof remotes[0]);
    return remotes[!end->rank->index];
}

static void meet(struct end *end, const struct sluice_channel_attr *attr)
{
    struct sluice_endpoint endpoints[2];
    struct sluice_prepared_channel *prepared = prepare_channel(end->pd, attr, &endpoints[0]);

    endpoints[1] = endpoints[0];
    rank_exchange(end->rank, endpoints, endpoints, sizeof endpoints[0]);
    end->channel = made(sluice_prepared_channel_handshake(prepared, &endpoints[!end->rank->index]));
    require_ok(sluice_channel_wait_connected(end->channel, DEADLINE));
    /* Two sides share memory once they have something to send. */
    if (end->rank->index == 0)
        require_ok(sluice_channel_send(end->channel, NULL, 0, DEADLINE));
    else
        require_ok(sluice_channel_receive(end->channel, NULL, 0, DEADLINE, NULL));
}

/* rights: of the region; granted: of the channel, 0 is all. */
void end_open_with(struct end *end, struct rank *rank, uint32_t rights, uint32_t granted)
{
    struct sluice_channel_attr attr = {.size = sizeof attr, .access = granted};

    end->rank = rank;
    hear_all();
    end->context = open_context();
    end->pd = sluice_pd_alloc(end->context);
    end->mr = alloc(end, REGION, SLUICE_ACCESS_LOCAL_WRITE | rights);
    end->own = alloc(end, REGION, SLUICE_ACCESS_LOCAL_WRITE);
    end->bytes = sluice_mr_addr(end->mr);
    end->mine = sluice_mr_addr(end->own);
    meet(end, &attr);
    end->remote = share(end, end->mr);
}

void end_open(struct end *end, struct rank *rank)
{
    end_open_with(end, rank, REMOTE_RIGHTS, 0);
}

void end_close(struct end *end)
{
    sluice_channel_close(end->channel);
    if (end->mr)
        require_ok(sluice_mr_deregister(end->mr));
    require_ok(sluice_mr_deregister(end->own));
    sluice_pd_free(end->pd);
    sluice_context_close(end->context);
}

struct sluice_sge own_sge(const struct end *end, size_t offset, size_t length)
{
    struct sluice_sge sge;

    require_ok(sluice_mr_sge(end->own, offset, length, &sge));
    return sge;
}

struct sluice_remote_mr slice(const struct sluice_remote_mr *whole, size_t offset, size_t length)
{
    struct sluice_remote_mr part;

    require_ok(sluice_remote_mr_slice(whole, offset, length, &part));
    return part;
}

int read_word(struct end *end, size_t offset)
{
    struct sluice_sge sge = own_sge(end, 0, 8);
    struct sluice_remote_mr remote = slice(&end->remote, offset, 8);

    return sluice_channel_read(end->channel, &sge, 1, &remote, DEADLINE);
}

/* Makes requests until the region is mapped, or the log says that it will not be. */
void use_until_known(struct end *end)
{
    while (atomic_load(&mapped) + atomic_load(&denied) == 0)
        require_ok(read_word(end, 0));
}

/*
 * Counts regions of a peer that this process has mapped; those of its own are found by their
 * descriptors.
 */
uint32_t count_maps(const char *with)
{
    FILE *file = fopen("/proc/self/maps", "r");
    char line[512];
    uint32_t count = 0;

    require(file, "%s", strerror(errno));
    while (fgets(line, sizeof line, file))
        count += strstr(line, "/memfd:sluice (deleted)") != NULL && strstr(line, with) != NULL;
    fclose(file);
    return count;
}

uint32_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}
