/* SPDX-License-Identifier: MIT */
/*
 * What the dead leave behind: nothing. Before the ranks end, when all are connected to all, each
 * piece of shared memory that one of them has mapped is mapped, or held open, by another one of
 * them, for both ends of a connection map its segments; what only a process had that was killed
 * would be mapped once. And of the Unix sockets of those that were killed none is left then, nor
 * one of anybody's in the end.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker.h"

/* A connection may have been made just now: one of its ends has mapped what the other has not. */
#define SETTLING_TIME SLUICE_S(20)

/* Numbers of inodes. */
struct numbers {
    uint64_t *items;
    size_t count, room;
};

static struct numbers sockets; /* of all ranks, as far as we have seen them */
static uint64_t maps;          /* at the end */

static void add(struct numbers *numbers, uint64_t number)
{
    if (numbers->count == numbers->room) {
        numbers->room = numbers->room * 2 + 64;
        numbers->items = realloc(numbers->items, numbers->room * sizeof(*numbers->items));
        if (!numbers->items) {
            perror("realloc");
            exit(EXIT_FAILURE);
        }
    }
    numbers->items[numbers->count++] = number;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

static void sort(struct numbers *numbers)
{
    if (numbers->count > 0) {
        qsort(numbers->items, numbers->count, sizeof(*numbers->items), compare);
    }
}

/* How often it is in them, sorted. */
static size_t times_in(const struct numbers *numbers, uint64_t number)
{
    size_t times = 0;
    if (numbers->count == 0) {
        return 0;
    }
    const uint64_t *found =
        bsearch(&number, numbers->items, numbers->count, sizeof(*numbers->items), compare);
    const uint64_t *end = numbers->items + numbers->count;
    while (found && found > numbers->items && found[-1] == number) {
        found--;
    }
    for (; found && found < end && *found == number; found++) {
        times++;
    }
    return times;
}

/* The inodes of what a process has open whose link begins with this word. */
static void list_open(pid_t pid, const char *word, struct numbers *numbers)
{
    char path[300];
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    if (!fds) {
        complain("%s: %s", path, strerror(errno));
        return;
    }
    for (const struct dirent *entry = readdir(fds); entry; entry = readdir(fds)) {
        char link[64] = "";
        struct stat status;
        snprintf(path, sizeof(path), "/proc/%d/fd/%.200s", (int)pid, entry->d_name);
        if (readlink(path, link, sizeof(link) - 1) > 0 && strncmp(link, word, strlen(word)) == 0 &&
            stat(path, &status) == 0) {
            add(numbers, status.st_ino);
        }
    }
    closedir(fds);
}

void note_sockets(pid_t pid)
{
    list_open(pid, "socket:", &sockets);
}

/* The inodes of memory that the library has mapped in a process, each once. */
static void list_maps(pid_t pid, struct numbers *numbers)
{
    char path[64];
    char line[512];
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    struct numbers own = {0};
    if (!file) {
        complain("%s: %s", path, strerror(errno));
        return;
    }
    while (fgets(line, sizeof(line), file)) {
        unsigned long long inode;
        if (strstr(line, "/memfd:sluice") && sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1) {
            add(&own, inode);
        }
    }
    fclose(file);
    sort(&own);
    for (size_t i = 0; i < own.count; i++) {
        if (i == 0 || own.items[i] != own.items[i - 1]) {
            add(numbers, own.items[i]);
        }
    }
    free(own.items);
}

/* How many are mapped by one alone who has not got them open; the first rank that has one. */
static size_t count_orphans(const struct options *options, uint32_t *rank)
{
    struct numbers own[RANKS_MAX] = {{0}};
    struct numbers all = {0};
    struct numbers held = {0};
    size_t orphans = 0;
    for (uint32_t i = 0; i < options->ranks; i++) {
        list_maps(members[i].pid, &own[i]);
        list_open(members[i].pid, "/memfd:sluice", &held);
        for (size_t j = 0; j < own[i].count; j++) {
            add(&all, own[i].items[j]);
        }
    }
    sort(&all);
    sort(&held);
    for (uint32_t i = options->ranks; i-- > 0;) {
        for (size_t j = 0; j < own[i].count; j++) {
            if (times_in(&all, own[i].items[j]) < 2 && times_in(&held, own[i].items[j]) == 0) {
                orphans++;
                *rank = i;
            }
        }
        free(own[i].items);
    }
    maps = all.count;
    free(all.items);
    free(held.items);
    return orphans;
}

/* How many of those that we have seen there still are. */
static size_t count_sockets(void)
{
    char line[512];
    size_t left = 0;
    FILE *file = fopen("/proc/net/unix", "re");
    if (!file) {
        complain("/proc/net/unix: %s", strerror(errno));
        return 0;
    }
    sort(&sockets);
    while (fgets(line, sizeof(line), file)) {
        unsigned long long inode;
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %llu", &inode) == 1) {
            left += times_in(&sockets, inode) > 0;
        }
    }
    fclose(file);
    return left;
}

void check_remains(const struct options *options)
{
    int64_t end = clock_now() + SETTLING_TIME;
    uint32_t rank = 0;
    size_t orphans, left;
    do {
        orphans = count_orphans(options, &rank);
        left = count_sockets();
    } while ((orphans > 0 || left > 0) && clock_now() < end && (let_pass(SLUICE_MS(10)), true));
    if (orphans > 0) {
        complain("%zu mappings are of processes that are dead, of rank %u among others", orphans,
                 rank);
    }
    if (left > 0) {
        complain("%zu sockets are of processes that were killed", left);
    }
    for (uint32_t i = 0; i < options->ranks; i++) {
        note_sockets(members[i].pid);
    }
}

void conclude_remains(void)
{
    size_t left = count_sockets();
    if (left > 0) {
        complain("%zu sockets are left in the end", left);
    }
    printf("# %llu mappings of shared memory before the end, none of the dead; of %zu sockets that"
           " there were none is left\n",
           (unsigned long long)maps, sockets.count);
}
