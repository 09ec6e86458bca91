/* SPDX-License-Identifier: MIT */
/*
 * Regions of the peer that this side may map, or read from the peer's process. The second use of a
 * key asks for its region; requests are sent as frames until the answer arrives. A region is
 * unmapped when the peer has deregistered it, or with the connection.
 */
#include "transport/soft/shm/shm.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PLACES_LEAST 32
/* At most half are used, and half of these by mapped regions: a new table drops all others. */
#define PLACES_MOST (4 * SHM_PLACES)
/* Requests in flight: any socket can queue this many answers unread. */
#define ASKED_MOST 32
/* Uses of a denied region after which to ask again: the peer may have had no place for it. */
#define DENIED_USES 1024

static uint32_t place_of(const struct shm_imports *imports, uint32_t key)
{
    uint32_t place = key & imports->mask; /* keys are random */
    while (imports->places[place].state != SHM_IMPORT_NONE && imports->places[place].key != key)
        place = (place + 1) & imports->mask;
    return place;
}

struct shm_import *slu_soft_shm_find_import(const struct shm_imports *imports, uint32_t key)
{
    if (imports->places == NULL)
        return NULL;
    struct shm_import *import = &imports->places[place_of(imports, key)];
    return import->state == SHM_IMPORT_NONE ? NULL : import;
}

/* Returns whether an entry can be dropped to make room. */
static bool may_be_forgotten(const struct shm_import *import)
{
    return import->state != SHM_IMPORT_ASKED && import->state != SHM_IMPORT_HERE;
}

/*
 * Makes room for a key: doubles the table up to its maximum, then drops entries that can be
 * forgotten.
 */
static bool make_room(struct shm_imports *imports)
{
    uint32_t size = imports->places == NULL ? 0 : imports->mask + 1;
    bool full = size == PLACES_MOST;
    uint32_t more = full ? size : size == 0 ? PLACES_LEAST : size * 2;
    if (imports->used < size / 2)
        return true;
    if (imports->full)
        return false;
    struct shm_imports larger = *imports;
    larger.mask = more - 1;
    larger.used = 0;
    larger.places = calloc(more, sizeof(*larger.places));
    if (larger.places == NULL)
        return false;
    for (uint32_t i = 0; i < size; i++) {
        const struct shm_import *import = &imports->places[i];
        if (import->state == SHM_IMPORT_NONE || (full && may_be_forgotten(import)))
            continue;
        larger.places[place_of(&larger, import->key)] = *import;
        larger.used++;
    }
    larger.full = larger.used >= more / 2;
    free(imports->places);
    *imports = larger;
    return !larger.full;
}

static void note(struct shm_imports *imports, uint32_t key)
{
    if (key == 0 || !make_room(imports))
        return;
    imports->places[place_of(imports, key)] =
        (struct shm_import){.key = key, .state = SHM_IMPORT_NOTED};
    imports->used++;
}

static void ask(struct soft_tcp *tcp, struct shm_import *import)
{
    struct shm_imports *imports = &tcp->shm->imports;
    if (imports->asked == ASKED_MOST ||
        slu_soft_shm_say(tcp, SHM_WORD_ASK, &import->key, sizeof(import->key), -1) != 0)
        return;
    import->state = SHM_IMPORT_ASKED;
    import->uses = 0;
    imports->asked++;
}

void slu_soft_shm_wish(struct soft_tcp *tcp, uint32_t key)
{
    struct shm_import *import = slu_soft_shm_find_import(&tcp->shm->imports, key);
    if (import == NULL)
        note(&tcp->shm->imports, key);
    else if (import->state == SHM_IMPORT_NOTED ||
             (import->state == SHM_IMPORT_DENIED && ++import->uses >= DENIED_USES))
        ask(tcp, import);
}

/* Returns whether a protection of the table behind its first page was set. */
static bool protect_rest(const struct shm_imports *imports, int protection)
{
    SLU_KEEP_ERRNO;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *table = (char *)(uintptr_t)imports->table;
    return page >= SHM_TABLE_BYTES ||
           mprotect(table + page, SHM_TABLE_BYTES - page, protection) == 0;
}

/*
 * Hides all but the first page, where the words of a peer with few regions are. When the first word
 * is read, the kernel would map the whole table, and count it as resident memory of this process.
 */
static void hide_rest(struct shm_imports *imports)
{
    imports->whole = imports->table == NULL || !protect_rest(imports, PROT_NONE);
}

/* Returns whether the word of a place can be read. */
static bool has_word(struct shm_imports *imports, uint32_t place)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (imports->table == NULL)
        return false;
    if (!imports->whole && place >= page / sizeof(*imports->table))
        imports->whole = protect_rest(imports, PROT_READ);
    return imports->whole || place < page / sizeof(*imports->table);
}

