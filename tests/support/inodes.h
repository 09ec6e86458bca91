/* SPDX-License-Identifier: MIT */
/* Files that processes have open and mapped, by inode number. */
#ifndef SUPPORT_INODES_H
#define SUPPORT_INODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Zeroed at first. */
struct inodes {
    uint64_t *items;
    size_t count, room;
};

/* These functions return false and set errno if the system does not permit to read it. */

void inodes_free(struct inodes *inodes);
void inodes_sort(struct inodes *inodes);
/* Returns how often it is in the set, which must be sorted. */
size_t inodes_times(const struct inodes *inodes, uint64_t inode);
bool inodes_add(struct inodes *inodes, uint64_t inode);
/* Adds open files of a process whose link begins with this word. */
bool inodes_add_open(struct inodes *inodes, pid_t pid, const char *word);
/* Adds memory that the library has mapped in a process, each inode once. */
bool inodes_add_maps(struct inodes *inodes, pid_t pid);
/* Counts those that are existing Unix sockets. */
bool inodes_count_sockets(struct inodes *inodes, size_t *left);

#endif
