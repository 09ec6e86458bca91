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

/* Returns the level of the connection to the owner of a buffer; 0: there is none. */
static inline uint32_t level_of(struct sluice_buffer_service *service,
                                const struct sluice_buffer_handle *handle)
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    int error = sluice_buffer_connection_query(service, handle, &info);
    require(error == 0 || error == -ENOTCONN, "%s", sluice_last_error());
    return error == 0 ? info.level : 0;
}

#endif
