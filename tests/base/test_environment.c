/* SPDX-License-Identifier: MIT */
/*
 * The variables of the library: what they may be, what a wrong one does, and who
 * misspells one is told so, once.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/suite.h"
#include "base/spelling.h"

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

/* No variable of ours but those of the test. */
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
    require_result(slu_env_word(SLU_ENV_EXCHANGE), 0);
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
    require_result(slu_env_word(SLU_ENV_EXCHANGE), SLUICE_EXCHANGE_PMIX);
    setenv("SLUICE_EXCHANGE", "tcp", 1);
    require_result(slu_env_word(SLU_ENV_EXCHANGE), SLUICE_EXCHANGE_TCP);
    require(lines.count == 0, "%s", lines.texts[0]);
    setenv("SLUICE_EXCHANGE", "TCP", 1);
    require_result(slu_env_word(SLU_ENV_EXCHANGE), SLUICE_EXCHANGE_AUTO);
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
    setenv("SLUICE_WHATEVER_THIS_IS_IT_HAS_A_VERY_LONG_NAME_THAT_NO_TABLE_WOULD_EVER_HAVE", "1", 1);
    setenv("SLUICE_TEST_ANYTHING", "1", 1);
    setenv("SLUICE_FAKE_ANYTHING", "1", 1);
    setenv("SLUICE_FUZZ_ANYTHING", "1", 1);
    setenv("SLUICE_ROOT", "here:1", 1);
    setenv("SLUICERY", "1", 1);
    slu_env_check_names();
    require_result(lines.count, 6);
    const char *line = find_line(&lines, "SLUICE_RANKZ is no variable");
    require(line && (strstr(line, "was SLUICE_RANK meant?") || strstr(line, "was SLUICE_RANKS")),
            "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_DEVCIE is no variable");
    require(line && strstr(line, "was SLUICE_DEVICE meant?"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_JOBS is no variable");
    require(line && strstr(line, "was SLUICE_JOB meant?"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_FOO is no variable");
    require(line && !strstr(line, "meant"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_ is no variable");
    require(line && !strstr(line, "meant"), "%s", line ? line : "none");
    line = find_line(&lines, "SLUICE_WHATEVER");
    require(line && !strstr(line, "meant"), "%s", line ? line : "none");
    for (unsigned i = 0; i < lines.count; i++) {
        require_result(lines.levels[i], SLUICE_LOG_WARN);
    }
    slu_env_check_names();
    require_result(lines.count, 6);
}

int main(void)
{
    static const struct tests cases[] = {{"environment", WIRE_SELF, 30}};
    return run_groups("environment", cases, COUNT(cases));
}
