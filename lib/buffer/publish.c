/* SPDX-License-Identifier: MIT */
/*
 * Publishing. Each buffer has registrations of its own, one on each domain, so that its end
 * invalidates its handle and nothing else of the program.
 *
 * Devices reuse keys. A handle of a released buffer must not name another buffer at the same
 * address. So no registration has a key that is among the last SLU_BUFFER_KEYS released ones: a
 * registration with such a key is held until a later one has a fresh key.
 */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "buffer/service.h"
#include "connect/proof.h"
#include "memory/mr.h"

#define ACCESS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)
/* Limit of registrations with used keys that are held at a time. */
#define HELD 64
#define FIRST_KEYS 64

static bool was_used(const struct slu_buffer_keys *keys, uint32_t key)
{
    for (uint32_t i = 0; i < keys->count; i++)
        if (keys->keys[i] == key)
            return true;
    return false;
}

/* Makes room for the key of one more buffer before it exists, so that its end cannot fail. */
static int make_room(struct slu_buffer_keys *keys)
{
    uint32_t room = keys->room == 0 ? FIRST_KEYS : 2 * keys->room;
    uint32_t *larger;

    if (keys->count + keys->live < keys->room || keys->room == SLU_BUFFER_KEYS)
        return 0;
    larger = realloc(keys->keys, room * sizeof *larger);
    if (larger == NULL)
        return slu_fail(ENOMEM, "no memory for the keys of buffers");
    keys->keys = larger;
    keys->room = room;
    return 0;
}

/* Keeps the key of an ended buffer, in place of the oldest one if there is no more room. */
static void keep_key(struct slu_buffer_keys *keys, uint32_t key)
{
    keys->live--;
    if (keys->count < keys->room)
        keys->keys[keys->count++] = key;
    else
        keys->keys[keys->next++ % keys->room] = key;
}

static struct sluice_mr *register_once(const struct slu_buffer_domain *domain,
                                       const struct sluice_buffer *buffer)
{
    uint32_t local =
        (buffer->access & SLUICE_ACCESS_REMOTE_WRITE) != 0 ? SLUICE_ACCESS_LOCAL_WRITE : 0;

    if (buffer->of != NULL)
        return slu_mr_part(domain->own, buffer->of, buffer->offset, buffer->length,
                           buffer->access | local);
    if (buffer->addr == NULL)
        return sluice_mr_alloc(domain->own, buffer->length,
                               buffer->access | SLUICE_ACCESS_LOCAL_WRITE);
    return sluice_mr_register(domain->own, buffer->addr, buffer->length, buffer->access | local);
}

static bool has_fresh_key(struct sluice_buffer_service *service,
                          const struct slu_buffer_domain *domain, const struct sluice_mr *mr)
{
    bool fresh;

    pthread_mutex_lock(&service->lock);
    fresh = !was_used(&domain->keys, mr->transport->rkey);
    pthread_mutex_unlock(&service->lock);
    return fresh;
}

/* Registers a buffer with a key that no recently released buffer had. */
static int register_fresh(struct sluice_buffer_service *service,
                          const struct slu_buffer_domain *domain,
                          const struct sluice_buffer *buffer, struct sluice_mr **made)
{
    struct sluice_mr *held[HELD];
    uint32_t count = 0;
    int error = 0;

    *made = register_once(domain, buffer);
    while (*made != NULL && !has_fresh_key(service, domain, *made) && count < HELD) {
        held[count++] = *made;
        *made = count < HELD ? register_once(domain, buffer) : NULL;
    }
    if (*made == NULL)
        error = count < HELD ? -errno
                             : slu_fail(ENOMEM, "the device gives no keys but those that "
                                                "buffers had that were released");
    while (count > 0)
        slu_mr_end(held[--count]);
    return error;
}

/* Removes a buffer from its service, and keeps its keys. The lock is held. */
static void leave(struct sluice_buffer *buffer)
{
    *buffer->link = buffer->next;
    if (buffer->next != NULL)
        buffer->next->link = buffer->link;
    for (uint32_t i = 0; i < buffer->service->domain_count; i++)
        keep_key(&buffer->service->domains[i].keys, buffer->mrs[i]->transport->rkey);
}

/* Returns whether the memory, a region or a block of it, has a byte of what is published. */
static bool holds(const struct slu_memory_user *user, const struct slu_memory *memory)
{
    return slu_memory_meets(memory, &slu_container_of(user, struct sluice_buffer, hold)->held);
}

/*
 * Keeps the region from ending, as posted work that names it would. Holds the domain as well: once
 * the buffer has left it, another thread may end a region that the program has given up.
 */
