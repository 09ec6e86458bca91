/* SPDX-License-Identifier: MIT */
/*
 * Remote buffers by name: mistakes of a program, and failures that owners cause in a correct one.
 */
#include "mistakes.h"

#define RIGHTS (SLUICE_ACCESS_REMOTE_READ | SLUICE_ACCESS_REMOTE_WRITE)

/* An owner of 64 bytes, and a user of them. */
struct couple {
    struct sluice_buffer_service *owner, *user;
    struct sluice_buffer *buffer;
    struct sluice_buffer_handle handle;
};

static struct sluice_buffer_service *service_of(struct sluice_pd *pd)
{
    static const struct sluice_buffer_service_attr attr = {.size = sizeof(attr),
                                                           .address = "127.0.0.1:0"};
    struct sluice_buffer_service *service = made(sluice_buffer_service_open(&pd, 1, &attr));
    return service;
}

static struct couple couple_with(struct world *world, uint32_t access)
{
    struct couple couple = {.owner = service_of(world->sides.pds[0]),
                            .user = service_of(world->sides.pds[1])};
    couple.buffer = made(sluice_buffer_publish(couple.owner, world->far.bytes, 64, access));
    require_ok(sluice_buffer_export(couple.buffer, &couple.handle));
    return couple;
}

static struct couple couple_of(struct world *world)
{
    return couple_with(world, RIGHTS);
}

static struct sluice_buffer_action read_of(struct world *world, const struct couple *couple)
{
    return (struct sluice_buffer_action){.opcode = SLUICE_OP_READ,
                                         .handle = &couple->handle,
                                         .length = 8,
                                         .addr = world->memory.bytes};
}

static int submit(const struct couple *couple, const struct sluice_buffer_action *action)
{
    return CALL(sluice_buffer_submit)(couple->user, action, 1, DEADLINE, NULL);
}

static int read_from(struct world *world, const struct couple *couple, uint64_t offset,
                     int64_t deadline)
{
    return CALL(sluice_buffer_read)(couple->user, &couple->handle, offset, NULL,
                                    world->memory.bytes, 8, deadline);
}

static int open_with(struct world *world, struct sluice_buffer_service_attr attr)
{
    return result_of(CALL(sluice_buffer_service_open)(world->sides.pds, 1, &attr));
}

static int publish(struct world *world, size_t length, uint32_t access)
{
    return result_of(CALL(sluice_buffer_publish)(service_of(world->sides.pds[0]),
                                                 world->memory.bytes, length, access));
}

/* Mistakes. */

int null_buffer_handle(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    action.handle = NULL;
    return submit(&couple, &action);
}

int null_local_memory(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    action.addr = NULL;
    return submit(&couple, &action);
}

RETURNS(null_place_of_handle, sluice_buffer_export, couple_of(world).buffer, NULL);

int other_buffer_service(struct world *world)
{
    struct sluice_buffer_service *other = (void *)world->sides.pds[0];
    return result_of(CALL(sluice_buffer_publish)(other, world->memory.bytes, 8, RIGHTS));
}

RETURNS(other_buffer, sluice_buffer_export, OTHER(sluice_buffer),
        &(struct sluice_buffer_handle){0});
RETURNS(other_batch, sluice_buffer_batch_wait, OTHER(sluice_buffer_batch), 0);

int other_domain_of_buffers(struct world *world)
{
    struct sluice_pd *other = (void *)world->sides.contexts[0];
    return result_of(CALL(sluice_buffer_service_open)(&other, 1, NULL));
}

ENDS(close_other_buffer_service, sluice_buffer_service_close, OTHER(sluice_buffer_service));
ENDS(release_other_buffer, sluice_buffer_release, OTHER(sluice_buffer));

int no_size_of_buffer_service(struct world *world)
{
    return open_with(world, (struct sluice_buffer_service_attr){.size = 0});
}

int wild_size_of_buffer_info(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_info info = {.size = 5000};
    return CALL(sluice_buffer_handle_query)(&couple.handle, &info);
}

int too_many_users_of_buffers(struct world *world)
{
    return open_with(world, (struct sluice_buffer_service_attr){
                                .size = sizeof(struct sluice_buffer_service_attr),
                                .max_peers = SLUICE_MAX_PEERS + 1});
}

int right_of_no_peer(struct world *world)
{
    return publish(world, 8, SLUICE_ACCESS_LOCAL_WRITE);
}

