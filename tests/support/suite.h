/* SPDX-License-Identifier: MIT */
/*
 * Running a test program: TAP out, one line per test, each test on each wire.
 *
 * SLUICE_TEST_DEVICE names the device, "soft" if it is not set. With
 * SLUICE_TEST_SHORT=1 there are fewer sizes and peers, and with SLUICE_TEST_SHORT=2
 * fewer still, where a sanitizer makes them slow. SLUICE_TEST_WITHOUT lists wires and
 * tests that are left out.
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <sluice.h>

/* Whether the program has a sanitizer, which adds threads, memory and time. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* How two ends in one process are connected. */
enum wire {
    WIRE_SELF = 0, /* one context: on soft within the process */
    WIRE_TCP = 1,  /* two contexts: on soft over TCP */
    WIRE_SHM = 2   /* likewise: on soft through shared memory */
};

/*
 * Factor for slow or stalled machines: a test is ended as hanging only after this many times the
 * limit of its author.
 */
#define PATIENCE 3

/*
 * Defines a test, whose body follows in braces. It runs without being listed anywhere:
 *
 *     TEST(messages_arrive)
 *     {
 *         ...
 *     }
 *
 *     TEST(each_kind_fails_once, .times = KINDS, .group = "processes")
 *
 * With .times it runs that many times, with _i from .from, or 0, upwards. It belongs to the
 * group that .group names, or else to all groups whose names no test gives. If .unless returns
 * true, it is left out.
 */
