/* SPDX-License-Identifier: MIT */
/*
 * Explains the choice of a device: for each device, why it is taken or why not. Guarantee: it
 * uses the same functions as the choice that opening a context makes.
 */
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "device/candidates.h"
#include "device/device.h"

/* Returns the verdict on a device; candidate is NULL if it was not a candidate. */
static uint32_t judge(const struct slu_candidate *candidate, const struct slu_candidate *taken,
                      const struct slu_wish *wish, const struct slu_choice *choice)
{
    if (candidate == NULL)
        return wish->names != NULL ? SLUICE_CHOICE_NOT_NAMED : SLUICE_CHOICE_LAST_RESORT;
    if (candidate == taken)
        return SLUICE_CHOICE_TAKEN;
    if (!candidate->usable)
        return SLUICE_CHOICE_NOT_ACTIVE;
    return candidate->distance > choice->distance ? SLUICE_CHOICE_FARTHER
                                                  : SLUICE_CHOICE_OTHER_RANK;
}

/* Returns the best candidate of a device, which may be named more than once; NULL: none. */
static const struct slu_candidate *find_closest(const struct slu_candidates *candidates,
                                                uint32_t index, const struct slu_candidate *taken,
                                                const struct slu_wish *wish,
                                                const struct slu_choice *choice)
{
    const struct slu_candidate *closest = NULL;

    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct slu_candidate *candidate = &candidates->all[i];

        if (candidate->index == index &&
            (closest == NULL ||
             judge(candidate, taken, wish, choice) < judge(closest, taken, wish, choice)))
            closest = candidate;
    }
    return closest;
}

static const char *distance_text(uint32_t distance, char *text, size_t size)
{
    if (distance == SLU_NEAR_UNKNOWN)
        return "not known";
    snprintf(text, size, "%u", distance);
    return text;
}

static void explain_taken(const struct sluice_device_list *list, const struct slu_wish *wish,
                          const struct slu_choice *choice, struct sluice_choice_info *info)
{
    size_t used = (size_t)snprintf(info->reason, sizeof info->reason, "chosen by %s", wish->source);
    const struct slu_candidate one = {.index = choice->index, .port = choice->port};

    slu_choice_describe(wish, choice, info->reason + used, sizeof info->reason - used);
    used = strlen(info->reason);
    if (!slu_candidate_is_active(list, wish, &one))
        snprintf(info->reason + used, sizeof info->reason - used,
                 "; it is not active, but neither is any other candidate");
}

static void explain_farther(const struct sluice_device_list *list, const struct slu_candidate *one,
                            const struct slu_choice *choice, struct sluice_choice_info *info)
{
    const char *nearest = list->devices[choice->index].info.name;
    char own[16], other[16];

    if (one->distance == SLU_DISTANCE_OF_SOFT)
        snprintf(info->reason, sizeof info->reason,
                 "soft is taken only where no RDMA device of those named is active");
    else
        snprintf(info->reason, sizeof info->reason,
                 "farther from this thread's CPUs: its NUMA distance is %s, that of %s is %s",
                 distance_text(one->distance, own, sizeof own), nearest,
                 distance_text(choice->distance, other, sizeof other));
}

static void explain_inactive(const struct sluice_device_list *list, const struct slu_wish *wish,
                             const struct slu_candidate *one, struct sluice_choice_info *info)
{
    const struct slu_device *device = &list->devices[one->index];
    uint32_t port = slu_candidate_port(wish, one);
    const char *what = device->info.description;

    if (port > device->info.ports)
        what = "the device has no such port";
    else if (port != 0)
        what = device->ports[port - 1].description;
    if (port != 0)
        snprintf(info->reason, sizeof info->reason, "port %u is not active: %s", port, what);
    else
        snprintf(info->reason, sizeof info->reason, "not active: %s", what);
}

static void explain(const struct sluice_device_list *list, const struct slu_wish *wish,
                    const struct slu_candidate *one, const struct slu_choice *choice,
                    struct sluice_choice_info *info)
{
    const char *taken = list->devices[choice->index].info.name;

    switch (info->verdict) {
    case SLUICE_CHOICE_TAKEN:
        explain_taken(list, wish, choice, info);
        break;
    case SLUICE_CHOICE_OTHER_RANK:
        snprintf(info->reason, sizeof info->reason,
                 "as near as %s, but for local ranks other than %u", taken, wish->local_rank);
        break;
    case SLUICE_CHOICE_FARTHER:
        explain_farther(list, one, choice, info);
        break;
    case SLUICE_CHOICE_NOT_ACTIVE:
        explain_inactive(list, wish, one, info);
        break;
    case SLUICE_CHOICE_LAST_RESORT:
        snprintf(info->reason, sizeof info->reason,
                 "soft is taken only where no RDMA device is active, and %s is", taken);
        break;
    default:
        snprintf(info->reason, sizeof info->reason, "%s names '%.128s'", wish->source, wish->names);
    }
}

static void fill_info(const struct sluice_device_list *list, const struct slu_wish *wish,
                      const struct slu_candidate *one, const struct slu_choice *choice,
                      struct sluice_choice_info *info)
{
    if (one != NULL) {
        info->port = slu_candidate_port(wish, one);
        if (one->distance < SLU_NEAR_UNKNOWN)
            info->distance = one->distance;
    }
    info->local_rank = wish->local_rank;
    if (info->verdict == SLUICE_CHOICE_TAKEN) {
        info->place = choice->place;
        info->equals = choice->equals;
    }
    snprintf(info->source, sizeof info->source, "%s", wish->source);
    snprintf(info->rank_source, sizeof info->rank_source, "%s",
             wish->local_by != NULL ? wish->local_by : "");
    explain(list, wish, one, choice, info);
}

static int look_at(const struct sluice_device_list *list, const struct slu_wish *wish,
                   uint32_t index, struct sluice_choice_info *info)
{
    const struct slu_candidate *taken, *one;
    struct slu_candidates candidates;
    struct slu_choice choice;
    struct slu_near near;
    int error = slu_candidates_collect(list, wish, &candidates);

    if (error < 0)
        return error;
    slu_near_read_here(&near);
    taken = slu_candidates_choose(list, wish, &near, &candidates, &choice);
    one = find_closest(&candidates, index, taken, wish, &choice);
    info->verdict = judge(one, taken, wish, &choice);
    fill_info(list, wish, one, &choice, info);
    free(candidates.all);
    return 0;
}

int sluice_device_list_choice(const struct sluice_device_list *list, uint32_t index,
                              const char *device, struct sluice_choice_info *info)
{
    struct sluice_choice_info found = {.size = sizeof found};
    struct slu_wish wish;
    int error = SLU_INFO_CHECK(sluice_choice_info, info);

    if (error == 0 && list == NULL)
        error = slu_misuse(EINVAL, "device list must not be NULL%s", slu_none_hint(list));
    if (error == 0 && index >= list->count)
        error = slu_fail(ERANGE, "device index %u is not in 0..%u", index, list->count - 1);
    if (error == 0)
        error = slu_wish_read(device, 0, &wish);
    if (error == 0)
        error = look_at(list, &wish, index, &found);
    if (error == 0)
        slu_info_copy(info, &found, sizeof *info);
    return error;
}
