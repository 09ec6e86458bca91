/* SPDX-License-Identifier: MIT */
/*
 * Regions that are guarded: somebody is asked before their memory is touched, here or by the
 * kernel for us. Of a dmabuf it is the exporter. Of a file that is mapped it is the kernel: the
 * file may have been cut, or its file system be full, and whoever touches such a page gets a
 * signal, which here would be for what a peer has asked for. What is refused is not touched.
 *
 * Posted work that names such regions is marked, and none of this is looked for while the
 * context has no such region.
 */
#include "transport/soft/core/regions.h"

void slu_soft_touch_nothing(struct soft_touched *touched)
{
    touched->count = 0;
    touched->refused = false;
}

static void add_dmabuf(struct soft_touched *touched, struct soft_mr *mr, bool write)
{
    uint32_t i = 0;
    while (i < touched->count && touched->of[i].mr != mr)
        i++;
    if (i == touched->count)
        touched->of[touched->count++] = (struct soft_touched_region){.mr = mr};
    touched->of[i].write = touched->of[i].write || write;
}

/* That it is not there is told once, until it is there again. */
static bool can_touch_file(struct soft_mr *mr, uint64_t addr, uint64_t length, bool write)
{
    bool can = slu_can_touch((const void *)(uintptr_t)addr, length, write);
    if (!atomic_exchange_explicit(&mr->withheld, !can, memory_order_relaxed) && !can)
        slu_log(SLUICE_LOG_ERROR,
                "memory %p of %zu bytes is that of a file, of which %llu bytes at %#llx are not "
                "there: it is shorter now, or its file system is full",
                mr->base.addr, mr->base.length, (unsigned long long)length,
                (unsigned long long)addr);
    return can;
}

void slu_soft_touch_region(struct soft_touched *touched, struct soft_mr *mr, uint64_t addr,
                           uint64_t length, bool write)
{
    if (mr == NULL)
        return;
    if (mr->dmabuf >= 0)
        add_dmabuf(touched, mr, write);
    else if (mr->file && length > 0 && !can_touch_file(mr, addr, length, write))
        touched->refused = true;
}

/* What is posted names it, so that it stays. */
static struct soft_mr *region_of(const struct soft_qp *qp, uint32_t key)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    slu_soft_keys_enter(reader);
    struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, key);
    slu_soft_keys_leave(reader);
    return mr;
}

void slu_soft_touch_list(struct soft_touched *touched, const struct soft_qp *qp,
                         struct soft_cursor list, uint64_t length, bool write)
{
    for (; list.count > 0; list.sges++, list.count--, list.offset = 0) {
        uint64_t piece = list.sges->length - list.offset;
        if (list.sges->length == 0)
            continue;
        if (piece > length)
            piece = length;
        slu_soft_touch_region(touched, region_of(qp, list.sges->lkey),
                              list.sges->addr + list.offset, piece, write);
        length -= piece;
    }
}

/* What was only read is there, whatever is said afterwards. */
static bool end_first(const struct soft_touched *touched, uint32_t count)
{
    bool written = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct soft_touched_region *region = &touched->of[i];
        if (slu_soft_dmabuf_sync(region->mr, region->write, false) != 0 && region->write)
            written = false;
    }
    return written;
}

bool slu_soft_touch_begin(const struct soft_touched *touched)
{
    for (uint32_t i = 0; i < touched->count && !touched->refused; i++) {
        if (slu_soft_dmabuf_sync(touched->of[i].mr, touched->of[i].write, true) != 0) {
            end_first(touched, i);
            return false;
        }
    }
    return !touched->refused;
}

bool slu_soft_touch_end(const struct soft_touched *touched)
{
    return end_first(touched, touched->count);
}

bool slu_soft_is_there(const struct soft_qp *qp, uint32_t key, uint64_t addr, uint64_t length)
{
    const void *bytes = (const void *)(uintptr_t)addr;
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    slu_soft_keys_enter(reader);
    const struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, key);
    bool file = mr != NULL && mr->file;
    bool exported = mr != NULL && mr->dmabuf >= 0;
    bool withheld = exported && atomic_load_explicit(&mr->withheld, memory_order_relaxed);
    slu_soft_keys_leave(reader);
    if (exported)
        return !withheld;
    if (file)
        return slu_can_touch(bytes, length, false);
    return slu_soft_probe_range(slu_soft_context(qp), bytes, length, false, NULL) == 0;
}

/* Naming. */

/* The region of an element, if that is guarded; to be called while the keys are read. */
static const struct soft_mr *guarded_by(const struct soft_qp *qp, const struct sluice_sge *sge)
{
    const struct soft_mr *mr = slu_soft_keys_find(&slu_soft_context(qp)->keys, sge->lkey);
    return sge->length > 0 && mr != NULL && slu_soft_is_guarded(mr) ? mr : NULL;
}

bool slu_soft_names_guarded(const struct soft_qp *qp, const struct sluice_sge *sges, uint32_t count)
{
    struct soft_key_reader *reader = &slu_soft_cq_of(qp)->reader;
    bool named = false;
    if (!slu_soft_has_guarded(qp))
        return false;
    slu_soft_keys_enter(reader);
    for (uint32_t i = 0; i < count && !named; i++)
        named = guarded_by(qp, &sges[i]) != NULL;
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
        const struct soft_mr *mr = guarded_by(qp, &sges[i]);
        if (mr != NULL)
            find_place(&sges[i], mr);
        named = named || mr != NULL;
    }
    slu_soft_keys_leave(reader);
    return named;
}
