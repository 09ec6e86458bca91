/* SPDX-License-Identifier: MIT */
#include "inodes.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

void inodes_free(struct inodes *inodes)
{
    free(inodes->items);
    memset(inodes, 0, sizeof(*inodes));
}

bool inodes_add(struct inodes *inodes, uint64_t inode)
{
    if (inodes->count == inodes->room) {
        size_t room = inodes->room * 2 + 64;
        uint64_t *items = realloc(inodes->items, room * sizeof(*items));
        if (!items) {
            return false;
        }
        inodes->items = items;
        inodes->room = room;
    }
    inodes->items[inodes->count++] = inode;
    return true;
}

static int compare(const void *one, const void *other)
{
    uint64_t a = *(const uint64_t *)one;
    uint64_t b = *(const uint64_t *)other;
    return (a > b) - (a < b);
}

void inodes_sort(struct inodes *inodes)
{
    if (inodes->count > 0) {
        qsort(inodes->items, inodes->count, sizeof(*inodes->items), compare);
    }
}

size_t inodes_times(const struct inodes *inodes, uint64_t inode)
{
    size_t times = 0;
    if (inodes->count == 0) {
        return 0;
    }
    const uint64_t *found =
        bsearch(&inode, inodes->items, inodes->count, sizeof(*inodes->items), compare);
    const uint64_t *end = inodes->items + inodes->count;
    while (found && found > inodes->items && found[-1] == inode) {
        found--;
    }
    for (; found && found < end && *found == inode; found++) {
        times++;
    }
    return times;
}

bool inodes_add_open(struct inodes *inodes, pid_t pid, const char *word)
{
    char path[300];
    bool added = true;
    snprintf(path, sizeof(path), "/proc/%d/fd", (int)pid);
    DIR *fds = opendir(path);
    if (!fds) {
        return false;
    }
    for (const struct dirent *entry = readdir(fds); entry && added; entry = readdir(fds)) {
        char link[64] = "";
        struct stat status;
        snprintf(path, sizeof(path), "/proc/%d/fd/%.200s", (int)pid, entry->d_name);
        if (readlink(path, link, sizeof(link) - 1) > 0 && strncmp(link, word, strlen(word)) == 0 &&
            stat(path, &status) == 0) {
            added = inodes_add(inodes, status.st_ino);
        }
    }
    closedir(fds);
    return added;
}

/* Sorts entries from `from` on, and removes duplicates. */
static void leave_each_once(struct inodes *inodes, size_t from)
{
    struct inodes own = {inodes->items + from, inodes->count - from, 0};
    size_t kept = 0;
    inodes_sort(&own);
    for (size_t i = 0; i < own.count; i++) {
        if (kept == 0 || own.items[i] != own.items[kept - 1]) {
            own.items[kept++] = own.items[i];
        }
    }
    inodes->count = from + kept;
}

bool inodes_add_maps(struct inodes *inodes, pid_t pid)
{
    char path[64];
    char line[512];
    size_t from = inodes->count;
    bool added = true;
    snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = fopen(path, "re");
    if (!file) {
        return false;
    }
    while (added && fgets(line, sizeof(line), file)) {
        unsigned long long inode;
        if (strstr(line, "/memfd:sluice") && sscanf(line, "%*s %*s %*s %*s %llu", &inode) == 1) {
            added = inodes_add(inodes, inode);
        }
    }
    fclose(file);
    if (inodes->count > from) {
        leave_each_once(inodes, from);
    }
    return added;
}

bool inodes_count_sockets(struct inodes *inodes, size_t *left)
{
    char line[512];
    FILE *file = fopen("/proc/net/unix", "re");
    if (!file) {
        return false;
    }
    inodes_sort(inodes);
    *left = 0;
    while (fgets(line, sizeof(line), file)) {
        unsigned long long inode;
        if (sscanf(line, "%*s %*s %*s %*s %*s %*s %llu", &inode) == 1) {
            *left += inodes_times(inodes, inode) > 0;
        }
    }
    fclose(file);
    return true;
}
