/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "programs.h"

enum { SLOT = 6000, MOST_ACTIONS = 12, PORT = 7600 };

/* Each buffer has a slot for each rank, which that rank alone writes. */
struct names {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory; /* MOST_ACTIONS * SLOT bytes */
    struct sluice_buffer_service *service;
    struct sluice_buffer *buffer;
    struct sluice_mr *published; /* of which the buffer is a part; NULL: it is of its own */
    struct sluice_buffer_handle *handles; /* of all ranks */
    uint8_t **slots;                      /* what this rank wrote to each */
    bool *unknown;                        /* a write to the buffer was cancelled */
    uint32_t steps;
};

/* A buffer in memory of its own, or in a part of a region, which goes on without it. */
static struct sluice_buffer *make_buffer(struct names *names)
{
    uint32_t access = SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE;
    size_t bytes = (size_t)sim_ranks() * SLOT, offset = below(100);
    if (below(2)) {
        return sluice_buffer_publish(names->service, NULL, bytes, access);
    }
    names->published =
        sluice_mr_alloc(names->pd, offset + bytes, access | SLUICE_ACCESS_LOCAL_WRITE);
    return names->published == NULL
               ? NULL
               : sluice_buffer_publish_mr(names->service, names->published, offset, bytes, access);
}

/* Ends the buffer. A region whose part it was gets other bytes at once. */
static void end_buffer(struct names *names)
{
    sluice_buffer_release(names->buffer);
    names->buffer = NULL;
    if (names->published != NULL) {
        memset(sluice_mr_addr(names->published), 0xa7, sluice_mr_length(names->published));
        must(sluice_mr_deregister(names->published) == 0, "deregister: %s", sluice_last_error());
    }
    names->published = NULL;
}

static bool publish(struct names *names)
{
    struct sluice_buffer_handle own;
    memset(&own, 0, sizeof own);
    names->buffer = make_buffer(names);
    if (!all_well(works(names->buffer != NULL, "publish") &&
                  works(sluice_buffer_export(names->buffer, &own) == 0, "handle"))) {
        return false;
    }
    sim_allgather(&own, names->handles, sizeof own);
    return true;
}

static bool open_service(struct names *names)
{
    char address[32];
    /* Connections to owners, with queues of any length. */
    struct sluice_channel_attr channel = {.size = sizeof channel,
                                          .send_depth = 1 + (uint32_t)below(16),
                                          .queue_pairs = 1 + (uint32_t)below(3),
                                          .stripe_least = 1 + (uint32_t)below(300)};
    struct sluice_buffer_service_attr attr = {
        .size = sizeof attr, .address = address, .channel = below(2) ? NULL : &channel};
    snprintf(address, sizeof address, ":%u", PORT + sim_rank());
    names->service = sluice_buffer_service_open(&names->pd, 1, &attr);
    return works(names->service != NULL, "service");
}

/* Actions on random slots of this rank, no two on the same bytes. Returns how many. */
static uint32_t draw(struct names *names, struct sluice_buffer_action *actions)
{
    uint32_t count = 1 + (uint32_t)below(MOST_ACTIONS);
    for (uint32_t i = 0; i < count; i++) {
        uint32_t to = (uint32_t)below(sim_ranks());
        size_t part = SLOT / MOST_ACTIONS, length = 1 + below(part);
        size_t in_slot = i * part + below(part - length + 1);
        actions[i] = (struct sluice_buffer_action){
            .opcode = below(2) == 0 ? SLUICE_OP_READ : SLUICE_OP_WRITE,
            .handle = &names->handles[to],
            .offset = sim_rank() * SLOT + in_slot,
            .length = length,
            .addr = names->memory + (size_t)i * SLOT,
            .mr = below(4) == 0 ? NULL : names->mr,
            .user_data = (uint64_t)i << 32 | to,
        };
        for (size_t at = 0, seed = below(256); at < length; at++) {
            names->memory[(size_t)i * SLOT + at] = (uint8_t)(seed + at * (2 * i + 1));
        }
    }
    return count;
}

/* An action has ended well: compares what was read, and remembers what was written. */
static void check(struct names *names, const struct sluice_buffer_action *action)
{
    uint32_t to = (uint32_t)action->user_data;
    uint8_t *known = names->slots[to] + action->offset % SLOT;
    if (action->opcode == SLUICE_OP_READ) {
        must(names->unknown[to] || memcmp(known, action->addr, action->length) == 0,
             "bytes of the buffer of rank %u are wrong", to);
    } else {
        memcpy(known, action->addr, action->length);
    }
}

