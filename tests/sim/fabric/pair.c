/* SPDX-License-Identifier: MIT */
/* Queue pairs and their requests, up to where packets begin. */
#include <stdlib.h>
#include <string.h>

#include "wire.h"

struct work *sim_work_add(struct list *list, const struct work *from)
{
    struct work *work = sim_alloc(1, sizeof *work);
    *work = *from;
    work->next = NULL;
    *list->end = work;
    list->end = &work->next;
    return work;
}

void sim_work_drop(struct list *list)
{
    struct work *work = list->first;
    list->first = work->next;
    if (list->first == NULL) {
        list->end = &list->first;
    }
    free(work->copy);
    free(work);
}

void sim_complete_send(struct sim_pair *pair, uint32_t status)
{
    const struct work *work = pair->sends.first;
    const struct slu_wc wc = {.id = work->id, .status = status, .vendor = status * 3};
    pair->unreported++;
    if ((work->flags & SLU_SIGNALED) != 0 || status != SLUICE_STATUS_SUCCESS) {
        sim_push(pair, &wc, pair->unreported, 0);
        pair->unreported = 0;
    }
    if (pair->at == work) {
        pair->at = work->next;
        pair->sent = 0;
    }
    sim_work_drop(&pair->sends);
}

void sim_complete_receive(struct sim_pair *pair, const struct slu_wc *wc)
{
    struct slu_wc full = *wc;
    full.id = pair->receives.first->id;
    sim_work_drop(&pair->receives);
    sim_push(pair, &full, 0, 1);
}

static void flush(struct sim_event *event)
{
    struct sim_pair *pair = FIELD(event, flush);
    const struct slu_wc wc = {.status = SLUICE_STATUS_WR_FLUSH_ERR, .vendor = 0xf9};
    if (pair->process->ended || (pair->device->dead && pair->device->polls_dead)) {
        return;
    }
    while (pair->sends.first != NULL) {
        sim_complete_send(pair, pair->sends.first->status != 0 ? pair->sends.first->status
                                                               : SLUICE_STATUS_WR_FLUSH_ERR);
    }
    while (pair->receives.first != NULL) {
        sim_complete_receive(pair, &wc);
    }
}

static void flush_soon(struct sim_pair *pair)
{
    if (pair->flush.place == 0 && !pair->stuck) {
        int64_t at = sim_time() + 3000 * pair->device->lag;
        at += (int64_t)sim_spread(SIM_FABRIC, (uint64_t)pair->device->slow);
        sim_event_set(&pair->flush, at);
    }
}

void sim_pair_break(struct sim_pair *pair, uint32_t event)
{
    if (pair->process->ended) {
        return;
    }
    if (event != 0 && pair->state != SLU_QP_ERROR) {
        pair->event = event;
        atomic_store(&pair->queue->base->alerted, true);
        sim_fabric_wake(pair->queue);
    }
    if (pair->state != SLU_QP_ERROR && event == SLUICE_STATUS_FATAL_ERR &&
        pair->sends.first != NULL) {
        pair->sends.first->status = event;
    }
    pair->state = SLU_QP_ERROR;
    flush_soon(pair);
}

/* Queue pairs */

bool sim_pair_works(const struct sim_pair *pair)
{
    return pair->state == SLU_QP_CONNECTED && !pair->process->ended && !pair->device->dead;
}