#define TEST(name, ...)                                                                          \
    static void name##_body(int _i);                                                             \
    START_TEST(name)                                                                             \
    {                                                                                            \
        name##_body(_i);                                                                         \
    }                                                                                            \
    END_TEST                                                                                     \
    static void name##_add(TCase *tcase, int from, int to)                                       \
    {                                                                                            \
        tcase_add_loop_test(tcase, name, from, to);                                              \
    }                                                                                            \
    __attribute__((constructor)) static void name##_list(void)                                   \
    {                                                                                            \
        static struct test test = {                                                              \
            .title = #name, .add = name##_add, .file = __FILE__, .line = __LINE__, __VA_ARGS__}; \
        list_test(&test);                                                                        \
    }                                                                                            \
    static void name##_body(int _i __attribute__((unused)))

/*
 * Defines a test with a fixture of this type, which its function type_open() opens with these
 * arguments before the body, and type_close() closes after it. The body has a pointer to it:
 *
 *     TEST_WITH(pair, messages_arrive, (NULL), .times = 2)
 *     {
 *         require_ok(sluice_channel_send(pair->channels[0], ...));
 *     }
 */
#define TEST_WITH(type, name, arguments, ...)                          \
    static void name##_with(struct type *type, int _i);                \
    TEST(name, ##__VA_ARGS__)                                          \
    {                                                                  \
        static struct type fixture_;                                   \
        type##_open(&fixture_ BEHIND_FIRST arguments);                 \
        name##_with(&fixture_, _i);                                    \
        type##_close(&fixture_);                                       \
    }                                                                  \
    static void name##_with(struct type *type __attribute__((unused)), \
                            int _i __attribute__((unused)))
#define BEHIND_FIRST(...) , ##__VA_ARGS__
/* An argument of them before which a pretend device is set up, by expressions. */
#define ON_DEVICE(argument, ...) ((__VA_ARGS__), (argument))

struct test {
    const char *title;
    void (*add)(TCase *tcase, int from, int to);
    const char *file;
    int line;
    int from;
    int times; /* 0 is once */
    const char *group;
    bool (*unless)(void);
    struct test *next;
};

/* Tests are listed by file, and in the order in which they are written. */
void list_test(struct test *test);

/* A group of tests, each of which should take no more than this many seconds. */
struct tests {
    const char *name;
    enum wire wire;
    unsigned seconds;
};

/* Runs all tests. Returns the result of main(). A device has no group "shm". */
int run_groups(const char *name, const struct tests *groups, size_t count);

#define RUN_GROUPS(name, ...)                             \
    run_groups(name, (const struct tests[]){__VA_ARGS__}, \
               COUNT(((const struct tests[]){__VA_ARGS__})))

/* The same if their wires are those of soft. Otherwise prints why the program is skipped. */
#define RUN_ON_SOFT(name, ...) (device_is_soft() ? RUN_GROUPS(name, __VA_ARGS__) : skip_wires())
int skip_wires(void);

/* Runs the same tests on all wires, as most programs want. */
int run_tests(const char *name, unsigned seconds);

/* Sets functions to call before and after each test of the program, in its process. */
void each_test(void (*set_up)(void), void (*tear_down)(void));

/* The same if the tests are listed by hand: add() adds those of a group. */
struct cases {
    const char *name;
    enum wire wire;
    unsigned seconds;
    void (*add)(TCase *tcase);
};

int run_cases(const char *name, const struct cases *cases, size_t count);
int run_on_wires(const char *name, unsigned seconds, void (*add)(TCase *tcase));

/* Attributes of a channel, as an argument: ATTR(.send_depth = 4). */
#define ATTR(...) \
    (&(const struct sluice_channel_attr){.size = sizeof(struct sluice_channel_attr), ##__VA_ARGS__})

/* A request in place: REQUEST(.opcode = SLUICE_OP_SEND, .peer = 1). */
#define REQUEST(...) ((struct sluice_request){__VA_ARGS__})

/* The wire of the running test. */
enum wire current_wire(void);

bool short_run(void);
bool shortest_run(void);
const char *test_device(void);
bool device_is_soft(void);

/* Opens a context of the device under test; queries its limits. */
struct sluice_context *open_context(void);
struct sluice_context_info context_info(const struct sluice_context *context);

/*
 * Returns the description of a device in a list, of one of its ports, or of an entry of its GID
 * tables.
 */
struct sluice_device_info device_info(const struct sluice_device_list *list, uint32_t index);
struct sluice_port_info port_info(const struct sluice_device_list *list, uint32_t index,
                                  uint32_t port);
struct sluice_gid_info gid_info(const struct sluice_device_list *list, uint32_t index,
                                uint32_t entry);

/*
 * Assertions. They work in the tests, in the ranks of a group (which report to
 * their parent) and in threads. The text is what a reader needs to know more.
 */
void fail_at(const char *file, int line, const char *format, ...)
    __attribute__((format(printf, 3, 4), noreturn));
void check_result(const char *file, int line, const char *call, int64_t got, int64_t wanted);
void check_words(const char *file, int line, const char *call, const char *text,
                 const char *wanted);
void check_text(const char *file, int line, const char *call, const char *wanted);

#define require(condition, format, ...)                                            \
    do {                                                                           \
        if (!(condition)) {                                                        \
            fail_at(__FILE__, __LINE__, "%s: " format, #condition, ##__VA_ARGS__); \
        }                                                                          \
    } while (0)
#define require_result(call, wanted) check_result(__FILE__, __LINE__, #call, (call), (wanted))
#define require_ok(call) require_result(call, 0)

/*
 * Requires that the call fails with this error, and that sluice_last_error() has the words, in this
 * order.
 */
#define require_error(call, wanted, words)            \
    do {                                              \
        require_result(call, wanted);                 \
        check_text(__FILE__, __LINE__, #call, words); \
    } while (0)

/* Evaluates a call that makes an object. Fails if that is NULL, with the library's reason. */
#define made(call) ((__typeof__(call))(uintptr_t)check_made(__FILE__, __LINE__, #call, (call)))
const void *check_made(const char *file, int line, const char *call, const void *made);

/* Requires of integers that the first and second are equal, the third and fourth, and so on. */
#define require_equal(...)                                                        \
    check_equal(__FILE__, __LINE__, #__VA_ARGS__, (const int64_t[]){__VA_ARGS__}, \
                sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
void check_equal(const char *file, int line, const char *names, const int64_t *values,
                 size_t count);

/* Requires that the text has the words, in this order. */
#define require_words(text, words) check_words(__FILE__, __LINE__, #text, text, words)

/* Requires that the constructor fails with this errno and these words. */
#define require_null(call, wanted, words)                                         \
    do {                                                                          \
        errno = 0;                                                                \
        const void *null_made_ = (call);                                          \
        int null_errno_ = errno;                                                  \
        require(!null_made_, "it succeeded");                                     \
        check_result(__FILE__, __LINE__, "errno of " #call, null_errno_, wanted); \
        check_text(__FILE__, __LINE__, #call, words);                             \
    } while (0)

/* Requires that the completion has this class, 0 for success, and its errno value. */
void check_completion(const char *file, int line, const struct sluice_completion *completion,
                      enum sluice_error_class error_class);
#define require_class(completion, error_class) \
    check_completion(__FILE__, __LINE__, completion, error_class)

#endif
