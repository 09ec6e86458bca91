/* SPDX-License-Identifier: MIT */
/* The table of the variables that the library knows, and how they are read. */
#include "config.h"

#include "base/environment.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <sluice/exchange.h>
#include <sluice/log.h>

#include "base/error.h"

/* A choice of words; a number of low to high; or a text of at most high bytes. */
struct variable {
    const char *name;
    const char *purpose;
    uint32_t low, high;
    const char *choices[6];
    uint32_t preset;          /* index of the default among the choices; 0 for other kinds */
    const char *default_text; /* the default as shown to users; NULL: the default choice */
};

static const struct variable table[SLU_ENV_COUNT] = {
    [SLU_ENV_DEVICE] = {.name = "SLUICE_DEVICE",
                        .purpose = "the devices to choose from",
                        .high = 4095,
                        .default_text = "the nearest"},
    [SLU_ENV_EXCHANGE] = {.name = "SLUICE_EXCHANGE",
                          .purpose = "what carries an exchange",
                          .choices = {"auto", "tcp", "pmix"}},
    [SLU_ENV_HOST_FILE] = {.name = "SLUICE_HOST_FILE",
                           .purpose = "the file of all hosts",
                           .high = PATH_MAX - 1,
                           .default_text = "none"},
    [SLU_ENV_JOB] = {.name = "SLUICE_JOB",
                     .purpose = "the name of the job",
                     .high = 63,
                     .default_text = "the launcher's"},
    [SLU_ENV_LOCAL_RANK] = {.name = "SLUICE_LOCAL_RANK",
                            .purpose = "the rank of this process on its host",
                            .high = SLUICE_MAX_RANKS - 1,
                            .default_text = "the launcher's"},
    [SLU_ENV_LOG] = {.name = "SLUICE_LOG",
                     .purpose = "how much is logged",
                     .choices = {"none", "error", "warn", "info", "debug"},
                     .preset = SLUICE_LOG_WARN},
    [SLU_ENV_MISUSE] = {.name = "SLUICE_MISUSE",
                        .purpose = "what a mistake of the program does",
                        .choices = {"abort"},
                        .default_text = "none"},
    [SLU_ENV_MUNGE] = {.name = "SLUICE_MUNGE",
                       .purpose = "the socket of munge, or no",
                       .high = 107,
                       .default_text = "where it is found"},
    [SLU_ENV_RANK] = {.name = "SLUICE_RANK",
                      .purpose = "the rank of this process",
                      .high = SLUICE_MAX_RANKS - 1,
                      .default_text = "the launcher's"},
    [SLU_ENV_RANKS] = {.name = "SLUICE_RANKS",
                       .purpose = "the number of ranks",
                       .low = 1,
                       .high = SLUICE_MAX_RANKS,
                       .default_text = "the launcher's"},
    [SLU_ENV_ROOT] = {.name = "SLUICE_ROOT",
                      .purpose = "host:port of rank 0",
                      .high = 255,
                      .default_text = "the launcher's"},
    [SLU_ENV_SECRET_FILE] = {.name = "SLUICE_SECRET_FILE",
                             .purpose = "the file of the secret",
                             .high = PATH_MAX - 1,
                             .default_text = "none"},
    [SLU_ENV_TCP_ADDRESS] = {.name = "SLUICE_TCP_ADDRESS",
                             .purpose = "where soft listens",
                             .high = NAME_MAX,
                             .default_text = "all addresses"},
    [SLU_ENV_WIRE] = {.name = "SLUICE_WIRE",
                      .purpose = "what carries soft between processes",
                      .choices = {"auto", "tcp", "shm"}},
};

const char *slu_env_name(enum slu_variable variable)
{
    return table[variable].name;
}

const char *slu_env_purpose(enum slu_variable variable)
{
    return table[variable].purpose;
}

const char *const *slu_env_choices(enum slu_variable variable, uint32_t *preset)
{
    *preset = table[variable].preset;
    return table[variable].choices;
}

const char *slu_env_default(enum slu_variable variable)
{
    const struct variable *known = &table[variable];

    return known->default_text != NULL ? known->default_text : known->choices[known->preset];
}

void slu_env_range(enum slu_variable variable, uint32_t *low, uint32_t *high)
{
    *low = table[variable].low;
    *high = table[variable].high;
}

const char *slu_getenv(const char *name)
{
    const char *value = getenv(name);

    return value != NULL && *value != '\0' ? value : NULL;
}

const char *slu_env_value(enum slu_variable variable)
{
    return slu_getenv(table[variable].name);
}

int slu_env_find_choice(enum slu_variable variable, const char *value)
{
    const char *const *words = table[variable].choices;

    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], value) == 0)
            return i;
    return -1;
}

int slu_parse_number(const char *text, uint32_t low, uint32_t high, uint32_t *value)
{
    uint64_t number = 0;

    if (*text == '\0')
        return -EINVAL;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return -EINVAL;
        number = number * 10 + (uint64_t)(*text - '0');
        if (number > high)
            return -EINVAL;
    }
    if (number < low)
        return -EINVAL;
    *value = (uint32_t)number;
    return 0;
}

int slu_env_number(enum slu_variable variable, uint32_t *value)
{
    const struct variable *known = &table[variable];
    const char *text = slu_env_value(variable);

    if (text == NULL)
        return 0;
    if (slu_parse_number(text, known->low, known->high, value) == 0)
        return 1;
    return slu_fail(EINVAL, "%s (%s) is '%.64s', must be a number of %u to %u", known->name,
                    known->purpose, text, known->low, known->high);
}

int slu_env_text(enum slu_variable variable, const char **value)
{
    const struct variable *known = &table[variable];
    const char *text = slu_env_value(variable);

    if (text == NULL)
        return 0;
    if (strlen(text) > known->high)
        return slu_fail(EINVAL, "%s (%s) has %zu bytes, can have at most %u", known->name,
                        known->purpose, strlen(text), known->high);
    *value = text;
    return 1;
}