static bool submit(struct names *names)
{
    struct sluice_buffer_action actions[MOST_ACTIONS];
    struct sluice_completion completions[MOST_ACTIONS];
    uint32_t count = draw(names, actions);
    int64_t began = sim_own_time();
    int error = sluice_buffer_submit(names->service, actions, count, PATIENCE, completions);
    in_time(began, PATIENCE, "submit");
    for (uint32_t i = 0; error == 0 && i < count; i++) {
        must(completions[i].error == 0, "an action failed in silence");
        must(completions[i].user_data == actions[i].user_data, "completions are in another order");
        check(names, &actions[i]);
    }
    return works(error == 0, "submit");
}

/* Takes completions one by one, or cancels what is in flight; each action ends once. */
static bool post(struct names *names)
{
    struct sluice_buffer_action actions[MOST_ACTIONS];
    struct sluice_completion completion;
    uint32_t count = draw(names, actions), ended = 0, failed = 0;
    bool seen[MOST_ACTIONS] = {false}, cancels = below(3) == 0;
    struct sluice_buffer_batch *batch =
        sluice_buffer_post(names->service, actions, count, PATIENCE);
    int64_t began = sim_own_time();
    if (!works(batch != NULL, "post")) {
        return false;
    }
    if (cancels) {
        sim_pause((int64_t)below(3000000));
        must(sluice_buffer_batch_cancel(batch) == 0, "cancel: %s", sluice_last_error());
        in_time(began, SLUICE_S(1), "cancel");
    }
    while (sluice_buffer_batch_next(batch, PATIENCE, &completion) == 0) {
        uint32_t index = (uint32_t)(completion.user_data >> 32);
        must(index < count && completion.user_data == actions[index].user_data && !seen[index],
             "an action ends twice, or it is none");
        seen[index] = true;
        ended++;
        if (completion.error == 0) {
            check(names, &actions[index]);
        } else {
            failed++;
            must(cancels || sim_is_troubled(), "an action failed: %s", sluice_last_error());
            /* Bytes of a write that was cancelled may come at any later time. */
            names->unknown[actions[index].user_data & UINT32_MAX] |=
                actions[index].opcode == SLUICE_OP_WRITE;
        }
    }
    in_time(began, PATIENCE, "batch");
    must(ended == count || sim_is_troubled(), "%u of %u actions have ended", ended, count);
    sluice_buffer_batch_free(batch);
    return cancels || failed == 0;
}

/* Reads, and writes of what is there, in a buffer that may end meanwhile. Returns an error. */
static int touch(struct names *names, uint32_t rank)
{
    struct sluice_buffer_action actions[MOST_ACTIONS];
    struct sluice_completion completions[MOST_ACTIONS];
    uint32_t count = 1 + (uint32_t)below(MOST_ACTIONS);
    int error;
    for (uint32_t i = 0; i < count; i++) {
        size_t at = below(SLOT);
        actions[i] = (struct sluice_buffer_action){.opcode = below(3) == 0 ? SLUICE_OP_WRITE
                                                                           : SLUICE_OP_READ,
                                                   .handle = &names->handles[rank],
                                                   .offset = sim_rank() * SLOT + at,
                                                   .length = 1 + below(SLOT - at),
                                                   .addr = names->memory + (size_t)i * SLOT,
                                                   .mr = names->mr,
                                                   .user_data = at};
        memcpy(actions[i].addr, names->slots[rank] + at, actions[i].length);
    }
    error = sluice_buffer_submit(names->service, actions, count, PATIENCE, completions);
    for (uint32_t i = 0; i < count; i++) {
        must(completions[i].error != 0 || names->unknown[rank] ||
                 memcmp(names->slots[rank] + actions[i].user_data, actions[i].addr,
                        actions[i].length) == 0,
             "a read beside a release is wrong");
        must(error != 0 || completions[i].error == 0, "an action failed in silence");
    }
    return error;
}

/* Uses of the buffer of another rank, which ends meanwhile: each succeeds, or is refused. */
static bool release(struct names *names)
{
    uint32_t odd = (uint32_t)agreed(sim_ranks());
    int error = 0;
    if (sim_rank() == odd) {
        sim_pause((int64_t)below(4000000));
        end_buffer(names);
        return true;
    }
    for (int64_t began = sim_own_time(); error == 0;) {
        error = touch(names, odd);
        if (error != 0 && !works(error == -EACCES, "use of a released buffer")) {
            return false;
        }
        in_time(began, PATIENCE, "release");
    }
    return true;
}

