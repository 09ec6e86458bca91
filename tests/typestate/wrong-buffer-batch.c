/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#include "wrong.h"

WRONG(forgotten_batch, "-Wanalyzer-malloc-leak", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_post(service, actions, 2, SLUICE_S(1));
    return batch != NULL;
}

WRONG(free, "-Wmismatched-dealloc", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(service, actions, 2);
    free(batch);
}

WRONG(freed_twice, "-Wuse-after-free", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(service, actions, 2);
    sluice_buffer_batch_free(batch);
    sluice_buffer_batch_free(batch);
}

WRONG(ignored_arm, "-Wunused-result", struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_arm(batch, NULL);
}

WRONG(ignored_batch, "-Wunused-result", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    sluice_buffer_post(service, actions, 2, SLUICE_S(1));
}

WRONG(ignored_next, "-Wunused-result", struct sluice_buffer_batch *batch,
      struct sluice_completion *completion)
{
    sluice_buffer_batch_next(batch, SLUICE_S(1), completion);
}

WRONG(ignored_poll, "-Wunused-result", struct sluice_buffer_batch *batch,
      struct sluice_completion *completions)
{
    sluice_buffer_batch_poll(batch, completions, 2);
}

WRONG(ignored_post, "-Wunused-result", struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_post(batch, SLUICE_S(1));
}

WRONG(ignored_prepare, "-Wunused-result", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    sluice_buffer_batch_prepare(service, actions, 2);
}

WRONG(ignored_results, "-Wunused-result", const struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_results(batch, NULL);
}

WRONG(ignored_wait, "-Wunused-result", struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_wait(batch, SLUICE_FOREVER);
}

WRONG(waited_after_free, "-Wuse-after-free", struct sluice_buffer_service *service,
      const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_post(service, actions, 2, SLUICE_S(1));
    sluice_buffer_batch_free(batch);
    return sluice_buffer_batch_wait(batch, SLUICE_FOREVER);
}