static void hold_region(struct sluice_buffer *buffer, uint64_t id)
{
    const struct slu_tmr *transport = buffer->of->transport;

    buffer->held = (struct slu_memory){.lkey = transport->lkey,
                                       .start = (uint32_t)(transport->iova + buffer->offset),
                                       .length = buffer->length};
    buffer->hold = (struct slu_memory_user){.buffer = id, .uses = holds};
    slu_pd_hold(buffer->of->pd);
    slu_pd_enter(buffer->of->pd, &buffer->hold);
}

static void let_go(struct sluice_buffer *buffer)
{
    struct sluice_pd *pd;

    if (buffer->of == NULL)
        return;
    pd = buffer->of->pd;
    buffer->of = NULL;
    slu_pd_leave(pd, &buffer->hold);
    slu_pd_release(pd);
    if (slu_has_releases())
        slu_releases_look();
}

static void end_regions(struct sluice_buffer *buffer)
{
    for (uint32_t i = 0; i < SLUICE_MAX_BUFFER_PDS; i++)
        if (buffer->mrs[i] != NULL)
            slu_mr_end(buffer->mrs[i]);
    let_go(buffer);
}

static int register_all(struct sluice_buffer_service *service, struct sluice_buffer *buffer)
{
    int error = 0;

    for (uint32_t i = 0; i < service->domain_count && error == 0; i++)
        error = register_fresh(service, &service->domains[i], buffer, &buffer->mrs[i]);
    if (error == 0)
        buffer->addr = buffer->mrs[0]->transport->addr;
    else
        end_regions(buffer);
    return error;
}

/* Adds a buffer to the service, and reserves room for its keys. */
static int enter(struct sluice_buffer_service *service, struct sluice_buffer *buffer)
{
    int error = 0;

    pthread_mutex_lock(&service->lock);
    for (uint32_t i = 0; i < service->domain_count && error == 0; i++)
        error = make_room(&service->domains[i].keys);
    if (error == 0) {
        for (uint32_t i = 0; i < service->domain_count; i++)
            service->domains[i].keys.live++;
        buffer->service = service;
        buffer->next = service->buffers;
        buffer->link = &service->buffers;
        if (buffer->next != NULL)
            buffer->next->link = &buffer->next;
        service->buffers = buffer;
    }
    pthread_mutex_unlock(&service->lock);
    if (error < 0)
        end_regions(buffer);
    return error;
}

static int check(const struct sluice_buffer_service *service, size_t length, uint32_t access)
{
    if (!slu_is_buffer_service(service))
        return slu_not_a_buffer_service(service);
    if ((access & ACCESS) == 0 || (access & ~ACCESS) != 0)
        return slu_misuse(EINVAL,
                          "access %#x of a buffer: must be SLUICE_ACCESS_REMOTE_READ, "
                          "SLUICE_ACCESS_REMOTE_WRITE or both",
                          access);
    if (length == 0)
        return slu_misuse(EINVAL, "length 0 of a buffer: must be at least 1 byte");
    return 0;
}

static int check_address(const struct sluice_buffer_service *service, const void *addr)
{
    if (addr == NULL && service->domain_count > 1)
        return slu_misuse(EINVAL,
                          "addr must not be NULL: memory is allocated on services of one domain, "
                          "and this has %u",
                          service->domain_count);
    return 0;
}

static uint64_t take_id(struct sluice_buffer_service *service)
{
    uint64_t id;

    pthread_mutex_lock(&service->lock);
    id = ++service->last_id;
    pthread_mutex_unlock(&service->lock);
    return id;
}

/* Publishes a buffer whose attributes were checked. */
static struct sluice_buffer *publish(struct sluice_buffer_service *service,
                                     const struct sluice_buffer *wanted)
{
    struct sluice_buffer *buffer = calloc(1, sizeof *buffer);
    int error;

    if (buffer == NULL)
        return slu_fail_null(ENOMEM, "no memory for a buffer");
    *buffer = *wanted;
    buffer->id = take_id(service);
    if (buffer->of != NULL)
        hold_region(buffer, buffer->id);
    error = register_all(service, buffer);
    if (error == 0)
        error = enter(service, buffer);
    if (error < 0) {
        free(buffer);
        return slu_none(error);
    }
    buffer->magic = SLU_MAGIC_BUFFER;
    slu_made();
    return buffer;
}

struct sluice_buffer *sluice_buffer_publish(struct sluice_buffer_service *service, void *addr,
                                            size_t length, uint32_t access)
{
    SLU_UNCANCELLED_BLOCK;
    const struct sluice_buffer wanted = {.addr = addr, .length = length, .access = access};
    int error = check(service, length, access);

    if (error == 0)
        error = check_address(service, addr);
    return error == 0 ? publish(service, &wanted) : slu_none(error);
}

