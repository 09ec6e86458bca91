/* SPDX-License-Identifier: MIT */
/*
 * The two kinds of error, kept apart: each error of the list in sluice_errors(7) is provoked in a
 * process of its own. Misuse has its errno value and text, and with SLUICE_MISUSE=abort the process
 * dies with the same text behind the name of the call; a runtime error does not abort.
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "misuse/mistakes.h"

#define TEXT 1000

/* How a process ended after one of them. */
struct ending {
    int status; /* of waitpid(2) */
    char text[TEXT];
};

static void open_world(struct world *world)
{
    memset(world, 0, sizeof(*world));
    pair_open(&world->pair, NULL);
    world->sides = world->pair.sides;
    world->attr.size = sizeof(world->attr);
    world->context_attr.size = sizeof(world->context_attr);
    world->loop = loop_open(world->sides.pds[0], 2, NULL);
    memory_open(&world->memory, world->sides.pds[0], WORLD_BYTES);
    memory_open(&world->far, world->sides.pds[1], WORLD_BYTES);
    world->sge = memory_sge(&world->memory, 0, 8);
    world->remote = memory_remote(&world->far, 0, WORLD_BYTES);
    world->request = request_of(SLUICE_OP_SEND, 0, &world->sge);
}

static int error_of(const char *name)
{
    static const struct {
        const char *name;
        int error;
    } errors[] = {
        {NONE, 0},
        {"E2BIG", E2BIG},
        {"EACCES", EACCES},
        {"EAGAIN", EAGAIN},
        {"EBADF", EBADF},
        {"EBUSY", EBUSY},
        {"EDQUOT", EDQUOT},
        {"EFAULT", EFAULT},
        {"EINTR", EINTR},
        {"EINVAL", EINVAL},
        {"EMSGSIZE", EMSGSIZE},
        {"ENOBUFS", ENOBUFS},
        {"ENODEV", ENODEV},
        {"ENOENT", ENOENT},
        {"ENOMEM", ENOMEM},
        {"ENOTCONN", ENOTCONN},
        {"EOPNOTSUPP", EOPNOTSUPP},
        {"EPROTO", EPROTO},
        {"ERANGE", ERANGE},
        {"ESTALE", ESTALE},
        {"ETIMEDOUT", ETIMEDOUT},
        {"EADDRINUSE", EADDRINUSE},
        {"EADDRNOTAVAIL", EADDRNOTAVAIL},
        {"ECONNABORTED", ECONNABORTED},
        {"ECONNREFUSED", ECONNREFUSED},
        {"ECONNRESET", ECONNRESET},
    };
    for (size_t i = 0; i < COUNT(errors); i++) {
        if (strcmp(errors[i].name, name) == 0) {
            return -errors[i].error;
        }
    }
    fail_at(__FILE__, __LINE__, "no errno value %s", name);
}

/* Programs that have the archive in them have no names of functions. */
static bool calls_are_named(void)
{
    return dlsym(RTLD_DEFAULT, "sluice_last_error") != NULL;
}

static const char *name_of_call(void)
{
    static char name[100];
    if (called && calls_are_named()) {
        snprintf(name, sizeof(name), "%s: ", called);
    }
    return name;
}

/* Makes the mistake in a process of its own, and prints its text. */
static void make_mistake(const void *what)
{
    const struct mistake *mistake = what;
    int error = error_of(mistake->name);
    struct world world;
    open_world(&world);
    int result = mistake->call(&world);
    if (result != error) {
        dprintf(STDERR_FILENO, "it returned %d (%s), not %d: %s\n", result, strerror(-result),
                error, sluice_last_error());
        _exit(2);
    }
    check_text(__FILE__, __LINE__, mistake->row, mistake->words);
    dprintf(STDERR_FILENO, "sluice: misuse: %s%s\n", name_of_call(), sluice_last_error());
    _exit(0);
}

