/* SPDX-License-Identifier: MIT */
/*
 * Lists the environment variables for the program. Guarantees: a value is checked by the same
 * function that reads it for use, and a value that may be a secret is never returned.
 */
#include "config.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <sluice/environment.h>

#include "base/base.h"
#include "base/env_check.h"
#include "connect/address.h"
#include "connect/secret.h"
#include "device/choice.h"
#include "exchange/exchange.h"

/* Checks of variables. Each returns 0, or an error with a text. */
static int check_word(enum slu_variable variable, const char *value)
{
    char allowed[64];

    if (slu_env_find_choice(variable, value) >= 0)
        return 0;
    slu_env_list_choices(variable, allowed, sizeof allowed);
    return slu_fail(EINVAL, "'%.64s' is not %s: %s counts", value, allowed,
                    slu_env_default(variable));
}

static int check_number(enum slu_variable variable, const char *value)
{
    uint32_t number;
    int found = slu_env_number(variable, &number);

    (void)value;
    return found < 0 ? found : 0;
}

static int check_text(enum slu_variable variable, const char *value)
{
    int found = slu_env_text(variable, &value);

    return found < 0 ? found : 0;
}

static int check_device(enum slu_variable variable, const char *value)
{
    int error = check_text(variable, value);

    return error < 0 ? error : slu_names_check(value, slu_env_name(variable));
}

/* Reads the file with a given rank, so that this host need not be in it. */
static int check_host_file(enum slu_variable variable, const char *value)
{
    SLU_KEEP_ERRNO;
    struct slu_launch launch = {.rank = 0};
    int error = check_text(variable, value);

    return error < 0 ? error : slu_host_file_read(value, &launch);
}

static int check_root(enum slu_variable variable, const char *value)
{
    int error = check_text(variable, value);

    return error < 0 ? error : slu_launch_check_root(value, slu_env_name(variable));
}

/*
 * A user may have set the variable to the secret itself. Returns whether it is a path instead: of
 * something that exists, or in a folder that exists and is not the root.
 */
static bool is_path(const char *value)
{
    const char *slash = strrchr(value, '/');
    char folder[PATH_MAX];
    SLU_KEEP_ERRNO;

    if (access(value, F_OK) == 0)
        return true;
    if (slash == NULL || slash == value || (size_t)(slash - value) >= sizeof folder)
        return false;
    snprintf(folder, sizeof folder, "%.*s", (int)(slash - value), value);
    return access(folder, F_OK) == 0;
}

/* No error text has a value that may be the secret itself. */
static int check_secret(enum slu_variable variable, const char *value)
{
    SLU_KEEP_ERRNO;
    struct slu_secret secret = {0};
    int error = check_text(variable, value);

    if (error == 0)
        error = slu_secret_read(value, &secret);
    slu_secret_forget(&secret);
    if (error < 0 && is_path(value))
        return error;
    if (error == -EOPNOTSUPP)
        return slu_fail(EOPNOTSUPP, "libsodium cannot be used on this host");
    return error < 0
               ? slu_fail(-error, "there is no such file; it must name a file, and not be the "
                                  "secret itself")
               : 0;
}

static int check_address(enum slu_variable variable, const char *value)
{
    struct slu_address address;
    int error = check_text(variable, value);

    return error < 0 ? error : slu_address_parse(value, slu_env_name(variable), &address);
}

struct form {
    int (*check)(enum slu_variable variable, const char *value);
    const char *allowed; /* NULL: described by the words or the range */
};

