/* SPDX-License-Identifier: MIT */
/* A multichannel on the pretend device, and requests for it. */
#ifndef ENGINE_RIG_H
#define ENGINE_RIG_H

#include "fake.h"

struct rig {
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_multichannel *channel;
    struct slu_engine *engine; /* inside of the channel */
};

/* Longer reads and writes are split. */
#define RIG_MESSAGE 4096
#define RIG_PEERS 8
/* A deadline far beyond the time of any test. */
#define LONG SLUICE_S(100)

void rig_attach(struct rig *rig, struct sluice_multichannel *channel);
/* Opens a rig whose peers have queues of this depth. */
void rig_open(struct rig *rig, uint32_t peers, uint32_t depth);
/* Opens a rig that counts arrivals of this many tags. */
void rig_open_counting(struct rig *rig, uint32_t peers, uint32_t depth, uint32_t tags);
/* Checks the engine, closes all, and checks that nothing is left of the device's objects. */
void rig_close(struct rig *rig);

/* Returns a request whose work has this key in the device's ledger. */
struct sluice_request rig_request(uint32_t opcode, uint32_t peer, uint32_t bytes, uint32_t key);
/* Requests of a few bytes, and one that is split into RIG_PARTS. */
struct sluice_request write_of(uint32_t peer, uint32_t key);
struct sluice_request receive_of(uint32_t peer, uint32_t key);
#define RIG_PARTS 5
struct sluice_request split_write(uint32_t peer, uint32_t key);
/* Submits them, and checks the engine. */
int rig_submit(struct rig *rig, const struct sluice_request *requests, uint32_t count,
               int64_t deadline, struct sluice_completion *completions);
/* Requires that the completion is that of the key, with this status and cause. */
void check_status(const char *file, int line, const struct sluice_completion *completion,
                  uint32_t key, uint32_t status, uint32_t cause);
#define require_status(completion, key, status, cause) \
    check_status(__FILE__, __LINE__, completion, key, status, cause)
/* Posts a request, which must be accepted; its user data are its key. */
struct sluice_handle rig_post(struct rig *rig, struct sluice_request request, int64_t deadline);
/* The queue pair of a peer. */
struct slu_qp *rig_qp(const struct rig *rig, uint32_t peer);
/* Polls until all posted requests have results, which must be count. */
void rig_poll_all(struct rig *rig, struct sluice_completion *completions, uint32_t count);
/* Requires that a request to the peer works. */
void rig_works(struct rig *rig, uint32_t peer);

#endif
