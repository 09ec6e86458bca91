/* SPDX-License-Identifier: MIT */
/* Prepared lists of a channel and of a multichannel. */
#include "config.h"

#include <stdlib.h>

#include <sluice/list.h>

#include "channel/channel.h"
#include "engine/list/list.h"
#include "memory/release.h"
#include "multichannel/multichannel.h"
#include "scope/scope.h"

struct sluice_list {
    uint32_t magic;
    struct slu_list *list;
};

static bool is_list(const struct sluice_list *list)
{
    return SLU_LIKELY(list != NULL && list->magic == SLU_MAGIC_LIST);
}

static int not_a_list(const struct sluice_list *list)
{
    return slu_misuse(EINVAL, "not a list%s", slu_none_hint(list));
}

static struct sluice_list *prepare(struct slu_engine *engine, const struct sluice_request *requests,
                                   uint32_t count)
{
    struct sluice_list *list;
    int error;

    if (engine == NULL)
        return slu_none(-EINVAL);
    list = calloc(1, sizeof *list);
    if (list == NULL)
        return slu_fail_null(ENOMEM, "no memory for a list");
    error = slu_list_create(engine, requests, count, &list->list);
    if (error < 0) {
        free(list);
        return slu_none(error);
    }
    list->magic = SLU_MAGIC_LIST;
    slu_made();
    return list;
}

struct sluice_list *sluice_channel_list_prepare(struct sluice_channel *channel,
                                                const struct sluice_request *requests,
                                                uint32_t count)
{
    return prepare(slu_engine_of(channel), requests, count);
}

struct sluice_list *sluice_multichannel_list_prepare(struct sluice_multichannel *multichannel,
                                                     const struct sluice_request *requests,
                                                     uint32_t count)
{
    return prepare(slu_engine_of_many(multichannel), requests, count);
}

void sluice_list_free(struct sluice_list *list)
{
    if (!slu_may_end(list, SLU_MAGIC_LIST, "list"))
        return;
    list->magic = SLU_MAGIC_DEAD;
    slu_list_destroy(list->list);
    free(list);
    if (slu_has_releases())
        slu_releases_look();
}

int sluice_list_aim(struct sluice_list *list, uint32_t index, const struct sluice_sge *sge,
                    uint64_t remote_offset)
{
    return is_list(list) ? slu_list_aim(list->list, index, sge, remote_offset) : not_a_list(list);
}

int sluice_list_set_length(struct sluice_list *list, uint32_t index, uint64_t length)
{
    return is_list(list) ? slu_list_set_length(list->list, index, length) : not_a_list(list);
}

int sluice_scope_post_list(struct sluice_scope *scope, struct sluice_list *list,
                           struct sluice_handle *handles)
{
    return is_list(list) ? slu_scope_post_prepared(scope, list->list, handles) : not_a_list(list);
}

int sluice_list_submit(struct sluice_list *list, int64_t deadline,
                       struct sluice_completion *completions)
{
    return is_list(list) ? slu_list_submit(list->list, deadline, completions) : not_a_list(list);
}

int sluice_list_post(struct sluice_list *list, int64_t deadline,
                     struct sluice_completion *completions)
{
    return is_list(list) ? slu_list_post(list->list, deadline, completions) : not_a_list(list);
}

int sluice_list_wait(struct sluice_list *list, int64_t timeout)
{
    return is_list(list) ? slu_list_wait(list->list, timeout) : not_a_list(list);
}

int sluice_list_result(const struct sluice_list *list)
{
    return is_list(list) ? slu_list_result(list->list) : not_a_list(list);
}
