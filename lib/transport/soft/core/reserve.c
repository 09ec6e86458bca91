/* SPDX-License-Identifier: MIT */
/*
 * Allocates the memory of a memfd at once, so that touching it later cannot kill the program. The
 * kernel kills a process rather than refuse memory that it does not have. So this file asks only
 * for what the kernel reports as available, piece by piece.
 */
#include "transport/soft/core/regions.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fork.h"

#define CGROUPS "/sys/fs/cgroup"
/*
 * A signal undoes the fallocate(2) under way: with larger pieces, frequent signals would prevent
 * all progress.
 */
#define PIECE (UINT64_C(1) << 20)
#define LEAST_PIECE (UINT64_C(1) << 16)
/* Read the available memory again after this many bytes: other processes allocate, too. */
#define ASK_AGAIN (UINT64_C(64) << 20)
#define PATH_BYTES 4200
/*
 * The credit: longest region that may use it, its fraction of the room, its maximum in bytes, and
 * how long it is valid.
 */
#define SMALL_REGION (UINT64_C(1) << 20)
#define CREDIT_PART 64
#define MOST_CREDIT (UINT64_C(16) << 20)
#define CREDIT_TIME SLUICE_MS(100)

/* Returns the number behind a word at the beginning of a line; none if there is no such line. */
static uint64_t number_of(const char *folder, const char *name, const char *word, uint64_t none)
{
    char path[PATH_BYTES], line[256];
    size_t length = strlen(word);
    const char *digits = NULL;
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE *file = slu_fd_read_file(path);
    while (file != NULL && digits == NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, word, length) == 0)
            digits = strpbrk(line + length, "0123456789");
    if (file != NULL)
        fclose(file);
    return digits != NULL ? strtoull(digits, NULL, 10) : none;
}

static uint64_t difference(uint64_t most, uint64_t used)
{
    return most > used ? most - used : 0;
}

/* Names of a memory cgroup's files and of lines in them, in both versions of its interface. */
struct dialect {
    const char *limit;
    const char *usage;
    const char *inactive;
    const char *active;
};

static const struct dialect dialects[] = {
    {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file ",
     "total_active_file "},
    {"memory.max", "memory.current", "inactive_file ", "active_file "},
};

/*
 * Returns the bytes that a memory cgroup leaves. Pages of files can be reclaimed, and other memory
 * can be swapped out. Neither is counted if there is enough without them: the cgroup then is not
 * the limit.
 */
static uint64_t cgroup_room(const struct dialect *dialect, const char *folder, uint64_t swap,
                            uint64_t enough)
{
    uint64_t limit = number_of(folder, dialect->limit, "", UINT64_MAX);
    if (limit == UINT64_MAX)
        return UINT64_MAX;
    uint64_t room = difference(limit, number_of(folder, dialect->usage, "", 0));
    if (room >= enough)
        return room;
    uint64_t swap_limit = number_of(folder, "memory.swap.max", "", UINT64_MAX);
    uint64_t swap_room = difference(swap_limit, number_of(folder, "memory.swap.current", "", 0));
    room += number_of(folder, "memory.stat", dialect->inactive, 0);
    room += number_of(folder, "memory.stat", dialect->active, 0);
    return room + (swap_room < swap ? swap_room : swap);
}

/* Reads the cgroup and all its ancestors; in a container, the upper ones may not be visible. */
static void look_at_cgroups(const struct dialect *dialect, const char *mount, char *path,
                            uint64_t swap, struct soft_room *room)
{
    char folder[PATH_BYTES];
    for (;;) {
        snprintf(folder, sizeof(folder), "%s%s", mount, path);
        uint64_t bytes = cgroup_room(dialect, folder, swap, room->bytes);
        if (bytes < room->bytes)
            *room = (struct soft_room){bytes, "left by a memory cgroup"};
        char *slash = strrchr(path, '/');
        if (slash == NULL)
            return;
        *slash = '\0';
    }
}

