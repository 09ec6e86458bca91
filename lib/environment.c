/* SPDX-License-Identifier: MIT */
/*
 * The environment: one table of the variables that the library has, and how they
 * are read. Who misspells one is told so.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <sluice/exchange.h>

#include "environment.h"
#include "internal.h"

#define PREFIX "SLUICE_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

/* No name of the table is longer; a longer one is nowhere near. */
#define LONGEST 31
/*
 * Two slips of the keyboard, and in a third of the letters after the prefix at most:
 * more make another name.
 */
#define NEAR 2
#define NEAR_SHARE 3

/* One of the words; a number of low to high; or a text of up to high bytes. */
struct variable {
    const char *name;
    const char *what; /* it is for */
    uint32_t low, high;
    const char *words[6];
    uint32_t preset; /* the place of the default among the words; all others have none */
};

static const struct variable table[SLU_ENV_COUNT] = {
    [SLU_ENV_DEVICE] = {.name = "SLUICE_DEVICE",
                        .what = "the devices to choose from",
                        .high = 4095},
    [SLU_ENV_EXCHANGE] = {.name = "SLUICE_EXCHANGE",
                          .what = "what carries an exchange",
                          .words = {"auto", "tcp", "pmix"}},
    [SLU_ENV_HOST_FILE] = {.name = "SLUICE_HOST_FILE",
                           .what = "the file of all hosts",
                           .high = PATH_MAX - 1},
    [SLU_ENV_JOB] = {.name = "SLUICE_JOB", .what = "the name of the job", .high = 63},
    [SLU_ENV_LOCAL_RANK] = {.name = "SLUICE_LOCAL_RANK",
                            .what = "the rank of this process on its host",
                            .high = SLUICE_MAX_RANKS - 1},
    [SLU_ENV_LOG] = {.name = "SLUICE_LOG",
                     .what = "how much is logged",
                     .words = {"none", "error", "warn", "info", "debug"},
                     .preset = SLUICE_LOG_WARN},
    [SLU_ENV_MISUSE] = {.name = "SLUICE_MISUSE",
                        .what = "what a mistake of the program does",
                        .words = {"abort"}},
    [SLU_ENV_MUNGE] = {.name = "SLUICE_MUNGE", .what = "the socket of munge, or no", .high = 107},
    [SLU_ENV_RANK] = {.name = "SLUICE_RANK",
                      .what = "the rank of this process",
                      .high = SLUICE_MAX_RANKS - 1},
    [SLU_ENV_RANKS] = {.name = "SLUICE_RANKS",
                       .what = "the number of ranks",
                       .low = 1,
                       .high = SLUICE_MAX_RANKS},
    [SLU_ENV_ROOT] = {.name = "SLUICE_ROOT", .what = "host:port of rank 0", .high = 255},
    [SLU_ENV_SECRET_FILE] = {.name = "SLUICE_SECRET_FILE",
                             .what = "the file of the secret",
                             .high = PATH_MAX - 1},
    [SLU_ENV_TCP_ADDRESS] = {.name = "SLUICE_TCP_ADDRESS",
                             .what = "where soft listens",
                             .high = NAME_MAX},
};

/* Of the tests and the tools, which have no place in the table of the library. */
static const char *const foreign[] = {"SLUICE_FAKE_", "SLUICE_FUZZ_", "SLUICE_TEST_"};

const char *slu_env_name(enum slu_variable variable)
{
    return table[variable].name;
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

int slu_env_find_word(enum slu_variable variable, const char *value)
{
    const char *const *words = table[variable].words;

    for (int i = 0; words[i] != NULL; i++)
        if (strcmp(words[i], value) == 0)
            return i;
    return -1;
}

/* "a, b or c" */
static void list_words(const char *const *words, char *text, size_t size)
{
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; words[i] != NULL && used < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";

        used += (size_t)snprintf(text + used, size - used, "%s%s", between, words[i]);
    }
}

uint32_t slu_env_word(enum slu_variable variable)
{
    const struct variable *known = &table[variable];
    const char *value = slu_env_value(variable);
    char allowed[80];
    int found;

    if (value == NULL)
        return known->preset;
    found = slu_env_find_word(variable, value);
    if (found >= 0)
        return (uint32_t)found;
    list_words(known->words, allowed, sizeof allowed);
    slu_log(SLUICE_LOG_ERROR, "%s (%s) is '%.64s', must be %s; using %s", known->name, known->what,
            value, allowed, known->words[known->preset]);
    return known->preset;
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
                    known->what, text, known->low, known->high);
}

int slu_env_text(enum slu_variable variable, const char **value)
{
    const struct variable *known = &table[variable];
    const char *text = slu_env_value(variable);

    if (text == NULL)
        return 0;
    if (strlen(text) > known->high)
        return slu_fail(EINVAL, "%s (%s) has %zu bytes, can have %u", known->name, known->what,
                        strlen(text), known->high);
    *value = text;
    return 1;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* How many letters must be put in, left out or changed to make the one of the other. */
static uint32_t edit_distance(const char *from, size_t length, const char *to)
{
    uint32_t row[LONGEST + 1];
    size_t columns = strlen(to);

    for (size_t j = 0; j <= columns; j++)
        row[j] = (uint32_t)j;
    for (size_t i = 1; i <= length; i++) {
        uint32_t diagonal = row[0];

        row[0] = (uint32_t)i;
        for (size_t j = 1; j <= columns; j++) {
            uint32_t above = row[j];
            uint32_t changed = diagonal + (from[i - 1] != to[j - 1]);

            row[j] = least(changed, least(above, row[j - 1]) + 1);
            diagonal = above;
        }
    }
    return row[columns];
}

static const char *nearest(const char *name, size_t length)
{
    const char *found = NULL;
    uint32_t best = NEAR + 1;

    if (length > LONGEST)
        return NULL;
    for (uint32_t i = 0; i < SLU_ENV_COUNT; i++) {
        uint32_t distance = edit_distance(name, length, table[i].name);
        size_t letters = strlen(table[i].name) - PREFIX_LENGTH;

        if (distance < best && distance * NEAR_SHARE <= letters) {
            best = distance;
            found = table[i].name;
        }
    }
    return found;
}

static bool is_foreign(const char *entry)
{
    for (size_t i = 0; i < sizeof foreign / sizeof foreign[0]; i++)
        if (strncmp(entry, foreign[i], strlen(foreign[i])) == 0)
            return true;
    return false;
}

static bool is_known(const char *name, size_t length)
{
    for (uint32_t i = 0; i < SLU_ENV_COUNT; i++)
        if (strlen(table[i].name) == length && memcmp(table[i].name, name, length) == 0)
            return true;
    return false;
}

void slu_env_check_names(void)
{
    /* Not pthread_once(): the program's log function may come back here. */
    static atomic_flag checked = ATOMIC_FLAG_INIT;

    if (atomic_flag_test_and_set(&checked) || environ == NULL)
        return;
    for (char **entry = environ; *entry != NULL; entry++) {
        size_t length = strcspn(*entry, "=");
        const char *meant;

        if (strncmp(*entry, PREFIX, PREFIX_LENGTH) != 0 || is_foreign(*entry) ||
            is_known(*entry, length))
            continue;
        meant = nearest(*entry, length);
        slu_log(SLUICE_LOG_WARN, "%.*s is no variable of sluice%s%s%s",
                (int)(length < 64 ? length : 64), *entry, meant != NULL ? "; was " : "",
                meant != NULL ? meant : "", meant != NULL ? " meant?" : "");
    }
}