struct sim_pair *sim_fabric_pair(struct slu_qp *base, struct sim_queue *queue,
                                 const struct slu_qp_attr *attr)
{
    struct device *device = sim_device(sim_task->process->host->index);
    struct slu_tcontext limits;
    struct sim_pair *pair;
    sim_tick(50000);
    if (sim_fabric_limits(&limits) < 0 || sim_fault_is_due("register")) {
        return NULL;
    }
    sim_require(attr->send_depth <= limits.max_send_depth &&
                    attr->receive_depth <= limits.max_receive_depth &&
                    attr->max_sge <= limits.max_sge && attr->max_inline <= limits.max_inline &&
                    attr->max_read_sge <= limits.max_read_sge &&
                    attr->read_depth <= limits.max_read_depth &&
                    attr->max_message <= limits.max_message && attr->send_depth > 0,
                "a queue pair above the limits of the device");
    pair = sim_alloc(1, sizeof *pair);
    device->last_qpn += 1 + (uint32_t)sim_below(SIM_FABRIC, 3);
    *pair = (struct sim_pair){.next = device->pairs,
                              .base = base,
                              .device = device,
                              .process = sim_task->process,
                              .queue = queue,
                              .attr = *attr,
                              .qpn = device->last_qpn,
                              .sends.end = &pair->sends.first,
                              .receives.end = &pair->receives.first,
                              .answers.end = &pair->answers.first,
                              .pump.happen = sim_pump,
                              .timer.happen = sim_retry,
                              .flush.happen = flush,
                              .land.happen = sim_land};
    device->pairs = pair;
    return pair;
}

