/* SPDX-License-Identifier: MIT */
/*
 * Regions for which a memory cgroup has no room are refused: also many small ones, not each of
 * which reads the limit, from several threads, and in a child of fork(2).
 */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/group.h"
#include "../support/pair.h"
#include "../support/process.h"

#define MIB ((size_t)1 << 20)
#define CGROUPS "/sys/fs/cgroup"
/* How much may be allocated without reading the limit again: a 64th of the room, at most 16 MiB. */
#define CREDIT_PART 64
#define NO_ROOM "left by a memory cgroup"

static void write_number(const char *name, size_t number)
{
    FILE *file = fopen(name, "we");
    require(file && fprintf(file, "%zu\n", number) > 0 && fclose(file) == 0, "%s: %s", name,
            strerror(errno));
}

/* Sets the same value in both versions of cgroups, whichever the process uses. */
static void set_used(size_t bytes)
{
    write_number(CGROUPS "/memory.current", bytes);
    write_number(CGROUPS "/memory/memory.usage_in_bytes", bytes);
}

/*
 * Mounts our own cgroups over the system's, in a mount namespace. Returns false if that is not
 * permitted.
 */
static bool mount_cgroups(size_t limit, size_t used)
{
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", CGROUPS, "tmpfs", 0, NULL) != 0) {
        return false;
    }
    require(mkdir(CGROUPS "/memory", 0700) == 0, "%s", strerror(errno));
    write_number(CGROUPS "/memory.max", limit);
    write_number(CGROUPS "/memory/memory.limit_in_bytes", limit);
    write_number(CGROUPS "/memory.swap.max", 0);
    write_number(CGROUPS "/memory/memory.swap.max", 0);
    set_used(used);
    return true;
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    require(file && fputs(text, file) >= 0 && fclose(file) == 0, "%s: %s", path, strerror(errno));
}

/* A limit of 8 MiB, of which 3 are free, and one is of files. */
static void in_a_cgroup(struct rank *rank)
{
    if (!mount_cgroups(8 * MIB, 5 * MIB)) {
        return; /* no root, or a container */
    }
    write_text(CGROUPS "/memory.stat", "anon 4194304\ninactive_file 524288\nactive_file 524288\n");
    write_text(CGROUPS "/memory/memory.stat",
               "inactive_file 1\ntotal_inactive_file 524288\ntotal_active_file 524288\n");
    struct sides sides;
    sides_open(&sides);
    require_null(sluice_mr_alloc(sides.pds[0], 5 * MIB, ACCESS_ALL), ENOMEM,
                 "5242880 bytes: 4194304 bytes are left by a memory cgroup");
    struct sluice_mr *mr = made(sluice_mr_alloc(sides.pds[0], 3 * MIB, ACCESS_ALL));
    require_ok(sluice_mr_deregister(mr));
    sides_close(&sides);
    (void)rank;
}

/* Regions that are kept, and their share of the cgroup if that counts them. */
struct kept {
    struct sluice_pd *pd;
    size_t length;
    size_t used;
    bool counted;
    uint32_t count;
    struct sluice_mr *mrs[600];
};

/* Allocates until one is refused, or there are enough. */
static void keep_regions(struct kept *kept, uint32_t most)
{
    struct sluice_mr *mr = NULL;
    kept->count = 0;
    while (kept->count < most &&
           (mr = sluice_mr_alloc(kept->pd, kept->length, ACCESS_ALL)) != NULL) {
        kept->mrs[kept->count++] = mr;
        if (kept->counted) {
            set_used(kept->used + kept->count * kept->length);
        }
    }
    if (mr == NULL) {
        check_text(__FILE__, __LINE__, "sluice_mr_alloc", NO_ROOM);
    }
}

static void end_regions(struct kept *kept)
{
    for (uint32_t i = 0; i < kept->count; i++) {
        require_ok(sluice_mr_deregister(kept->mrs[i]));
    }
    if (kept->counted) {
        set_used(kept->used);
    }
}

/* The cgroup counts them: they get nearly all of the room, and no more. */
static void small_ones_in_a_row(struct rank *rank)
{
    struct sides sides;
    if (!mount_cgroups(8 * MIB, 4 * MIB)) {
        return;
    }
    sides_open(&sides);
    struct kept kept = {.pd = sides.pds[0], .length = MIB / 64, .used = 4 * MIB, .counted = true};
    for (uint32_t i = 0; i < 3; i++) {
        keep_regions(&kept, COUNT(kept.mrs));
        require(kept.count * kept.length <= 4 * MIB && kept.count * kept.length > 3 * MIB,
                "%u regions", kept.count);
        end_regions(&kept);
    }
    sides_close(&sides);
    (void)rank;
}

/*
 * Others take nearly all just after the limit was read: small regions notice that soon, large ones
 * at once.
 */
