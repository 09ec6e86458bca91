/* SPDX-License-Identifier: MIT */
/*
 * Memory regions. To touch memory for a peer, a thread finds and pins its region inside a key
 * reader section, and touches it after the section: a page fault may take for ever, and
 * deregistering waits for readers. Deregistering takes the region out of the table and waits for
 * its pins, so on its return no peer touches the memory. Regions named by local keys need no pin:
 * the engine refuses to deregister a region that posted work names.
 */
#include "transport/soft/core/regions.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Memory that was allocated for a region, with all its pages. */
struct allocated {
    struct slu_pages pages;
    int fd;
    bool sealed; /* as needed by a peer that maps it, and by us if one does */
};

struct soft_mr *slu_soft_mr_make(struct slu_tpd *pd, const struct soft_region *region,
                                 uint32_t access)
{
    struct soft_mr *mr = calloc(1, sizeof(*mr));
    if (mr == NULL) {
        slu_fail(ENOMEM, "no memory for a memory region");
        return NULL;
    }
    mr->base.pd = pd;
    /* The program has no address of a dmabuf. */
    mr->base.addr = region->dmabuf < 0 ? region->pages.addr : NULL;
    mr->base.length = region->length;
    mr->base.iova = region->iova;
    mr->base.dmabuf = region->dmabuf;
    mr->base.dmabuf_offset = region->dmabuf < 0 ? 0 : region->offset;
    mr->at = (uint64_t)(uintptr_t)region->pages.addr;
    mr->access = access & ~SLUICE_MR_HUGE_PAGES;
    mr->memfd = region->memfd;
    mr->dmabuf = region->dmabuf;
    mr->memfd_offset = region->memfd < 0 ? 0 : region->offset;
    mr->sealed = region->sealed;
    mr->file = region->file;
    atomic_init(&mr->unseen, region->unseen);
    mr->pages = region->pages;
    mr->part = region->part_of != NULL;
    mr->lasts = mr->part ? region->part_of->lasts : region->pages.map != NULL;
    mr->lent_for_reading = mr->part && (region->part_of->access & SOFT_ACCESS_CHANGES) != 0;
    struct soft_context *context = (struct soft_context *)pd->context;
    if (slu_soft_keys_insert(&context->keys, mr) != 0) {
        free(mr);
        return NULL;
    }
    if (slu_soft_is_guarded(mr))
        atomic_fetch_add_explicit(&context->guarded, 1, memory_order_relaxed);
    return mr;
}

int slu_soft_mr_register(struct slu_tpd *pd, void *addr, size_t length, uint32_t access,
                         struct slu_tmr **mr)
{
    /* No right to change the region is granted without this one. */
    bool write = (access & SLUICE_ACCESS_LOCAL_WRITE) != 0;
    const struct soft_context *context = (const struct soft_context *)pd->context;
    bool file = false;
    if (slu_soft_probe_range(context, addr, length, write, &file) != 0)
        return slu_fail(EFAULT, "memory %p of %zu bytes is not mapped%s", addr, length,
                        write ? " or is read-only" : "");
    struct soft_region region = {.iova = (uint64_t)(uintptr_t)addr,
                                 .length = length,
                                 .pages.addr = addr,
                                 .memfd = -1,
                                 .dmabuf = -1,
                                 .file = file};
    struct soft_mr *made = slu_soft_mr_make(pd, &region, access);
    if (made == NULL)
        return -ENOMEM;
    *mr = &made->base;
    return 0;
}

/* No right of peers is granted, so no peer can use the key. */
int slu_soft_mr_everything(struct slu_tpd *pd, struct slu_tmr **mr)
{
    struct soft_region region = {.iova = 1,
                                 .length = SIZE_MAX - 1,
                                 .pages.addr = (void *)(uintptr_t)1,
                                 .memfd = -1,
                                 .dmabuf = -1};
    struct soft_mr *made = slu_soft_mr_make(pd, &region, SLUICE_ACCESS_LOCAL_WRITE);
    if (made == NULL)
        return -ENOMEM;
    *mr = &made->base;
    return 0;
}

