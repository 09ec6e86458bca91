/* SPDX-License-Identifier: MIT */
/* Devices, and their regions, queues and queue pairs; wire.c has the packets. */
#include "fabric.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "sim.h"
#include "wire.h"

struct fabric sim_fabric;
static struct device *devices;

struct device *sim_device(uint32_t host)
{
    return host < sim_host_count() ? &devices[host] : NULL;
}

static struct device *own_device(void)
{
    return sim_device(sim_task->process->host->index);
}

static void break_all(struct sim_event *event)
{
    struct device *device = (struct device *)((char *)event - offsetof(struct device, death));
    sim_trace("the device of host %u dies", device->host->index);
    device->dead = true;
    sim_troubles++;
    for (struct sim_pair *at = device->pairs; at != NULL; at = at->next) {
        sim_pair_break(at, SLUICE_STATUS_FATAL_ERR);
    }
}

void sim_fabric_die(const struct sim_host *host)
{
    break_all(&sim_device(host->index)->death);
}

void sim_fabric_slow_down(const struct sim_host *host, int64_t ns)
{
    sim_device(host->index)->lag = ns;
}

void sim_fabric_begin(bool faults)
{
    devices = sim_alloc(sim_host_count(), sizeof *devices);
    sim_fabric = (struct fabric){
        .infiniband = sim_once_in(SIM_FABRIC, 2),
        .unordered = sim_once_in(SIM_FABRIC, 2),
        .naks = !sim_once_in(SIM_FABRIC, 3),
        .events = sim_once_in(SIM_FABRIC, 2),
        .empty_limits = sim_number("limits", sim_once_in(SIM_FABRIC, 16) ? 0 : 1) == 0,
        .mtu = UINT32_C(256) << sim_below(SIM_FABRIC, 5),
        .status =
            sim_once_in(SIM_FABRIC, 2) ? SLUICE_STATUS_LOC_ACCESS_ERR : SLUICE_STATUS_LOC_PROT_ERR,
    };
    for (uint32_t i = 0; i < sim_host_count(); i++) {
        struct device *device = &devices[i];
        *device = (struct device){.host = sim_host(i),
                                  .death.happen = break_all,
                                  .last_key = (uint32_t)sim_below(SIM_FABRIC, 1000) * 256,
                                  .last_qpn = 16 + (uint32_t)sim_below(SIM_FABRIC, 1000),
                                  .slow = sim_once_in(SIM_FABRIC, 8) ? 2000000 : 20000};
        if (faults && sim_number("deaths", sim_once_in(SIM_FABRIC, 64)) != 0) {
            device->polls_dead = sim_once_in(SIM_FABRIC, 2);
            sim_event_set(&device->death,
                          sim_time() + (int64_t)sim_spread(SIM_FABRIC, INT64_C(2000000000)));
        }
        device->flaky =
            faults && sim_once_in(SIM_FABRIC, 16) ? 20 + (uint32_t)sim_spread(SIM_FABRIC, 2000) : 0;
        device->stuck = faults && sim_once_in(SIM_FABRIC, 32);
    }
}

void sim_fabric_end(void)
{
    for (uint32_t i = 0; i < sim_host_count(); i++) {
        while (devices[i].pairs != NULL) {
            devices[i].pairs->process->ended = true;
            sim_fabric_destroy(devices[i].pairs);
        }
        for (struct sim_region *at = devices[i].regions, *next; at != NULL; at = next) {
            next = at->next;
            free(at);
        }
        sim_event_clear(&devices[i].death);
    }
    sim_wire_end();
    free(devices);
    devices = NULL;
}

uint32_t sim_fabric_left(const struct sim_process *process)
{
    const struct device *device = sim_device(process->host->index);
    uint32_t count = 0;
    for (const struct sim_region *at = device->regions; at != NULL; at = at->next) {
        count += at->process == process && !at->gone;
    }
    for (const struct sim_pair *at = device->pairs; at != NULL; at = at->next) {
        count += at->process == process;
    }
    return count;
}

