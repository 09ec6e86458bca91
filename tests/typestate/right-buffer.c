/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include <sluice.h>

int copy(struct sluice_pd *pd, const struct sluice_buffer_handle *from, char bytes[64])
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);
    struct sluice_buffer_handle own;
    struct sluice_buffer *buffer;
    int error = -1;

    if (service == NULL)
        return -1;
    buffer = sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
    if (buffer != NULL && sluice_buffer_export(buffer, &own) == 0) {
        error = sluice_buffer_read(service, from, 0, NULL, bytes, 64, SLUICE_S(1));
        if (error == 0)
            error = sluice_buffer_write(service, &own, 0, NULL, bytes, 64, SLUICE_S(1));
    }
    sluice_buffer_release(buffer);
    sluice_buffer_service_close(service);
    return error;
}

/* The buffer ends before the region does. */
int publish_region(struct sluice_buffer_service *service, struct sluice_mr *mr,
                   struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish_mr(service, mr, 0, 64, SLUICE_ACCESS_REMOTE_READ);
    int error = buffer != NULL ? sluice_buffer_export(buffer, handle) : -1;

    sluice_buffer_release(buffer);
    return error;
}