/* Parses "4:memory:/path", or "0::/path" of cgroup version 2. */
static void look_at_line(char *line, uint64_t swap, struct soft_room *room)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL)
        return;
    *path++ = '\0';
    path[strcspn(path, "\n")] = '\0';
    if (strcmp(controllers, ":") == 0)
        look_at_cgroups(&dialects[1], CGROUPS, path, swap, room);
    else if (strstr(controllers, "memory") != NULL)
        look_at_cgroups(&dialects[0], CGROUPS "/memory", path, swap, room);
}

static struct soft_room read_room(void)
{
    uint64_t swap = number_of("/proc", "meminfo", "SwapFree:", 0);
    uint64_t available = number_of("/proc", "meminfo", "MemAvailable:", UINT64_MAX);
    struct soft_room room = {UINT64_MAX, "available"};
    if (available == UINT64_MAX)
        return room; /* no /proc */
    room.bytes = (available + swap) * 1024;
    FILE *file = slu_fd_read_file("/proc/self/cgroup");
    char line[4096];
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        look_at_line(line, swap * 1024, &room);
    if (file != NULL)
        fclose(file);
    return room;
}

struct soft_room slu_soft_room(void)
{
    /* Each file that is opened would check the standard streams; one check is enough for all. */
    slu_fd_guard();
    struct soft_room room = read_room();
    slu_fd_unguard();
    return room;
}

static bool fits(const struct soft_room *room, uint64_t length)
{
    /*
     * Keep back a 32nd: the kernel's number is an estimate, and the program itself needs memory as
     * well.
     */
    return length <= room->bytes - room->bytes / 32;
}

/*
 * Bytes that small regions may still allocate before the files are read anew, which costs more than
 * a small region does. The credit is at most half of what fits() keeps back. So allocations by
 * credit do not use up that reserve, even together with one that reads the files at the same time.
 */
static struct {
    struct slu_fork_lock lock;
    uint64_t bytes;
    int64_t until;
    uint32_t generation; /* a child of fork(2) has none of its parent's */
} credit = {.lock = {.lock = PTHREAD_MUTEX_INITIALIZER}};

static bool take_credit(uint64_t length)
{
    if (length > SMALL_REGION)
        return false;
    slu_fork_lock(&credit.lock);
    bool taken = length <= credit.bytes && credit.generation == slu_fork_generation() &&
                 slu_now() < credit.until;
    if (taken)
        credit.bytes -= length;
    pthread_mutex_unlock(&credit.lock.lock);
    return taken;
}

/* Renews the credit. length: bytes about to be allocated from this room. */
static void renew_credit(const struct soft_room *room, uint64_t length)
{
    uint64_t bytes = difference(room->bytes, length) / CREDIT_PART;
    slu_fork_lock(&credit.lock);
    credit.bytes = bytes < MOST_CREDIT ? bytes : MOST_CREDIT;
    credit.until = slu_now() + CREDIT_TIME;
    credit.generation = slu_fork_generation();
    pthread_mutex_unlock(&credit.lock.lock);
}

bool slu_soft_admit(uint64_t length, struct soft_room *room)
{
    if (room->what == NULL && take_credit(length))
        return true;
    if (room->what == NULL)
        *room = slu_soft_room();
    bool admitted = fits(room, length);
    renew_credit(room, admitted ? length : 0);
    return admitted;
}

/* Reads the room again when taken of length bytes are allocated; returns whether the rest fits. */
static bool look_again(uint64_t length, uint64_t taken, struct soft_room *room)
{
    struct soft_room left = slu_soft_room();
    if (fits(&left, length - taken))
        return true;
    left.bytes += taken; /* the caller will free these */
    *room = left;
    return false;
}

int slu_soft_reserve(int fd, uint64_t length, struct soft_room *room)
{
    uint64_t ask = ASK_AGAIN; /* the caller has just checked */
    uint64_t piece = PIECE;
    for (uint64_t offset = 0; offset < length;) {
        if (offset >= ask && !look_again(length, offset, room))
            return ENOMEM;
        ask = offset >= ask ? offset + ASK_AGAIN : ask;
        uint64_t now = length - offset < piece ? length - offset : piece;
        if (fallocate(fd, 0, (off_t)offset, (off_t)now) == 0)
            offset += now;
        else if (errno != EINTR)
            return errno == ENOSPC ? ENOMEM : errno;
        else if (piece > LEAST_PIECE)
            piece /= 2;
    }
    return 0;
}
