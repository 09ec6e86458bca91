/* SPDX-License-Identifier: MIT */
/*
 * Aiming prepared lists at other addresses and lengths. Guarantee: what passes the checks is within
 * what the requests were prepared with, so a post has nothing to check. Requests in flight are not
 * changed, because transports copy what they are posted.
 */
#include "config.h"

#include "engine/list/list.h"
#include "engine/request/check.h"

/*
 * Checks an element that a request is aimed at. It must have room for the current length, and not
 * be longer than the request was prepared with.
 */
static int check_element(const struct slu_list *list, uint32_t index, const struct sluice_sge *sge)
{
    const struct sluice_request *request = &list->requests[index];

    if (request->sge_count != 1)
        return slu_misuse(EINVAL, "request %u of the list has %u elements, only one can be aimed",
                          index, request->sge_count);
    if (sge->lkey != request->sges->lkey)
        return slu_misuse(EINVAL, "request %u of the list was prepared with another region", index);
    if (sge->length < request->sges->length || sge->length > list->lengths[index])
        return slu_misuse(EINVAL, "request %u of the list has %u bytes, the element %u", index,
                          request->sges->length, sge->length);
    if (slu_opcode_is_atomic(request->opcode) && sge->addr % 8 != 0)
        return slu_misuse(
            EINVAL, "request %u of the list: the SGE of a %s is at %#llx, not a multiple of 8",
            index, slu_opcode_name(request->opcode), (unsigned long long)sge->addr);
    return 0;
}

static int fail_offset(const struct sluice_request *request, uint32_t index)
{
    return slu_misuse(EINVAL, "request %u of the list is a %s, which has no remote offset", index,
                      slu_opcode_name(request->opcode));
}

static int check_offset(const struct slu_listed *listed, const struct sluice_request *request,
                        uint32_t index, uint64_t offset)
{
    uint64_t length = request->remote.length + listed->offset;

    if (request->opcode < SLUICE_OP_WRITE)
        return offset == 0 ? 0 : fail_offset(request, index);
    if (offset > length || listed->bytes > length - offset)
        return slu_fail(ERANGE,
                        "request %u of the list: %llu bytes at offset %llu of a remote range of "
                        "%llu",
                        index, (unsigned long long)listed->bytes, (unsigned long long)offset,
                        (unsigned long long)length);
    if (slu_opcode_is_atomic(request->opcode) && offset % 8 != 0)
        return slu_fail(EINVAL,
                        "request %u of the list: the remote offset of a %s is %llu, not a multiple "
                        "of 8",
                        index, slu_opcode_name(request->opcode), (unsigned long long)offset);
    return 0;
}

/*
 * Checks a request with blocks as if it were new, with the blocks where they would be. Blocks keep
 * their distances from each other.
 */
static int check_blocks(const struct slu_listed *listed, const struct sluice_request *request,
                        uint32_t index, const struct sluice_sge *sge, uint64_t offset)
{
    struct sluice_request moved = *request;
    const struct slu_source source = {.lists = {&moved}, .counts = {1}, .count = 1};
    uint64_t length = request->remote.length + listed->offset;
    struct slu_item item;

    if (request->opcode < SLUICE_OP_WRITE && offset != 0)
        return fail_offset(request, index);
    if (offset > length)
        return slu_fail(ERANGE, "request %u of the list: offset %llu of a remote range of %llu",
                        index, (unsigned long long)offset, (unsigned long long)length);
    if (sge != NULL)
        moved.sges = sge;
    moved.remote.addr += offset - listed->offset;
    moved.remote.length = length - offset;
    slu_source_any_item(&source, 0, &item);
    return slu_blocks_check(&item, index);
}

/*
 * Moves all work requests of a request with blocks, with all their pieces, by the same distances.
 */
static void move_parts(struct slu_listed *first, uint64_t local, uint64_t remote)
{
    for (uint32_t i = 0; i < first->parts; i++) {
        struct slu_send_wr *send = &first[i].send;
        struct sluice_sge *pieces = (struct sluice_sge *)send->sges;

        send->remote_addr += remote;
        for (uint32_t k = 0; k < send->sge_count; k++)
            pieces[k].addr += local;
    }
}

/*
 * Aims a request at another remote offset: its prepared work requests, and the copy that
 * slu_submit() posts.
 */
