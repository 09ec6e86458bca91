/* SPDX-License-Identifier: MIT */
/*
 * Memory that two processes share. Guarantee: touching memory from slu_soft_shm_make() or
 * slu_soft_shm_map() never kills the program, because its pages were allocated when it was made and
 * no process can shorten it.
 */
#include "transport/soft/shm/shm.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define SEALS (F_SEAL_GROW | F_SEAL_SHRINK)

/* Maps a memfd. A child of fork(2) does not inherit the mapping. */
static void *map_memory(int fd, uint64_t offset, size_t bytes, enum shm_use use)
{
    int protection = use == SHM_READ_ONLY ? PROT_READ : PROT_READ | PROT_WRITE;
    int flags = use == SHM_READ_WRITE ? MAP_SHARED | MAP_POPULATE : MAP_SHARED;
    void *map = mmap(NULL, bytes, protection, flags, fd, (off_t)offset);
    if (map == MAP_FAILED)
        return NULL;
    if (madvise(map, bytes, MADV_DONTFORK) != 0) {
        munmap(map, bytes);
        return NULL;
    }
    return map;
}

static int take_pages(int fd, size_t bytes)
{
    int result;
    do
        result = SLU_UNCANCELLED(fallocate(fd, 0, 0, (off_t)bytes));
    while (result != 0 && errno == EINTR);
    return result;
}

/* Seals a memfd. The seal against writing comes after our own mapping, which stays writable. */
static int seal(int fd, enum shm_use use)
{
    int more = use == SHM_READ_ONLY ? F_SEAL_FUTURE_WRITE : 0;
    return fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL | more);
}

int slu_soft_shm_make(size_t bytes, enum shm_use use, void **map)
{
    SLU_KEEP_ERRNO;
    int err;
    if (!slu_soft_may_be_so_long(bytes))
        return -EFBIG;
    int fd = slu_fd_memory("sluice-shm", MFD_ALLOW_SEALING);
    *map = NULL;
    if (fd >= 0 && ftruncate(fd, (off_t)bytes) == 0 && take_pages(fd, bytes) == 0)
        *map = map_memory(fd, 0, bytes, SHM_READ_WRITE);
    if (*map != NULL && seal(fd, use) == 0)
        return fd;
    err = errno;
    slu_soft_shm_unmap(*map, bytes);
    *map = NULL;
    if (fd >= 0)
        slu_fd_close(fd);
    return -err;
}

/*
 * Returns whether a descriptor is tmpfs memory in small pages, sealed, with all pages allocated up
 * to end.
 */
static bool is_sound(int fd, uint64_t end)
{
    struct stat stat;
    struct statfs system;
    int seals = fcntl(fd, F_GET_SEALS);
    if (seals < 0 || (seals & SEALS) != SEALS || fstat(fd, &stat) != 0 || fstatfs(fd, &system) != 0)
        return false;
    return system.f_type == TMPFS_MAGIC && (uint64_t)stat.st_size >= end &&
           (uint64_t)stat.st_blocks * 512 >= end;
}

void *slu_soft_shm_map(int fd, uint64_t offset, size_t bytes, enum shm_use use)
{
    SLU_KEEP_ERRNO;
    uint64_t end;
    void *map = NULL;
    if (fd >= 0 && !__builtin_add_overflow(offset, bytes, &end) && is_sound(fd, end))
        map = map_memory(fd, offset, bytes, use);
    slu_soft_shm_refuse(fd);
    return map;
}

void slu_soft_shm_refuse(int fd)
{
    if (fd >= 0)
        slu_fd_close(fd);
}

void slu_soft_shm_unmap(void *map, size_t bytes)
{
    SLU_KEEP_ERRNO;
    if (map != NULL)
        munmap(map, bytes);
}
