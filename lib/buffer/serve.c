/* SPDX-License-Identifier: MIT */
/*
 * The owner's side: a thread that lets in peers that have a handle, and removes peers that are
 * gone. It does not see what peers read and write.
 *
 * Each peer has a posted receive, whose completion is the end of the peer: the peer has sent a
 * goodbye of no bytes, or its connection has failed. Any other message ends the peer as well. On a
 * device the queue pair of the peer stays LAST_TIME longer: if a packet of its last refusal was
 * lost, only an existing queue pair can repeat it.
 */
#include "config.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/bytes.h"
#include "base/thread.h"
#include "buffer/service.h"
#include "endpoint/versions.h"

/*
 * The private data of a peer says what it wants: magic and transport, 4 bytes each. A later version
 * appends its two versions, 2 bytes each, and after them what it likes: see slu_versions_join().
 */
#define ASK_MAGIC UINT32_C(0x736c7571) /* "sluq" */
#define ASK_VERSION (1 + SLU_VERSIONS_NEXT)
#define ASK_READABLE 1
#define ASK_OLDEST 1
#define ASK_MORE_BYTES (SLU_BUFFER_ASK_BYTES + 4)
#define COMPLETIONS 16
/* How long a peer that has failed may need our last packets again. */
#define LAST_TIME SLUICE_MS(500)

void slu_buffer_ask(uint32_t transport, struct sluice_private_data *data)
{
    uint8_t *at = slu_put(slu_put(data->data, ASK_MAGIC, 4), transport, 4);

    data->bytes = SLU_BUFFER_ASK_BYTES;
    if (ASK_VERSION > 1) {
        slu_put(slu_put(at, ASK_VERSION, 2), ASK_READABLE, 2);
        data->bytes = ASK_MORE_BYTES;
    }
}

/* Reads what a peer asks for. Returns 0, or -EPROTO with a text, which the peer gets. */
static int read_ask(const struct sluice_private_data *said, uint64_t *transport)
{
    static const struct slu_versions known = {"what it asks for", ASK_VERSION, ASK_OLDEST};
    uint64_t magic = 0, written = 1, readable = 1;

    if (said->bytes >= SLU_BUFFER_ASK_BYTES)
        slu_get(slu_get(said->data, &magic, 4), transport, 4);
    if (magic == ASK_MAGIC && said->bytes >= ASK_MORE_BYTES)
        slu_get(slu_get(said->data + SLU_BUFFER_ASK_BYTES, &written, 2), &readable, 2);
    else if (magic != ASK_MAGIC || said->bytes != SLU_BUFFER_ASK_BYTES)
        return slu_fail(EPROTO, "buffers are published here, and it did not say what it wants");
    return slu_versions_check(&known, (uint32_t)written, (uint32_t)readable);
}

static struct slu_buffer_domain *find_domain(struct sluice_buffer_service *service,
                                             uint64_t transport)
{
    for (uint32_t i = 0; i < service->domain_count; i++)
        if (service->domains[i].transport == transport)
            return &service->domains[i];
    return NULL;
}

static struct slu_buffer_domain *domain_of(struct sluice_buffer_service *service,
                                           const struct sluice_multichannel *users)
{
    struct slu_buffer_domain *domain = service->domains;

    while (domain->users != users)
        domain++;
    return domain;
}

/*
 * Returns 0 if there is room for one more peer. beside: peers that are let in but not counted yet.
 */
static int check_room(const struct sluice_buffer_service *service,
                      const struct slu_buffer_domain *domain, uint32_t beside)
{
    if (domain->peers + beside < service->max_peers)
        return 0;
    return slu_fail(EBUSY, "as many peers use its buffers as may, %u (max_peers)",
                    service->max_peers);
}

/*
 * Decides whether a peer may be let in. The peer has proven that it knows our key, so it has a
 * handle.
 */
static int judge(struct slu_door *door, const struct sluice_incoming *incoming,
                 struct slu_welcome *welcome)
{
    struct sluice_buffer_service *service =
        slu_container_of(door, struct sluice_buffer_service, door);
    struct slu_buffer_domain *domain;
    uint64_t transport = 0;
    int error = read_ask(&incoming->private_data, &transport);

    if (error < 0)
        return error;
    domain = find_domain(service, transport);
    if (domain == NULL)
        return slu_fail(EPROTOTYPE, "buffers are not published on transport %llu here",
                        (unsigned long long)transport);
    welcome->multichannel = domain->users;
    return check_room(service, domain, slu_door_count(door, domain->users));
}

/* More peers may be under way than there are places: the first ones that are connected get in. */
static int admit(struct slu_door *door, const struct sluice_multichannel *users)
{
    struct sluice_buffer_service *service =
        slu_container_of(door, struct sluice_buffer_service, door);

    return check_room(service, domain_of(service, users), slu_door_count(door, users));
}