int slu_soft_mr_part(struct slu_tpd *pd, struct slu_tmr *of, uint64_t offset, size_t length,
                     uint32_t access, struct slu_tmr **mr)
{
    struct soft_mr *whole = (struct soft_mr *)of;
    struct soft_region region = {
        .iova = of->iova + offset,
        .length = length,
        .pages.addr = (void *)(uintptr_t)(whole->at + offset),
        .memfd = whole->memfd,
        .dmabuf = whole->dmabuf,
        .offset = (whole->dmabuf < 0 ? whole->memfd_offset : of->dmabuf_offset) + offset,
        .part_of = whole,
        .sealed = whole->sealed,
        .file = whole->file};
    atomic_store_explicit(&whole->unseen, false, memory_order_relaxed);
    struct soft_mr *made = slu_soft_mr_make(pd, &region, access);
    if (made == NULL)
        return -ENOMEM;
    *mr = &made->base;
    return 0;
}

static int make_memfd(const struct slu_page_way *way, int *fd)
{
    int made = slu_fd_memory("sluice", MFD_ALLOW_SEALING | slu_pages_memfd_flags(way));
    int err;
    if (made < 0)
        return errno;
    if (ftruncate(made, (off_t)way->length) != 0) {
        err = errno;
        slu_fd_close(made);
        return err;
    }
    *fd = made;
    return 0;
}

bool slu_soft_may_be_so_long(size_t length)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur >= length;
}

/*
 * Maps a memfd and allocates all its pages. Reserved huge pages are counted apart, and allocated
 * by mapping.
 */
static int map_whole(const struct slu_page_way *way, int fd, struct soft_room *room,
                     struct slu_pages *pages)
{
    int err = slu_pages_map(way, fd, pages);
    if (err != 0 || way->kind == SLU_PAGES_RESERVED)
        return err;
    err = slu_soft_reserve(fd, way->length, room);
    if (err != 0)
        slu_pages_unmap(pages);
    return err;
}

/*
 * Seals the length of the memfd. If no peer has the right to change the region, also seals it
 * against writes other than through the existing mapping (Linux 5.1).
 */
static int seal(const struct slu_page_way *way, uint32_t access, struct allocated *memory)
{
    int seals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
    int more = (access & SOFT_ACCESS_CHANGES) == 0 ? F_SEAL_FUTURE_WRITE : 0;
    bool sealed = fcntl(memory->fd, F_ADD_SEALS, seals | more) == 0;
    if (!sealed && fcntl(memory->fd, F_ADD_SEALS, seals) != 0)
        return errno;
    memory->sealed = sealed && way->kind != SLU_PAGES_RESERVED;
    return 0;
}

/*
 * Closes a memfd after punching out its pages: freeing them takes time, and closing holds a lock.
 */
static void drop_memfd(const struct slu_page_way *way, int fd)
{
    fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, (off_t)way->length);
    slu_fd_close(fd);
}

static int fill_memfd(const struct slu_page_way *way, uint32_t access, struct soft_room *room,
                      struct allocated *memory)
{
    int err = map_whole(way, memory->fd, room, &memory->pages);
    if (err != 0)
        return err;
    err = seal(way, access, memory);
    if (err != 0)
        slu_pages_unmap(&memory->pages);
    return err;
}

/* Returns 0, or a positive errno value without a text: another way may still work. */
static int map_memfd(const struct slu_page_way *way, uint32_t access, struct soft_room *room,
                     struct allocated *memory)
{
    if (!slu_soft_may_be_so_long(way->length))
        return EFBIG;
    if (way->kind != SLU_PAGES_RESERVED && !slu_soft_admit(way->length, room))
        return ENOMEM;
    int err = make_memfd(way, &memory->fd);
    if (err == 0) {
        err = fill_memfd(way, access, room, memory);
        if (err != 0)
            drop_memfd(way, memory->fd);
    }
    return err;
}

static int map_private(const struct slu_page_way *way, struct soft_room *room,
                       struct allocated *memory)
{
    if (!slu_soft_admit(way->length, room))
        return ENOMEM;
    int err = slu_pages_map(way, -1, &memory->pages);
    if (err != 0)
        return err;
    memory->fd = -1;
    memory->sealed = false;
    return 0;
}

/*
 * Allocates memory without a file, where a sandbox refuses a call that a memfd needs. Peers cannot
 * map it; they copy, as they do with the program's own memory.
 */
