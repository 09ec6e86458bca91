/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
int alloc_and_forget(struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);

    return pd ? 0 : -1;
}
#endif

#ifdef FREE_WRAPPED /* expect: -Wmismatched-dealloc */
#include <sluice/verbs.h>

void free_pd(struct sluice_context *context, struct ibv_pd *ibv)
{
    struct sluice_pd *pd = sluice_verbs_pd_wrap(context, ibv);

    free(pd);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_pd(struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);

    free(pd);
}
#endif

#ifdef IGNORED /* expect: -Wunused-result */
void alloc_nothing(struct sluice_context *context)
{
    sluice_pd_alloc(context);
}
#endif

#ifdef OF_DEVICE_LIST /* expect: -Wincompatible-pointer-types */
struct sluice_pd *alloc_of_list(struct sluice_device_list *list)
{
    return sluice_pd_alloc(list);
}
#endif

#ifdef PREPARE_AFTER_FREE /* expect: -Wuse-after-free */
struct sluice_prepared_channel *prepare_late(struct sluice_context *context)
{
    struct sluice_pd *pd = sluice_pd_alloc(context);

    sluice_pd_free(pd);
    return sluice_channel_prepare(pd, NULL);
}
#endif
