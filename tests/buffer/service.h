/* SPDX-License-Identifier: MIT */
/* A service of buffers by name at the loopback. */
#ifndef TEST_BUFFER_SERVICE_H
#define TEST_BUFFER_SERVICE_H

#include "../support/pair.h"

/* channel is of connections to owners; NULL: all defaults. */
static inline struct sluice_buffer_service *open_service(struct sluice_pd *pd,
                                                         const struct sluice_channel_attr *channel)
{
    const struct sluice_buffer_service_attr attr = {
        .size = sizeof(attr), .address = "127.0.0.1:0", .channel = channel};
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, &attr);
    require(service != NULL, "%s", sluice_last_error());
    return service;
}

#endif
