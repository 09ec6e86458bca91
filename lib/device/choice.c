/* SPDX-License-Identifier: MIT */
/*
 * The choice of a device. Guarantee: it depends only on the list of devices, the names, the
 * distances and the local rank, so a process can tell what another one takes.
 */
#include "config.h"

#include "device/candidates.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"
#include "base/environment.h"
#include "device/device.h"

#define SYSFS "/sys"

/* One element of the list of names. */
struct element {
    const char *text;
    int length;
    char name[64];
    uint32_t port; /* 0: not given */
};

static int fail_element(const struct slu_wish *wish, uint32_t number, const struct element *element,
                        const char *words)
{
    return slu_fail(EINVAL, "%s names '%.64s': element %u, '%.*s', %s", wish->source, wish->names,
                    number, element->length < 80 ? element->length : 80, element->text, words);
}

static bool has_blank(const struct element *element)
{
    for (int i = 0; i < element->length; i++)
        if ((unsigned char)element->text[i] <= ' ')
            return true;
    return false;
}

/* Parses an element, NAME or NAME:PORT; number is its own, from 1. */
static int read_element(const struct slu_wish *wish, uint32_t number, struct element *element)
{
    const char *colon = memchr(element->text, ':', (size_t)element->length);
    int length = colon != NULL ? (int)(colon - element->text) : element->length;
    char port[8] = "";

    if (has_blank(element))
        return fail_element(wish, number, element, "has a blank, which is not allowed");
    if (length == 0)
        return fail_element(wish, number, element, "is empty");
    if (length >= (int)sizeof element->name)
        return fail_element(wish, number, element, "has a name of more than 63 bytes");
    snprintf(element->name, sizeof element->name, "%.*s", length, element->text);
    element->port = 0;
    if (colon == NULL)
        return 0;
    if (snprintf(port, sizeof port, "%.*s", element->length - length - 1, colon + 1) >=
            (int)sizeof port ||
        slu_parse_number(port, 1, 255, &element->port) < 0)
        return fail_element(wish, number, element, "has a port that is no number of 1 to 255");
    return 0;
}

/* Steps to the next element. Returns 1, 0 at the end, or -EINVAL. *number is that of the last. */
static int next_element(const struct slu_wish *wish, uint32_t *number, struct element *element)
{
    const char *last = element->text;
    int error;

    element->text = *number == 0 ? wish->names : last + element->length + 1;
    if (*number > 0 && last[element->length] == '\0')
        return 0;
    element->length = (int)strcspn(element->text, ",");
    error = read_element(wish, ++*number, element);
    return error < 0 ? error : 1;
}

/* Returns the index of the device; the count if none has that name. */
static uint32_t find_device(const struct sluice_device_list *list, const char *name)
{
    uint32_t i = 0;

    while (i < list->count && strcmp(list->devices[i].info.name, name) != 0)
        i++;
    return i;
}

/* Warns about names without a device: the same list may be used on hosts with other devices. */
static void log_absent(const struct sluice_device_list *list, const struct slu_wish *wish)
{
    struct element element = {.text = NULL};
    uint32_t number = 0;

    while (next_element(wish, &number, &element) > 0)
        if (find_device(list, element.name) == list->count)
            slu_log(SLUICE_LOG_WARN, "%s names %s, which this host does not have: ignored",
                    wish->source, element.name);
}

static int fail_absent(const struct sluice_device_list *list, const struct slu_wish *wish)
{
    char names[160] = "";
    size_t used = 0;

    for (uint32_t i = 0; i < list->count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i > 0 ? ", " : "",
                                 list->devices[i].info.name);
    return slu_fail(ENODEV, "no device '%.80s' (named by %s); this host has: %s",
                    wish->names != NULL ? wish->names : "any", wish->source, names);
}

static void add_candidate(struct slu_candidates *candidates, uint32_t index, uint32_t port)
{
    candidates->all[candidates->count++] = (struct slu_candidate){.index = index, .port = port};
}

static int collect_named(const struct sluice_device_list *list, const struct slu_wish *wish,
                         struct slu_candidates *candidates)
{
    struct element element = {.text = NULL};
    uint32_t number = 0;
    int found;

    while ((found = next_element(wish, &number, &element)) > 0) {
        uint32_t index = find_device(list, element.name);

        if (index < list->count)
            add_candidate(candidates, index, element.port);
    }
    return found;
}

static bool is_rdma(const struct sluice_device_list *list, uint32_t index)
{
    return list->devices[index].info.level == SLUICE_LEVEL_NIC;
}

