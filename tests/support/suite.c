/* SPDX-License-Identifier: MIT */
#include "suite.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "fair.h"
#include "group.h"

static enum wire wire;

static void use_self(void)
{
    wire = WIRE_SELF;
}

static void use_tcp(void)
{
    wire = WIRE_TCP;
    setenv("SLUICE_WIRE", "tcp", 1);
}

static void use_shm(void)
{
    wire = WIRE_SHM;
    setenv("SLUICE_WIRE", "shm", 1);
}

static void (*const use_wire[])(void) = {
    [WIRE_SELF] = use_self, [WIRE_TCP] = use_tcp, [WIRE_SHM] = use_shm};

enum wire current_wire(void)
{
    return wire;
}

bool short_run(void)
{
    const char *value = getenv("SLUICE_TEST_SHORT");
    return value && *value && strcmp(value, "0") != 0;
}

bool shortest_run(void)
{
    const char *value = getenv("SLUICE_TEST_SHORT");
    return value && strcmp(value, "2") == 0;
}

const char *test_device(void)
{
    const char *device = getenv("SLUICE_TEST_DEVICE");
    return device && *device ? device : "soft";
}

bool device_is_soft(void)
{
    return strcmp(test_device(), "soft") == 0;
}

/* Returns why the program cannot run, as a TAP line, or NULL if it can. */
static const char *cannot_run(void)
{
    static char why[300];
    struct sluice_context *context = sluice_context_open(test_device(), NULL);
    if (!context) {
        snprintf(why, sizeof(why), "no context on %s: %s", test_device(), sluice_last_error());
        return why;
    }
    sluice_context_close(context);
    return NULL;
}

static struct test *listed;
static void (*set_up_each)(void);
static void (*tear_down_each)(void);

void list_test(struct test *test)
{
    struct test **at = &listed;
    while (*at && strcmp((*at)->file, test->file) != 0) {
        at = &(*at)->next;
    }
    while (*at && strcmp((*at)->file, test->file) == 0 && (*at)->line < test->line) {
        at = &(*at)->next;
    }
    test->next = *at;
    *at = test;
}

/* Returns whether SLUICE_TEST_WITHOUT has this word. */
static bool is_left_out(const char *word)
{
    const char *words = getenv("SLUICE_TEST_WITHOUT");
    size_t length = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)) != NULL; at += length) {
        if ((at == words || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0')) {
            return true;
        }
    }
    return false;
}

static bool is_group(const char *name)
{
    for (const struct test *test = listed; test; test = test->next) {
        if (test->group && strcmp(test->group, name) == 0) {
            return true;
        }
    }
    return false;
}

static void add_listed(TCase *tcase, const char *name)
{
    bool group = is_group(name);
    if (set_up_each || tear_down_each) {
        tcase_add_checked_fixture(tcase, set_up_each, tear_down_each);
    }
    for (const struct test *test = listed; test; test = test->next) {
        bool belongs = group ? test->group && strcmp(test->group, name) == 0 : !test->group;
        if (belongs && !(test->unless && test->unless()) && !is_left_out(test->title)) {
            test->add(tcase, test->from, test->from + (test->times > 0 ? test->times : 1));
        }
    }
}

void each_test(void (*set_up)(void), void (*tear_down)(void))
{
    set_up_each = set_up;
    tear_down_each = tear_down;
}

int run_cases(const char *name, const struct cases *cases, size_t count)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    /* Ignore the munge of a cluster that this host may belong to. */
    setenv("SLUICE_MUNGE", "no", 0);
    /* Only a device that may be missing is checked. */
    const char *why = device_is_soft() ? NULL : cannot_run();
    if (why) {
        printf("1..0 # SKIP %s\n", why);
        return EXIT_SUCCESS;
    }
    Suite *suite = suite_create(name);
    for (size_t i = 0; i < count; i++) {
        if (!device_is_soft() && strcmp(cases[i].name, "shm") == 0) {
            continue;
        }
        TCase *tcase = tcase_create(cases[i].name);
        tcase_add_checked_fixture(tcase, fair_rest, NULL);
        tcase_add_checked_fixture(tcase, use_wire[cases[i].wire], NULL);
        tcase_set_timeout(tcase, PATIENCE * cases[i].seconds);
        if (cases[i].add) {
            cases[i].add(tcase);
        } else {
            add_listed(tcase, cases[i].name);
        }
        suite_add_tcase(suite, tcase);
    }
    SRunner *runner = srunner_create(suite);
    srunner_set_tap(runner, "-");
    fair_start();
    srunner_run_all(runner, CK_SILENT);
    fair_stop();
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

