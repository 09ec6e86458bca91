/* SPDX-License-Identifier: MIT */
/*
 * The variables of the library: their values, the effect of a wrong value, and the warning about a
 * misspelled name, once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../support/suite.h"
#include "base/env_check.h"
#include "base/error.h"

#define LINES 16

struct lines {
    unsigned count;
    uint32_t levels[LINES];
    char texts[LINES][256];
};

static void keep_line(uint32_t level, const char *line, void *user)
{
    struct lines *lines = user;
    if (lines->count < LINES) {
        lines->levels[lines->count] = level;
        snprintf(lines->texts[lines->count], sizeof(lines->texts[0]), "%s", line);
    }
    lines->count++;
}

/* Clears all variables of the library but those of the test. */
static void start(struct lines *lines)
{
    memset(lines, 0, sizeof(*lines));
    for (int i = 0; i < SLU_ENV_COUNT; i++) {
        unsetenv(slu_env_name((enum slu_variable)i));
    }
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, keep_line, lines));
}

static const char *find_line(const struct lines *lines, const char *words)
{
    for (unsigned i = 0; i < lines->count && i < LINES; i++) {
        if (strstr(lines->texts[i], words)) {
            return lines->texts[i];
        }
    }
    return NULL;
}

TEST(nothing_is_not_set)
{
    struct lines lines;
    const char *text = "kept";
    uint32_t number = 7;
    start(&lines);
    setenv("SLUICE_JOB", "", 1);
    setenv("SLUICE_RANK", "", 1);
    setenv("SLUICE_EXCHANGE", "", 1);
    require(!slu_env_value(SLU_ENV_JOB), "of an empty one");
    require_result(slu_env_text(SLU_ENV_JOB, &text), 0);
    require_result(slu_env_number(SLU_ENV_RANK, &number), 0);
    require(strcmp(text, "kept") == 0 && number == 7, "%s, %u", text, number);
    require_result(slu_env_choice(SLU_ENV_EXCHANGE), 0);
    require(lines.count == 0, "%s", lines.texts[0]);
}

TEST(numbers)
{
    static const char *const wrong[] = {"-1",  "+1",  "1 ",         " 1",
                                        "0x1", "1.0", "one",        "65536",
                                        "1,2", "1e3", "4294967296", "99999999999999999999999"};
    struct lines lines;
    uint32_t number = 7;
    start(&lines);
    setenv("SLUICE_RANK", "65535", 1);
    require_result(slu_env_number(SLU_ENV_RANK, &number), 1);
    require_result(number, 65535);
    setenv("SLUICE_RANK", "007", 1);
    require_result(slu_env_number(SLU_ENV_RANK, &number), 1);
    require_result(number, 7);
    for (size_t i = 0; i < COUNT(wrong); i++) {
        setenv("SLUICE_RANK", wrong[i], 1);
        require_error(slu_env_number(SLU_ENV_RANK, &number), -EINVAL, "SLUICE_RANK");
        require(strstr(sluice_last_error(), wrong[i]), "%s", sluice_last_error());
        require(strstr(sluice_last_error(), "0 to 65535"), "%s", sluice_last_error());
        require_result(number, 7);
    }
    setenv("SLUICE_RANKS", "0", 1);
    require_error(slu_env_number(SLU_ENV_RANKS, &number), -EINVAL, "SLUICE_RANKS");
    setenv("SLUICE_RANKS", "65536", 1);
    require_result(slu_env_number(SLU_ENV_RANKS, &number), 1);
    require_result(number, 65536);
}

TEST(words)
{
    struct lines lines;
    start(&lines);
    setenv("SLUICE_EXCHANGE", "pmix", 1);
    require_result(slu_env_choice(SLU_ENV_EXCHANGE), SLUICE_EXCHANGE_PMIX);
    setenv("SLUICE_EXCHANGE", "tcp", 1);
    require_result(slu_env_choice(SLU_ENV_EXCHANGE), SLUICE_EXCHANGE_TCP);
    require(lines.count == 0, "%s", lines.texts[0]);
    setenv("SLUICE_EXCHANGE", "TCP", 1);
    require_result(slu_env_choice(SLU_ENV_EXCHANGE), SLUICE_EXCHANGE_AUTO);
    require_result(lines.count, 1);
    require_result(lines.levels[0], SLUICE_LOG_ERROR);
    require(strstr(lines.texts[0], "SLUICE_EXCHANGE") && strstr(lines.texts[0], "'TCP'") &&
                strstr(lines.texts[0], "auto, tcp or pmix; using auto"),
            "%s", lines.texts[0]);
}

TEST(texts)
{
    struct lines lines;
    const char *text = NULL;
    char job[65];
    start(&lines);
    memset(job, 'j', sizeof(job));
    job[63] = '\0';
    setenv("SLUICE_JOB", job, 1);
    require_result(slu_env_text(SLU_ENV_JOB, &text), 1);
    require(strcmp(text, job) == 0, "%s", text);
    job[63] = 'j';
    job[64] = '\0';
    setenv("SLUICE_JOB", job, 1);
    require_error(slu_env_text(SLU_ENV_JOB, &text), -EINVAL, "SLUICE_JOB 64 63");
}