static void room_goes_away(struct rank *rank)
{
    struct sides sides;
    if (!mount_cgroups(128 * MIB, 64 * MIB)) {
        return;
    }
    sides_open(&sides);
    /* So large that the memory of a region is not kept for the next one. */
    struct kept kept = {.pd = sides.pds[0], .length = 32768};
    keep_regions(&kept, 1);
    end_regions(&kept);
    set_used(128 * MIB - 2048);
    keep_regions(&kept, COUNT(kept.mrs));
    require(kept.count * kept.length <= 64 * MIB / CREDIT_PART, "%u regions", kept.count);
    end_regions(&kept);
    /* Freed memory is not room by itself: others may have taken it. */
    require_null(sluice_mr_alloc(kept.pd, kept.length, ACCESS_ALL), ENOMEM, NO_ROOM);
    set_used(64 * MIB);
    keep_regions(&kept, 1);
    require(kept.count == 1, "%s", sluice_last_error());
    end_regions(&kept);
    set_used(128 * MIB - 2048);
    require_null(sluice_mr_alloc(kept.pd, 2 * MIB, ACCESS_ALL), ENOMEM, NO_ROOM);
    /* Small allocations use the room that a large one has found. */
    require_null(sluice_mr_alloc(kept.pd, kept.length, ACCESS_ALL), ENOMEM, NO_ROOM);
    sides_close(&sides);
    (void)rank;
}

static void *come_and_go(void *argument)
{
    struct kept *kept = argument;
    uint32_t rounds = short_run() ? 20 : 200;
    for (uint32_t i = 0; i < rounds; i++) {
        keep_regions(kept, 3);
        require(kept->count == 3, "%s", sluice_last_error());
        end_regions(kept);
    }
    return NULL;
}

static void *keep_many(void *argument)
{
    keep_regions(argument, 150);
    return NULL;
}

static void run_threads(void *(*run)(void *argument), struct kept *kept, uint32_t count)
{
    pthread_t threads[4];
    require(count <= COUNT(threads), "%u threads", count);
    for (uint32_t i = 0; i < count; i++) {
        require(pthread_create(&threads[i], NULL, run, &kept[i]) == 0, "no thread%s", "");
    }
    for (uint32_t i = 0; i < count; i++) {
        pthread_join(threads[i], NULL);
    }
}

/* Threads allocate while there is room, and in total no more than one thread would. */
static void from_threads(struct rank *rank)
{
    static struct kept kept[4];
    struct sides sides;
    size_t bytes = 0, readings;
    int64_t begun;
    if (!mount_cgroups(128 * MIB, 64 * MIB)) {
        return;
    }
    sides_open(&sides);
    for (uint32_t i = 0; i < COUNT(kept); i++) {
        kept[i] = (struct kept){.pd = sides.pds[i % 2], .length = i == 0 ? 65536 : 4096};
    }
    run_threads(come_and_go, kept, COUNT(kept));
    set_used(128 * MIB - 2048);
    begun = clock_now();
    run_threads(keep_many, kept, COUNT(kept));
    /* The room found to be free counts for 100 ms, and is then read again from the same file. */
    readings = 1 + (size_t)((clock_now() - begun) / SLUICE_MS(100));
    for (uint32_t i = 0; i < COUNT(kept); i++) {
        bytes += kept[i].count * kept[i].length;
        end_regions(&kept[i]);
    }
    require(bytes <= readings * 64 * MIB / CREDIT_PART, "%zu bytes", bytes);
    sides_close(&sides);
    (void)rank;
}

static void alloc_in_child(void)
{
    struct sides sides;
    sides_open(&sides);
    if (sluice_mr_alloc(sides.pds[0], 4096, ACCESS_ALL) != NULL || errno != ENOMEM ||
        strstr(sluice_last_error(), NO_ROOM) == NULL) {
        _exit(1);
    }
    set_used(64 * MIB);
    if (sluice_mr_alloc(sides.pds[0], 4096, ACCESS_ALL) == NULL) {
        _exit(2);
    }
    _exit(0);
}

/* The child may not use room that the parent may still take. */
static void in_a_child(struct rank *rank)
{
    struct sides sides;
    int status;
    if (!mount_cgroups(128 * MIB, 64 * MIB)) {
        return;
    }
    sides_open(&sides);
    struct kept kept = {.pd = sides.pds[0], .length = 4096};
    keep_regions(&kept, 1);
    set_used(128 * MIB - 2048);
    pid_t child = fork();
    require(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        alloc_in_child();
    }
    require(waitpid(child, &status, 0) == child && status == 0, "status %#x", status);
    end_regions(&kept);
    sides_close(&sides);
    (void)rank;
}

/* Drivers of devices allocate without checking a cgroup. */
static void run_in_a_process(void (*function)(struct rank *rank))
{
    if (device_is_soft()) {
        group_run(1, function, NULL, 20);
    }
}

TEST(limit_of_a_memory_cgroup)
{
    run_in_a_process(in_a_cgroup);
}

TEST(small_regions_take_no_more_than_there_is)
{
    run_in_a_process(small_ones_in_a_row);
}

TEST(room_that_goes_away_is_noticed)
{
    run_in_a_process(room_goes_away);
}

TEST(threads_share_the_room)
{
    run_in_a_process(from_threads);
}

TEST(child_reads_the_room_itself)
{
    run_in_a_process(in_a_child);
}

int main(void)
{
    return RUN_GROUPS("room", {"memory", WIRE_SELF, 60});
}