int run_groups(const char *name, const struct tests *groups, size_t count)
{
    struct cases cases[16];
    require(count <= COUNT(cases), "%zu groups", count);
    for (size_t i = 0; i < count; i++) {
        cases[i] = (struct cases){groups[i].name, groups[i].wire, groups[i].seconds, NULL};
    }
    return run_cases(name, cases, count);
}

int skip_wires(void)
{
    puts("1..0 # SKIP the wire is that of the soft transport");
    return EXIT_SUCCESS;
}

/* Lists the wires of a program that runs on each, except one that SLUICE_TEST_WITHOUT names. */
static size_t list_wires(struct cases *cases, unsigned seconds, void (*add)(TCase *tcase))
{
    static const char *const names[] = {"self", "tcp", "shm"};
    static const enum wire wires[] = {WIRE_SELF, WIRE_TCP, WIRE_SHM};
    size_t count = 0;
    for (size_t i = 0; i < COUNT(names); i++) {
        if (!is_left_out(names[i])) {
            cases[count++] = (struct cases){names[i], wires[i], seconds, add};
        }
    }
    return count;
}

int run_on_wires(const char *name, unsigned seconds, void (*add)(TCase *tcase))
{
    struct cases cases[3];
    return run_cases(name, cases, list_wires(cases, seconds, add));
}

int run_tests(const char *name, unsigned seconds)
{
    return run_on_wires(name, seconds, NULL);
}

struct sluice_context *open_context(void)
{
    struct sluice_context *context = sluice_context_open(test_device(), NULL);
    require(context, "%s", sluice_last_error());
    return context;
}

struct sluice_context_info context_info(const struct sluice_context *context)
{
    struct sluice_context_info info = {.size = sizeof(info)};
    require_ok(sluice_context_query(context, &info));
    return info;
}

struct sluice_device_info device_info(const struct sluice_device_list *list, uint32_t index)
{
    struct sluice_device_info info = {.size = sizeof(info)};
    require_ok(sluice_device_list_info(list, index, &info));
    return info;
}

struct sluice_port_info port_info(const struct sluice_device_list *list, uint32_t index,
                                  uint32_t port)
{
    struct sluice_port_info info = {.size = sizeof(info)};
    require_ok(sluice_device_list_port(list, index, port, &info));
    return info;
}

struct sluice_gid_info gid_info(const struct sluice_device_list *list, uint32_t index,
                                uint32_t entry)
{
    struct sluice_gid_info info = {.size = sizeof(info)};
    require_ok(sluice_device_list_gid(list, index, entry, &info));
    return info;
}

void fail_at(const char *file, int line, const char *format, ...)
{
    char what[1024];
    char text[1200];
    const char *slash = strrchr(file, '/');
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(what, sizeof(what), format, arguments);
    va_end(arguments);
    snprintf(text, sizeof(text), "%s:%d: %s", slash ? slash + 1 : file, line, what);
    rank_fail(text); /* does not return in a rank */
    if (gettid() != getpid() && getenv("CK_FORK")) {
        /* Without Check's fork its longjmp would leave the thread's stack. */
        printf("Bail out! %s\n", text);
        fflush(stdout);
        _exit(EXIT_FAILURE);
    }
    ck_abort_msg("%s", text);
    abort();
}

void check_result(const char *file, int line, const char *call, int64_t got, int64_t wanted)
{
    if (got == wanted) {
        return;
    }
    fail_at(file, line, "%s: %lld (%s), not %lld (%s); last error: %s", call, (long long)got,
            strerror(abs((int)got)), (long long)wanted, strerror(abs((int)wanted)),
            sluice_last_error());
}

