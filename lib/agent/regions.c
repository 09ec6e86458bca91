/* SPDX-License-Identifier: MIT */
/*
 * Memory of ours that a peer may use: allocated for it, or handed over by the program. Guarantees:
 * each region is a registration of its own. It ends one second after its lease, when it is
 * released or revoked, or with the peer. The quota of a peer, in whole pages, covers memory that
 * is allocated, being allocated, or sent back but not received by the program yet.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "agent/agent.h"
#include "memory/mr.h"

static uint64_t whole_pages(uint64_t bytes)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);

    return (bytes + page - 1) / page * page;
}

/* Verbs require local write access for remote write and atomic access. */
uint32_t slu_agent_registered_access(uint32_t access)
{
    const uint32_t writes = SLUICE_ACCESS_REMOTE_WRITE | SLUICE_ACCESS_REMOTE_ATOMIC;

    return access | ((access & writes) != 0 ? SLUICE_ACCESS_LOCAL_WRITE : 0);
}

struct slu_agent_region *slu_agent_find_region(struct sluice_agent_peer *peer, uint64_t id)
{
    struct slu_agent_region *region;

    LIST_FOREACH(region, &peer->regions, links)
    if (region->id == id)
        return region;
    return NULL;
}

/*
 * Returns whether the peer once had that region; ids are never reused. The peer may name a region
 * that has ended, because the REVOKE may still be in flight.
 */
static bool had_region(const struct sluice_agent_peer *peer, uint64_t id)
{
    return id <= peer->last_region;
}

/* Returns when the region ends: at the end of its lease and grace. */
static int64_t end_of(const struct slu_agent_region *region)
{
    return region->expires < SLUICE_FOREVER - SLU_AGENT_GRACE ? region->expires + SLU_AGENT_GRACE
                                                              : SLUICE_FOREVER;
}

void slu_agent_lend(struct sluice_agent_peer *peer, struct slu_agent_region *region, int64_t lease)
{
    region->expires = slu_after(lease);
    slu_agent_due(peer->agent, end_of(region));
}

void slu_agent_add_region(struct sluice_agent_peer *peer, struct slu_agent_region *region)
{
    LIST_INSERT_HEAD(&peer->regions, region, links);
    region->id = ++peer->last_region;
    peer->region_count++;
    peer->agent->info.regions++;
}

/* Takes a region from the peer and remembers it as past; it is still registered. */
static void remove_region(struct sluice_agent_peer *peer, struct slu_agent_region *region,
                          bool by_lease)
{
    LIST_REMOVE(region, links);
    peer->past[peer->past_count++ % SLU_AGENT_PAST] =
        (struct slu_agent_past){.id = region->id,
                                .remote = region->remote,
                                .expired = by_lease ? region->expires : slu_now(),
                                .by_lease = by_lease};
    peer->region_count--;
    peer->agent->info.regions--;
}

/* No request of this side names the key of memory that was allocated for a peer. */
static void end_memory(struct sluice_agent_peer *peer, const struct slu_agent_region *region)
{
    if (region->pages > 0)
        slu_agent_give_quota(peer, region->pages);
    if (region->allocated)
        slu_mr_end(region->mr);
    else
        (void)sluice_mr_release(region->mr, NULL, NULL);
}

static void free_region(struct sluice_agent_peer *peer, struct slu_agent_region *region)
{
    end_memory(peer, region);
    free(region);
}

void slu_agent_end_region(struct sluice_agent_peer *peer, struct slu_agent_region *region,
                          bool by_lease)
{
    remove_region(peer, region, by_lease);
    free_region(peer, region);
}

void slu_agent_revoke(struct sluice_agent_peer *peer, struct slu_agent_region *region)
{
    remove_region(peer, region, false);
    end_memory(peer, region);
    LIST_INSERT_HEAD(&peer->revoked, region, links);
    slu_agent_notify_revoked(peer);
}

void slu_agent_notify_revoked(struct sluice_agent_peer *peer)
{
    struct slu_agent_region *region;

    while ((region = LIST_FIRST(&peer->revoked)) != NULL && slu_agent_may_request(peer)) {
        struct slu_agent_message message = {.type = SLU_AGENT_REVOKE, .region = region->id};

        LIST_REMOVE(region, links);
        free(region);
        slu_agent_control_send(peer, &message, NULL);
    }
}

