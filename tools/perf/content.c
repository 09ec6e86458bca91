/* SPDX-License-Identifier: MIT */
/*
 * The contents of messages. With --validate each message has its own, made from its sender
 * and number. With --dirty alone they only have to be written. The first 8 bytes of a dirty
 * message hold the time that writing it took.
 */
#include <inttypes.h>
#include <string.h>

#include "perf.h"

#define STEP UINT64_C(0x9e3779b97f4a7c15)

bool content_matters(const struct team *team)
{
    return (team->plan.flags & (PLAN_DIRTY | PLAN_VALIDATE)) != 0;
}

/* Returns the first word of a message, made from its role, direction and number. */
static uint64_t first_word(const struct team *team, uint32_t role, bool to_leader, uint64_t number)
{
    uint64_t word =
        number << 16 | (team->same_for_all && !to_leader ? 0 : role) << 1 | (to_leader ? 1 : 0);

    word = (word ^ word >> 31) * STEP;
    return word ^ word >> 29;
}

static uint32_t role_of(const struct team *team, uint32_t peer)
{
    return team->role == 0 ? peer + 1 : team->role;
}

static size_t content_begin(const struct team *team, size_t size)
{
    return (team->plan.flags & PLAN_DIRTY) != 0 && size >= sizeof(uint64_t) ? sizeof(uint64_t) : 0;
}

static void fill(char *bytes, size_t size, uint64_t word)
{
    size_t i = 0;

    for (; i + sizeof word <= size; i += sizeof word, word += STEP)
        memcpy(bytes + i, &word, sizeof word);
    memcpy(bytes + i, &word, size - i);
}

/* Returns the index of the first wrong byte; size if there is none. */
static size_t compare(const char *bytes, size_t size, uint64_t word)
{
    size_t i = 0, part = sizeof word;

    for (; i < size; i += part, word += STEP) {
        part = size - i < sizeof word ? size - i : sizeof word;
        if (memcmp(bytes + i, &word, part) == 0)
            continue;
        for (size_t j = 0;; j++)
            if (bytes[i + j] != ((const char *)&word)[j])
                return i + j;
    }
    return size;
}

void content_write(const struct team *team, uint32_t peer, uint64_t number, size_t size)
{
    struct sluice_sge sge = place_out(team, peer, number, size);
    char *bytes = (char *)(uintptr_t)sge.addr;
    size_t begin = content_begin(team, size);

    if ((team->plan.flags & PLAN_VALIDATE) != 0)
        fill(bytes + begin, size - begin,
             first_word(team, role_of(team, peer), team->role != 0, number));
    else
        memset(bytes + begin, (int)(number & 0xff), size - begin);
}

int content_check(const struct team *team, const struct run *run, uint32_t peer, uint64_t number)
{
    struct sluice_sge sge = place_in(team, peer, number, run->size);
    char *bytes = (char *)(uintptr_t)sge.addr;
    size_t begin = content_begin(team, run->size), wrong;

    if ((team->plan.flags & PLAN_VALIDATE) == 0)
        return 0;
    wrong = compare(bytes + begin, run->size - begin,
                    first_word(team, role_of(team, peer), team->role == 0, number));
    if (wrong != run->size - begin)
        return team_complain(team,
                             "%s of %zu bytes: message %" PRIu64 " %s role %u is wrong at byte %zu",
                             run->work->name, run->size, number, team->role == 0 ? "from" : "to",
                             role_of(team, peer), begin + wrong);
    /* Erase it, so that the next message in this slot must bring all of its bytes. */
    memset(bytes + begin, 0, run->size - begin);
    return 0;
}