const void *check_made(const char *file, int line, const char *call, const void *made)
{
    if (!made) {
        fail_at(file, line, "%s: %s", call, sluice_last_error());
    }
    return made;
}

/* Copies argument number index of the text of a call's arguments. */
static void copy_argument(const char *arguments, size_t index, char name[100])
{
    size_t at = 0;
    int depth = 0;
    for (const char *c = arguments; *c && at < 99; c++) {
        depth += *c == '(' || *c == '[' || *c == '{';
        depth -= *c == ')' || *c == ']' || *c == '}';
        if (*c == ',' && depth == 0) {
            index--;
            c += c[1] == ' ';
        } else if (index == 0) {
            name[at++] = *c;
        }
    }
    name[at] = 0;
}

void check_equal(const char *file, int line, const char *names, const int64_t *values, size_t count)
{
    char got[100], wanted[100];
    for (size_t i = 0; i + 1 < count; i += 2) {
        if (values[i] != values[i + 1]) {
            copy_argument(names, i, got);
            copy_argument(names, i + 1, wanted);
            fail_at(file, line, "%s is %lld, not %lld (%s)", got, (long long)values[i],
                    (long long)values[i + 1], wanted);
        }
    }
}

void check_words(const char *file, int line, const char *call, const char *text, const char *wanted)
{
    char words[200];
    char *rest = NULL;
    const char *at = text;
    snprintf(words, sizeof(words), "%s", wanted);
    if (!*text) {
        fail_at(file, line, "%s: no text", call);
    }
    for (char *word = strtok_r(words, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        at = strstr(at, word);
        if (!at) {
            fail_at(file, line, "%s: no '%s' (of '%s') in '%s'", call, word, wanted, text);
        }
        at += strlen(word);
    }
}

void check_text(const char *file, int line, const char *call, const char *wanted)
{
    check_words(file, line, call, sluice_last_error(), wanted);
}

static int class_errno(enum sluice_error_class error_class)
{
    static const int errors[] = {
        [SLUICE_CLASS_NONE] = 0,
        [SLUICE_CLASS_PEER_LOST] = -ECONNRESET,
        [SLUICE_CLASS_TIMEOUT] = -ETIMEDOUT,
        [SLUICE_CLASS_ACCESS] = -EACCES,
        [SLUICE_CLASS_TRUNCATED] = -EMSGSIZE,
        [SLUICE_CLASS_CANCELLED] = -ECANCELED,
        [SLUICE_CLASS_LOCAL] = -EFAULT,
        [SLUICE_CLASS_DEVICE] = -EIO,
        [SLUICE_CLASS_PROTOCOL] = -EPROTO,
    };
    return errors[error_class];
}

void check_completion(const char *file, int line, const struct sluice_completion *completion,
                      enum sluice_error_class error_class)
{
    int error = class_errno(error_class);
    /* A request that a failed peer refused is cancelled under another errno. */
    bool refused = error_class == SLUICE_CLASS_CANCELLED && completion->error == -ENOTCONN;
    if (completion->error_class != error_class || (completion->error != error && !refused) ||
        (error == 0) != (completion->status == SLUICE_STATUS_SUCCESS) ||
        (error == 0) != (completion->cause == SLUICE_STATUS_SUCCESS)) {
        fail_at(file, line,
                "completion of peer %u, opcode %u, user data %llu: error %d, class %s, status %s,"
                " cause %s; wanted class %s",
                completion->peer, completion->opcode, (unsigned long long)completion->user_data,
                completion->error, sluice_error_class_name(completion->error_class),
                sluice_status_name(completion->status), sluice_status_name(completion->cause),
                sluice_error_class_name(error_class));
    }
    if (error != 0 && completion->bytes != 0) {
        fail_at(file, line, "failed completion with %llu bytes",
                (unsigned long long)completion->bytes);
    }
    for (int i = 0; i < 3; i++) {
        if (completion->reserved[i] != 0) {
            fail_at(file, line, "completion with reserved[%d] %u", i, completion->reserved[i]);
        }
    }
}
