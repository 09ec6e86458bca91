/* SPDX-License-Identifier: MIT */
#include <stddef.h>

#include <sluice.h>

int copy_twice(struct sluice_buffer_service *service, const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(service, actions, 2);
    int error = -1;

    if (batch == NULL)
        return -1;
    for (int i = 0; i < 2; i++) {
        error = sluice_buffer_batch_post(batch, SLUICE_S(1));
        if (error == 0)
            error = sluice_buffer_batch_wait(batch, SLUICE_FOREVER);
        if (error == 0)
            error = sluice_buffer_batch_results(batch, NULL);
    }
    sluice_buffer_batch_cancel(batch);
    sluice_buffer_batch_free(batch);
    return error;
}
