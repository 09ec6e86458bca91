/* SPDX-License-Identifier: MIT */
/*
 * The lists of queue(3) that the library uses, for C libraries without them, such as musl. Only
 * where configure finds no sys/queue.h is this folder searched.
 */
#ifndef SLU_COMPAT_QUEUE_H
#define SLU_COMPAT_QUEUE_H

/* Doubly linked, with a head of one pointer. */
#define LIST_HEAD(name, type)  \
    struct name {              \
        struct type *lh_first; \
    }
#define LIST_ENTRY(type)       \
    struct {                   \
        struct type *le_next;  \
        struct type **le_prev; \
    }
#define LIST_INIT(head) ((void)((head)->lh_first = NULL))
#define LIST_EMPTY(head) ((head)->lh_first == NULL)
#define LIST_FIRST(head) ((head)->lh_first)
#define LIST_NEXT(entry, field) ((entry)->field.le_next)
#define LIST_FOREACH(entry, head, field) \
    for ((entry) = LIST_FIRST(head); (entry) != NULL; (entry) = LIST_NEXT(entry, field))
#define LIST_INSERT_HEAD(head, entry, field)                           \
    do {                                                               \
        (entry)->field.le_next = (head)->lh_first;                     \
        if ((head)->lh_first != NULL)                                  \
            (head)->lh_first->field.le_prev = &(entry)->field.le_next; \
        (head)->lh_first = (entry);                                    \
        (entry)->field.le_prev = &(head)->lh_first;                    \
    } while (0)
#define LIST_REMOVE(entry, field)                                           \
    do {                                                                    \
        if ((entry)->field.le_next != NULL)                                 \
            (entry)->field.le_next->field.le_prev = (entry)->field.le_prev; \
        *(entry)->field.le_prev = (entry)->field.le_next;                   \
    } while (0)

/* Singly linked, with a pointer to the last link. */
#define STAILQ_HEAD(name, type)  \
    struct name {                \
        struct type *stqh_first; \
        struct type **stqh_last; \
    }
#define STAILQ_ENTRY(type)      \
    struct {                    \
        struct type *stqe_next; \
    }
#define STAILQ_INIT(head) \
    ((void)((head)->stqh_first = NULL, (head)->stqh_last = &(head)->stqh_first))
#define STAILQ_EMPTY(head) ((head)->stqh_first == NULL)
#define STAILQ_FIRST(head) ((head)->stqh_first)
#define STAILQ_NEXT(entry, field) ((entry)->field.stqe_next)
#define STAILQ_FOREACH(entry, head, field) \
    for ((entry) = STAILQ_FIRST(head); (entry) != NULL; (entry) = STAILQ_NEXT(entry, field))
#define STAILQ_INSERT_TAIL(head, entry, field)         \
    do {                                               \
        (entry)->field.stqe_next = NULL;               \
        *(head)->stqh_last = (entry);                  \
        (head)->stqh_last = &(entry)->field.stqe_next; \
    } while (0)
#define STAILQ_REMOVE_HEAD(head, field)                           \
    do {                                                          \
        (head)->stqh_first = (head)->stqh_first->field.stqe_next; \
        if ((head)->stqh_first == NULL)                           \
            (head)->stqh_last = &(head)->stqh_first;              \
    } while (0)
/* The entry must be in the list. */
#define STAILQ_REMOVE(head, entry, type, field)         \
    do {                                                \
        struct type **stqe_link = &(head)->stqh_first;  \
        while (*stqe_link != (entry))                   \
            stqe_link = &(*stqe_link)->field.stqe_next; \
        *stqe_link = (entry)->field.stqe_next;          \
        if (*stqe_link == NULL)                         \
            (head)->stqh_last = stqe_link;              \
    } while (0)

/* Doubly linked, with a pointer to the last link. */
#define TAILQ_HEAD(name, type)  \
    struct name {               \
        struct type *tqh_first; \
        struct type **tqh_last; \
    }
#define TAILQ_HEAD_INITIALIZER(head) \
    {                                \
        NULL, &(head).tqh_first      \
    }
#define TAILQ_ENTRY(type)       \
    struct {                    \
        struct type *tqe_next;  \
        struct type **tqe_prev; \
    }
#define TAILQ_INIT(head) ((void)((head)->tqh_first = NULL, (head)->tqh_last = &(head)->tqh_first))
#define TAILQ_EMPTY(head) ((head)->tqh_first == NULL)
#define TAILQ_FIRST(head) ((head)->tqh_first)
#define TAILQ_NEXT(entry, field) ((entry)->field.tqe_next)
#define TAILQ_FOREACH(entry, head, field) \
    for ((entry) = TAILQ_FIRST(head); (entry) != NULL; (entry) = TAILQ_NEXT(entry, field))
#define TAILQ_INSERT_HEAD(head, entry, field)                             \
    do {                                                                  \
        (entry)->field.tqe_next = (head)->tqh_first;                      \
        if ((head)->tqh_first != NULL)                                    \
            (head)->tqh_first->field.tqe_prev = &(entry)->field.tqe_next; \
        else                                                              \
            (head)->tqh_last = &(entry)->field.tqe_next;                  \
        (head)->tqh_first = (entry);                                      \
        (entry)->field.tqe_prev = &(head)->tqh_first;                     \
    } while (0)
#define TAILQ_INSERT_TAIL(head, entry, field)        \
    do {                                             \
        (entry)->field.tqe_next = NULL;              \
        (entry)->field.tqe_prev = (head)->tqh_last;  \
        *(head)->tqh_last = (entry);                 \
        (head)->tqh_last = &(entry)->field.tqe_next; \
    } while (0)
#define TAILQ_REMOVE(head, entry, field)                                       \
    do {                                                                       \
        if ((entry)->field.tqe_next != NULL)                                   \
            (entry)->field.tqe_next->field.tqe_prev = (entry)->field.tqe_prev; \
        else                                                                   \
            (head)->tqh_last = (entry)->field.tqe_prev;                        \
        *(entry)->field.tqe_prev = (entry)->field.tqe_next;                    \
    } while (0)
/* Moves all entries of the second list to the end of the first one. */
#define TAILQ_CONCAT(head, other, field)                           \
    do {                                                           \
        if (!TAILQ_EMPTY(other)) {                                 \
            *(head)->tqh_last = (other)->tqh_first;                \
            (other)->tqh_first->field.tqe_prev = (head)->tqh_last; \
            (head)->tqh_last = (other)->tqh_last;                  \
            TAILQ_INIT(other);                                     \
        }                                                          \
    } while (0)

#endif
