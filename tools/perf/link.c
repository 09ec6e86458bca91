/* SPDX-License-Identifier: MIT */
/* The connections between the leader and its peers, and the memory of each process. */
#include <stdlib.h>
#include <string.h>

#include "perf.h"

struct sluice_channel_attr link_attr(const struct team *team)
{
    return (struct sluice_channel_attr){.size = sizeof(struct sluice_channel_attr),
                                        .send_depth = team->plan.window,
                                        .receive_depth = 2 * team->plan.window,
                                        .max_sge = 1,
                                        .max_inline = team->plan.inline_bytes,
                                        .wait_mode = team->plan.wait_mode,
                                        .queue_pairs = team->plan.queue_pairs,
                                        .stripe_least = team->plan.stripe_least};
}

static uint32_t rank_of(const struct team *team, uint32_t role)
{
    return (team->leader + role) % team->ranks;
}

/* Sends own[i] to peer i, and receives theirs[i] from it. */
static int swap_endpoints(struct team *team, const struct sluice_endpoint *own,
                          struct sluice_endpoint *theirs)
{
    struct sluice_endpoint *out = calloc(team->ranks, sizeof *out);
    struct sluice_endpoint *in = calloc(team->ranks, sizeof *in);
    int result = out != NULL && in != NULL ? 0 : team_complain(team, "no memory");

    for (uint32_t i = 0; result == 0 && i < team->peers; i++)
        out[rank_of(team, team->role == 0 ? i + 1 : 0)] = own[i];
    if (result == 0 &&
        sluice_exchange_alltoall(team->exchange, out, in, sizeof *out, SLUICE_FOREVER) != 0)
        result = team_fail(team, "swap endpoints");
    for (uint32_t i = 0; result == 0 && i < team->peers; i++)
        theirs[i] = in[rank_of(team, team->role == 0 ? i + 1 : 0)];
    free(out);
    free(in);
    return result;
}

/* Swaps more endpoints between the leader and role 1; all others take part without data. */
static int swap_idle(struct team *team, const struct sluice_endpoint *own,
                     struct sluice_endpoint *theirs, uint32_t count)
{
    const size_t chunk = PERF_ENDPOINT_CHUNK;
    struct sluice_endpoint *out = calloc(chunk, sizeof *out);
    struct sluice_endpoint *all = calloc(team->ranks * chunk, sizeof *all);
    int result = out != NULL && all != NULL ? 0 : team_complain(team, "no memory");

    for (size_t done = 0; result == 0 && done < count; done += chunk) {
        size_t part = count - done < chunk ? count - done : chunk;

        if (team->role < 2)
            memcpy(out, own + done, part * sizeof *out);
        if (sluice_exchange_allgather(team->exchange, out, all, chunk * sizeof *out,
                                      SLUICE_FOREVER) != 0)
            result = team_fail(team, "swap endpoints");
        else if (team->role < 2)
            memcpy(theirs + done, all + rank_of(team, team->role == 0 ? 1 : 0) * chunk,
                   part * sizeof *out);
    }
    free(out);
    free(all);
    return result;
}

static struct sluice_prepared_multichannel *prepare(struct team *team, uint32_t peers,
                                                    struct sluice_endpoint *endpoints)
{
    struct sluice_channel_attr attr = link_attr(team);
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(team->pd, peers, &attr);

    if (prepared != NULL && sluice_prepared_multichannel_endpoints(prepared, endpoints, peers) == 0)
        return prepared;
    team_fail(team, "prepare connections");
    sluice_prepared_multichannel_free(prepared);
    return NULL;
}

static struct sluice_multichannel *finish(struct team *team,
                                          struct sluice_prepared_multichannel *prepared,
                                          const struct sluice_endpoint *remotes, uint32_t peers)
{
    struct sluice_multichannel *channels =
        sluice_prepared_multichannel_handshake(prepared, remotes, peers);

    if (channels != NULL && sluice_multichannel_wait_connected(channels, team->deadline) == 0)
        return channels;
    team_fail(team, "connect");
    sluice_multichannel_close(channels);
    return NULL;
}

/* Allocates two lists of endpoints in one block: ours and theirs. */
static struct sluice_endpoint *endpoint_lists(struct team *team, uint32_t peers)
{
    struct sluice_endpoint *lists = calloc(2 * (size_t)peers, sizeof *lists);

    if (lists == NULL)
        team_complain(team, "no memory");
    return lists;
}

int link_connect(struct team *team, struct sluice_multichannel **channels, uint64_t *ticks)
{
    struct sluice_endpoint *own = endpoint_lists(team, team->peers);
    struct sluice_prepared_multichannel *prepared;
    uint64_t begin = ticks_now();

    if (own == NULL)
        return -1;
    prepared = prepare(team, team->peers, own);
    *ticks = ticks_now() - begin;
    if (prepared == NULL || swap_endpoints(team, own, own + team->peers) != 0) {
        sluice_prepared_multichannel_free(prepared);
        free(own);
        return -1;
    }
    begin = ticks_now();
    *channels = finish(team, prepared, own + team->peers, team->peers);
    *ticks += ticks_now() - begin;
    free(own);
    return *channels != NULL ? 0 : -1;
}