/* The parent never calls the library: SLUICE_MISUSE is read once in a process. */
static struct ending run_process(void (*act)(const void *what), const void *what,
                                 const char *misuse)
{
    struct ending ending = {0};
    size_t used = 0;
    int fds[2];
    fflush(stdout);
    require_ok(pipe(fds));
    pid_t child = fork();
    require(child >= 0, "%s", strerror(errno));
    if (child == 0) {
        const struct rlimit no_core = {0, 0};
        close(fds[0]);
        setrlimit(RLIMIT_CORE, &no_core);
        setenv("SLUICE_LOG", "warn", 1);
        setenv("SLUICE_MISUSE", misuse, 1);
        dup2(fds[1], STDERR_FILENO);
        act(what);
        _exit(0);
    }
    close(fds[1]);
    ssize_t got = 1;
    while (got > 0 && used < TEXT - 1) {
        got = read(fds[0], ending.text + used, TEXT - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    close(fds[0]);
    require(waitpid(child, &ending.status, 0) == child, "%s", strerror(errno));
    return ending;
}

static struct ending run(const struct mistake *mistake, const char *misuse)
{
    return run_process(make_mistake, mistake, misuse);
}

static void require_returned(const struct mistake *mistake, const struct ending *ending)
{
    require(WIFEXITED(ending->status) && WEXITSTATUS(ending->status) == 0,
            "%s, '%s': status %#x, '%s'", mistake->row, mistake->words, ending->status,
            ending->text);
    require(strstr(ending->text, "sluice: misuse: "), "%s", ending->text);
}

/* Removes the digits behind each occurrence of the word. */
static void hide_behind(char *text, const char *word, const char *digits)
{
    for (char *at = text; (at = strstr(at, word));) {
        at += strlen(word);
        memmove(at, at + strspn(at, digits), strlen(at + strspn(at, digits)) + 1);
    }
}

/* Addresses and peers may differ between the two processes. */
static void hide_addresses(char *text)
{
    hide_behind(text, "0x", "0123456789abcdef");
    hide_behind(text, "port ", "0123456789");
    hide_behind(text, "process ", "0123456789");
}

/*
 * Errors that a call detects by itself are the same on all wires: a short run checks them on the
 * first.
 */
static bool was_seen(void)
{
    return short_run() && current_wire() != WIRE_SELF;
}

TEST(misuse_is_returned_or_aborts)
{
    for (size_t i = 0; !was_seen() && misuses[i].row; i++) {
        struct ending returned = run(&misuses[i], "");
        struct ending aborted = run(&misuses[i], "abort");
        require_returned(&misuses[i], &returned);
        require(WIFSIGNALED(aborted.status) && WTERMSIG(aborted.status) == SIGABRT,
                "%s, '%s': status %#x, '%s'", misuses[i].row, misuses[i].words, aborted.status,
                aborted.text);
        hide_addresses(returned.text);
        hide_addresses(aborted.text);
        require(strcmp(aborted.text, returned.text) == 0, "%s: '%s', not '%s'", misuses[i].row,
                aborted.text, returned.text);
    }
}

TEST(runtime_errors_do_not_abort)
{
    for (size_t i = 0; runtime_errors[i].row; i++) {
        if (was_seen() && !is_of_wire(&runtime_errors[i])) {
            continue;
        }
        struct ending ending = run(&runtime_errors[i], "abort");
        require_returned(&runtime_errors[i], &ending);
    }
}

static int two_mistakes(struct world *world)
{
    require_result(sluice_channel_send(world->pair.channels[0], NULL, 0, -1), -EINVAL);
    return sluice_channel_shutdown(world->pair.channels[0], -1);
}

/* The log reports the value once, and the calls return. */
TEST(another_value_is_ignored)
{
    static const struct mistake mistake = {"EINVAL", "two mistakes", "deadline -1", two_mistakes};
    if (was_seen()) {
        return;
    }
    struct ending ending = run(&mistake, "Abort");
    require(WIFEXITED(ending.status) && WEXITSTATUS(ending.status) == 0, "status %#x, '%s'",
            ending.status, ending.text);
    const char *first = strstr(ending.text, "SLUICE_MISUSE=Abort");
    require(first, "%s", ending.text);
    require(!strstr(first + 1, "SLUICE_MISUSE=Abort"), "%s", ending.text);
}

static void fail_in_turn(uint32_t level, const char *line, void *user)
{
    (void)level;
    (void)user;
    dprintf(STDERR_FILENO, "%s\n", line);
    require_result(sluice_channel_state(NULL), -EINVAL);
}

static int mistake_within_a_mistake(struct world *world)
{
    require_ok(sluice_log_set(SLUICE_LOG_WARN, fail_in_turn, NULL));
    return sluice_channel_shutdown(world->pair.channels[0], -1);
}

/* A function of the log must not call the library; a call in it fails without further harm. */
TEST(log_of_an_ignored_value_may_fail)
{
    static const struct mistake mistake = {"EINVAL", "a mistake of the log", "deadline -1",
                                           mistake_within_a_mistake};
    if (was_seen()) {
        return;
    }
    struct ending ending = run(&mistake, "1");
    require_returned(&mistake, &ending);
    require(strstr(ending.text, "SLUICE_MISUSE=1"), "%s", ending.text);
}

static int unused_allgather(void *argument, const void *own, void *all, size_t bytes,
                            int64_t deadline)
{
    (void)argument;
    (void)own;
    (void)all;
    (void)bytes;
    (void)deadline;
    return -EIO;
}

static int provider_that_goes_on(void *argument, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    volatile int result = CALL(sluice_channel_state)(NULL);
    return result;
}

/* The compiler may optimize the frame of this function away. */
static int provider_that_ends(void *argument, int64_t deadline)
{
    (void)argument;
    (void)deadline;
    return CALL(sluice_channel_state)(NULL);
}

static int call_provider(int (*barrier)(void *argument, int64_t deadline))
{
    const struct sluice_exchange_provider provider = {
        .size = sizeof(provider), .allgather = unused_allgather, .barrier = barrier};
    struct sluice_exchange *exchange = made(sluice_exchange_wrap(&provider, NULL, 0, 2));
    return sluice_exchange_barrier(exchange, DEADLINE);
}

static int mistake_within_a_call(struct world *world)
{
    (void)world;
    return call_provider(provider_that_goes_on);
}

static int mistake_that_ends_a_call(struct world *world)
{
    (void)world;
    return call_provider(provider_that_ends);
}

/* The call inside the program's callback is named, and not the call around it. */
TEST(call_within_a_call_is_named)
{
    static const struct mistake mistakes[] = {
        {"EINVAL", "a mistake of a provider", "not a channel", mistake_within_a_call},
        {"EINVAL", "a provider's last call", "not a channel", mistake_that_ends_a_call},
    };
    for (int i = 0; !was_seen() && i < 2; i++) {
        struct ending ending = run(&mistakes[i], "abort");
        require(WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGABRT,
                "status %#x, '%s'", ending.status, ending.text);
        bool named = strstr(ending.text, "misuse: sluice_channel_state: not a channel");
        bool unnamed = strstr(ending.text, "misuse: not a channel");
        require(named || (unnamed && (i == 1 || !calls_are_named())), "%s", ending.text);
    }
}

/* Functions of any type take zeros: each argument is a number or an address. */
static void call_with_nothing(const void *name)
{
    int (*function)(void *, void *, void *, void *, void *, void *);
    void *found = dlsym(RTLD_DEFAULT, name);
    require(found, "%s: %s", (const char *)name, dlerror());
    memcpy(&function, &found, sizeof(function));
    function(NULL, NULL, NULL, NULL, NULL, NULL);
}

/* For most functions, such a call is misuse. */
TEST(all_functions_are_named)
{
    char line[200];
    char name[100];
    char text[150];
    int functions = 0;
    int named = 0;
    if (was_seen()) {
        return;
    }
    FILE *map = fopen(MAP, "r");
    require(map, "%s: %s", MAP, strerror(errno));
    while (calls_are_named() && fgets(line, sizeof(line), map)) {
        if (sscanf(line, " %99[a-z0-9_];", name) != 1 || strncmp(name, "sluice_", 7) != 0) {
            continue;
        }
        struct ending ending = run_process(call_with_nothing, name, "abort");
        functions++;
        if (WIFEXITED(ending.status)) {
            continue;
        }
        snprintf(text, sizeof(text), "sluice: misuse: %s: ", name);
        require(WIFSIGNALED(ending.status) && WTERMSIG(ending.status) == SIGABRT,
                "%s: status %#x, '%s'", name, ending.status, ending.text);
        require(strncmp(ending.text, text, strlen(text)) == 0, "%s: '%s'", name, ending.text);
        named++;
    }
    fclose(map);
    require(!calls_are_named() || named > functions / 2, "%d of %d functions", named, functions);
}

/* A row of the page, "<errno> Ta <what>", or false. */
static bool parse_row(const char *line, char *name, char *row)
{
    return sscanf(line, ".It Er %15s Ta \"%199[^\"]", name, row) == 2 ||
           sscanf(line, ".It No %15s Ta \"%199[^\"]", name, row) == 2;
}

static bool has_row(const struct mistake *mistakes, const char *name, const char *row)
{
    for (size_t i = 0; mistakes[i].row; i++) {
        if (strcmp(mistakes[i].name, name) == 0 && strcmp(mistakes[i].row, row) == 0) {
            return true;
        }
    }
    return false;
}

/* Counts the rows that are different from the one before them. */
static size_t count_rows(const struct mistake *mistakes)
{
    size_t rows = 0;
    for (size_t i = 0; mistakes[i].row; i++) {
        rows += i == 0 || strcmp(mistakes[i].row, mistakes[i - 1].row) != 0;
    }
    return rows;
}

/* The lists above are those of the manual, neither more nor less. */
TEST(lists_are_those_of_the_manual)
{
    size_t rows[2] = {0, 0};
    char line[300];
    char name[16];
    char row[200];
    int list = -1;
    FILE *page = fopen(ERRORS_PAGE, "r");
    require(page, "%s: %s", ERRORS_PAGE, strerror(errno));
    while (fgets(line, sizeof(line), page)) {
        if (strncmp(line, "Misuse is:", 10) == 0) {
            list = 0;
        } else if (strncmp(line, "Runtime errors are", 18) == 0) {
            list = 1;
        } else if (strncmp(line, ".S", 2) == 0) {
            list = -1;
        } else if (list >= 0 && strncmp(line, ".It", 3) == 0) {
            require(parse_row(line, name, row), "%s", line);
            require(has_row(list == 0 ? misuses : runtime_errors, name, row), "not provoked: %s %s",
                    name, row);
            rows[list]++;
        }
    }
    fclose(page);
    require(rows[0] == count_rows(misuses), "%zu rows of misuse", rows[0]);
    require(rows[1] == count_rows(runtime_errors), "%zu rows of runtime errors", rows[1]);
}

int main(void)
{
    return run_tests("misuse", device_is_soft() ? 120 : 600);
}