static int check_region(const struct sluice_buffer_service *service, const struct sluice_mr *mr,
                        size_t offset, size_t length, uint32_t access)
{
    if (mr == NULL || mr->magic != SLU_MAGIC_MR)
        return slu_misuse(EINVAL, "mr is not a memory region%s", slu_none_hint(mr));
    if (!slu_buffer_has_domain(service, mr->pd))
        return slu_misuse(EINVAL,
                          "mr is of no protection domain of the service, perhaps of an agent's: "
                          "register it with one that the service was opened with");
    if (offset > mr->transport->length || length > mr->transport->length - offset)
        return slu_misuse(
            ERANGE, "%zu bytes at offset %zu are outside the region of %zu bytes at %#llx", length,
            offset, mr->transport->length, (unsigned long long)mr->transport->iova);
    if ((access & ~mr->access) != 0)
        return slu_misuse(EACCES,
                          "access %#x of a buffer is more than the region at %#llx has, which is "
                          "%#x",
                          access, (unsigned long long)mr->transport->iova, mr->access & ACCESS);
    return 0;
}

struct sluice_buffer *sluice_buffer_publish_mr(struct sluice_buffer_service *service,
                                               struct sluice_mr *mr, size_t offset, size_t length,
                                               uint32_t access)
{
    SLU_UNCANCELLED_BLOCK;
    const struct sluice_buffer wanted = {
        .of = mr, .offset = offset, .length = length, .access = access};
    int error = check(service, length, access);

    if (error == 0)
        error = check_region(service, mr, offset, length, access);
    return error == 0 ? publish(service, &wanted) : slu_none(error);
}

void sluice_buffer_release(struct sluice_buffer *buffer)
{
    SLU_UNCANCELLED_BLOCK;
    SLU_KEEP_ERRNO;

    if (!slu_may_end(buffer, SLU_MAGIC_BUFFER, "buffer"))
        return;
    buffer->magic = SLU_MAGIC_DEAD;
    if (buffer->service != NULL) {
        pthread_mutex_lock(&buffer->service->lock);
        leave(buffer);
        pthread_mutex_unlock(&buffer->service->lock);
    }
    end_regions(buffer);
    free(buffer);
}

void slu_buffer_end_all(struct sluice_buffer_service *service)
{
    while (service->buffers != NULL) {
        struct sluice_buffer *buffer = service->buffers;

        leave(buffer);
        end_regions(buffer);
        buffer->service = NULL;
        for (uint32_t i = 0; i < SLUICE_MAX_BUFFER_PDS; i++)
            buffer->mrs[i] = NULL;
    }
}

static bool is_buffer(const struct sluice_buffer *buffer)
{
    return buffer != NULL && buffer->magic == SLU_MAGIC_BUFFER;
}

static int not_a_buffer(const struct sluice_buffer *buffer)
{
    return slu_misuse(EINVAL, "not a buffer, or one that was released%s", slu_none_hint(buffer));
}

void *sluice_buffer_addr(const struct sluice_buffer *buffer)
{
    if (is_buffer(buffer))
        return buffer->addr;
    not_a_buffer(buffer);
    return NULL;
}

static void name_of(const struct sluice_buffer *buffer, struct slu_buffer_name *name)
{
    const struct sluice_buffer_service *service = buffer->service;

    *name = (struct slu_buffer_name){.id = buffer->id,
                                     .addr = buffer->mrs[0]->transport->iova,
                                     .length = buffer->length,
                                     .access = buffer->access,
                                     .way_count = service->domain_count,
                                     .address_count = service->address_count};
    memcpy(name->owner, service->owner, sizeof name->owner);
    memcpy(name->key, service->key, sizeof name->key);
    memcpy(name->addresses, service->addresses, sizeof name->addresses);
    for (uint32_t i = 0; i < service->domain_count; i++)
        name->ways[i] = (struct slu_buffer_way){.transport = service->domains[i].transport,
                                                .rkey = buffer->mrs[i]->transport->rkey};
}

int sluice_buffer_export(const struct sluice_buffer *buffer, struct sluice_buffer_handle *handle)
{
    SLU_KEEP_ERRNO;
    struct slu_buffer_name name;

    if (!is_buffer(buffer))
        return not_a_buffer(buffer);
    if (handle == NULL)
        return slu_misuse(EINVAL, "handle must not be NULL");
    if (buffer->service == NULL)
        return slu_fail(ESTALE, "the service of the buffer was closed: it names nothing any more");
    name_of(buffer, &name);
    slu_buffer_name_encode(&name, handle);
    slu_proof_forget(name.key, sizeof name.key);
    return 0;
}