void slu_agent_end_regions(struct sluice_agent_peer *peer)
{
    struct slu_agent_job *job, *next;
    struct slu_agent_region *region;

    while ((region = LIST_FIRST(&peer->revoked)) != NULL) {
        LIST_REMOVE(region, links);
        free(region);
    }
    while (!LIST_EMPTY(&peer->regions)) {
        peer->agent->info.reclaimed++;
        slu_agent_end_region(peer, LIST_FIRST(&peer->regions), false);
    }
    for (job = TAILQ_FIRST(&peer->jobs); job != NULL; job = next) {
        next = TAILQ_NEXT(job, links);
        /* The thread that runs this job ends it, as it sees that the peer is over. */
        if (job->begun && !job->done)
            continue;
        TAILQ_REMOVE(&peer->jobs, job, links);
        if (job->mr != NULL)
            (void)sluice_mr_release(job->mr, NULL, NULL);
        if (job->from != NULL)
            free_region(peer, job->from);
        else
            slu_agent_give_quota(peer, job->pages);
        free(job);
    }
}

void slu_agent_expire(struct sluice_agent_peer *peer)
{
    struct slu_agent_region *region, *next;
    int64_t now;

    if (LIST_EMPTY(&peer->regions))
        return;
    now = slu_now();
    for (region = LIST_FIRST(&peer->regions); region != NULL; region = next) {
        next = LIST_NEXT(region, links);
        if (now < end_of(region)) {
            slu_agent_due(peer->agent, end_of(region));
            continue;
        }
        slu_log(SLUICE_LOG_INFO, "agent: the lease of %s on region %llu, %llu bytes, is over",
                peer->address, (unsigned long long)region->id,
                (unsigned long long)region->remote.length);
        peer->agent->info.expired++;
        slu_agent_end_region(peer, region, true);
    }
}

static bool covers(const struct slu_agent_past *past, const struct sluice_remote_mr *failed_remote)
{
    return past->remote.rkey == failed_remote->rkey && failed_remote->addr >= past->remote.addr &&
           failed_remote->addr - past->remote.addr <= past->remote.length;
}

void slu_agent_log_late_use(struct sluice_agent_peer *peer,
                            const struct sluice_remote_mr *failed_remote)
{
    uint32_t count = peer->past_count < SLU_AGENT_PAST ? peer->past_count : SLU_AGENT_PAST;

    for (uint32_t i = 1; i <= count; i++) {
        const struct slu_agent_past *past = &peer->past[(peer->past_count - i) % SLU_AGENT_PAST];

        if (!covers(past, failed_remote))
            continue;
        peer->agent->info.late++;
        slu_log(SLUICE_LOG_WARN,
                "agent: %s used region %llu, %llu bytes, %lld ms after %s; its data queue pair "
                "failed, and is reset",
                peer->address, (unsigned long long)past->id,
                (unsigned long long)past->remote.length,
                (long long)((slu_now() - past->expired) / SLUICE_MS(1)),
                past->by_lease ? "its lease" : "it was released or revoked");
        return;
    }
    slu_log(SLUICE_LOG_WARN,
            "agent: %s used a key or a range that it does not have; its data queue pair failed, "
            "and is reset",
            peer->address);
}

/* Allocating. */

static struct slu_agent_job *add_job(struct sluice_agent_peer *peer,
                                     const struct slu_agent_message *message)
{
    struct slu_agent_job *job = peer->job_count < SLU_AGENT_WAITS ? calloc(1, sizeof *job) : NULL;

    if (job == NULL) {
        slu_agent_answer(peer, message->id, SLU_AGENT_BUSY, "it serves too many requests of ours");
        return NULL;
    }
    job->id = message->id;
    TAILQ_INSERT_TAIL(&peer->jobs, job, links);
    peer->job_count++;
    return job;
}

static void deny(struct sluice_agent_peer *peer, uint64_t id, uint32_t code, const char *words)
{
    peer->agent->info.denied++;
    slu_agent_answer(peer, id, code, words);
}

/* Returns the lease to grant for a requested one. */
static int64_t allow_lease(const struct sluice_agent_attr *attr, int64_t lease)
{
    return lease == 0 || lease > attr->max_lease ? attr->max_lease : lease;
}

