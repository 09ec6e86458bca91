/* SPDX-License-Identifier: MIT */
/*
 * The layout of a process's memory: for each peer an area of messages to it, then for each
 * peer an area of messages from it, then for each peer two words in cache lines of their
 * own, out and in. Messages use the slots of an area in turn. The leader has all others as
 * peers; the others have only the leader.
 */
#include <string.h>

#include "perf.h"

#define LINE 64
#define WORDS (2 * LINE)

/* Returns the offset of a message in its area; there is one slot unless contents are checked. */
static size_t slot_of(const struct team *team, uint64_t number)
{
    return team->slots == 1 ? 0 : number % team->slots * team->stride;
}

static size_t offset_out(const struct team *team, uint32_t peer, uint64_t number)
{
    return peer * team->area + slot_of(team, number);
}

static size_t offset_in(const struct team *team, uint32_t peers, uint32_t peer, uint64_t number)
{
    return (peers + peer) * team->area + slot_of(team, number);
}

static size_t offset_words(const struct team *team, uint32_t peers, uint32_t peer)
{
    return 2 * peers * team->area + peer * WORDS;
}

size_t place_memory(const struct team *team)
{
    return offset_words(team, team->peers, team->peers);
}

/* Makes an element without checks, from the first byte of the memory. */
static struct sluice_sge sge_at(const struct team *team, size_t offset, size_t size)
{
    struct sluice_sge sge = {team->memory.addr + offset, (uint32_t)size, team->memory.lkey};

    return sge;
}

struct sluice_sge place_out(const struct team *team, uint32_t peer, uint64_t number, size_t size)
{
    return sge_at(team, offset_out(team, peer, number), size);
}

struct sluice_sge place_in(const struct team *team, uint32_t peer, uint64_t number, size_t size)
{
    return sge_at(team, offset_in(team, team->peers, peer, number), size);
}

static uint64_t *word_at(const struct team *team, size_t offset)
{
    return (uint64_t *)((char *)sluice_mr_addr(team->mr) + offset);
}

uint64_t *place_word_out(const struct team *team, uint32_t peer)
{
    return word_at(team, offset_words(team, team->peers, peer));
}

uint64_t *place_word_in(const struct team *team, uint32_t peer)
{
    return word_at(team, offset_words(team, team->peers, peer) + LINE);
}

struct sluice_sge place_word_sge(const struct team *team, uint32_t peer)
{
    return sge_at(team, offset_words(team, team->peers, peer), sizeof(uint64_t));
}

/* The number of peers of our peer, and our own index among them. */
static uint32_t peers_of(const struct team *team)
{
    return team->role == 0 ? 1 : team->ranks - 1;
}

static uint32_t place_of_us(const struct team *team)
{
    return team->role == 0 ? 0 : team->role - 1;
}

static struct sluice_remote_mr remote_at(const struct team *team, uint32_t peer, size_t offset,
                                         size_t size)
{
    struct sluice_remote_mr remote = {0};

    if (sluice_remote_mr_slice(&team->remotes[peer], offset, size, &remote) != 0)
        team_fail(team, "name a peer's memory");
    return remote;
}

struct sluice_remote_mr place_remote_word(const struct team *team, uint32_t peer)
{
    return remote_at(team, peer, offset_words(team, peers_of(team), place_of_us(team)) + LINE,
                     sizeof(uint64_t));
}

struct sluice_remote_mr place_remote_in(const struct team *team, uint32_t peer, uint64_t number,
                                        size_t size)
{
    return remote_at(team, peer, offset_in(team, peers_of(team), place_of_us(team), number), size);
}

struct sluice_remote_mr place_remote_out(const struct team *team, uint32_t peer, uint64_t number,
                                         size_t size)
{
    return remote_at(team, peer, offset_out(team, place_of_us(team), number), size);
}
