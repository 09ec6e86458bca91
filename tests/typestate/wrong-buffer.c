/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef FORGOTTEN_BUFFER /* expect: -Wanalyzer-malloc-leak */
int publish_and_forget(struct sluice_buffer_service *service, struct sluice_buffer_handle *handle)
{
    struct sluice_buffer *buffer =
        sluice_buffer_publish(service, NULL, 4096, SLUICE_ACCESS_REMOTE_READ);

    return sluice_buffer_handle(buffer, handle);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_service(struct sluice_pd *pd)
{
    struct sluice_buffer_service *service = sluice_buffer_service_open(&pd, 1, NULL);

    free(service);
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

#ifdef IGNORED_READ /* expect: -Wunused-result */
void read_blindly(struct sluice_buffer_service *service, const struct sluice_buffer_handle *handle,
                  void *addr)
{
    sluice_buffer_read_into(service, handle, 0, NULL, addr, 64, SLUICE_S(1));
}
#endif
