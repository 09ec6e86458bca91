/* SPDX-License-Identifier: MIT */
/* Tables of objects by small numbers. The lock of the context protects them. */
#include "transport/soft/core/soft.h"

#include <stdlib.h>
#include <string.h>

static int grow_slots(struct soft_slots *slots)
{
    uint32_t size = slots->size == 0 ? 64 : slots->size * 2;
    if (size > (UINT32_C(1) << 24))
        return -ENOMEM;
    void **items = realloc(slots->items, size * sizeof(*items));
    if (items == NULL)
        return -ENOMEM;
    memset(items + slots->size, 0, (size - slots->size) * sizeof(*items));
    slots->items = items;
    slots->size = size;
    return 0;
}

int slu_soft_slot_take(struct soft_slots *slots, void *item, uint32_t *slot)
{
    while (slots->hint < slots->size && slots->items[slots->hint] != NULL)
        slots->hint++;
    if (slots->hint == slots->size && grow_slots(slots) != 0)
        return -ENOMEM;
    *slot = slots->hint++;
    slots->items[*slot] = item;
    return 0;
}

void slu_soft_slot_free(struct soft_slots *slots, uint32_t slot)
{
    slots->items[slot] = NULL;
    if (slot < slots->hint)
        slots->hint = slot;
}