/* Collects all RDMA devices, and soft only if none of them has an active port. */
static void collect_any(const struct sluice_device_list *list, struct slu_candidates *candidates)
{
    bool active = false;

    for (uint32_t i = 0; i < list->count; i++)
        active = active || (is_rdma(list, i) && list->devices[i].info.active);
    for (uint32_t i = 0; i < list->count; i++)
        if (is_rdma(list, i) || !active)
            add_candidate(candidates, i, 0);
}

uint32_t slu_candidate_port(const struct slu_wish *wish, const struct slu_candidate *candidate)
{
    return wish->port != 0 ? wish->port : candidate->port;
}

bool slu_candidate_is_active(const struct sluice_device_list *list, const struct slu_wish *wish,
                             const struct slu_candidate *candidate)
{
    const struct slu_device *device = &list->devices[candidate->index];
    uint32_t port = slu_candidate_port(wish, candidate);

    if (port == 0 || !is_rdma(list, candidate->index))
        return device->info.active != 0;
    return port <= device->info.ports && device->ports[port - 1].active != 0;
}

/* If no candidate is active, marks all as usable: opening the chosen one then reports the cause. */
static void mark_usable(const struct sluice_device_list *list, const struct slu_wish *wish,
                        struct slu_candidates *candidates)
{
    bool any = false;

    for (uint32_t i = 0; i < candidates->count; i++) {
        candidates->all[i].usable = slu_candidate_is_active(list, wish, &candidates->all[i]);
        any = any || candidates->all[i].usable;
    }
    for (uint32_t i = 0; i < candidates->count && !any; i++)
        candidates->all[i].usable = true;
}

/* Takes one of the nearest usable candidates, number local_rank modulo their count. */
static const struct slu_candidate *take_nearest(const struct slu_candidates *candidates,
                                                uint32_t local_rank, struct slu_choice *choice)
{
    const struct slu_candidate *all = candidates->all;
    uint32_t left;

    choice->distance = UINT32_MAX;
    choice->equals = 0;
    for (uint32_t i = 0; i < candidates->count; i++) {
        if (!all[i].usable || all[i].distance > choice->distance)
            continue;
        if (all[i].distance < choice->distance)
            choice->equals = 0;
        choice->distance = all[i].distance;
        choice->equals++;
    }
    left = local_rank % choice->equals;
    choice->place = left + 1;
    while (!all->usable || all->distance != choice->distance || left-- > 0)
        all++;
    return all;
}

/* Logs unusable candidates, as a warning if soft was chosen instead of an RDMA device. */
static void log_passed_over(const struct sluice_device_list *list,
                            const struct slu_candidates *candidates,
                            const struct slu_choice *choice)
{
    bool rdma = is_rdma(list, choice->index);

    for (uint32_t i = 0; i < candidates->count; i++) {
        const struct sluice_device_info *info = &list->devices[candidates->all[i].index].info;

        if (!candidates->all[i].usable)
            slu_log(rdma ? SLUICE_LOG_INFO : SLUICE_LOG_WARN, "device %s is passed over: %s",
                    info->name, info->description);
    }
}

const struct slu_candidate *slu_candidates_choose(const struct sluice_device_list *list,
                                                  const struct slu_wish *wish,
                                                  const struct slu_near *near,
                                                  struct slu_candidates *candidates,
                                                  struct slu_choice *choice)
{
    const struct slu_candidate *taken;

    mark_usable(list, wish, candidates);
    for (uint32_t i = 0; i < candidates->count; i++) {
        struct slu_candidate *candidate = &candidates->all[i];
        int32_t node = list->devices[candidate->index].info.numa_node;

        candidate->distance =
            is_rdma(list, candidate->index) ? slu_near_distance(near, node) : SLU_DISTANCE_OF_SOFT;
    }
    taken = take_nearest(candidates, wish->local_rank, choice);
    choice->index = taken->index;
    choice->port = slu_candidate_port(wish, taken);
    return taken;
}

static void log_ports(const struct sluice_device_list *list, const struct slu_wish *wish,
                      const struct slu_candidate *taken, const struct slu_choice *choice)
{
    if (taken->port != 0 && taken->port != choice->port)
        slu_log(SLUICE_LOG_WARN,
                "%s names port %u of %s, the attributes name port %u, which is used", wish->source,
                taken->port, list->devices[taken->index].info.name, choice->port);
}

/* Returns the number of names; 0 if any device will do. */
static uint32_t count_named(const struct slu_wish *wish)
{
    uint32_t count = wish->names != NULL;

    for (const char *at = wish->names; at != NULL && *at != '\0'; at++)
        count += *at == ',';
    return count;
}

int slu_candidates_collect(const struct sluice_device_list *list, const struct slu_wish *wish,
                           struct slu_candidates *candidates)
{
    uint32_t most = wish->names != NULL ? count_named(wish) : list->count;
    int error = 0;

