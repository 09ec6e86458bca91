/* SPDX-License-Identifier: MIT */
/* The stack that calls use in a thread: at most the amount that sluice_concurrency(7) documents. */
#include <pthread.h>
#include <stdio.h>
#include <sys/mman.h>

#include "../support/pair.h"

#define STACK ((size_t)512 * 1024)
#define PAINT 0xa5
/* The limits that the manual documents. */
#define MOST ((size_t)32 * 1024)
#define MOST_CONNECTING ((size_t)64 * 1024)

struct call {
    void (*function)(void);
    size_t most;
};

static void *run(void *argument)
{
    const struct call *call = argument;
    call->function();
    return NULL;
}

/* Subtracts the stack that the C library uses itself, as measured with a call that does nothing. */
static size_t measure(void (*function)(void))
{
    struct call call = {.function = function};
    pthread_attr_t attr;
    pthread_t thread;
    size_t free = 0;
    uint8_t *stack =
        mmap(NULL, STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    require(stack != MAP_FAILED, "no stack");
    memset(stack, PAINT, STACK);
    pthread_attr_init(&attr);
    require(pthread_attr_setstack(&attr, stack, STACK) == 0, "stack");
    require(pthread_create(&thread, &attr, run, &call) == 0, "no thread");
    pthread_join(thread, NULL);
    pthread_attr_destroy(&attr);
    while (free < STACK && stack[free] == PAINT) {
        free++;
    }
    munmap(stack, STACK);
    return STACK - free;
}

static struct sluice_context *context;
static struct sluice_pd *pd;
static struct pair pair;

static void do_nothing(void)
{
}

static void open_it(void)
{
    context = open_context();
}

static void close_it(void)
{
    sluice_context_close(context);
}

static void connect_nowhere(void)
{
    const struct sluice_connect_attr attr = {.size = sizeof(attr), .secret_file = ""};
    require(!sluice_connect("127.0.0.1:1", pd, NULL, &attr, SLUICE_S(5)), "it is connected");
}

static void connect_pair(void)
{
    pair_open(&pair, NULL);
}

static void use_pair(void)
{
    pair_works(&pair);
}

static void end_pair(void)
{
    pair_close(&pair);
}

TEST(calls_use_bounded_stack)
{
    const struct call calls[] = {{open_it, MOST},      {connect_nowhere, MOST_CONNECTING},
                                 {connect_pair, MOST}, {use_pair, MOST},
                                 {end_pair, MOST},     {close_it, MOST}};
    size_t least = measure(do_nothing);
    for (size_t i = 0; i < COUNT(calls); i++) {
        size_t used = measure(calls[i].function) - least;
        printf("# call %zu: %zu bytes\n", i, used);
        require(used <= calls[i].most, "call %zu takes %zu bytes, %zu at most", i, used,
                calls[i].most);
        if (i == 0) {
            pd = sluice_pd_alloc(context);
        }
        if (i == 1) {
            sluice_pd_free(pd);
        }
    }
}

int main(void)
{
    if (SANITIZED) {
        puts("1..0 # SKIP a sanitizer takes some for itself");
        return 0;
    }
    return run_tests("stack", 20);
}
