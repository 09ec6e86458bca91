/* SPDX-License-Identifier: MIT */
/*
 * Reports misspelt variables of the library, and invalid choices in them. Variables of tests and
 * tools are left alone.
 */
#include "config.h"

#include "base/env_check.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"

#define PREFIX "SLUICE_"
#define PREFIX_LENGTH (sizeof PREFIX - 1)

/* No name in the table is longer. A longer name is not similar to any. */
#define LONGEST 31
/*
 * At most two typing errors, and at most one in three letters after the prefix: more make another
 * name.
 */
#define NEAR 2
#define NEAR_SHARE 3

/* Of tests, tools and bindings, which are not in the table of the library. */
static const char *const foreign[] = {"SLUICE_FAKE_", "SLUICE_FUZZ_",
                                      "SLUICE_LIBRARY=", "SLUICE_TEST_"};

void slu_env_list_choices(enum slu_variable variable, char *text, size_t size)
{
    uint32_t preset;
    const char *const *words = slu_env_choices(variable, &preset);
    size_t used = 0;

    text[0] = '\0';
    for (int i = 0; words[i] != NULL && used < size; i++) {
        const char *between = i == 0 ? "" : words[i + 1] == NULL ? " or " : ", ";

        used += (size_t)snprintf(text + used, size - used, "%s%s", between, words[i]);
    }
}

uint32_t slu_env_choice(enum slu_variable variable)
{
    uint32_t preset;
    const char *const *words = slu_env_choices(variable, &preset);
    const char *value = slu_env_value(variable);
    char allowed[80];
    int found;

    if (value == NULL)
        return preset;
    found = slu_env_find_choice(variable, value);
    if (found >= 0)
        return (uint32_t)found;
    slu_env_list_choices(variable, allowed, sizeof allowed);
    slu_log(SLUICE_LOG_ERROR, "%s (%s) is '%.64s', must be %s; using %s", slu_env_name(variable),
            slu_env_purpose(variable), value, allowed, words[preset]);
    return preset;
}

/*
 * Returns how many letters must be inserted, removed, changed or swapped with a neighbour to turn
 * one text into the other: the optimal string alignment distance.
 */
static size_t edit_distance(const char *from, size_t length, const char *to)
{
    size_t rows[3][LONGEST + 1]; /* of this letter, the one before it, and the one before that */
    size_t columns = strlen(to);

    for (size_t j = 0; j <= columns; j++)
        rows[0][j] = j;
    for (size_t i = 1; i <= length; i++) {
        const size_t *before = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];

        row[0] = i;
        for (size_t j = 1; j <= columns; j++) {
            size_t changed = before[j - 1] + (from[i - 1] != to[j - 1]);

            row[j] = slu_least(changed, slu_least(before[j], row[j - 1]) + 1);
            if (i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1])
                row[j] = slu_least(row[j], rows[(i - 2) % 3][j - 2] + 1);
        }
    }
    return rows[length % 3][columns];
}

static const char *nearest(const char *name, size_t length)
{
    const char *found = NULL;
    size_t best = NEAR + 1;

    if (length > LONGEST)
        return NULL;
    for (uint32_t i = 0; i < SLU_ENV_COUNT; i++) {
        size_t distance = edit_distance(name, length, slu_env_name(i));
        size_t letters = strlen(slu_env_name(i)) - PREFIX_LENGTH;

        if (distance < best && distance * NEAR_SHARE <= letters) {
            best = distance;
            found = slu_env_name(i);
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
        if (strlen(slu_env_name(i)) == length && memcmp(slu_env_name(i), name, length) == 0)
            return true;
    return false;
}

char **slu_env_next_unknown(char **entry, const char **meant)
{
    for (; entry != NULL && *entry != NULL; entry++) {
        size_t length = strcspn(*entry, "=");

        if (strncmp(*entry, PREFIX, PREFIX_LENGTH) == 0 && !is_foreign(*entry) &&
            !is_known(*entry, length)) {
            *meant = nearest(*entry, length);
            return entry;
        }
    }
    return NULL;
}

void slu_env_check_names(void)
{
    /* Not pthread_once(): the program's log function may call the library again. */
    static atomic_flag checked = ATOMIC_FLAG_INIT;
    const char *meant;

    if (atomic_flag_test_and_set(&checked))
        return;
    for (char **entry = environ; (entry = slu_env_next_unknown(entry, &meant)) != NULL; entry++) {
        size_t length = strcspn(*entry, "=");

        slu_log(SLUICE_LOG_WARN, "%.*s is no variable of sluice; %s%s%s",
                (int)(length < 64 ? length : 64), *entry, meant != NULL ? "was " : "",
                meant != NULL ? meant : "sluice_environment(7) lists all of them",
                meant != NULL ? " meant?" : "");
    }
}
