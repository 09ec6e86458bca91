/* SPDX-License-Identifier: MIT */
/* The owner of buffers and a user of them, and how the owner publishes one. */
#ifndef TEST_BUFFER_WORLD_H
#define TEST_BUFFER_WORLD_H

#include "service.h"

/* An owner and a user, on the wire of the test. */
struct world {
    struct sides sides;
    struct sluice_buffer_service *owner, *user;
};

static inline void world_open(struct world *world, const struct sluice_channel_attr *channel)
{
    sides_open(&world->sides);
    world->owner = open_service(world->sides.pds[0], NULL);
    world->user = open_service(world->sides.pds[1], channel);
}

static inline void world_close(struct world *world)
{
    sluice_buffer_service_close(world->user);
    sluice_buffer_service_close(world->owner);
    sides_close(&world->sides);
}

static inline struct sluice_buffer *publish(struct sluice_buffer_service *service, void *addr,
                                            size_t length, uint32_t access,
                                            struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer = sluice_buffer_publish(service, addr, length, access);
    require(buffer != NULL, "%s", sluice_last_error());
    require_ok(sluice_buffer_export(buffer, handle));
    return buffer;
}

#endif