void sim_fabric_endpoint(const struct sim_pair *pair, struct slu_endpoint *endpoint)
{
    uint32_t number = pair->device->host->index + 1;
    uint32_t wanted = pair->attr.path_mtu;
    endpoint->qpn = pair->qpn;
    endpoint->mtu = wanted != 0 && wanted < sim_fabric.mtu ? wanted : sim_fabric.mtu;
    endpoint->verbs.port = 1;
    endpoint->verbs.link_layer = sim_fabric.infiniband ? 1 : 2;
    if (sim_fabric.infiniband) {
        endpoint->verbs.lid = number;
    } else {
        endpoint->verbs.gid_type = 2;
        endpoint->verbs.global = 1;
        memcpy(endpoint->verbs.gid, (const uint8_t[]){[10] = 255, 255, 10, 0, 0, 0}, 16);
        endpoint->verbs.gid[14] = (uint8_t)(number >> 8);
        endpoint->verbs.gid[15] = (uint8_t)number;
    }
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

void sim_fabric_connect(struct sim_pair *pair, const struct slu_endpoint *remote)
{
    struct slu_endpoint own;
    const uint8_t *gid = remote->verbs.gid;
    sim_tick(30000);
    sim_fabric_endpoint(pair, &own);
    pair->remote_host =
        (sim_fabric.infiniband ? remote->verbs.lid : (uint32_t)(gid[14] << 8 | gid[15])) - 1;
    pair->remote_qpn = remote->qpn;
    pair->remote_psn = remote->psn;
    pair->mtu = remote->mtu < own.mtu ? remote->mtu : own.mtu;
    pair->reads = smaller(pair->attr.read_depth, remote->responder_depth);
    pair->remote_reads = smaller(pair->attr.read_depth, remote->initiator_depth);
    if (pair->state == SLU_QP_PREPARED) {
        pair->state = SLU_QP_CONNECTED;
    }
}

int sim_fabric_state(const struct sim_pair *pair)
{
    return pair->state;
}

void sim_fabric_fail(struct sim_pair *pair)
{
    sim_tick(10000);
    /* A device has sent its refusal before the program learns of it. */
    while (pair->state != SLU_QP_ERROR && pair->answers.first != NULL) {
        sim_work_drop(&pair->answers);
    }
    if (pair->device->stuck && pair->state == SLU_QP_CONNECTED) {
        pair->stuck = true;
        sim_troubles++;
    }
    pair->state = SLU_QP_ERROR;
    flush_soon(pair);
}

void sim_fabric_destroy(struct sim_pair *pair)
{
    struct sim_pair **at = &pair->device->pairs;
    struct sim_queue *queue = pair->queue;
    uint32_t kept = 0;
    while (*at != pair) {
        at = &(*at)->next;
    }
    *at = pair->next;
    sim_wire_forget(pair);
    sim_event_clear(&pair->flush);
    while (pair->sends.first != NULL) {
        sim_work_drop(&pair->sends);
    }
    while (pair->receives.first != NULL) {
        sim_work_drop(&pair->receives);
    }
    if (!pair->process->ended) {
        for (uint32_t i = 0; i < queue->count; i++) {
            if (queue->ring[i].pair != pair) {
                queue->ring[kept++] = queue->ring[i];
            }
        }
        queue->count = kept;
        queue->held -= pair->sends_held + pair->receives_held;
        sim_tick(30000);
    }
    free(pair);
}

/* Checks what the engine promises of a request that is posted. */
static void check_post(const struct sim_pair *pair, const struct work *work, uint32_t held,
                       uint32_t depth)
{
    sim_require(pair->queue->user == NULL, "two threads use a completion queue at a time");
    sim_require(pair->state != SLU_QP_PREPARED, "a request for a queue pair that is not connected");
    sim_require(held < depth, "%u requests on a queue of %u", held + 1, depth);
    sim_require(pair->queue->held < pair->queue->base->depth,
                "requests for more than %u completions", pair->queue->base->depth);
    sim_require(work->length <= pair->attr.max_message, "a message of %lu bytes, above %lu",
                (unsigned long)work->length, (unsigned long)pair->attr.max_message);
}

static void copy_list(struct work *work, const struct sluice_sge *sges, uint32_t count,
                      uint32_t most)
{
    sim_require(count <= most, "%u SGEs, where %u are the most", count, most);
    work->sge_count = count;
    for (uint32_t i = 0; i < count; i++) {
        work->sges[i] = sges[i];
        work->length += sges[i].length;
    }
}

int sim_fabric_send(struct sim_pair *pair, const struct slu_send_wr *wr, bool probe)
{
    struct work work = {.id = wr->id,
                        .opcode = wr->opcode,
                        .flags = wr->flags,
                        .immediate = wr->immediate,
                        .remote = wr->remote_addr,
                        .rkey = wr->rkey,
                        .first = pair->posted,
                        .packets = 1};
    bool atomic = slu_opcode_is_atomic(wr->opcode);
    copy_list(&work, wr->sges, wr->sge_count,
              wr->opcode == SLUICE_OP_READ ? pair->attr.max_read_sge : pair->attr.max_sge);
    check_post(pair, &work, pair->sends_held, pair->attr.send_depth + 1);
    (void)probe;
    if (atomic) {
        sim_require(work.length == 8, "an atomic operation of %lu bytes",
                    (unsigned long)work.length);
        memcpy(work.operand, wr->operand, sizeof work.operand);
    } else if (work.length > 0) {
        work.packets = (uint32_t)((work.length + pair->mtu - 1) / pair->mtu);
    }
    if (sim_fault_is_due("post")) {
        return -1;
    }
    if ((wr->flags & SLUICE_INLINE) != 0) {
        char *to;
        sim_require(work.length <= pair->attr.max_inline && wr->opcode != SLUICE_OP_READ && !atomic,
                    "%lu inline bytes", (unsigned long)work.length);
        to = work.copy = sim_alloc(1, work.length + 1);
        for (uint32_t i = 0; i < wr->sge_count; to += wr->sges[i++].length) {
            memcpy(to, (const char *)(uintptr_t)wr->sges[i].addr, wr->sges[i].length);
        }
    }
    pair->posted += work.packets;
    pair->sends_held++;
    pair->queue->held++;
    if (pair->at == NULL) {
        pair->at = sim_work_add(&pair->sends, &work);
    } else {
        sim_work_add(&pair->sends, &work);
    }
    if (pair->state == SLU_QP_ERROR) {
        flush_soon(pair);
    } else {
        sim_kick(pair);
    }
    sim_tick(80);
    return 0;
}

int sim_fabric_receive(struct sim_pair *pair, const struct slu_receive_wr *wr)
{
    struct work work = {.id = wr->id};
    copy_list(&work, wr->sges, wr->sge_count, pair->attr.max_sge);
    work.length = 0; /* its room may be above what a message can have */
    check_post(pair, &work, pair->receives_held, pair->attr.receive_depth);
    if (sim_fault_is_due("post")) {
        return -1;
    }
    sim_work_add(&pair->receives, &work);
    pair->receives_held++;
    pair->queue->held++;
    if (pair->state == SLU_QP_ERROR) {
        flush_soon(pair);
    }
    sim_tick(60);
    return 0;
}
