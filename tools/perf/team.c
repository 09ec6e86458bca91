/* SPDX-License-Identifier: MIT */
/* Brings the processes of a run together, and opens what each needs. */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "perf.h"

/* Messages that are validated need slots of their own, which together have about this size. */
#define VALIDATED_BYTES (UINT64_C(8) << 20)
#define LINE 64

int team_meet(struct team *team)
{
    if (sluice_exchange_barrier(team->exchange, SLUICE_FOREVER) == 0)
        return 0;
    return team_complain(team, "a peer is gone: %s", sluice_last_error());
}

int team_broadcast(struct team *team, void *bytes, size_t size)
{
    uint8_t *all = calloc(team->ranks, size);
    int result = 0;

    if (all == NULL)
        return team_complain(team, "no memory");
    if (sluice_exchange_allgather(team->exchange, bytes, all, size, SLUICE_FOREVER) != 0)
        result = team_complain(team, "a peer is gone: %s", sluice_last_error());
    else
        memcpy(bytes, all + team->leader * size, size);
    free(all);
    return result;
}

size_t team_shape(struct team *team, size_t size)
{
    uint64_t most = VALIDATED_BYTES / size;
    bool validated = (team->plan.flags & PLAN_VALIDATE) != 0;

    team->stride = (size + LINE - 1) / LINE * LINE;
    team->window = team->plan.window;
    if (validated && team->window > most)
        team->window = most > 1 ? (uint32_t)most : 1;
    team->slots = validated ? 2 * team->window : 1;
    return team->slots * team->stride;
}

/* Raises the limit of open files, as connections need descriptors. */
static void raise_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Pins the process to one of its allowed processors, by role. Ignores failures. */
static void pin(uint32_t role)
{
    cpu_set_t allowed, one;
    uint32_t count, seen = 0;

    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return;
    count = (uint32_t)CPU_COUNT(&allowed);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &allowed) && seen++ == role % count)
            CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
}

/* Opens the exchange of a client and its server: the client leads, but the server listens. */
static struct sluice_exchange *meet_by_address(const struct options *options)
{
    const char *host =
        options->serves ? options->address != NULL ? options->address : "0.0.0.0" : options->host;
    bool is_ipv6 = strchr(host, ':') != NULL && host[0] != '[';
    char root[300];
    const struct sluice_exchange_attr attr = {.size = sizeof attr,
                                              .kind = SLUICE_EXCHANGE_TCP,
                                              .rank = options->serves ? SLUICE_ZERO : 1,
                                              .ranks = 2,
                                              .root = root,
                                              .job = "sluice-perf"};

    snprintf(root, sizeof root, is_ipv6 ? "[%s]:%u" : "%s:%u", host, options->port);
    return sluice_exchange_open(&attr, options->serves ? SLUICE_FOREVER : options->plan.deadline);
}

/* Opens the exchange: by address, by a launcher, or with peers that are started here. */
static int meet(struct team *team, const struct options *options)
{
    struct sluice_exchange_info info = {.size = sizeof info};
    bool by_address = options->serves || options->host != NULL;

    if (options->host != NULL && await_server(team, options) != 0)
        return -1;
    if (by_address)
        team->exchange = meet_by_address(options);
    else if (!options->local)
        team->exchange = sluice_exchange_open(NULL, options->plan.deadline);
    if (team->exchange == NULL && !by_address && (options->local || errno == ENOENT))
        team->exchange = local_start(options->plan.peers + 1, &team->rank);
    if (team->exchange == NULL || sluice_exchange_query(team->exchange, &info) != 0)
        return team_fail(team, "meet the other processes");
    team->rank = info.rank;
    team->ranks = info.ranks;
    team->leader = by_address ? 1 : 0;
    team->role = (team->rank + team->ranks - team->leader) % team->ranks;
    if (team->ranks < 2)
        return team_complain(team, "the launcher has started one process, but two are needed");
    if (options->peers_given && options->plan.peers != team->ranks - 1)
        return team_complain(team, "the launcher has started %u processes, --peers %u needs %u",
                             team->ranks, options->plan.peers, options->plan.peers + 1);
    return 0;
}

/* Checks a plan, which came from another process. */
static bool is_plan(const struct plan *plan)
{
    bool right = plan->size == sizeof *plan && plan->work_count <= PLAN_WORKS &&
                 plan->size_count >= 1 && plan->size_count <= PLAN_SIZES && plan->peers >= 1 &&
                 plan->idle_peers <= PLAN_MOST_IDLE && plan->window >= 1 &&
                 plan->window <= PLAN_MOST_WINDOW && plan->level <= LEVEL_POSTED;

    for (uint32_t i = 0; right && i < plan->work_count; i++)
        right = plan->works[i] < perf_work_count;
    for (uint32_t i = 0; right && i < plan->size_count; i++)
        right = plan->sizes[i] >= 1 && plan->sizes[i] <= PLAN_MOST_BYTES;
    return right;
}

/* Replaces the plan by the leader's. */
static int agree(struct team *team)
{
    struct plan *plan = &team->plan;
    char version[sizeof plan->version];

    memcpy(version, plan->version, sizeof version);
    if (team->role == 0)
        plan->peers = team->ranks - 1;
    if (team_broadcast(team, plan, sizeof *plan) != 0)
        return -1;
    if (memcmp(version, plan->version, sizeof version) != 0)
        return team_complain(team, "the process that measures is of version %.*s, this one of %s",
                             (int)sizeof plan->version, plan->version, version);
    if (!is_plan(plan))
        return team_complain(team, "the process that measures has sent an invalid plan");
    team->deadline = plan->deadline;
    team->peers = team->role == 0 ? plan->peers : 1;
    return 0;
}

static bool has_work(const struct plan *plan, int (*lead)(struct team *, struct run *))
{
    for (uint32_t i = 0; i < plan->work_count; i++)
        if (perf_works[plan->works[i]].lead == lead)
            return true;
    return false;
}

static int open_node(struct team *team)
{
    const struct sluice_channel_attr channel = {.size = sizeof channel,
                                                .wait_mode = team->plan.wait_mode,
                                                .queue_pairs = team->plan.queue_pairs,
                                                .stripe_least = team->plan.stripe_least};
    const struct sluice_node_attr attr = {.size = sizeof attr, .channel = &channel};

    team->node = sluice_node_open(team->pd, team->exchange, &attr, team->deadline);
    return team->node != NULL ? 0 : team_fail(team, "open a node");
}

int team_open(struct team *team, const struct options *options)
{
    *team = (struct team){.plan = options->plan, .info = {.size = sizeof team->info}};
    raise_limit();
    if (meet(team, options) != 0 || agree(team) != 0)
        return -1;
    ticks_begin();
    if ((team->plan.flags & PLAN_PIN) != 0)
        pin(team->role);
    team->context = sluice_context_open(options->device, NULL);
    if (team->context == NULL || sluice_context_query(team->context, &team->info) != 0)
        return team_fail(team, "open the device");
    if (has_work(&team->plan, cas_lat_lead) && team->info.atomics == SLUICE_ATOMICS_NONE)
        return team_complain(team, "cas_lat: %s has no atomic operations", team->info.device);
    team->pd = sluice_pd_alloc(team->context);
    if (team->pd == NULL)
        return team_fail(team, "allocate a protection domain");
    if (link_open(team) != 0)
        return -1;
    return has_work(&team->plan, barrier_lead) ? open_node(team) : 0;
}

void team_close(struct team *team)
{
    sluice_node_close(team->node);
    link_close(team);
    sluice_pd_free(team->pd);
    sluice_context_close(team->context);
    sluice_exchange_close(team->exchange);
}