static int map_refused(const struct slu_page_way *way, int refused, struct soft_room *room,
                       struct allocated *memory)
{
    static atomic_bool said;
    int err = map_private(way, room, memory);
    if (err != 0)
        return err;
    if (!atomic_exchange(&said, true))
        slu_log(SLUICE_LOG_WARN,
                "memory of this process cannot be shared with its peers, which copy it instead: "
                "memfd_create(2), ftruncate(2), fallocate(2), fcntl(2) or madvise(2) is refused: "
                "%s",
                strerrordesc_np(refused));
    return 0;
}

static int fail_alloc(int err, size_t length, struct soft_room *room)
{
    /* The kernel refused a region that was admitted by credit. */
    if (err == ENOMEM && room->what == NULL)
        *room = slu_soft_room();
    if (err == EMFILE || err == ENFILE)
        return slu_fail(err, "a memory region needs a file descriptor: %s", strerrordesc_np(err));
    if (err == EFBIG)
        return slu_fail(ENOMEM,
                        "no memory for a region of %zu bytes: it is that of a file, and ulimit -f "
                        "is less",
                        length);
    if (err == ENOMEM && room->bytes != UINT64_MAX)
        return slu_fail(ENOMEM, "no memory for a region of %zu bytes: %llu bytes are %s", length,
                        (unsigned long long)room->bytes, room->what);
    return slu_fail(ENOMEM, "no memory for a region of %zu bytes: %s", length,
                    strerrordesc_np(err));
}

/* Allocates memory in the best way that works. Returns 0, or an error with a text. */
static int alloc_anew(size_t length, uint32_t access, int32_t node, struct allocated *memory)
{
    struct slu_page_way ways[SLU_PAGE_WAYS];
    uint32_t count = slu_page_ways(length, (access & SLUICE_MR_HUGE_PAGES) != 0, true, node, ways);
    struct soft_room room = {.what = NULL}; /* not read yet */
    int err = 0;
    for (uint32_t i = 0; i < count; i++) {
        err = map_memfd(&ways[i], access, &room, memory);
        if (err == 0)
            break;
    }
    /* The last way uses plain pages. */
    if (slu_is_refusal(err))
        err = map_refused(&ways[count - 1], err, &room, memory);
    /* Memory that no peer may use needs no file: peers would map it by that. */
    if (slu_is_shortage(err) && err != ENOMEM &&
        (access & (SOFT_ACCESS_CHANGES | SLUICE_ACCESS_REMOTE_READ)) == 0)
        err = map_private(&ways[count - 1], &room, memory);
    return err == 0 ? 0 : fail_alloc(err, length, &room);
}

/*
 * Allocates memory: that of an earlier region, or new memory. If that lacks a descriptor, those of
 * spares are closed.
 */
static int alloc_memory(struct soft_context *context, size_t length, uint32_t access, int32_t node,
                        struct allocated *memory)
{
    struct soft_spare spare;
    if (slu_soft_may_spare(length, access, node) &&
        slu_soft_spare_take(context, length, access, &spare)) {
        *memory = (struct allocated){.pages = spare.pages, .fd = spare.memfd, .sealed = true};
        return 0;
    }
    int err = alloc_anew(length, access, node, memory);
    if ((err == -EMFILE || err == -ENFILE) && slu_soft_spares_drop(context))
        err = alloc_anew(length, access, node, memory);
    return err;
}

int slu_soft_mr_alloc(struct slu_tpd *pd, size_t length, uint32_t access, int32_t node,
                      struct slu_tmr **mr)
{
    struct soft_context *context = (struct soft_context *)pd->context;
    struct allocated memory;
    int err = alloc_memory(context, length, access, node, &memory);
    if (err != 0)
        return err;
    struct soft_region region = {.iova = (uint64_t)(uintptr_t)memory.pages.addr,
                                 .length = length,
                                 .pages = memory.pages,
                                 .memfd = memory.fd,
                                 .dmabuf = -1,
                                 .sealed = memory.sealed,
                                 .unseen =
                                     memory.sealed && slu_soft_may_spare(length, access, node)};
    struct soft_mr *made = slu_soft_mr_make(pd, &region, access);
    if (made == NULL) {
        slu_soft_spare_free(&(struct soft_spare){.pages = memory.pages, .memfd = memory.fd});
        return -ENOMEM;
    }
    *mr = &made->base;
    return 0;
}