    *candidates = (struct slu_candidates){.all = calloc(most + 1, sizeof *candidates->all)};
    if (candidates->all == NULL)
        return slu_fail(ENOMEM, "no memory for a choice of %u devices", most);
    if (wish->names != NULL)
        error = collect_named(list, wish, candidates);
    else
        collect_any(list, candidates);
    if (error == 0 && candidates->count == 0)
        error = fail_absent(list, wish);
    if (error < 0)
        free(candidates->all);
    return error;
}

int slu_choose(const struct sluice_device_list *list, const struct slu_wish *wish,
               const struct slu_near *near, struct slu_choice *choice)
{
    struct slu_candidates candidates;
    int error = slu_candidates_collect(list, wish, &candidates);

    if (error < 0)
        return error;
    if (candidates.count < count_named(wish))
        log_absent(list, wish);
    log_ports(list, wish, slu_candidates_choose(list, wish, near, &candidates, choice), choice);
    log_passed_over(list, &candidates, choice);
    free(candidates.all);
    return 0;
}

/* Gets the names from the caller or SLUICE_DEVICE; without either, any device will do. */
static int read_names(const char *names, struct slu_wish *wish)
{
    int found = 0;

    wish->names = names;
    wish->source = "the caller";
    if (names == NULL) {
        found = slu_env_text(SLU_ENV_DEVICE, &wish->names);
        wish->source = found != 0 ? slu_env_name(SLU_ENV_DEVICE) : "preference";
    }
    return found < 0 ? found : 0;
}

void slu_near_read_here(struct slu_near *near)
{
    struct slu_cpus cpus;

    slu_cpus_read(&cpus);
    slu_near_read(SYSFS, &cpus, near);
}

void slu_choice_describe(const struct slu_wish *wish, const struct slu_choice *choice, char *text,
                         size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    if (choice->distance == SLU_NEAR_UNKNOWN)
        used = (size_t)snprintf(text, size, ", NUMA distance not known");
    else if (choice->distance != SLU_DISTANCE_OF_SOFT)
        used = (size_t)snprintf(text, size, ", NUMA distance %u", choice->distance);
    if (choice->equals > 1)
        snprintf(text + used, size - used, ", %u of %u equally near for local rank %u (%s)",
                 choice->place, choice->equals, wish->local_rank,
                 wish->local_by != NULL ? wish->local_by : "not set by a launcher");
}

static void log_choice(const struct sluice_device_list *list, const struct slu_wish *wish,
                       const struct slu_choice *choice)
{
    const struct sluice_device_info *info = &list->devices[choice->index].info;
    char port[16] = "", why[160];

    if (choice->port != 0)
        snprintf(port, sizeof port, ":%u", choice->port);
    slu_choice_describe(wish, choice, why, sizeof why);
    slu_log(SLUICE_LOG_INFO, "device %s%s chosen by %s%s: %s", info->name, port, wish->source, why,
            info->description);
}

/* The local rank is not read if one device is named, since there is nothing to choose. */
int slu_wish_read(const char *names, uint32_t port, struct slu_wish *wish)
{
    int error;

    *wish = (struct slu_wish){.port = port};
    error = read_names(names, wish);
    if (error == 0 && (wish->names == NULL || strchr(wish->names, ',') != NULL))
        error = slu_local_rank(&wish->local_rank, &wish->local_by);
    return error;
}

int slu_choose_here(const struct sluice_device_list *list, const char *names, uint32_t port,
                    struct slu_choice *choice)
{
    struct slu_wish wish;
    struct slu_near near;
    int error = slu_wish_read(names, port, &wish);

    if (error < 0)
        return error;
    slu_near_read_here(&near);
    error = slu_choose(list, &wish, &near, choice);
    if (error == 0)
        log_choice(list, &wish, choice);
    return error;
}

int slu_names_check(const char *names, const char *source)
{
    const struct slu_wish wish = {.names = names, .source = source};
    struct element element = {.text = NULL};
    uint32_t number = 0;
    int found;

    do
        found = next_element(&wish, &number, &element);
    while (found > 0);
    return found;
}

int sluice_device_list_nearest(const struct sluice_device_list *list, uint32_t local_rank)
{
    struct slu_wish wish = {.local_rank = local_rank, .local_by = "the caller"};
    struct slu_choice choice;
    struct slu_near near;
    int error;

    if (list == NULL)
        return slu_misuse(EINVAL, "device list must not be NULL%s", slu_none_hint(list));
    error = read_names(NULL, &wish);
    if (error < 0)
        return error;
    slu_near_read_here(&near);
    error = slu_choose(list, &wish, &near, &choice);
    return error < 0 ? error : (int)choice.index;
}