static void part_from(struct slu_buffer_domain *domain, uint32_t peer)
{
    if (sluice_multichannel_peer_remove(domain->users, peer) == 0)
        domain->peers--;
}

/* Removes a peer later if it may still need our last packets: on a device. */
static void part_soon(struct slu_buffer_domain *domain, uint32_t peer)
{
    struct slu_leaver *leaver = NULL;

    if (domain->transport != SLU_TRANSPORT_SOFT)
        leaver = malloc(sizeof *leaver);
    if (leaver == NULL) {
        part_from(domain, peer);
        return;
    }
    *leaver = (struct slu_leaver){.peer = peer, .due = slu_after(LAST_TIME)};
    STAILQ_INSERT_TAIL(&domain->leavers, leaver, link);
}

/* Removes the peers whose time has come. All wait equally long, so the list is in order. */
static void part_from_leavers(struct slu_buffer_domain *domain, int64_t now)
{
    struct slu_leaver *leaver;

    while ((leaver = STAILQ_FIRST(&domain->leavers)) != NULL && leaver->due <= now) {
        STAILQ_REMOVE_HEAD(&domain->leavers, link);
        part_from(domain, leaver->peer);
        free(leaver);
    }
}

static void welcome(struct sluice_buffer_service *service, const struct slu_entrant *entrant)
{
    const struct sluice_request receive = {.opcode = SLUICE_OP_RECEIVE, .peer = entrant->peer};
    struct slu_buffer_domain *domain = domain_of(service, entrant->multichannel);

    domain->peers++;
    if (sluice_multichannel_post(domain->users, &receive, 1, SLUICE_FOREVER, NULL) != 1)
        part_from(domain, entrant->peer);
}

static void take_ends(struct slu_buffer_domain *domain)
{
    struct sluice_completion done[COMPLETIONS];
    int count;

    while ((count = sluice_multichannel_poll(domain->users, done, COMPLETIONS)) > 0)
        for (int i = 0; i < count; i++)
            if ((done[i].flags & SLUICE_PEER_REMOVED) == 0)
                part_soon(domain, done[i].peer);
}

/*
 * Does all that is due. *until: when more is due even without an event. If peers keep a domain
 * busy, that is at once, but the loop still serves new connections and the close of the service in
 * turn.
 */
static void look_after(struct sluice_buffer_service *service, int64_t *until)
{
    struct slu_entrant entrant;

    while (slu_door_step(&service->door, &entrant))
        welcome(service, &entrant);
    for (uint32_t i = 0; i < service->domain_count; i++) {
        struct slu_buffer_domain *domain = &service->domains[i];
        int64_t due = SLUICE_FOREVER;

        part_from_leavers(domain, slu_now());
        take_ends(domain);
        if (sluice_multichannel_arm(domain->users, &due) == 1)
            due = 0;
        if (slu_after(due) < *until)
            *until = slu_after(due);
        if (!STAILQ_EMPTY(&domain->leavers) && STAILQ_FIRST(&domain->leavers)->due < *until)
            *until = STAILQ_FIRST(&domain->leavers)->due;
    }
}

static void *serve(void *argument)
{
    struct sluice_buffer_service *service = argument;
    struct pollfd fds[2 + SLUICE_MAX_BUFFER_PDS];

    while (!atomic_load(&service->ends)) {
        int64_t until = SLUICE_FOREVER;
        uint32_t count = 0;

        look_after(service, &until);
        fds[count++] = (struct pollfd){.fd = service->door.listener->epoll, .events = POLLIN};
        for (uint32_t i = 0; i < service->domain_count; i++)
            fds[count++] = (struct pollfd){.fd = sluice_multichannel_fd(service->domains[i].users),
                                           .events = POLLIN};
        fds[count++] = (struct pollfd){.fd = service->event, .events = POLLIN};
        (void)!poll(fds, count, slu_milliseconds(until));
    }
    return NULL;
}

int slu_buffer_serve(struct sluice_buffer_service *service)
{
    int error;

    service->door.judge = judge;
    service->door.admit = admit;
    error = slu_thread_start(&service->thread, "sluice-buffer", serve, service);
    if (error != 0)
        return slu_fail(EAGAIN, "no thread can be started that serves buffers: %s",
                        strerrordesc_np(error));
    return 0;
}

void slu_buffer_serve_end(struct sluice_buffer_service *service)
{
    uint64_t one = 1;

    atomic_store(&service->ends, true);
    (void)!write(service->event, &one, sizeof one);
    pthread_join(service->thread, NULL);
    for (uint32_t i = 0; i < service->domain_count; i++)
        part_from_leavers(&service->domains[i], INT64_MAX);
}