/* Runs a job without the lock: no other thread touches a job that has begun. */
static void do_job(struct sluice_pd *pd, struct slu_agent_job *job)
{
    const struct slu_agent_region *from = job->from;
    size_t length = from != NULL ? (size_t)from->remote.length : (size_t)job->bytes;
    uint32_t access =
        from != NULL ? SLUICE_ACCESS_LOCAL_WRITE : slu_agent_registered_access(job->access);

    job->mr = sluice_mr_alloc(pd, length, access);
    job->error = job->mr == NULL ? -errno : 0;
    if (job->mr != NULL && from != NULL)
        memcpy(sluice_mr_addr(job->mr), sluice_mr_addr(from->mr), length);
}

static void answer_failed(struct sluice_agent_peer *peer, const struct slu_agent_job *job)
{
    char words[SLU_AGENT_WORDS];

    snprintf(words, sizeof words, "it has no memory for the region: %s",
             strerrordesc_np(-job->error));
    if (job->from == NULL)
        slu_agent_give_quota(peer, job->pages);
    deny(peer, job->id, SLU_AGENT_NO_MEMORY, words);
}

/* Gives the allocated region to the peer. */
static void grant(struct sluice_agent_peer *peer, struct slu_agent_job *job)
{
    struct slu_agent_region *region = calloc(1, sizeof *region);
    struct slu_agent_message message = {
        .type = SLU_AGENT_ALLOCATED, .id = job->id, .lease = job->lease, .access = job->access};

    if (region == NULL) {
        job->error = -ENOMEM;
        (void)sluice_mr_release(job->mr, NULL, NULL);
        answer_failed(peer, job);
        return;
    }
    sluice_mr_remote(job->mr, &region->remote);
    region->mr = job->mr;
    region->allocated = true;
    region->pages = job->pages;
    region->access = job->access;
    slu_agent_add_region(peer, region);
    slu_agent_lend(peer, region, job->lease);
    peer->agent->info.allocated++;
    message.remote = region->remote;
    message.region = region->id;
    slu_agent_control_send(peer, &message, NULL);
}

void slu_agent_handle_alloc(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    const struct sluice_agent_attr *attr = &peer->agent->attr;
    uint64_t pages = whole_pages(message->bytes);
    struct slu_agent_job *job;
    char words[SLU_AGENT_WORDS];

    if ((message->access & ~attr->access) != 0) {
        deny(peer, message->id, SLU_AGENT_DENIED, "it does not give these rights to memory");
        return;
    }
    if (peer->allocated_count >= attr->max_regions) {
        snprintf(words, sizeof words, "the quota is %u regions, and all are in use",
                 attr->max_regions);
        deny(peer, message->id, SLU_AGENT_QUOTA, words);
        return;
    }
    if (attr->quota == 0) {
        deny(peer, message->id, SLU_AGENT_QUOTA,
             "it lends no memory: set its sluice_agent_attr.quota");
        return;
    }
    if (pages > attr->quota || peer->region_bytes > attr->quota - pages) {
        snprintf(words, sizeof words, "the quota is %llu bytes in whole pages, %llu are in use",
                 (unsigned long long)attr->quota, (unsigned long long)peer->region_bytes);
        deny(peer, message->id, SLU_AGENT_QUOTA, words);
        return;
    }
    job = add_job(peer, message);
    if (job == NULL)
        return;
    job->bytes = message->bytes;
    job->pages = pages;
    job->access = message->access;
    job->lease = allow_lease(attr, message->lease);
    slu_agent_take_quota(peer, pages);
}

/* Queues a region for the program; its pages count against the quota until it is received. */
static void give_program(struct sluice_agent_peer *peer, struct slu_agent_region *region,
                         struct sluice_mr *mr)
{
    struct slu_agent_returned *returned = calloc(1, sizeof *returned);

    if (returned == NULL) {
        if (mr != NULL)
            sluice_mr_deregister(mr);
        slu_agent_received(peer, 0);
        return;
    }
    returned->local = (struct sluice_agent_local){
        .id = region->id,
        .addr = mr != NULL ? sluice_mr_addr(mr) : sluice_mr_addr(region->mr),
        .length = region->remote.length,
        .mr = mr,
        .peer = peer,
    };
    returned->pages = region->pages;
    region->pages = 0;
    STAILQ_INSERT_TAIL(&peer->returned, returned, links);
    if (!peer->is_returning)
        slu_agent_list_returning(peer);
    peer->agent->news = true;
}

static void hand_back(struct sluice_agent_peer *peer, const struct slu_agent_job *job)
{
    give_program(peer, job->from, job->mr);
    slu_agent_answer(peer, job->id, SLU_AGENT_OK, NULL);
}