int sim_fabric_limits(struct slu_tcontext *context)
{
    bool empty = sim_fabric.empty_limits;
    if (own_device()->dead) {
        return -EIO;
    }
    context->link_layer = sim_fabric.infiniband ? 1 : 2;
    context->active_mtu = sim_fabric.mtu;
    context->gid_index = sim_fabric.infiniband ? -1 : 0;
    context->max_send_depth = context->max_receive_depth = empty ? 255 : 4095;
    context->max_sge = empty ? 1 : MOST_SGES;
    context->max_read_sge = empty ? 1 : MOST_SGES / 2;
    context->max_inline = empty ? 0 : 256;
    context->max_read_depth = empty ? 1 : 16;
    context->max_cq_depth = empty ? 1024 : 65536;
    context->max_cq_entries = 1 << 20;
    context->atomics = SLUICE_ATOMICS_DEVICE;
    context->max_message = empty ? UINT64_C(1) << 30 : UINT64_C(1) << 31;
    return 0;
}

/* Regions */

struct sim_region *sim_fabric_register(struct slu_tmr *mr, uint32_t access)
{
    struct device *device = own_device();
    struct sim_region *region;
    sim_tick(20000);
    if (device->dead || sim_fault_is_due("register")) {
        return NULL;
    }
    region = sim_alloc(1, sizeof *region);
    device->last_key += 2 + 2 * (uint32_t)sim_below(SIM_FABRIC, 100);
    *region = (struct sim_region){.next = device->regions,
                                  .process = sim_task->process,
                                  .pd = mr->pd,
                                  .addr = mr->addr,
                                  .length = mr->length,
                                  .key = device->last_key,
                                  .access = access};
    device->regions = region;
    mr->lkey = region->key;
    mr->rkey = region->key + 1;
    return region;
}

void sim_fabric_deregister(struct sim_region *region)
{
    sim_tick(20000);
    region->gone = true;
}

static const struct sim_region *find_region(const struct sim_pair *pair, uint32_t key)
{
    const struct sim_region *at = pair->device->regions;
    while (at != NULL &&
           (at->key != key || at->process != pair->process || at->pd != pair->base->pd)) {
        at = at->next;
    }
    return at;
}

const struct sim_region *sim_region_remote(const struct sim_pair *pair, uint32_t key, uint64_t addr,
                                           uint64_t length, uint32_t access)
{
    const struct sim_region *region = find_region(pair, key - 1);
    uint64_t offset = region == NULL ? 0 : addr - (uintptr_t)region->addr;
    return region != NULL && !region->gone && offset <= region->length &&
                   length <= region->length - offset && (region->access & access) == access &&
                   (pair->attr.access & access) == access
               ? region
               : NULL;
}

uint32_t sim_move(const struct sim_pair *pair, const struct work *work, uint64_t offset,
                  char *bytes, uint64_t count, bool in)
{
    for (uint32_t i = 0; i < work->sge_count && count > 0; i++) {
        const struct sluice_sge *sge = &work->sges[i];
        const struct sim_region *region;
        uint64_t part = sge->length - offset, start;
        if (offset >= sge->length) {
            offset -= sge->length;
            continue;
        }
        part = part < count ? part : count;
        region = find_region(pair, sge->lkey);
        start = region == NULL ? 0 : sge->addr - (uintptr_t)region->addr;
        if (region == NULL || start > region->length || sge->length > region->length - start) {
            return SLUICE_STATUS_LOC_PROT_ERR;
        }
        sim_require(!region->gone, "request %#lx of rank %u names memory that was deregistered",
                    (unsigned long)work->id, pair->process->rank);
        if (in && (region->access & SLUICE_ACCESS_LOCAL_WRITE) == 0) {
            return sim_fabric.status;
        }
        start = sge->addr + offset;
        sim_require(in ? sim_copy((char *)(uintptr_t)start, bytes, part)
                       : sim_copy(bytes, (char *)(uintptr_t)start, part),
                    "registered memory of rank %u is not mapped", pair->process->rank);
        bytes += part;
        count -= part;
        offset = 0;
    }
    return count == 0 ? SLUICE_STATUS_SUCCESS : SLUICE_STATUS_LOC_LEN_ERR;
}

