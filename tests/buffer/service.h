/* SPDX-License-Identifier: MIT */
/* A buffer service at the loopback address. */
#ifndef TEST_BUFFER_SERVICE_H
#define TEST_BUFFER_SERVICE_H

#include "../support/pair.h"

/* Opens a service. channel: attributes of connections to owners; NULL: the defaults. */
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