void slu_soft_mr_deregister(struct slu_tmr *base)
{
    struct soft_mr *mr = (struct soft_mr *)base;
    struct soft_context *context = (struct soft_context *)base->pd->context;
    slu_soft_keys_remove(&context->keys, mr);
    for (unsigned time = 0; atomic_load_explicit(&mr->pins, memory_order_acquire) != 0; time++)
        slu_soft_pause(time);
    slu_soft_exports_revoke(context->exports, mr);
    if (slu_soft_is_guarded(mr))
        atomic_fetch_sub_explicit(&context->guarded, 1, memory_order_relaxed);
    if (mr->dmabuf >= 0 && !mr->part)
        slu_fd_close(mr->dmabuf);
    if (!slu_soft_spare_keep(context, mr))
        slu_soft_spare_free(
            &(struct soft_spare){.pages = mr->pages, .memfd = mr->part ? -1 : mr->memfd});
    free(mr);
}

uint32_t slu_soft_check_local(const struct soft_qp *qp, const struct sluice_sge *sges,
                              uint32_t count, uint32_t access)
{
    const struct soft_keys *keys = &slu_soft_context(qp)->keys;
    for (uint32_t i = 0; i < count; i++) {
        if (sges[i].length == 0)
            continue;
        const struct soft_mr *mr = slu_soft_keys_find(keys, sges[i].lkey);
        if (mr == NULL || mr->base.pd != qp->base.pd || (mr->access & access) != access ||
            !slu_soft_contains(mr, mr->at, sges[i].addr, sges[i].length))
            return SLUICE_STATUS_LOC_PROT_ERR;
    }
    return SLUICE_STATUS_SUCCESS;
}

bool slu_soft_may_touch(const struct soft_qp *qp, struct soft_seen *seen,
                        const struct sluice_sge *sge, uint32_t access)
{
    const struct soft_keys *keys = &slu_soft_context(qp)->keys;
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    unsigned removals = atomic_load_explicit(&keys->removals, memory_order_acquire);
    slu_soft_keys_enter(reader);
    bool may = slu_soft_check_local(qp, sge, 1, access) == SLUICE_STATUS_SUCCESS;
    if (may && sge->length > 0) {
        const struct soft_mr *mr = slu_soft_keys_find(keys, sge->lkey);
        may = !slu_soft_is_guarded(mr);
        if (may)
            *seen = (struct soft_seen){sge->lkey, removals, mr->at, mr->base.length};
    }
    slu_soft_keys_leave(reader);
    return may;
}

bool slu_soft_all_lasts(const struct soft_qp *qp, const struct sluice_sge *sges, uint32_t count)
{
    const struct soft_keys *keys = &slu_soft_context(qp)->keys;
    for (uint32_t i = 0; i < count; i++) {
        const struct soft_mr *mr = slu_soft_keys_find(keys, sges[i].lkey);
        if (sges[i].length > 0 && (mr == NULL || !mr->lasts))
            return false;
    }
    return true;
}

uint32_t slu_soft_check_remote(const struct soft_qp *qp, uint32_t rkey, uint64_t addr,
                               uint64_t length, uint32_t access, struct soft_mr **pin)
{
    if (pin != NULL)
        *pin = NULL;
    if (length == 0)
        return SLUICE_STATUS_SUCCESS;
    struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, rkey);
    if (mr == NULL || mr->base.pd != qp->base.pd || (mr->access & access) == 0 ||
        !slu_soft_contains(mr, mr->base.iova, addr, length))
        return SLUICE_STATUS_REM_ACCESS_ERR;
    if (pin != NULL) {
        atomic_fetch_add_explicit(&mr->pins, 1, memory_order_relaxed);
        *pin = mr;
    }
    return SLUICE_STATUS_SUCCESS;
}

void slu_soft_unpin(struct soft_mr *pin)
{
    if (pin != NULL)
        atomic_fetch_sub_explicit(&pin->pins, 1, memory_order_release);
}

uint32_t slu_soft_check_right(const struct soft_qp *qp, uint32_t access)
{
    if ((qp->attr.access & access) != 0)
        return SLUICE_STATUS_SUCCESS;
    return access == SLUICE_ACCESS_REMOTE_WRITE ? SLUICE_STATUS_REM_ACCESS_ERR
                                                : SLUICE_STATUS_REM_INV_REQ_ERR;
}
