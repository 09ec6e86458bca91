/* SPDX-License-Identifier: MIT */
#include <stddef.h>
#include <stdlib.h>

#include <sluice.h>

#ifdef FORGOTTEN_WRAPPED /* expect: -Wanalyzer-malloc-leak */
#include <sluice/verbs.h>

int wrap_and_forget(struct ibv_context *ibv, struct sluice_context_info *info)
{
    struct sluice_context *context = sluice_verbs_context_wrap(ibv, NULL);

    return sluice_context_query(context, info);
}
#endif

#ifdef FORGOTTEN /* expect: -Wanalyzer-malloc-leak */
int open_and_forget(struct sluice_context_info *info)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);

    return sluice_context_query(context, info);
}
#endif

#ifdef FREE /* expect: -Wmismatched-dealloc */
void free_context(void)
{
    struct sluice_context *context = sluice_context_open("soft", NULL);

    free(context);
}
#endif

#ifdef IGNORED /* expect: -Wunused-result */
void open_nothing(void)
{
    sluice_context_open("soft", NULL);
}
#endif

#ifdef PD_AFTER_CLOSE /* expect: -Wuse-after-free */
struct sluice_pd *alloc_late(void)
{
    struct sluice_context *context = sluice_context_open(NULL, NULL);

    sluice_context_close(context);
    return sluice_pd_alloc(context);
}
#endif
