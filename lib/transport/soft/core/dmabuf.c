/* SPDX-License-Identifier: MIT */
/*
 * Memory of other devices, through the mapping that its exporter provides. Guarantee: each access,
 * here or in the kernel for us, lies between DMA_BUF_IOCTL_SYNC with SYNC_START and with SYNC_END,
 * and memory that the exporter refuses is not touched: see touch.c.
 *
 * The program names such memory by its iova, an address at which this process may have other memory
 * or none. So posting changes the addresses of elements to where the memory is mapped. Their keys
 * stay, so that the region is found when the request is executed.
 */
#include "transport/soft/core/regions.h"

#include <linux/dma-buf.h>
#include <linux/futex.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/*
 * Returns the access to announce. Writing announces reading as well: a write may cover only part of
 * a cache line, and the rest of the line must be what the device has there.
 */
static uint64_t ways(bool write)
{
    return write ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ;
}

/*
 * Returns 0 or an errno value. Tries again after a signal (EINTR) or while a lock is held
 * (EAGAIN).
 */
static int sync_access(int fd, uint64_t flags)
{
    struct dma_buf_sync sync = {.flags = flags};
    SLU_KEEP_ERRNO;
    int result;
    do
        result = ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
    while (result != 0 && (errno == EINTR || errno == EAGAIN));
    return result != 0 ? errno : 0;
}

/* Logs a refusal once, until the exporter grants access again. */
int slu_soft_dmabuf_sync(struct soft_mr *mr, bool write, bool begin)
{
    uint64_t edge = begin ? DMA_BUF_SYNC_START : DMA_BUF_SYNC_END;
    int err = sync_access(mr->dmabuf, edge | ways(write));
    if (!atomic_exchange_explicit(&mr->withheld, err != 0, memory_order_relaxed) && err != 0)
        slu_log(SLUICE_LOG_ERROR,
                "the exporter of a dmabuf refuses access to its %zu bytes at iova %#llx: %s",
                mr->base.length, (unsigned long long)mr->base.iova, strerrordesc_np(err));
    return err;
}

/*
 * Refuses descriptors of other kinds, such as a memfd, even though they could be mapped: the
 * program promised a dmabuf.
 */
static int check_kind(const struct slu_dmabuf *dmabuf)
{
    struct statfs of;
    if (fstatfs(dmabuf->fd, &of) == 0 && (uint64_t)of.f_type == DMA_BUF_MAGIC)
        return 0;
    return slu_fail(EINVAL, "cannot register fd %d: it is no dmabuf", dmabuf->fd);
}

static int check_size(const struct slu_dmabuf *dmabuf)
{
    off_t size = lseek(dmabuf->fd, 0, SEEK_END);
    if (size >= 0 && dmabuf->offset + dmabuf->length <= (uint64_t)size)
        return 0;
    return slu_fail(EINVAL,
                    "cannot register %zu bytes at offset %#llx of the dmabuf fd %d: that is beyond "
                    "its %lld bytes",
                    dmabuf->length, (unsigned long long)dmabuf->offset, dmabuf->fd,
                    (long long)size);
}

static int fail_map(int err, const struct slu_dmabuf *dmabuf, bool write)
{
    if (err == EACCES)
        return slu_fail(EACCES, "the dmabuf fd %d is not open for %s", dmabuf->fd,
                        write ? "reading and writing, which LOCAL_WRITE needs" : "reading");
    if (err == ENOMEM)
        return slu_fail(ENOMEM, "no memory to map %zu bytes of the dmabuf fd %d", dmabuf->length,
                        dmabuf->fd);
    return slu_fail(EOPNOTSUPP,
                    "soft cannot reach the dmabuf fd %d: its exporter does not let the processor "
                    "use it: %s",
                    dmabuf->fd, strerrordesc_np(err));
}

/* Maps whole pages; the first byte of the region lies in the first of them. */
static int map(const struct slu_dmabuf *dmabuf, bool write, struct slu_pages *pages)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    size_t lead = dmabuf->offset % page;
    pages->mapped = (lead + dmabuf->length + page - 1) / page * page;
    pages->map = mmap(NULL, pages->mapped, write ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                      dmabuf->fd, (off_t)(dmabuf->offset - lead));
    if (pages->map == MAP_FAILED)
        return fail_map(errno, dmabuf, write);
    pages->addr = (uint8_t *)pages->map + lead;
    /* A child of fork(2) would share the mapping and keep the memory alive. */
    madvise(pages->map, pages->mapped, MADV_DONTFORK);
    return 0;
}

/*
 * Lets the kernel read a word, so that a missing page is an error instead of a signal. A futex wait
 * with no time to wait is the cheapest such call.
 */
static int peek(const void *word)
{
    static const struct timespec none;
    SLU_KEEP_ERRNO;
    long result = syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &none, NULL, 0);
    return result != 0 && errno == EFAULT ? EFAULT : 0;
}

/* Tries an access to the first page and the last one, before the region is used. */
static int try_access(int fd, bool write, const struct slu_pages *pages)
{
    const uint8_t *end = (const uint8_t *)pages->map + pages->mapped;
    int err = sync_access(fd, DMA_BUF_SYNC_START | ways(write));
    if (err != 0)
        return err;
    int first = peek(pages->map);
    int last = peek(end - sizeof(uint32_t));
    err = sync_access(fd, DMA_BUF_SYNC_END | ways(write));
    if (err == 0)
        err = first != 0 ? first : last;
    return err;
}

int slu_soft_mr_register_dmabuf(struct slu_tpd *pd, const struct slu_dmabuf *dmabuf,
                                uint32_t access, struct slu_tmr **mr)
{
    struct soft_region region = {
        .iova = dmabuf->iova, .length = dmabuf->length, .memfd = -1, .offset = dmabuf->offset};
    bool write = (access & SLUICE_ACCESS_LOCAL_WRITE) != 0;
    int err = check_kind(dmabuf);
    if (err == 0)
        err = check_size(dmabuf);
    if (err == 0)
        err = map(dmabuf, write, &region.pages);
    if (err != 0)
        return err;
    err = try_access(dmabuf->fd, write, &region.pages);
    if (err != 0) {
        err = fail_map(err, dmabuf, write);
        goto unmap;
    }
    region.dmabuf = slu_fd_duplicate(dmabuf->fd);
    if (region.dmabuf < 0) {
        err = slu_fail(errno, "a region of a dmabuf needs a file descriptor: %s",
                       strerrordesc_np(errno));
        goto unmap;
    }
    struct soft_mr *made = slu_soft_mr_make(pd, &region, access);
    if (made == NULL) {
        err = -ENOMEM;
        goto close_fd;
    }
    *mr = &made->base;
    return 0;

close_fd:
    slu_fd_close(region.dmabuf);
unmap:
    slu_pages_unmap(&region.pages);
    return err;
}
