/* SPDX-License-Identifier: MIT */
/* Works with one call for all peers: an iteration is a list. */
#include <errno.h>

#include "perf.h"

static const struct calls scatter_calls = {sluice_multichannel_scatter_send,
                                           sluice_scope_post_scatter_send,
                                           sluice_multichannel_post_scatter_send};
static const struct calls gather_calls = {sluice_multichannel_gather_receive,
                                          sluice_scope_post_gather_receive,
                                          sluice_multichannel_post_gather_receive};
static const struct calls gather_read_calls = {sluice_multichannel_gather_read,
                                               sluice_scope_post_gather_read,
                                               sluice_multichannel_post_gather_read};

/* The list has the receives, and then as many sends. */
static int scatter_gather(struct sluice_multichannel *channels,
                          const struct sluice_request *requests, uint32_t count, int64_t deadline,
                          struct sluice_completion *completions)
{
    return sluice_multichannel_scatter_gather(channels, requests + count / 2, count / 2, requests,
                                              count / 2, deadline, completions);
}

static const struct calls scatter_gather_calls = {scatter_gather, sluice_scope_post,
                                                  sluice_multichannel_post};

/* Peers 0, 1 and so on, as many as there can be. */
static uint32_t all_peers[1024];

static int multicast(struct sluice_multichannel *channels, const struct sluice_request *requests,
                     uint32_t count, int64_t deadline, struct sluice_completion *completions)
{
    return sluice_multichannel_multicast_send(channels, requests, all_peers, count, deadline,
                                              completions);
}

static int multicast_scoped(struct sluice_scope *scope, const struct sluice_request *requests,
                            uint32_t count, struct sluice_handle *handles)
{
    return sluice_scope_post_multicast_send(scope, requests, all_peers, count, handles);
}

/* Called again for the rest if only the beginning was posted; requests->peer is the next peer. */
static int multicast_posted(struct sluice_multichannel *channels,
                            const struct sluice_request *requests, uint32_t count, int64_t deadline,
                            struct sluice_handle *handles)
{
    return sluice_multichannel_post_multicast_send(channels, requests, all_peers + requests->peer,
                                                   count, deadline, handles);
}

static const struct calls multicast_calls = {multicast, multicast_scoped, multicast_posted};

static struct sluice_request to_peer(const struct team *team, const struct run *run, uint32_t peer,
                                     uint64_t number)
{
    return (struct sluice_request){.peer = peer,
                                   .flags = calls_flags(team, run->size),
                                   .sge_count = 1,
                                   .sge = place_out(team, peer, number, run->size)};
}

static struct sluice_request from_peer(const struct team *team, const struct run *run,
                                       uint32_t peer, uint64_t number)
{
    return (struct sluice_request){
        .peer = peer, .sge_count = 1, .sge = place_in(team, peer, number, run->size)};
}

/* The calls of a work, and the requests of which its lists consist. */
struct lists {
    const struct calls *calls;
    const char *what;
    bool sends, receives, reads;
};

static uint32_t list_all(const struct team *team, const struct run *run, const struct lists *lists,
                         uint64_t number)
{
    struct sluice_request *list = team->list;
    uint32_t count = 0;

    for (uint32_t peer = 0; peer < team->peers && (lists->receives || lists->reads); peer++) {
        list[count] = from_peer(team, run, peer, number);
        if (lists->reads)
            list[count].remote = place_remote_out(team, peer, number, run->size);
        else if (lists->sends)
            list[count].opcode = SLUICE_OP_RECEIVE;
        count++;
    }
    for (uint32_t peer = 0; peer < team->peers && lists->sends; peer++) {
        /* The same message to all is the one to peer 0. */
        list[count] = to_peer(team, run, team->same_for_all ? 0 : peer, number);
        list[count].peer = peer;
        if (lists->receives)
            list[count].opcode = SLUICE_OP_SEND;
        count++;
    }
    return count;
}

static void write_all(const struct team *team, const struct run *run, const struct lists *lists,
                      uint64_t number)
{
    uint32_t messages = team->same_for_all ? 1 : team->peers;

    for (uint32_t peer = 0; peer < messages && lists->sends && content_matters(team); peer++)
        content_write(team, peer, number, run->size);
}

static int check_all(const struct team *team, const struct run *run, const struct lists *lists,
                     uint64_t number)
{
    for (uint32_t peer = 0; peer < team->peers && (lists->receives || lists->reads); peer++)
        if (content_check(team, run, peer, lists->reads ? number % team->slots : number) != 0)
            return -1;
    return 0;
}

static int lead(struct team *team, struct run *run, const struct lists *lists)
{
    if (team_meet(team) != 0)
        return -1;
    for (uint64_t i = 0; i < run->count; i++) {
        uint32_t count = list_all(team, run, lists, i);
        uint64_t begin, taken;

        write_all(team, run, lists, i);
        begin = ticks_now();
        if (calls_do(team, lists->calls, team->list, count, lists->what) != 0)
            return -1;
        taken = ticks_now() - begin;
        histogram_add(run->times, taken);
        run->ticks += taken;
        if (check_all(team, run, lists, i) != 0)
            return -1;
    }
    return 0;
}

int scatter_lead(struct team *team, struct run *run)
{
    static const struct lists lists = {&scatter_calls, "scatter", true, false, false};

    return lead(team, run, &lists);
}

int gather_lead(struct team *team, struct run *run)
{
    static const struct lists lists = {&gather_calls, "gather", false, true, false};

    return lead(team, run, &lists);
}

int scatter_gather_lead(struct team *team, struct run *run)
{
    static const struct lists lists = {&scatter_gather_calls, "scatter and gather", true, true,
                                       false};

    return lead(team, run, &lists);
}

int gather_read_lead(struct team *team, struct run *run)
{
    static const struct lists lists = {&gather_read_calls, "gather by reading", false, false, true};

    return lead(team, run, &lists);
}

int multicast_lead(struct team *team, struct run *run)
{
    static const struct lists lists = {&multicast_calls, "multicast", true, false, false};

    for (uint32_t peer = 0; peer < team->peers; peer++)
        all_peers[peer] = peer;
    return lead(team, run, &lists);
}
