/* SPDX-License-Identifier: MIT */
/*
 * What a channel and a multichannel are, prepared or connected: one struct, with an
 * engine of one peer or of many. The magic word tells which of the four it is, and is
 * all that a handshake and a reset change of it.
 */
#ifndef SLU_CHANNEL_OBJECT_H
#define SLU_CHANNEL_OBJECT_H

#include <sys/queue.h>

#include "engine/engine.h"

/* Part of the library that holds a multichannel, and lets go of it when the program closes it. */
struct slu_channel_user {
    LIST_ENTRY(slu_channel_user) link;
    /* Called once, when the user is out of the list and the multichannel still works. */
    void (*closed)(struct slu_channel_user *user);
};

struct slu_channel {
    uint32_t magic;
    bool owned; /* by a node, which alone ends it */
    struct slu_engine *engine;
    LIST_HEAD(, slu_channel_user) users;
};

/* NULL with a text and errno. own is of slu_engine_create(). */
struct slu_channel *slu_channel_create(uint32_t magic, struct sluice_pd *pd, uint32_t peers,
                                       uint32_t own, const struct sluice_channel_attr *attr);
void slu_channel_destroy(struct slu_channel *object);
/*
 * Whether the one queue pair of an engine has not failed, from what is known: asking a channel for
 * its state polls it, which is a system call if nothing comes.
 */
bool slu_channel_seems_ready(const struct slu_engine *engine);

/* With the engine entered meanwhile: what a handshake and a reset do with one peer. */
int slu_channel_connect(struct slu_channel *object, uint32_t peer,
                        const struct sluice_endpoint *remote);
/* endpoint: where its new one goes, or NULL. */
int slu_channel_reset(struct slu_channel *object, uint32_t peer, struct sluice_endpoint *endpoint);

/*
 * The bodies of the calls for one peer. The engine is NULL if the program gave no such
 * object, which has a text then; immediate is NULL if there is none.
 */
static inline int slu_channel_send(struct slu_engine *engine, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   const uint32_t *immediate, int64_t deadline)
{
    return SLU_LIKELY(engine != NULL)
               ? slu_submit_send(engine, sges, sge_count, deadline, peer, immediate)
               : -EINVAL;
}

static inline int slu_channel_receive(struct slu_engine *engine, uint32_t peer,
                                      const struct sluice_sge *sges, uint32_t sge_count,
                                      int64_t deadline, struct sluice_completion *completion)
{
    return SLU_LIKELY(engine != NULL)
               ? slu_submit_receive(engine, sges, sge_count, deadline, completion, peer)
               : -EINVAL;
}

/* A write or a read. */
static inline int slu_channel_move(struct slu_engine *engine, uint32_t opcode, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   const struct sluice_remote_mr *remote, const uint32_t *immediate,
                                   int64_t deadline)
{
    if (SLU_UNLIKELY(engine == NULL))
        return -EINVAL;
    if (opcode == SLUICE_OP_READ)
        return slu_submit_read(engine, sges, sge_count, remote, deadline, peer);
    if (immediate != NULL)
        return slu_submit_write_immediate(engine, sges, sge_count, remote, deadline, peer,
                                          *immediate);
    return slu_submit_write(engine, sges, sge_count, remote, deadline, peer);
}

static inline int slu_channel_atomic(struct slu_engine *engine, uint32_t opcode, uint32_t peer,
                                     const struct sluice_sge *result,
                                     const struct sluice_remote_mr *remote, uint64_t first,
                                     uint64_t second, int64_t deadline)
{
    struct sluice_request request = {
        .opcode = opcode, .peer = peer, .sges = result, .sge_count = 1, .operand = {first, second}};
    struct slu_source source = {.lists = {&request}, .counts = {1}, .count = 1};

    if (SLU_UNLIKELY(engine == NULL || remote == NULL))
        return engine == NULL ? -EINVAL : slu_no_remote(opcode);
    request.remote = *remote;
    return slu_submit(engine, &source, deadline, NULL);
}

static inline int slu_channel_post(struct slu_engine *engine, uint32_t opcode, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   int64_t deadline, struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(opcode, peer, sges, sge_count);

    return SLU_LIKELY(engine != NULL) ? slu_post_request(engine, &request, deadline, handle)
                                      : -EINVAL;
}

/* The same to a remote region; first and second are the operands of an atomic operation. */
static inline int slu_channel_post_remote(struct slu_engine *engine, uint32_t opcode, uint32_t peer,
                                          const struct sluice_sge *sges, uint32_t sge_count,
                                          const struct sluice_remote_mr *remote, uint64_t first,
                                          uint64_t second, int64_t deadline,
                                          struct sluice_handle *handle)
{
    struct sluice_request request = slu_request_of(opcode, peer, sges, sge_count);

    request.operand[0] = first;
    request.operand[1] = second;
    if (SLU_UNLIKELY(engine == NULL || remote == NULL))
        return engine == NULL ? -EINVAL : slu_no_remote(opcode);
    request.remote = *remote;
    return slu_post_request(engine, &request, deadline, handle);
}

#endif
