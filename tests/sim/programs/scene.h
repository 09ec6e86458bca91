/* SPDX-License-Identifier: MIT */
/*
 * The common part of scenarios: ranks that are connected with each other, memory that they share,
 * and requests of which the outcome must be this one. In a scenario rank 1 is the one that faults
 * strike; ranks 0 and 2 go on. A scenario of the wire within a process has rank 0 alone.
 */
#ifndef SIM_SCENE_H
#define SIM_SCENE_H

#include "programs.h"

enum { SCENE_RANKS = 3, SLICE = 256 * 1024, ABOUT_NOW = 1500 /* ms, with the drain bound */ };

struct scene {
    uint32_t rank, ranks;
    uint32_t victim; /* 1, or 0 within a process */
    bool device;     /* on the fabric */
    bool apart;      /* each rank has a host of its own */
    struct sluice_context *context;
    struct sluice_pd *pd;
    struct sluice_mr *mr;
    uint8_t *memory; /* a slice to send to each rank, then one for what comes from each */
    struct sluice_multichannel *all;
    struct sluice_remote_mr remote[SCENE_RANKS]; /* where this rank may read and write */
};
extern struct scene scene;

/* Attributes by which a device soon knows that a peer is lost; NULL below means these. */
struct sluice_channel_attr scene_attr(void);
/* Open and close everything, with connections between all ranks, */
void scene_open(const struct sluice_channel_attr *attr);
void scene_close(void);
/* or in steps: context and memory; endpoints; and the handshake, which does not wait. */
void scene_begin(void);
struct sluice_prepared_multichannel *scene_prepare(const struct sluice_channel_attr *attr);
void scene_shake(struct sluice_prepared_multichannel *prepared);
void scene_connect(const struct sluice_channel_attr *attr);
void scene_end(void);
/* Waits until all ranks that live have come here. */
void meet(void);
/* Returns the endpoint that a rank has last given to this one. */
struct sluice_endpoint endpoint_of(uint32_t peer);
/* Replaces the connections of all ranks with a rank, after a fault: each rank calls it. */
void connect_again(uint32_t peer);

uint8_t *out(uint32_t peer);
uint8_t *in(uint32_t peer);
/* A request of this kind with a peer, of the first bytes of the slices. */
struct sluice_request request(uint32_t opcode, uint32_t peer, uint32_t bytes);
/* Does a request and returns how it ended. */
struct sluice_completion do_one(const struct sluice_request *work, int64_t deadline);
/* Does a request that must succeed, or fail with a class within some ms. */
void succeeds(const struct sluice_request *work, const char *what);
void fails(const struct sluice_request *work, uint32_t class, int64_t within, const char *what);
/* Posts a request with a deadline of a minute. */
void post(const struct sluice_request *work);
/* Takes the results of all posted requests: each must fail with this class or as cancelled. */
void all_fail(uint32_t count, uint32_t class, int64_t within, const char *what);
/* Two ranks exchange messages, and the bytes are right. Both call it. */
void exchange(uint32_t a, uint32_t b, uint32_t times);
/* Ranks 0 and 2 exchange messages: nothing that befell rank 1 concerns them. */
void bystanders(void);

/* Runs the scenario of that name. */
int run_scenario(const char *name);

#endif