static const struct form forms[SLU_ENV_COUNT] = {
    [SLU_ENV_DEVICE] = {check_device, "names of devices, with commas between"},
    [SLU_ENV_EXCHANGE] = {check_word, NULL},
    [SLU_ENV_HOST_FILE] = {check_host_file, "a file of hosts, in JSON"},
    [SLU_ENV_JOB] = {check_text, "a text of at most 63 bytes"},
    [SLU_ENV_LOCAL_RANK] = {check_number, NULL},
    [SLU_ENV_LOG] = {check_word, NULL},
    [SLU_ENV_MISUSE] = {check_word, NULL},
    [SLU_ENV_MUNGE] = {check_text, "a socket, or no"},
    [SLU_ENV_RANK] = {check_number, NULL},
    [SLU_ENV_RANKS] = {check_number, NULL},
    [SLU_ENV_ROOT] = {check_root, "host:port"},
    [SLU_ENV_SECRET_FILE] = {check_secret, "a file that no other user can read"},
    [SLU_ENV_TCP_ADDRESS] = {check_address, "a numeric address"},
    [SLU_ENV_WIRE] = {check_word, NULL},
};

static void describe_allowed(enum slu_variable variable, struct sluice_variable_info *info)
{
    uint32_t low, high;

    if (forms[variable].allowed != NULL) {
        snprintf(info->allowed, sizeof info->allowed, "%s", forms[variable].allowed);
    } else if (forms[variable].check == check_word) {
        slu_env_list_choices(variable, info->allowed, sizeof info->allowed);
    } else {
        slu_env_range(variable, &low, &high);
        snprintf(info->allowed, sizeof info->allowed, "a number of %u to %u", low, high);
    }
}

static void judge(enum slu_variable variable, const char *value, struct sluice_variable_info *info)
{
    struct slu_text kept;

    info->state = SLUICE_VARIABLE_SET;
    slu_text_save(&kept);
    if (forms[variable].check(variable, value) < 0) {
        info->state = SLUICE_VARIABLE_WRONG;
        snprintf(info->reason, sizeof info->reason, "%s", sluice_last_error());
    }
    slu_text_restore(&kept);
}

static void describe_known(enum slu_variable variable, struct sluice_variable_info *info)
{
    const char *value = slu_env_value(variable);

    info->state = SLUICE_VARIABLE_UNSET;
    snprintf(info->name, sizeof info->name, "%s", slu_env_name(variable));
    snprintf(info->what, sizeof info->what, "%s", slu_env_purpose(variable));
    snprintf(info->preset, sizeof info->preset, "%s", slu_env_default(variable));
    describe_allowed(variable, info);
    if (value == NULL)
        return;
    if (variable != SLU_ENV_SECRET_FILE || is_path(value))
        snprintf(info->value, sizeof info->value, "%s", value);
    judge(variable, value, info);
}

/* Describes unknown variable number, from 0; returns false if there are no more. */
static bool describe_unknown(uint32_t number, struct sluice_variable_info *info)
{
    const char *meant = NULL;
    char **entry = slu_env_next_unknown(environ, &meant);

    for (; entry != NULL && number > 0; number--)
        entry = slu_env_next_unknown(entry + 1, &meant);
    if (entry == NULL)
        return false;
    info->state = SLUICE_VARIABLE_UNKNOWN;
    snprintf(info->name, sizeof info->name, "%.*s", (int)strcspn(*entry, "="), *entry);
    snprintf(info->nearest, sizeof info->nearest, "%s", meant != NULL ? meant : "");
    snprintf(info->reason, sizeof info->reason, "no variable of sluice%s%s%s",
             meant != NULL ? "; perhaps " : "", meant != NULL ? meant : "",
             meant != NULL ? " was meant" : "");
    return true;
}

int sluice_environment_variable(uint32_t index, struct sluice_variable_info *info)
{
    struct sluice_variable_info known = {.size = sizeof known};
    int error = SLU_INFO_CHECK(sluice_variable_info, info);

    if (error < 0)
        return error;
    if (index < SLU_ENV_COUNT)
        describe_known((enum slu_variable)index, &known);
    else if (!describe_unknown(index - SLU_ENV_COUNT, &known))
        return slu_fail(ERANGE, "variable %u: there are fewer", index);
    slu_info_copy(info, &known, sizeof known);
    return 0;
}