int flag_of_action(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    action.flags = 1;
    return submit(&couple, &action);
}

int reserved_field_of_action(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    action.reserved[3] = 1;
    return submit(&couple, &action);
}

int rights_of_connections_to_owners(struct world *world)
{
    world->attr.access = SLUICE_ACCESS_REMOTE_READ;
    return open_with(
        world, (struct sluice_buffer_service_attr){
                   .size = sizeof(struct sluice_buffer_service_attr), .channel = &world->attr});
}

/* Reads at this offset within this time, after these statements. */
#define READS(name, offset, deadline, ...)                               \
    MISTAKE_(name, struct couple couple = couple_of(world); __VA_ARGS__; \
             return read_from(world, &couple, offset, deadline))

READS(negative_deadline_of_buffer, 0, -1, (void)couple);
MAKES(no_domains_of_buffers, sluice_buffer_service_open, world->sides.pds, 0, NULL);

int send_to_a_buffer(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    action.opcode = SLUICE_OP_SEND;
    return submit(&couple, &action);
}

int buffer_of_no_bytes(struct world *world)
{
    return publish(world, 0, RIGHTS);
}

int action_outside_its_region(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    struct memory memory;
    memory_open(&memory, world->sides.pds[1], 16);
    action.mr = memory.mr;
    action.addr = memory.bytes + 9;
    return submit(&couple, &action);
}

int two_domains_of_a_transport(struct world *world)
{
    struct sluice_pd *pds[2] = {world->sides.pds[0], sluice_pd_alloc(world->sides.contexts[0])};
    return result_of(CALL(sluice_buffer_service_open)(pds, 2, NULL));
}

int region_of_no_domain_of_a_service(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    struct memory memory;
    memory_open(&memory, sluice_pd_alloc(world->sides.contexts[1]), 16);
    action.mr = memory.mr;
    action.addr = memory.bytes;
    return submit(&couple, &action);
}

int domain_that_a_service_has_not(struct world *world)
{
    struct couple couple = couple_of(world);
    return CALL(sluice_buffer_remote)(couple.user, &couple.handle,
                                      sluice_pd_alloc(world->sides.contexts[1]), &world->remote);
}

/* No mistakes. */

int buffer_not_for_this(struct world *world)
{
    struct couple couple = couple_with(world, SLUICE_ACCESS_REMOTE_WRITE);
    return read_from(world, &couple, 0, DEADLINE);
}

READS(buffer_that_was_released, 0, DEADLINE, sluice_buffer_release(couple.buffer));

/* The owner is not connected yet, which takes longer than a call, so the batch is in flight. */
int batch_in_flight(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    struct sluice_buffer_batch *batch = made(sluice_buffer_post(couple.user, &action, 1, DEADLINE));
    return CALL(sluice_buffer_batch_results)(batch, NULL);
}

int batch_never_posted(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_action action = read_of(world, &couple);
    struct sluice_buffer_batch *batch = made(sluice_buffer_batch_prepare(couple.user, &action, 1));
    return CALL(sluice_buffer_batch_wait)(batch, SLUICE_FOREVER);
}

READS(owner_that_is_not_there, 0, DEADLINE, sluice_buffer_service_close(couple.owner));

int owner_that_is_another(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_buffer_info info = {.size = sizeof(info)};
    struct sluice_buffer_service_attr attr = {.size = sizeof(attr), .address = info.address};
    require_ok(sluice_buffer_handle_query(&couple.handle, &info));
    sluice_buffer_service_close(couple.owner);
    require(sluice_buffer_service_open(world->sides.pds, 1, &attr), "%s", sluice_last_error());
    return read_from(world, &couple, 0, DEADLINE);
}

int service_of_a_buffer_that_was_closed(struct world *world)
{
    struct couple couple = couple_of(world);
    sluice_buffer_service_close(couple.owner);
    return sluice_buffer_export(couple.buffer, &couple.handle);
}

int owner_that_is_not_connected(struct world *world)
{
    struct couple couple = couple_of(world);
    struct sluice_channel_info info = {.size = sizeof(info)};
    return sluice_buffer_connection_query(couple.user, &couple.handle, &info);
}

READS(handle_that_was_damaged, 0, DEADLINE, couple.handle.bytes[99] ^= 1);
READS(beyond_a_buffer, 57, DEADLINE, (void)couple);
READS(no_time_for_a_buffer, 0, 0, (void)couple);
