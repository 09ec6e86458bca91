/* SPDX-License-Identifier: MIT */
/*
 * Lists whose members can leave them at any time: each knows the pointer that leads to it. A list
 * is a pointer to its first member.
 */
#ifndef SLU_SOFT_LIST_H
#define SLU_SOFT_LIST_H

#include <stdint.h>

/* The place of a member in a list. link is NULL while it is in none. */
#define SOFT_PLACE(type)    \
    struct {                \
        type *next, **link; \
    }

#define SOFT_INSERT(list, member, place)                              \
    do {                                                              \
        (member)->place.next = *(list);                               \
        (member)->place.link = (list);                                \
        if ((member)->place.next != NULL)                             \
            (member)->place.next->place.link = &(member)->place.next; \
        *(list) = (member);                                           \
    } while (0)

/* The member must be in a list; its next stays as it was, for a loop that removes members. */
#define SOFT_REMOVE(member, place)                                   \
    do {                                                             \
        *(member)->place.link = (member)->place.next;                \
        if ((member)->place.next != NULL)                            \
            (member)->place.next->place.link = (member)->place.link; \
        (member)->place.link = NULL;                                 \
    } while (0)

/* A table of objects by small numbers, see slots.c; a free slot is NULL. */
struct soft_slots {
    void **items;
    uint32_t size;
    uint32_t hint; /* no free slot below */
};

int slu_soft_slot_take(struct soft_slots *slots, void *item, uint32_t *slot);
void slu_soft_slot_free(struct soft_slots *slots, uint32_t slot);

#endif
