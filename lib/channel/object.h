/* SPDX-License-Identifier: MIT */
/*
 * Channels and multichannels, prepared or connected, are one struct with an engine of one
 * peer or of many. The magic word tells which of the four it is; a handshake and a reset
 * change nothing else in it.
 */
#ifndef SLU_CHANNEL_OBJECT_H
#define SLU_CHANNEL_OBJECT_H

#include <sys/queue.h>

#include "engine/engine.h"

/* Another part of the library that uses a multichannel until the program closes it. */
struct slu_channel_user {
    LIST_ENTRY(slu_channel_user) link;
    /* Called once, when the user is out of the list and the multichannel still works. */
    void (*closed)(struct slu_channel_user *user);
};

struct slu_channel {
    uint32_t magic;
    bool owned; /* by a node; only sluice_node_close() closes it */
    struct slu_engine *engine;
    LIST_HEAD(, slu_channel_user) users;
};

/* Makes the object. Returns NULL with a text and errno. own: see slu_engine_create(). */
struct slu_channel *slu_channel_create(uint32_t magic, struct sluice_pd *pd, uint32_t peers,
                                       uint32_t own, const struct sluice_channel_attr *attr);
void slu_channel_destroy(struct slu_channel *object);
/* Returns 0; or -EOPNOTSUPP with a text if endpoints connect nothing on the domain's device. */
int slu_channel_check_device(const struct sluice_pd *pd);
/*
 * Returns whether the queue pair of an engine with one peer seems to work, without polling. The
 * public call for the state polls, which is a system call if there are no completions.
 */
bool slu_channel_seems_ready(const struct slu_engine *engine, uint32_t index);

/* Enter the engine, and connect or reset one peer. */
int slu_channel_connect(struct slu_channel *object, uint32_t peer,
                        const struct sluice_endpoint *remote);
/* endpoint: receives the new endpoint; or NULL. */
int slu_channel_reset(struct slu_channel *object, uint32_t peer, struct sluice_endpoint *endpoint);

/*
 * The bodies of the calls for one peer. The engine is NULL if the program passed a wrong
 * object, whose error is already set. immediate may be NULL.
 */
static inline int slu_channel_send(struct slu_engine *engine, uint32_t peer,
                                   const struct sluice_sge *sges, uint32_t sge_count,
                                   const uint32_t *immediate, int64_t deadline)
{
    if (engine != NULL && immediate != NULL && SLU_UNLIKELY(engine->lacking_flags != 0))
        return slu_submit_checked_send(engine, sges, sge_count, deadline, peer, immediate);
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

/* Writes or reads. */
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

/* Does the same with a remote region; first and second are operands of an atomic operation. */
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
