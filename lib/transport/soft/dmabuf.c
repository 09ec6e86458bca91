/* SPDX-License-Identifier: MIT */
/*
 * Memory of other devices, by the mapping that its exporter gives. Guarantee: whatever
 * touches it, here or in the kernel for us, does so between DMA_BUF_IOCTL_SYNC with
 * SYNC_START and with SYNC_END, and what the exporter refuses is not touched.
 *
 * The program names such memory by its iova, at which we have something else or nothing.
 * So elements are changed to where it is mapped as they are posted; their keys stay, by
 * which whoever executes them finds the regions. None of this is looked for while the
 * context has no such region.
 */
#include "transport/soft/regions.h"

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
 * Whoever writes has only a piece of the memory to write, and what is beside it in a line of
 * a cache must be what the device has there: so that is read as well.
 */
static uint64_t ways(bool write)
{
    return write ? DMA_BUF_SYNC_RW : DMA_BUF_SYNC_READ;
}

/* 0 or an errno value. A signal, or a lock that somebody has, is no reason to give up. */
static int sync_access(int fd, uint64_t flags)
{
    struct dma_buf_sync sync = {.flags = flags};
    int saved = errno;
    int result;
    do
        result = ioctl(fd, DMA_BUF_IOCTL_SYNC, &sync);
    while (result != 0 && (errno == EINTR || errno == EAGAIN));
    int err = result != 0 ? errno : 0;
    errno = saved;
    return err;
}

/* Touching. */

void slu_soft_touch_region(struct soft_touched *touched, struct soft_mr *mr, bool write)
{
    uint32_t i = 0;
    if (mr == NULL || mr->dmabuf < 0)
        return;
    while (i < touched->count && touched->of[i].mr != mr)
        i++;
    if (i == touched->count)
        touched->of[touched->count++] = (struct soft_touched_region){.mr = mr};
    touched->of[i].write = touched->of[i].write || write;
}

void slu_soft_touch_list(struct soft_touched *touched, const struct soft_qp *qp,
                         struct soft_cursor list, bool write)
{
    const struct soft_keys *keys = &slu_soft_context(qp)->keys;
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    slu_soft_keys_enter(reader);
    for (uint32_t i = 0; i < list.count; i++) {
        if (list.sges[i].length > 0)
            slu_soft_touch_region(touched, slu_soft_keys_find(keys, list.sges[i].lkey), write);
    }
    slu_soft_keys_leave(reader);
}

/* That it refuses is told once, until it gives the memory again. */
static bool sync_region(const struct soft_touched_region *region, uint64_t edge)
{
    struct soft_mr *mr = region->mr;
    int err = sync_access(mr->dmabuf, edge | ways(region->write));
    if (!atomic_exchange_explicit(&mr->withheld, err != 0, memory_order_relaxed) && err != 0)
        slu_log(SLUICE_LOG_ERROR,
                "the exporter of a dmabuf refuses access to its %zu bytes at iova %#llx: %s",
                mr->base.length, (unsigned long long)mr->base.iova, strerrordesc_np(err));
    return err == 0;
}

/* What was only read is there, whatever is said afterwards. */
static bool end_first(const struct soft_touched *touched, uint32_t count)
{
    bool written = true;
    for (uint32_t i = 0; i < count; i++) {
        if (!sync_region(&touched->of[i], DMA_BUF_SYNC_END) && touched->of[i].write)
            written = false;
    }
    return written;
}

bool slu_soft_touch_begin(const struct soft_touched *touched)
{
    for (uint32_t i = 0; i < touched->count; i++) {
        if (!sync_region(&touched->of[i], DMA_BUF_SYNC_START)) {
            end_first(touched, i);
            return false;
        }
    }
    return true;
}

bool slu_soft_touch_end(const struct soft_touched *touched)
{
    return end_first(touched, touched->count);
}

bool slu_soft_is_there(const struct soft_qp *qp, uint32_t key, uint64_t addr, uint64_t length)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    slu_soft_keys_enter(reader);
    const struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, key);
    bool exported = mr != NULL && mr->dmabuf >= 0;
    bool withheld = exported && atomic_load_explicit(&mr->withheld, memory_order_relaxed);
    slu_soft_keys_leave(reader);
    if (exported)
        return !withheld;
    return slu_soft_probe_range(slu_soft_context(qp), (const void *)(uintptr_t)addr, length,
                                false) == 0;
}

/* Naming. */

/* The region of an element, if that is of a dmabuf; to be called while the keys are read. */
static const struct soft_mr *dmabuf_of(const struct soft_qp *qp, const struct sluice_sge *sge)
{
    const struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, sge->lkey);
    return sge->length > 0 && mr != NULL && mr->dmabuf >= 0 ? mr : NULL;
}

bool slu_soft_names_dmabuf(const struct soft_qp *qp, const struct sluice_sge *sges, uint32_t count)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    bool named = false;
    if (!slu_soft_has_dmabufs(qp))
        return false;
    slu_soft_keys_enter(reader);
    for (uint32_t i = 0; i < count && !named; i++)
        named = dmabuf_of(qp, &sges[i]) != NULL;
    slu_soft_keys_leave(reader);
    return named;
}

/* What is not in the region gets no key, with which it fails as it would by its own. */
static void find_place(struct sluice_sge *sge, const struct soft_mr *mr)
{
    if (slu_soft_contains(mr, mr->base.iova, sge->addr, sge->length))
        sge->addr = slu_soft_place_of(mr, sge->addr);
    else
        sge->lkey = 0;
}

bool slu_soft_change_places(const struct soft_qp *qp, struct sluice_sge *sges, uint32_t count)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    bool named = false;
    slu_soft_keys_enter(reader);
    for (uint32_t i = 0; i < count; i++) {
        const struct soft_mr *mr = dmabuf_of(qp, &sges[i]);
        if (mr != NULL)
            find_place(&sges[i], mr);
        named = named || mr != NULL;
    }
    slu_soft_keys_leave(reader);
    return named;
}

/* Registering. */

/* Of a memfd, say, a mapping would do as well, but the program has promised a dmabuf. */
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

/* Whole pages; the first byte of the region has its place in the first of them. */
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
    /* A child would share it, and keep it. */
    madvise(pages->map, pages->mapped, MADV_DONTFORK);
    return 0;
}

/*
 * The kernel reads a word for us, and a page that does not come is an error and no signal. A
 * futex that is not waited for is the cheapest way to ask.
 */
static int peek(const void *word)
{
    static const struct timespec none;
    int saved = errno;
    bool fault =
        syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, 0, &none, NULL, 0) != 0 && errno == EFAULT;
    errno = saved;
    return fault ? EFAULT : 0;
}

/* Once, before anybody relies on it: the first page and the last. */
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
    struct soft_region region = {.iova = dmabuf->iova, .length = dmabuf->length, .memfd = -1};
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
    atomic_fetch_add_explicit(&((struct soft_context *)pd->context)->dmabufs, 1,
                              memory_order_relaxed);
    *mr = &made->base;
    return 0;

close_fd:
    slu_fd_close(region.dmabuf);
unmap:
    slu_pages_unmap(&region.pages);
    return err;
}

void slu_soft_dmabuf_end(struct soft_mr *mr)
{
    atomic_fetch_sub_explicit(&((struct soft_context *)mr->base.pd->context)->dmabufs, 1,
                              memory_order_relaxed);
    slu_fd_close(mr->dmabuf);
}
