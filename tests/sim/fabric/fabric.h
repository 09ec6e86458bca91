/* SPDX-License-Identifier: MIT */
/*
 * The simulated fabric: a device for each host, with the queue pairs of its processes. The calls
 * below are what device.c in the module makes of it; the table of transports is in device.c.
 *
 * Objects belong to the process that made them. If the process is killed, they vanish, and peers
 * get no word of it. A mistake that no correct engine makes ends the simulation: more requests than
 * the depths, a list or message above the limits, or memory that is not registered any more.
 */
#ifndef SIM_FABRIC_H
#define SIM_FABRIC_H

#include <stdbool.h>
#include <stdint.h>

#include "endpoint/endpoint.h"
#include "transport/transport.h"

struct sim_host;
struct sim_region;
struct sim_queue;
struct sim_pair;

/* Fills in the limits of the device of this host. Returns 0 or a negative errno. */
int sim_fabric_limits(struct slu_tcontext *context);
/* Registers the memory of a region, whose keys it fills in. NULL: the device refuses. */
struct sim_region *sim_fabric_register(struct slu_tmr *region, uint32_t access);
/* On return no peer touches the memory any more. */
void sim_fabric_deregister(struct sim_region *region);

/* Makes a queue of as many completions as the depth of the base says at any time. */
struct sim_queue *sim_fabric_queue(struct slu_cq *base, int *fd);
/* Returns how many completions were taken, or -1 if the queue is dead. */
int sim_fabric_poll(struct sim_queue *queue, struct slu_wc *wcs, uint32_t count);
bool sim_fabric_alert(struct sim_queue *queue, struct slu_alert *alert);
int sim_fabric_arm(struct sim_queue *queue);
void sim_fabric_wake(struct sim_queue *queue);

struct sim_pair *sim_fabric_pair(struct slu_qp *base, struct sim_queue *queue,
                                 const struct slu_qp_attr *attr);
void sim_fabric_endpoint(const struct sim_pair *pair, struct slu_endpoint *endpoint);
void sim_fabric_connect(struct sim_pair *pair, const struct slu_endpoint *remote);
int sim_fabric_state(const struct sim_pair *pair);
void sim_fabric_fail(struct sim_pair *pair);
void sim_fabric_destroy(struct sim_pair *pair);
/* Post one request. probe: it takes the one place above the depth. Return 0 or -1: refused. */
int sim_fabric_send(struct sim_pair *pair, const struct slu_send_wr *wr, bool probe);
int sim_fabric_receive(struct sim_pair *pair, const struct slu_receive_wr *wr);

/* For the world: makes the devices of all hosts, and ends them. */
void sim_fabric_begin(bool faults);
void sim_fabric_end(void);
struct sim_process;
/* The device of a host dies; or takes so long for each packet, and 3000 times as long to flush. */
void sim_fabric_die(const struct sim_host *host);
void sim_fabric_slow_down(const struct sim_host *host, int64_t ns);
/* Returns how many regions, queues and queue pairs a process has. */
uint32_t sim_fabric_left(const struct sim_process *process);

#endif