TEST(misspelt_names)
{
    struct lines lines;
    start(&lines);
    setenv("SLUICE_RANKZ", "1", 1);
    setenv("SLUICE_DEVCIE", "soft", 1);
    setenv("SLUICE_", "1", 1);
    setenv("SLUICE_FOO", "1", 1);
    setenv("SLUICE_JOBS", "1", 1);
    setenv("SLUICE_RNAK", "1", 1);
    setenv("SLUICE_WHATEVER_THIS_IS_IT_HAS_A_VERY_LONG_NAME_THAT_NO_TABLE_WOULD_EVER_HAVE", "1", 1);
    setenv("SLUICE_TEST_ANYTHING", "1", 1);
    setenv("SLUICE_FAKE_ANYTHING", "1", 1);
    setenv("SLUICE_FUZZ_ANYTHING", "1", 1);
    setenv("SLUICE_ROOT", "here:1", 1);
    setenv("SLUICERY", "1", 1);
    slu_env_check_names();
    require_result(lines.count, 7);
    const char *line = find_line(&lines, "SLUICE_RANKZ is no variable");
    require(line && (strstr(line, "was SLUICE_RANK meant?") || strstr(line, "was SLUICE_RANKS")),
            "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_DEVCIE is no variable");
    require(line && strstr(line, "was SLUICE_DEVICE meant?"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_RNAK is no variable");
    require(line && strstr(line, "was SLUICE_RANK meant?"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_JOBS is no variable");
    require(line && strstr(line, "was SLUICE_JOB meant?"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_FOO is no variable");
    require(line && !strstr(line, "meant"), "%s", line ? line : "none");
    require(strstr(line, "sluice_environment(7) lists all"), "%s", line);
    line = find_line(&lines, "SLUICE_ is no variable");
    require(line && !strstr(line, "meant"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_WHATEVER");
    require(line && !strstr(line, "meant"), "%s", line ? line : "none");
    for (unsigned i = 0; i < lines.count; i++) {
        require_result(lines.levels[i], SLUICE_LOG_WARN);
    }
    slu_env_check_names();
    require_result(lines.count, 7);
}

static struct sluice_variable_info variable(uint32_t index)
{
    struct sluice_variable_info info = {.size = sizeof(info)};
    require_ok(sluice_environment_variable(index, &info));
    require(info.size == sizeof(info), "%u", info.size);
    return info;
}

static struct sluice_variable_info told(enum slu_variable index, uint32_t state)
{
    struct sluice_variable_info info = variable(index);
    require(strcmp(info.name, slu_env_name(index)) == 0 && info.what[0] && info.preset[0] &&
                info.allowed[0],
            "%s", info.name);
    require(info.state == state, "%s: %u, %s", info.name, info.state, info.reason);
    require((info.state == SLUICE_VARIABLE_WRONG) == (info.reason[0] != '\0'), "%s: '%s'",
            info.name, info.reason);
    return info;
}

TEST(variables_that_are_not_set)
{
    struct lines lines;
    struct sluice_variable_info info = {.size = sizeof(info)};
    start(&lines);
    setenv("SLUICE_WIRE", "", 1);
    for (uint32_t i = 0; i < SLU_ENV_COUNT; i++) {
        require(told((enum slu_variable)i, SLUICE_VARIABLE_UNSET).value[0] == '\0', "%u", i);
    }
    require_error(sluice_environment_variable(SLU_ENV_COUNT, &info), -ERANGE, "14");
    require_error(sluice_environment_variable(UINT32_MAX, &info), -ERANGE, "");
    require(strcmp(variable(SLU_ENV_LOG).preset, "warn") == 0, "%s", variable(SLU_ENV_LOG).preset);
    require(strcmp(variable(SLU_ENV_RANKS).allowed, "a number of 1 to 65536") == 0, "%s",
            variable(SLU_ENV_RANKS).allowed);
    require(strcmp(variable(SLU_ENV_WIRE).allowed, "auto, tcp or shm") == 0, "%s",
            variable(SLU_ENV_WIRE).allowed);
    require_result(lines.count, 0);
}

TEST(variables_that_are_set)
{
    static const struct {
        enum slu_variable variable;
        const char *right, *wrong, *words;
    } rows[] = {
        {SLU_ENV_DEVICE, "mlx5_0:1,soft", "mlx5_0,", "element 2"},
        {SLU_ENV_EXCHANGE, "pmix", "mpi", "'mpi' auto, tcp or pmix"},
        {SLU_ENV_JOB, "j", "1234567890123456789012345678901234567890123456789012345678901234",
         "64 bytes 63"},
        {SLU_ENV_LOCAL_RANK, "0", "first", "'first' 0 to 65535"},
        {SLU_ENV_LOG, "debug", "3", "'3' none"},
        {SLU_ENV_MISUSE, "abort", "1", "'1' abort none"},
        {SLU_ENV_RANK, "65535", "65536", "'65536'"},
        {SLU_ENV_RANKS, "1", "0", "1 to 65536"},
        {SLU_ENV_ROOT, "[fe80::1]:7", "node7", "'node7' host:port"},
        {SLU_ENV_TCP_ADDRESS, "::1", "localhost", "localhost numeric"},
        {SLU_ENV_WIRE, "shm", "SHM", "'SHM' auto counts"},
        {SLU_ENV_HOST_FILE, NULL, "/nowhere/hosts", "/nowhere/hosts"},
    };
    struct lines lines;
    start(&lines);
    slu_fail(0, "kept");
    for (size_t i = 0; i < COUNT(rows); i++) {
        const char *name = slu_env_name(rows[i].variable);
        struct sluice_variable_info info;
        if (rows[i].right) {
            setenv(name, rows[i].right, 1);
            info = told(rows[i].variable, SLUICE_VARIABLE_SET);
            require(strcmp(info.value, rows[i].right) == 0, "%s", info.value);
        }
        setenv(name, rows[i].wrong, 1);
        info = told(rows[i].variable, SLUICE_VARIABLE_WRONG);
        require(strncmp(info.value, rows[i].wrong, 255) == 0, "%s", info.value);
        slu_fail(0, "%s", info.reason);
        check_text(__FILE__, __LINE__, name, rows[i].words);
        slu_fail(0, "kept");
        unsetenv(name);
    }
    require(strcmp(sluice_last_error(), "kept") == 0, "%s", sluice_last_error());
    require_result(lines.count, 0);
}

/*
 * If a user sets the variable of the file to the secret itself, nothing shows it. A path is shown
 * if it is that of a file, or of one in a folder that exists.
 */
TEST(secrets_are_not_logged)
{
    static const char *const secrets[] = {"xyzzy-and-plugh-are-secrets", "/xyzzy",
                                          "/nowhere/xyzzy"};
    static const char *const paths[] = {"/dev/null", "/dev/nowhere"};
    struct lines lines;
    start(&lines);
    setenv("SLUICE_SECRET", "xyzzy-and-plugh-are-secrets", 1);
    for (size_t i = 0; i < COUNT(secrets); i++) {
        setenv("SLUICE_SECRET_FILE", secrets[i], 1);
        struct sluice_variable_info info = told(SLU_ENV_SECRET_FILE, SLUICE_VARIABLE_WRONG);
        require(!memmem(&info, sizeof(info), secrets[i], strlen(secrets[i])), "%s", info.reason);
        info = variable(SLU_ENV_COUNT);
        require(info.state == SLUICE_VARIABLE_UNKNOWN && info.value[0] == '\0' &&
                    strcmp(info.name, "SLUICE_SECRET") == 0 && !strstr(info.reason, "xyzzy"),
                "%s: %s", info.name, info.reason);
    }
    char path[] = "/tmp/sluice-secret-XXXXXX";
    int fd = mkstemp(path);
    require(fd >= 0 && write(fd, secrets[0], 20) == 20, "%s", strerror(errno));
    setenv("SLUICE_SECRET_FILE", path, 1);
    struct sluice_variable_info info = told(SLU_ENV_SECRET_FILE, SLUICE_VARIABLE_SET);
    require(strcmp(info.value, path) == 0, "%s", info.value);
    require(fchmod(fd, 0644) == 0, "%s", strerror(errno));
    info = told(SLU_ENV_SECRET_FILE, SLUICE_VARIABLE_WRONG);
    require(strstr(info.reason, "0600"), "%s", info.reason);
    close(fd);
    unlink(path);
    for (size_t i = 0; i < COUNT(paths); i++) {
        setenv("SLUICE_SECRET_FILE", paths[i], 1);
        info = told(SLU_ENV_SECRET_FILE, SLUICE_VARIABLE_WRONG);
        require(strcmp(info.value, paths[i]) == 0, "%s", info.value);
        require(strstr(info.reason, i == 0 ? "/dev/null is not a regular file"
                                           : "cannot open the secret /dev/nowhere: No such file"),
                "%s", info.reason);
    }
}

TEST(variables_that_are_not_known)
{
    struct lines lines;
    struct sluice_variable_info info;
    unsigned seen = 0;
    start(&lines);
    setenv("SLUICE_DEVCIE", "soft", 1);
    setenv("SLUICE_FOO", "1", 1);
    setenv("SLUICE_TEST_ANYTHING", "1", 1);
    info = (struct sluice_variable_info){.size = sizeof(info)};
    for (uint32_t i = SLU_ENV_COUNT; sluice_environment_variable(i, &info) == 0; i++) {
        bool meant = strcmp(info.name, "SLUICE_DEVCIE") == 0;
        require(info.state == SLUICE_VARIABLE_UNKNOWN && info.value[0] == '\0', "%s", info.name);
        require(meant || strcmp(info.name, "SLUICE_FOO") == 0, "%s", info.name);
        require(strcmp(info.nearest, meant ? "SLUICE_DEVICE" : "") == 0, "%s", info.nearest);
        require(strstr(info.reason, "no variable of sluice"), "%s", info.reason);
        seen++;
    }
    require(seen == 2 && lines.count == 0, "%u variables, %u lines", seen, lines.count);
}

int main(void)
{
    return RUN_GROUPS("environment", {"environment", WIRE_SELF, 30});
}