/* A service starts again at its address, as another one. */
static bool restart(struct names *names)
{
    uint32_t odd = (uint32_t)agreed(sim_ranks());
    bool well = true;
    int error = 0;
    if (sim_rank() == odd) {
        int64_t began = sim_own_time();
        sluice_buffer_service_close(names->service);
        in_time(began, SLUICE_S(1), "close");
        end_buffer(names);
        well = open_service(names);
    }
    if (!all_well(well) || sim_rank() == odd) {
        return well;
    }
    /* The closed service may have ended an attempt to connect that this read has joined. */
    for (int tries = 0; error != -ESTALE && tries < 2; tries++) {
        error = sluice_buffer_read(names->service, &names->handles[odd], 0, names->mr,
                                   names->memory, 1, PATIENCE);
    }
    return works(error == -ESTALE, "read of an earlier service");
}

/* Ends a buffer in some way, and publishes another one at all ranks. */
static bool replace(struct names *names)
{
    if (!all_well(agreed(2) == 0 ? release(names) : restart(names))) {
        return false;
    }
    end_buffer(names);
    for (uint32_t i = 0; i < sim_ranks(); i++) {
        memset(names->slots[i], 0, SLOT);
        names->unknown[i] = false;
    }
    return publish(names);
}

/* Another service, which no other one has to do with. NULL: a call was refused. */
static struct sluice_buffer_service *open_other(struct names *names, uint32_t peers, uint32_t depth)
{
    struct sluice_channel_attr channel = {.size = sizeof channel, .send_depth = depth};
    struct sluice_buffer_service_attr attr = {
        .size = sizeof attr, .max_peers = peers, .channel = &channel};
    struct sluice_buffer_service *service = sluice_buffer_service_open(&names->pd, 1, &attr);
    works(service != NULL, "another service");
    return service;
}

/* Opens a service, reads a byte of a buffer and leaves. */
static bool visit(struct names *names, const struct sluice_buffer_handle *handle)
{
    struct sluice_buffer_service *service = open_other(names, 0, 0);
    bool well = service != NULL && works(sluice_buffer_read(service, handle, 0, names->mr,
                                                            names->memory, 1, PATIENCE) == 0,
                                         "a visit");
    sluice_buffer_service_close(service);
    return well;
}

/* As many peers come and leave, several times, as an owner has room for. */
static bool come_and_go(struct names *names)
{
    struct sluice_buffer_handle own, *all = calloc(sim_ranks(), sizeof own);
    uint32_t host = (uint32_t)agreed(sim_ranks());
    struct sluice_buffer_service *service =
        sim_rank() == host ? open_other(names, sim_ranks() - 1, 0) : NULL;
    struct sluice_buffer *buffer =
        service != NULL ? sluice_buffer_publish(service, NULL, 1, SLUICE_ACCESS_REMOTE_READ) : NULL;
    bool well = works(all != NULL, "memory") &&
                (sim_rank() != host || works(buffer != NULL, "publish for visitors"));
    memset(&own, 0, sizeof own);
    well = all_well(well &&
                    (buffer == NULL || works(sluice_buffer_export(buffer, &own) == 0, "handle")));
    if (well) {
        sim_allgather(&own, all, sizeof own);
    }
    for (uint32_t i = 0; well && i < 3; i++) {
        well = all_well(sim_rank() == host || visit(names, &all[host]));
        /* A lost goodbye comes late, and a device keeps a peer for some time. */
        sim_pause(SLUICE_S(5));
    }
    free(all);
    sluice_buffer_release(buffer);
    sluice_buffer_service_close(service);
    return well;
}

/* A service has a thread, which sends strangers away. */
static bool meet_strangers(struct names *names)
{
    char own[64] = "", *all = calloc(sim_ranks(), sizeof own);
    uint32_t host = (uint32_t)agreed(sim_ranks());
    bool well = all_well(works(all != NULL, "memory"));
    (void)names;
    write_address(own, sizeof own, PORT);
    if (well) {
        sim_allgather(own, all, sizeof own);
    }
    if (well && sim_rank() != host && below(2)) {
        be_noise(all + host * sizeof own, PORT + (int)host);
    } else if (well && sim_rank() != host) {
        be_stranger(all + host * sizeof own, PORT + (int)host, below(2) == 0);
    }
    free(all);
    return well;
}