static void answer_job(struct sluice_agent_peer *peer, struct slu_agent_job *job)
{
    if (job->error < 0) {
        if (job->from != NULL)
            slu_agent_received(peer, 0);
        answer_failed(peer, job);
    } else if (job->from != NULL) {
        hand_back(peer, job);
    } else {
        grant(peer, job);
    }
    if (job->from != NULL)
        free_region(peer, job->from);
    free(job);
}

bool slu_agent_run_jobs(struct sluice_agent_peer *peer)
{
    struct sluice_agent *agent = peer->agent;
    struct slu_agent_job *job;
    bool some = false;

    for (;;) {
        TAILQ_FOREACH(job, &peer->jobs, links)
        if (!job->begun || (job->done && peer->free_count > 0))
            break;
        if (job == NULL)
            return some;
        some = true;
        if (!job->begun) {
            job->begun = true;
            slu_agent_arm_for_sleeper(agent);
            pthread_mutex_unlock(&agent->lock);
            do_job(agent->pd, job);
            pthread_mutex_lock(&agent->lock);
            job->done = true;
            if (peer->state == SLU_AGENT_OVER)
                slu_agent_end_regions(peer);
        } else {
            TAILQ_REMOVE(&peer->jobs, job, links);
            peer->job_count--;
            answer_job(peer, job);
        }
    }
}

/* Renewing. Only the program decides how long its own memory is lent. */
void slu_agent_handle_renew(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    struct slu_agent_region *region = slu_agent_find_region(peer, message->region);
    struct slu_agent_message answer = {
        .type = SLU_AGENT_RENEWED,
        .id = message->id,
        .lease = allow_lease(&peer->agent->attr, message->lease),
    };

    if (region == NULL && !had_region(peer, message->region))
        slu_agent_refuse(peer, &peer->agent->info.unasked, "a region that it does not have");
    if (region == NULL || slu_now() >= region->expires) {
        slu_agent_answer(peer, message->id, SLU_AGENT_UNKNOWN, "the region has ended");
    } else if (!region->allocated) {
        slu_agent_answer(peer, message->id, SLU_AGENT_DENIED,
                         "the lease of memory that was handed over cannot be renewed");
    } else {
        int64_t before = region->expires;

        slu_agent_lend(peer, region, answer.lease);
        if (region->expires < before)
            region->expires = before;
        slu_agent_control_send(peer, &answer, NULL);
    }
}

/* Giving back. */

void slu_agent_handle_release(struct sluice_agent_peer *peer,
                              const struct slu_agent_message *message)
{
    struct slu_agent_region *region = slu_agent_find_region(peer, message->region);

    if (region != NULL) {
        slu_agent_end_region(peer, region, false);
    } else if (!had_region(peer, message->region)) {
        slu_agent_refuse(peer, &peer->agent->info.unasked, "a region that it does not have");
        slu_agent_answer(peer, message->id, SLU_AGENT_UNKNOWN, "we do not have that region");
        return;
    }
    slu_agent_answer(peer, message->id, SLU_AGENT_OK, NULL);
}

static void refuse_return(struct sluice_agent_peer *peer, const struct slu_agent_message *message)
{
    if (!had_region(peer, message->region))
        slu_agent_refuse(peer, &peer->agent->info.unasked, "a region that it does not have");
    slu_agent_answer(peer, message->id, SLU_AGENT_UNKNOWN, "the region has ended");
}

void slu_agent_handle_return(struct sluice_agent_peer *peer,
                             const struct slu_agent_message *message)
{
    struct slu_agent_region *region = slu_agent_find_region(peer, message->region);
    struct slu_agent_job *job;

    if (region == NULL) {
        /* The sender has counted this message as waiting: report it as received. */
        if (slu_agent_count_arrival(peer, 0))
            slu_agent_received(peer, 0);
        refuse_return(peer, message);
        return;
    }
    if (!slu_agent_count_arrival(peer, 0)) {
        slu_agent_answer(peer, message->id, SLU_AGENT_BUSY,
                         "too many messages wait for its program");
        return;
    }
    if (region->allocated) {
        job = add_job(peer, message);
        if (job == NULL) {
            slu_agent_received(peer, 0);
            return;
        }
        remove_region(peer, region, false);
        job->from = region;
        return;
    }
    remove_region(peer, region, false);
    give_program(peer, region, NULL);
    free_region(peer, region);
    slu_agent_answer(peer, message->id, SLU_AGENT_OK, NULL);
}