static void aim_remote(struct slu_listed *listed, struct sluice_request *request, uint64_t offset)
{
    uint64_t distance = offset - listed->offset;

    request->remote.addr += distance;
    request->remote.length -= distance;
    listed->offset = offset;
    if (request->blocks == NULL)
        listed->send.remote_addr = request->remote.addr;
    else
        move_parts(listed, 0, distance);
}

static void aim_local(struct slu_list *list, struct slu_listed *listed,
                      const struct sluice_request *request, const struct sluice_sge *sge)
{
    struct sluice_sge *own = &list->sges[request->sges - list->sges];

    slu_list_pin(list, listed);
    if (request->blocks != NULL && !listed->gathered)
        move_parts(listed, sge->addr - own->addr, 0);
    list->rooms[request - list->requests] = sge->length;
    /* The key stays unchanged. Store the address atomically: another thread may read both. */
    __atomic_store_n(&own->addr, sge->addr, __ATOMIC_RELEASE);
}

static int check_index(const struct slu_list *list, uint32_t index)
{
    if (list->engine == NULL)
        return slu_list_closed();
    if (index >= list->source.count)
        return slu_misuse(EINVAL, "the list has no request %u, but %u of them", index,
                          list->source.count);
    return 0;
}

int slu_list_aim(struct slu_list *list, uint32_t index, const struct sluice_sge *sge,
                 uint64_t remote_offset)
{
    struct sluice_request *request;
    struct slu_listed *listed;
    int error = check_index(list, index);

    if (error < 0)
        return error;
    request = &list->requests[index];
    listed = &list->items[list->places[index]];
    if (sge != NULL)
        error = check_element(list, index, sge);
    if (error == 0)
        error = request->blocks != NULL ? check_blocks(listed, request, index, sge, remote_offset)
                                        : check_offset(listed, request, index, remote_offset);
    if (error < 0)
        return error;
    if (request->opcode >= SLUICE_OP_WRITE)
        aim_remote(listed, request, remote_offset);
    if (sge != NULL)
        aim_local(list, listed, request, sge);
    return 0;
}

static int check_length(const struct slu_list *list, uint32_t index, uint64_t length)
{
    const struct sluice_request *request = &list->requests[index];

    if (request->blocks != NULL)
        return slu_misuse(EINVAL,
                          "request %u of the list has blocks, and their layout is its length: "
                          "prepare a list for each number of blocks",
                          index);
    if (slu_opcode_is_atomic(request->opcode))
        return slu_misuse(EINVAL,
                          "request %u of the list is an atomic operation: its length cannot be set",
                          index);
    if (request->sge_count != 1)
        return slu_misuse(EINVAL,
                          "request %u of the list has %u elements: the length of one alone "
                          "can be set",
                          index, request->sge_count);
    if (length > list->lengths[index])
        return slu_misuse(EINVAL,
                          "request %u of the list was prepared with %u bytes, not with %llu", index,
                          list->lengths[index], (unsigned long long)length);
    if (length > list->rooms[index])
        return slu_fail(ERANGE,
                        "request %u of the list: %llu bytes where it is aimed at an element of %u",
                        index, (unsigned long long)length, list->rooms[index]);
    if (request->opcode >= SLUICE_OP_WRITE && length > request->remote.length)
        return slu_fail(
            ERANGE, "request %u of the list: %llu bytes where the remote range has %llu more",
            index, (unsigned long long)length, (unsigned long long)request->remote.length);
    return 0;
}

/*
 * Sets the length of a request. The element stays, even with no bytes, because it names the memory
 * that the list pins.
 */
int slu_list_set_length(struct slu_list *list, uint32_t index, uint64_t length)
{
    struct slu_listed *listed;
    int error = check_index(list, index);

    if (error == 0)
        error = check_length(list, index, length);
    if (error < 0)
        return error;
    listed = &list->items[list->places[index]];
    list->sges[list->requests[index].sges - list->sges].length = (uint32_t)length;
    listed->bytes = length;
    /*
     * Some devices take an element of no bytes for one of 2^31, so an empty request has no element.
     */
    if (listed->queue == SLU_RECEIVE_QUEUE)
        listed->receive.sge_count = length > 0;
    else
        listed->send.sge_count = length > 0;
    return 0;
}