/* Connects with idle peers: the leader has them behind its peers, role 1 has the other ends. */
static int connect_beside_idle(struct team *team)
{
    uint32_t idle = team->plan.idle_peers, here = team->role == 0 ? idle : 0;
    uint32_t peers = team->peers + here;
    struct sluice_endpoint *own = endpoint_lists(team, peers);
    struct sluice_endpoint *far = endpoint_lists(team, idle);
    struct sluice_prepared_multichannel *prepared = NULL, *others = NULL;
    struct sluice_endpoint *theirs = NULL;
    bool swapped = false;

    if (own != NULL && far != NULL) {
        theirs = own + peers;
        prepared = prepare(team, peers, own);
    }
    if (prepared != NULL && team->role == 1)
        others = prepare(team, idle, far);
    if (prepared != NULL && (team->role != 1 || others != NULL) &&
        swap_endpoints(team, own, theirs) == 0) {
        if (team->role == 0)
            swapped = swap_idle(team, own + team->peers, theirs + team->peers, idle) == 0;
        else
            swapped = swap_idle(team, far, far + idle, idle) == 0;
    }
    /* The idle handshake first: it does not wait, but finish() waits for both sides. */
    if (swapped && others != NULL)
        team->idle = sluice_prepared_multichannel_handshake(others, far + idle, idle);
    if (swapped && (team->role != 1 || team->idle != NULL))
        team->channels = finish(team, prepared, theirs, peers);
    else
        sluice_prepared_multichannel_free(prepared);
    if (!swapped)
        sluice_prepared_multichannel_free(others);
    if (team->role == 1 && swapped && team->idle == NULL)
        team_fail(team, "connect idle peers");
    free(own);
    free(far);
    return team->channels != NULL ? 0 : -1;
}

/* Sets the size of an area to the largest that any message size needs. */
static void lay_out(struct team *team)
{
    team->area = 0;
    for (uint32_t i = 0; i < team->plan.size_count; i++) {
        size_t area = team_shape(team, team->plan.sizes[i]);

        team->area = area > team->area ? area : team->area;
    }
}

static int share_memory(struct team *team)
{
    struct sluice_remote_mr remote;
    uint8_t own[SLUICE_REMOTE_MR_BYTES];
    uint8_t *all = calloc(team->ranks, sizeof own);
    int result = 0;

    team->remotes = calloc(team->peers, sizeof *team->remotes);
    sluice_mr_remote(team->mr, &remote);
    sluice_remote_mr_pack(&remote, own);
    if (all == NULL || team->remotes == NULL)
        result = team_complain(team, "no memory");
    else if (sluice_exchange_allgather(team->exchange, own, all, sizeof own, SLUICE_FOREVER) != 0)
        result = team_fail(team, "share memory");
    for (uint32_t i = 0; result == 0 && i < team->peers; i++)
        if (sluice_remote_mr_unpack(all + rank_of(team, team->role == 0 ? i + 1 : 0) * sizeof own,
                                    &team->remotes[i]) != 0)
            result = team_fail(team, "read a peer's memory handle");
    free(all);
    return result;
}

static int make_memory(struct team *team)
{
    uint32_t access =
        SLUICE_ACCESS_LOCAL_WRITE | SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_READ;

    if (team->info.atomics != SLUICE_ATOMICS_NONE)
        access |= SLUICE_ACCESS_REMOTE_ATOMIC;
    lay_out(team);
    team->list_size = (team->plan.window > 2 ? team->plan.window : 2) * team->peers;
    team->list = calloc(team->list_size, sizeof *team->list);
    team->mr = sluice_mr_alloc(team->pd, place_memory(team), access);
    if (team->list == NULL || team->mr == NULL)
        return team_fail(team, "allocate memory for the messages");
    if (sluice_mr_sge(team->mr, 0, 1, &team->memory) != 0)
        return team_fail(team, "name memory");
    return share_memory(team);
}

int link_open(struct team *team)
{
    struct sluice_channel_info info = {.size = sizeof info};
    uint64_t ticks;
    int error = team->plan.idle_peers == 0 ? link_connect(team, &team->channels, &ticks)
                                           : connect_beside_idle(team);

    if (error != 0)
        return -1;
    if (sluice_multichannel_peer_query(team->channels, 0, &info) == 0)
        snprintf(team->address, sizeof team->address, "%s", info.remote_address);
    return make_memory(team);
}

void link_close(struct team *team)
{
    sluice_multichannel_close(team->idle);
    sluice_multichannel_close(team->channels);
    sluice_mr_deregister(team->mr);
    free(team->remotes);
    free(team->list);
}