bool slu_soft_shm_accept_table(struct soft_tcp *tcp, int fd)
{
    struct shm_imports *imports = &tcp->shm->imports;
    if (imports->table != NULL) {
        slu_soft_shm_refuse(fd);
        return false;
    }
    imports->table = slu_soft_shm_map(fd, 0, SHM_TABLE_BYTES, SHM_READ_ONLY);
    hide_rest(imports);
    return true;
}

static void unmap(struct shm_import *import)
{
    if (import->at != NULL)
        slu_soft_shm_unmap(import->at - import->lead, import->lead + import->length);
    import->at = NULL;
}

/* Ends the question that an answer belongs to. NULL: the key was not asked for. */
static struct shm_import *end_question(struct shm_imports *imports, uint32_t key)
{
    struct shm_import *import = slu_soft_shm_find_import(imports, key);
    if (import == NULL || import->state != SHM_IMPORT_ASKED)
        return NULL;
    imports->asked--;
    import->state = SHM_IMPORT_DENIED;
    return import;
}

static bool is_sound(const struct shm_given *given)
{
    return given->place < SHM_PLACES && given->length > 0 &&
           given->addr + given->length >= given->addr;
}

static void have(const struct shm_imports *imports, struct shm_import *import,
                 const struct shm_given *given, uint32_t access)
{
    import->state = SHM_IMPORT_HERE;
    import->access = access;
    import->addr = given->addr;
    import->length = given->length;
    import->word = &imports->table[given->place];
    import->value = given->word;
}

/*
 * Maps whole pages, with the first byte at the page offset of the peer's address, so that words
 * have the same alignment on both sides.
 */
static void map_given(struct shm_import *import, const struct shm_given *given, int fd,
                      enum shm_use use)
{
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint8_t *map;
    import->lead = (uint32_t)(given->addr % page);
    import->length = given->length;
    map = slu_soft_shm_map(fd, given->page * page, import->lead + given->length, use);
    import->at = map != NULL ? map + import->lead : NULL;
}

bool slu_soft_shm_accept_given(struct soft_tcp *tcp, const struct shm_given *given, int fd)
{
    struct shm_imports *imports = &tcp->shm->imports;
    bool changes = (given->access & SOFT_ACCESS_CHANGES) != 0;
    struct shm_import *import = NULL;
    if (is_sound(given))
        import = end_question(imports, given->key);
    if (import == NULL) {
        slu_soft_shm_refuse(fd);
        return false;
    }
    map_given(import, given, fd, changes ? SHM_SPARSE : SHM_READ_ONLY);
    if (import->at == NULL || !has_word(imports, given->place)) {
        unmap(import);
        slu_log(SLUICE_LOG_INFO,
                "queue pair %u: cannot map a region of its peer, what is read and written there "
                "is slower",
                tcp->qp->qpn);
        return true;
    }
    have(imports, import, given, given->access);
    slu_log(SLUICE_LOG_DEBUG, "queue pair %u: it has mapped a region of its peer", tcp->qp->qpn);
    return true;
}

bool slu_soft_shm_accept_shown(struct soft_tcp *tcp, const struct shm_given *given)
{
    struct shm_imports *imports = &tcp->shm->imports;
    struct shm_import *import = is_sound(given) ? end_question(imports, given->key) : NULL;
    if (import == NULL)
        return false;
    if (!imports->reads_not && has_word(imports, given->place))
        have(imports, import, given, SLUICE_ACCESS_REMOTE_READ);
    slu_log(SLUICE_LOG_DEBUG, "queue pair %u: it may not map a region of its peer, but read it",
            tcp->qp->qpn);
    return true;
}

bool slu_soft_shm_accept_denied(struct soft_tcp *tcp, uint32_t key)
{
    if (end_question(&tcp->shm->imports, key) == NULL)
        return false;
    slu_log(SLUICE_LOG_DEBUG, "queue pair %u: it may not map a region of its peer", tcp->qp->qpn);
    return true;
}

void slu_soft_shm_drop_imports(struct shm_imports *imports)
{
    for (uint32_t i = 0; imports->places != NULL && i <= imports->mask; i++) {
        struct shm_import *import = &imports->places[i];
        if (import->state != SHM_IMPORT_HERE || slu_soft_shm_is_there(import))
            continue;
        unmap(import);
        import->state = SHM_IMPORT_DENIED;
        imports->full = false;
    }
}

void slu_soft_shm_end_imports(struct soft_shm *shm)
{
    struct shm_imports *imports = &shm->imports;
    for (uint32_t i = 0; imports->places != NULL && i <= imports->mask; i++)
        unmap(&imports->places[i]);
    slu_soft_shm_unmap((void *)(uintptr_t)imports->table, SHM_TABLE_BYTES);
    free(imports->places);
    *imports = (struct shm_imports){.places = NULL};
}