/* Completion queues */

static short queue_ready(struct sim_object *object)
{
    return ((const struct sim_queue *)object)->ready ? POLLIN : 0;
}

static void queue_free(struct sim_object *object)
{
    struct sim_queue *queue = (struct sim_queue *)object;
    free(queue->ring);
    free(queue);
}

static const struct sim_class queue_class = {"completion queue", queue_ready, NULL, NULL,
                                             queue_free};

/* One thread at a time uses a queue; other tasks have a turn only within. */
static void enter(struct sim_queue *queue)
{
    sim_require(queue->user == NULL, "two threads use a completion queue at a time");
    queue->user = sim_task;
    sim_tick(60);
    queue->user = NULL;
}

struct sim_queue *sim_fabric_queue(struct slu_cq *base, int *fd)
{
    struct sim_queue *queue = sim_alloc(1, sizeof *queue);
    sim_tick(20000);
    sim_object_init(&queue->object, &queue_class);
    queue->base = base;
    queue->process = sim_task->process;
    queue->device = own_device();
    *fd = sim_descriptor_make(&queue->object);
    return *fd < 0 ? NULL : queue;
}

void sim_fabric_wake(struct sim_queue *queue)
{
    queue->ready = true;
    sim_object_changed(&queue->object);
}

int sim_fabric_poll(struct sim_queue *queue, struct slu_wc *wcs, uint32_t count)
{
    uint32_t taken = 0;
    enter(queue);
    if (queue->device->dead && queue->device->polls_dead) {
        return -1;
    }
    for (; taken < count && taken < queue->count; taken++) {
        const struct completion *from = &queue->ring[taken];
        wcs[taken] = from->wc;
        from->pair->sends_held -= from->sends;
        from->pair->receives_held -= from->receives;
        queue->held -= from->sends + from->receives;
    }
    queue->count -= taken;
    memmove(queue->ring, queue->ring + taken, queue->count * sizeof *queue->ring);
    return (int)taken;
}

int sim_fabric_arm(struct sim_queue *queue)
{
    enter(queue);
    queue->ready = false;
    queue->armed = queue->count == 0 && !(queue->device->dead && queue->device->polls_dead);
    return queue->armed ? 0 : 1;
}

bool sim_fabric_alert(struct sim_queue *queue, struct slu_alert *alert)
{
    if (!atomic_exchange(&queue->base->alerted, false)) {
        return false;
    }
    for (struct sim_pair *at = queue->device->pairs; at != NULL; at = at->next) {
        if (at->queue == queue && at->event != 0 && at->state != SLU_QP_PREPARED) {
            *alert =
                (struct slu_alert){at->base, at->event, 7, true, "the device reports a failure"};
            at->event = 0;
            atomic_store(&queue->base->alerted, true);
            return true;
        }
    }
    return false;
}

void sim_push(struct sim_pair *pair, const struct slu_wc *wc, uint32_t sends, uint32_t receives)
{
    struct sim_queue *queue = pair->queue;
    sim_require(queue->count < queue->base->depth,
                "a completion queue of %u entries overflows: credits are wrong",
                queue->base->depth);
    if (queue->count == (uint32_t)queue->room) {
        queue->ring = sim_grow(queue->ring, &queue->room, sizeof *queue->ring);
    }
    queue->ring[queue->count++] = (struct completion){*wc, pair, sends, receives};
    if (queue->armed) {
        queue->armed = false;
        sim_fabric_wake(queue);
    }
}