/* A read that a rank that hangs does not answer ends at its deadline, also behind others. */
static void read_late(struct names *names, struct sluice_buffer_service *service, uint32_t rank)
{
    struct sluice_buffer_action actions[2];
    struct sluice_buffer_batch *batches[2];
    int64_t deadlines[2] = {SLUICE_S(6), SLUICE_MS(200 + below(1000))}, began = sim_own_time();
    for (uint32_t i = 0; i < 2; i++) {
        actions[i] = (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                                   .handle = &names->handles[rank],
                                                   .length = 1 + below(SLOT),
                                                   .addr = names->memory + (size_t)i * SLOT,
                                                   .mr = names->mr};
        batches[i] = sluice_buffer_post(service, &actions[i], 1, deadlines[i]);
    }
    for (uint32_t i = 2; i-- > 0;) {
        if (batches[i] != NULL && sluice_buffer_batch_wait(batches[i], PATIENCE) == 0) {
            must(sim_own_time() - began < deadlines[i] + SLUICE_MS(1500) ||
                     sim_befell(sim_rank(), sim_rank()) != 0,
                 "a batch with a deadline of %ld ms took %ld ms", (long)(deadlines[i] / 1000000),
                 (long)((sim_own_time() - began) / 1000000));
        }
        sluice_buffer_batch_free(batches[i]);
    }
}

/* A rank hangs, and calls that need it end at their deadlines. Nothing else is left to do. */
static void hang(struct names *names)
{
    uint32_t odd = (uint32_t)agreed(sim_ranks());
    struct sluice_buffer_service *service = open_other(names, 0, 1);
    bool well = service != NULL;
    if (well && below(4) != 0) { /* otherwise there is no connection yet */
        well = works(sluice_buffer_read(service, &names->handles[odd], 0, names->mr, names->memory,
                                        1, PATIENCE) == 0,
                     "read");
    }
    if (all_well(well)) {
        if (sim_rank() == (odd + 1) % sim_ranks()) {
            sim_strike(SIM_STOP, odd, (int64_t)below(1000000), SLUICE_S(20));
        }
        while (sim_rank() != odd && !sim_is_troubled()) {
            sim_pause(100000);
        }
        if (sim_rank() != odd && sim_befell(sim_rank(), sim_rank()) == 0) {
            read_late(names, service, odd);
        }
        all_well(true);
    }
    sluice_buffer_service_close(service);
}

static bool begin(struct names *names)
{
    bool well;
    names->context = sluice_context_open(NULL, NULL);
    names->pd = works(names->context != NULL, "open") ? sluice_pd_alloc(names->context) : NULL;
    names->mr = names->pd != NULL
                    ? sluice_mr_alloc(names->pd, MOST_ACTIONS * SLOT, SLUICE_ACCESS_LOCAL_WRITE)
                    : NULL;
    names->handles = calloc(sim_ranks(), sizeof *names->handles);
    names->slots = calloc(sim_ranks(), sizeof *names->slots);
    names->unknown = calloc(sim_ranks(), sizeof *names->unknown);
    well = works(names->mr != NULL && names->handles != NULL && names->slots != NULL &&
                     names->unknown != NULL,
                 "memory");
    for (uint32_t i = 0; well && i < sim_ranks(); i++) {
        names->slots[i] = calloc(1, SLOT);
        well = works(names->slots[i] != NULL, "memory");
    }
    names->memory = well ? sluice_mr_addr(names->mr) : NULL;
    return well && open_service(names);
}

int run_buffer(void)
{
    static bool (*const steps[])(struct names * names) = {
        submit, submit, post, post, replace, replace, come_and_go, meet_strangers};
    struct names names = {.steps = 0};
    uint64_t most = sim_number("steps", agreed(1 + agreed(30)));
    bool well = all_well(begin(&names)) && publish(&names);
    for (; well && names.steps < most; names.steps++) {
        well = all_well(steps[sim_number("step", agreed(sizeof steps / sizeof *steps))](&names));
    }
    if (well && agreed(8) == 0) {
        hang(&names);
    }
    end_buffer(&names);
    sluice_buffer_service_close(names.service);
    for (uint32_t i = 0; names.slots != NULL && i < sim_ranks(); i++) {
        free(names.slots[i]);
    }
    free(names.slots);
    free(names.unknown);
    free(names.handles);
    must(names.mr == NULL || sluice_mr_deregister(names.mr) == 0, "deregister: %s",
         sluice_last_error());
    sluice_pd_free(names.pd);
    sluice_context_close(names.context);
    return 0;
}
