/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef CLOSED_TWICE /* expect: -Wuse-after-free */
void close_twice(struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);

    sluice_buffer_service_close(service);
    sluice_buffer_service_close(service);
}
#endif

#ifdef FORGOTTEN_BUFFER /* expect: -Wanalyzer-malloc-leak */
int publish_and_forget(struct sluice_buffer_service *service, struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, NULL, 4096, SLUICE_ACCESS_REMOTE_READ);

    return sluice_buffer_handle(buffer, handle);
}
#endif

#ifdef FORGOTTEN_REGION /* expect: -Wanalyzer-malloc-leak */
int publish_region_and_forget(struct sluice_buffer_service *service, struct sluice_mr *mr,
                              struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish_mr(service, mr, 0, 64, SLUICE_ACCESS_REMOTE_READ);

    return sluice_buffer_handle(buffer, handle);
}
#endif

#ifdef FORGOTTEN_SERVICE /* expect: -Wanalyzer-malloc-leak */
int open_and_forget(struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);

    return service != NULL;
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_service(struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);

    free(service);
}
#endif

#ifdef FREE_BUFFER /* expect: -Wmismatched-dealloc */
void free_buffer(struct sluice_buffer_service *service, void *bytes)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);

    free(buffer);
}
#endif

#ifdef HANDLE_AFTER_RELEASE /* expect: -Wuse-after-free */
int name_late(struct sluice_buffer_service *service, struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, NULL, 4096, SLUICE_ACCESS_REMOTE_READ);

    sluice_buffer_release(buffer);
    return sluice_buffer_handle(buffer, handle);
}
#endif

#ifdef IGNORED_HANDLE /* expect: -Wunused-result */
void believe(const struct sluice_buffer_handle *handle, struct sluice_buffer_info *info)
{
    sluice_buffer_handle_query(handle, info);
}
#endif

#ifdef IGNORED_PUBLISH /* expect: -Wunused-result */
void publish_nothing(struct sluice_buffer_service *service, void *bytes)
{
    sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
}
#endif

#ifdef IGNORED_READ /* expect: -Wunused-result */
void read_blindly(struct sluice_buffer_service *service, const struct sluice_buffer_handle *handle,
                  void *addr)
{
    sluice_buffer_read_into(service, handle, 0, NULL, addr, 64, SLUICE_S(1));
}
#endif

#ifdef IGNORED_REMOTE /* expect: -Wunused-result */
void name_blindly(const struct sluice_buffer_service *service,
                  const struct sluice_buffer_handle *handle, struct sluice_remote_mr *remote)
{
    sluice_buffer_remote(service, handle, NULL, remote);
}
#endif

#ifdef IGNORED_SUBMIT /* expect: -Wunused-result */
void submit_blindly(struct sluice_buffer_service *service,
                    const struct sluice_buffer_action *actions)
{
    sluice_buffer_submit(service, actions, 2, SLUICE_S(1), NULL);
}
#endif

#ifdef IGNORED_WRITE /* expect: -Wunused-result */
void write_blindly(struct sluice_buffer_service *service, const struct sluice_buffer_handle *handle,
                   const void *addr)
{
    sluice_buffer_write_from(service, handle, 0, NULL, addr, 64, SLUICE_S(1));
}
#endif

#ifdef PUBLISHED_AFTER_CLOSE /* expect: -Wuse-after-free */
struct sluice_buffer *publish_late(struct sluice_pd *pd, void *bytes)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);

    sluice_buffer_service_close(service);
    return sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);
}
#endif

#ifdef READ_OF_BUFFER /* expect: -Wincompatible-pointer-types */
int read_own(struct sluice_buffer_service *service, const struct sluice_buffer *buffer, void *addr)
{
    return sluice_buffer_read_into(service, buffer, 0, NULL, addr, 64, SLUICE_S(1));
}
#endif

#ifdef RELEASED_TWICE /* expect: -Wuse-after-free */
void release_twice(struct sluice_buffer_service *service, void *bytes)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, bytes, 64, SLUICE_ACCESS_REMOTE_READ);

    sluice_buffer_release(buffer);
    sluice_buffer_release(buffer);
}
#endif
