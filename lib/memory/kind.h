/* SPDX-License-Identifier: MIT */
/* Descriptions of memory for error texts. */
#ifndef SLU_KIND_H
#define SLU_KIND_H

#include <stdbool.h>
#include <stdint.h>

#define SLU_MEMORY_KIND 160
/*
 * Writes "memory in pages of 4 KiB", "memory in huge pages of 2048 KiB", "memory of the file ...",
 * or "memory of the device ..."; or "memory", if /proc does not tell, or was read for 8 texts of
 * the same second.
 */
void slu_memory_kind(const void *addr, char text[SLU_MEMORY_KIND]);

/* The limit of the memory that this process may lock. */
struct slu_locked {
    uint64_t limit;  /* RLIMIT_MEMLOCK, bytes */
    uint64_t pinned; /* by devices, bytes */
    bool exempt;     /* there is no limit, or CAP_IPC_LOCK is effective */
};
void slu_locked_read(struct slu_locked *locked);

#endif
