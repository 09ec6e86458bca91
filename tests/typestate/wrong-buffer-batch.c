/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef FORGOTTEN_BATCH /* expect: -Wanalyzer-malloc-leak */
int post_and_forget(struct sluice_buffer_service *service,
                    const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_post(service, actions, 2, SLUICE_S(1));

    return batch != NULL;
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_batch(struct sluice_buffer_service *service, const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(service, actions, 2);

    free(batch);
}
#endif

#ifdef FREED_TWICE /* expect: -Wuse-after-free */
void free_twice(struct sluice_buffer_service *service, const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_batch_prepare(service, actions, 2);

    sluice_buffer_batch_free(batch);
    sluice_buffer_batch_free(batch);
}
#endif

#ifdef IGNORED_ARM /* expect: -Wunused-result */
void arm_blindly(struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_arm(batch, NULL);
}
#endif

#ifdef IGNORED_BATCH /* expect: -Wunused-result */
void post_nothing(struct sluice_buffer_service *service, const struct sluice_buffer_action *actions)
{
    sluice_buffer_post(service, actions, 2, SLUICE_S(1));
}
#endif

#ifdef IGNORED_NEXT /* expect: -Wunused-result */
void take_blindly(struct sluice_buffer_batch *batch, struct sluice_completion *completion)
{
    sluice_buffer_batch_next(batch, SLUICE_S(1), completion);
}
#endif

#ifdef IGNORED_POLL /* expect: -Wunused-result */
void poll_blindly(struct sluice_buffer_batch *batch, struct sluice_completion *completions)
{
    sluice_buffer_batch_poll(batch, completions, 2);
}
#endif

#ifdef IGNORED_POST /* expect: -Wunused-result */
void post_blindly(struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_post(batch, SLUICE_S(1));
}
#endif

#ifdef IGNORED_PREPARE /* expect: -Wunused-result */
void prepare_nothing(struct sluice_buffer_service *service,
                     const struct sluice_buffer_action *actions)
{
    sluice_buffer_batch_prepare(service, actions, 2);
}
#endif

#ifdef IGNORED_RESULTS /* expect: -Wunused-result */
void believe(const struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_results(batch, NULL);
}
#endif

#ifdef IGNORED_WAIT /* expect: -Wunused-result */
void wait_blindly(struct sluice_buffer_batch *batch)
{
    sluice_buffer_batch_wait(batch, SLUICE_FOREVER);
}
#endif

#ifdef WAITED_AFTER_FREE /* expect: -Wuse-after-free */
int wait_late(struct sluice_buffer_service *service, const struct sluice_buffer_action *actions)
{
    struct sluice_buffer_batch *batch = sluice_buffer_post(service, actions, 2, SLUICE_S(1));

    sluice_buffer_batch_free(batch);
    return sluice_buffer_batch_wait(batch, SLUICE_FOREVER);
}
#endif
