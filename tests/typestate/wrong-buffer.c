/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(closed_twice, "-Wuse-after-free", struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);
    sluice_buffer_service_close(service);
    sluice_buffer_service_close(service);
}

WRONG(forgotten_buffer, "-Wanalyzer-malloc-leak", struct sluice_buffer_service *service,
      struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, NULL, 4096, SLUICE_ACCESS_REMOTE_READ);
    return sluice_buffer_export(buffer, handle);
}

WRONG(forgotten_region, "-Wanalyzer-malloc-leak", struct sluice_buffer_service *service,
      struct sluice_mr *mr, struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish_mr(service, mr, 0, 64, SLUICE_ACCESS_REMOTE_READ);
    return sluice_buffer_export(buffer, handle);
}

WRONG(forgotten_service, "-Wanalyzer-malloc-leak", struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);
    return service != NULL;
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);
    free(service);
}

WRONG(free_buffer, "-Wmismatched-dealloc", struct sluice_buffer_service *service, void *bytes)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
    free(buffer);
}

WRONG(handle_after_release, "-Wuse-after-free", struct sluice_buffer_service *service,
      struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, NULL, 4096, SLUICE_ACCESS_REMOTE_READ);
    sluice_buffer_release(buffer);
    return sluice_buffer_export(buffer, handle);
}

WRONG(ignored_handle, "-Wunused-result", const struct sluice_buffer_handle *handle,
      struct sluice_buffer_info *info)
{
    sluice_buffer_handle_query(handle, info);
}

WRONG(ignored_publish, "-Wunused-result", struct sluice_buffer_service *service, void *bytes)
{
    sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
}

WRONG(ignored_read, "-Wunused-result", struct sluice_buffer_service *service,
      const struct sluice_buffer_handle *handle, void *addr)
{
    sluice_buffer_read(service, handle, 0, NULL, addr, 64, SLUICE_S(1));
}

WRONG(ignored_remote, "-Wunused-result", const struct sluice_buffer_service *service,
      const struct sluice_buffer_handle *handle, struct sluice_remote_mr *remote)
{
    sluice_buffer_remote(service, handle, NULL, remote);
}

WRONG(ignored_submit, "-Wunused-result", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    sluice_buffer_submit(service, actions, 2, SLUICE_S(1), NULL);
}

WRONG(ignored_write, "-Wunused-result", struct sluice_buffer_service *service,
      const struct sluice_buffer_handle *handle, const void *addr)
{
    sluice_buffer_write(service, handle, 0, NULL, addr, 64, SLUICE_S(1));
}

WRONG(published_after_close, "-Wuse-after-free", struct sluice_pd *pd, void *bytes)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);
    sluice_buffer_service_close(service);
    return sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
}

WRONG(read_of_buffer, "-Wincompatible-pointer-types", struct sluice_buffer_service *service,
      const struct sluice_buffer *buffer, void *addr)
{
    return sluice_buffer_read(service, buffer, 0, NULL, addr, 64, SLUICE_S(1));
}

WRONG(released_twice, "-Wuse-after-free", struct sluice_buffer_service *service, void *bytes)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
    sluice_buffer_release(buffer);
    sluice_buffer_release(buffer);
}
