/* SPDX-License-Identifier: MIT */
#include "crew.h"

#include <stdlib.h>

static void prepare_all(struct crew *crew, const struct sluice_node_attr *attr,
                        struct sluice_prepared_node *prepared[CREW_MAX])
{
    for (uint32_t i = 0; i < crew->count; i++) {
        bool own = i == 0 || current_wire() == WIRE_TCP;
        crew->contexts[i] = own ? open_context() : crew->contexts[0];
        crew->pds[i] = sluice_pd_alloc(crew->contexts[i]);
        require(crew->pds[i], "%s", sluice_last_error());
        prepared[i] = sluice_node_prepare(crew->pds[i], i, crew->count, attr);
        require(prepared[i], "rank %u: %s", i, sluice_last_error());
        require_ok(sluice_prepared_node_endpoints(prepared[i], crew->made[i], crew->count));
    }
}

void crew_open(struct crew *crew, uint32_t count, const struct sluice_node_attr *attr)
{
    struct sluice_prepared_node *prepared[CREW_MAX];
    struct sluice_node_endpoint remotes[CREW_MAX];
    require(count <= CREW_MAX, "%u ranks", count);
    memset(crew, 0, sizeof(*crew));
    crew->count = count;
    require(pthread_barrier_init(&crew->meeting, NULL, count) == 0, "%u ranks", count);
    prepare_all(crew, attr, prepared);
    for (uint32_t i = 0; i < count; i++) {
        for (uint32_t j = 0; j < count; j++) {
            remotes[j] = crew->made[j][i];
        }
        crew->nodes[i] = sluice_prepared_node_handshake(prepared[i], remotes, count);
        require(crew->nodes[i], "rank %u: %s", i, sluice_last_error());
    }
}

void crew_close(struct crew *crew)
{
    for (uint32_t i = 0; i < crew->count; i++) {
        sluice_node_close(crew->nodes[i]);
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        sluice_pd_free(crew->pds[i]);
        if (i == 0 || crew->contexts[i] != crew->contexts[0]) {
            sluice_context_close(crew->contexts[i]);
        }
    }
    pthread_barrier_destroy(&crew->meeting);
}

struct hand {
    struct crew *crew;
    uint32_t rank;
    void (*function)(struct crew *crew, uint32_t rank);
};

static void *lend(void *argument)
{
    const struct hand *hand = argument;
    hand->function(hand->crew, hand->rank);
    return NULL;
}

void crew_run(struct crew *crew, void (*function)(struct crew *crew, uint32_t rank))
{
    struct hand hands[CREW_MAX];
    pthread_t threads[CREW_MAX];
    for (uint32_t i = 0; i < crew->count; i++) {
        hands[i] = (struct hand){crew, i, function};
        require(pthread_create(&threads[i], NULL, lend, &hands[i]) == 0, "rank %u", i);
    }
    for (uint32_t i = 0; i < crew->count; i++) {
        pthread_join(threads[i], NULL);
    }
}

void crew_meet(struct crew *crew)
{
    pthread_barrier_wait(&crew->meeting);
}

void crew_mend(struct crew *crew, uint32_t rank)
{
    crew_meet(crew);
    require_ok(sluice_node_barrier_reset(crew->nodes[rank]));
    crew_meet(crew);
}

void node_endpoint_sign(struct sluice_node_endpoint *endpoint)
{
    uint32_t hash = UINT32_C(2166136261);
    for (size_t i = 0; i < sizeof(*endpoint) - 4; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    for (int i = 0; i < 4; i++) {
        endpoint->bytes[sizeof(*endpoint) - 4 + (size_t)i] = (uint8_t)(hash >> (24 - 8 * i));
    }
}

static int allgather(void *argument, const void *own, void *all, size_t bytes, int64_t deadline)
{
    struct rank *rank = argument;
    uint8_t *blocks = calloc(rank->size, bytes + 1);
    require(blocks, "%zu bytes", bytes);
    (void)deadline;
    for (uint32_t i = 0; i < rank->size; i++) {
        memcpy(blocks + i * bytes, own, bytes);
    }
    rank_exchange(rank, blocks, all, bytes);
    free(blocks);
    return 0;
}

static int alltoall(void *argument, const void *to, void *from, size_t bytes, int64_t deadline)
{
    (void)deadline;
    rank_exchange(argument, to, from, bytes);
    return 0;
}

static int barrier(void *argument, int64_t deadline)
{
    (void)deadline;
    rank_barrier(argument);
    return 0;
}

struct sluice_exchange *rank_exchange_open(struct rank *rank)
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = allgather, .alltoall = alltoall, .barrier = barrier};
    struct sluice_exchange *exchange =
        sluice_exchange_wrap(&provider, rank, rank->index, rank->size);
    require(exchange, "%s", sluice_last_error());
    return exchange;
}
