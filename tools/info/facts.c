/* SPDX-License-Identifier: MIT */
/* Finds all facts. */
#include "info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *facts_grow(void *array, uint32_t *count, size_t bytes)
{
    char *grown = reallocarray(array, *count + 1, bytes);

    if (grown == NULL) {
        fputs("sluice-info: no memory for the facts\n", stderr);
        exit(STATUS_FAILED);
    }
    memset(grown + *count * bytes, 0, bytes);
    (*count)++;
    return grown;
}

static void environment_find(struct facts *facts)
{
    struct sluice_variable_info info = {.size = sizeof info};

    watch_step("reading the environment");
    while (sluice_environment_variable(facts->variable_count, &info) == 0) {
        facts->variables =
            facts_grow(facts->variables, &facts->variable_count, sizeof *facts->variables);
        facts->variables[facts->variable_count - 1] = info;
    }
}

/* Keeps the first warning about launchers that contradict each other. */
static void keep_warning(uint32_t level, const char *line, void *user)
{
    struct facts *facts = user;

    if (level <= SLUICE_LOG_WARN && facts->launch_warning[0] == '\0' &&
        strstr(line, "which is used") != NULL)
        snprintf(facts->launch_warning, sizeof facts->launch_warning, "%s", line);
}

static void ignore_line(uint32_t level, const char *line, void *user)
{
    (void)level;
    (void)line;
    (void)user;
}

static void launch_find(struct facts *facts)
{
    watch_step("looking for a launcher");
    facts->launch.size = sizeof facts->launch;
    sluice_log_set(SLUICE_LOG_WARN, keep_warning, facts);
    facts->launch_result = sluice_launch_query(&facts->launch);
    if (facts->launch_result < 0)
        snprintf(facts->launch_error, sizeof facts->launch_error, "%s", sluice_last_error());
    sluice_log_set(SLUICE_LOG_NONE, ignore_line, NULL);
}

void facts_find(struct facts *facts, const struct options *options, uint32_t needs)
{
    *facts = (struct facts){.options = options};
    /* Do not let the library log: its warnings are printed in the sections. */
    sluice_log_set(SLUICE_LOG_NONE, ignore_line, NULL);
    if ((needs & NEEDS_HOST) != 0)
        host_find(&facts->host);
    if ((needs & NEEDS_ENVIRONMENT) != 0)
        environment_find(facts);
    if ((needs & NEEDS_LAUNCH) != 0)
        launch_find(facts);
    if ((needs & NEEDS_DEVICES) != 0) {
        kernel_find(&facts->kernel);
        devices_find(facts);
    }
    watch_step("printing the facts");
}

void facts_free(struct facts *facts)
{
    for (uint32_t i = 0; i < facts->device_count; i++) {
        free(facts->devices[i].ports);
        free(facts->devices[i].gids);
    }
    free(facts->kernel.devices);
    free(facts->devices);
    free(facts->variables);
    free(facts->advice);
}
