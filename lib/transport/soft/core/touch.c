/* SPDX-License-Identifier: MIT */
/*
 * Guarded regions: their memory is checked before it is touched, here or by the kernel for us. For
 * a dmabuf, the exporter grants the access. For a mapped file, the kernel tells whether its pages
 * can be touched: the file may have been truncated, or its file system may be full. Touching such a
 * page raises a signal, which a peer's request must not cause. Truncating a file also drops private
 * pages that were written. Memory that is refused is not touched.
 *
 * Posted work that names such regions is marked. While the context has no such region, nothing is
 * checked.
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

/* Checks memory of a file. A refusal is logged once, until the memory is accessible again. */
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

/* Finds the region of a posted element. It stays registered, because posted work names it. */
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

/*
 * Ends the access to the first count regions. Returns whether all that was written arrived; a
 * refusal after reading does not matter, as the data were read already.
 */
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

/*
 * Returns the region of an element if it is guarded, or NULL. Called inside a key reader section.
 */
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

/*
 * Changes the address of an element to the mapped one. An element outside its region gets key 0,
 * so that it fails the later check as it would have with its own key.
 */
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
