/* SPDX-License-Identifier: MIT */
/*
 * A thread whose flag is raised leaves calls that wait for other processes, as if their deadlines
 * had passed; later calls do not wait for them.
 */
#include <pthread.h>
#include <sched.h>

#include "../exchange/parties.h"
#include "../support/fair.h"
#include "../support/process.h"
#include "../support/ranks.h"

/* Most calls wait by then; a call that does not yet wait ends as well. */
#define BEFORE SLUICE_MS(50)
/* None of the calls would end by itself within this. */
#define LONG SLUICE_S(1000)
#define SOON SLUICE_S(10)

struct raiser {
    int flag;
    pthread_t thread;
    struct span begun;
};

static void *raise_flag(void *argument)
{
    struct raiser *raiser = argument;
    int64_t until = clock_now() + BEFORE;
    while (clock_now() < until) {
        sched_yield();
    }
    __atomic_store_n(&raiser->flag, 1, __ATOMIC_RELAXED);
    return NULL;
}

static void begin(struct raiser *raiser)
{
    raiser->flag = 0;
    sluice_interrupt_set(&raiser->flag);
    raiser->begun = span_begin();
    require(pthread_create(&raiser->thread, NULL, raise_flag, raiser) == 0, "no thread");
}

static void end(struct raiser *raiser)
{
    require_took(span_since(raiser->begun), 0, SOON);
    pthread_join(raiser->thread, NULL);
    sluice_interrupt_set(NULL);
}

/* Rank 1 alone calls, rank 0 does not come. */
static void interrupt_collective_calls(struct ranks *ranks, uint32_t rank)
{
    struct sluice_node *node = ranks->nodes[rank];
    struct raiser raiser;
    uint64_t own = 0, all[2];

    if (rank == 1) {
        begin(&raiser);
        require_result(sluice_node_barrier(node, NULL, 0, 0, LONG), -ETIMEDOUT);
        end(&raiser);
    }
    ranks_reset(ranks, rank);
    if (rank == 1) {
        begin(&raiser);
        require_result(sluice_node_allgather(node, &own, all, sizeof(own), SLUICE_FOREVER),
                       -ETIMEDOUT);
        end(&raiser);
    }
    ranks_reset(ranks, rank);
    node_works(node, ranks->pds[rank]);
    ranks_meet(ranks);
    if (rank == 1) {
        begin(&raiser);
        require_result(sluice_node_shutdown(node, LONG), -ETIMEDOUT);
        end(&raiser);
    }
}

TEST(collective_calls_of_a_node)
{
    ranks_try(2, NULL, interrupt_collective_calls);
}

/* Whichever rank is interrupted, the port of rank 0 is free afterwards. */
TEST(opening_an_exchange, .times = 2)
{
    struct parties parties;
    struct raiser raiser;

    parties_make(&parties, 2, LONG);
    for (uint32_t again = 0; again < 2; again++) {
        int fds = count_fds();

        begin(&raiser);
        require_null(sluice_exchange_open(&parties.party[_i].attr, LONG), ETIMEDOUT, "");
        end(&raiser);
        require(settle_fds(fds) == fds, "%d descriptors, were %d", count_fds(), fds);
    }
}

TEST(connecting)
{
    const struct sluice_connect_attr attr = {
        .size = sizeof(attr), .secret_file = "", .flags = SLUICE_CONNECT_WAIT};
    struct sluice_context *context = open_context();
    struct sluice_pd *pd = sluice_pd_alloc(context);
    struct raiser raiser;

    begin(&raiser);
    require_null(sluice_connect("127.0.0.1:1", pd, NULL, &attr, LONG), ETIMEDOUT, "");
    end(&raiser);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

/* If the flag is raised already, a call still polls once. */
TEST(a_raised_flag)
{
    struct raiser raiser = {.flag = 1};
    struct parties parties;

    parties_make(&parties, 2, LONG);
    sluice_interrupt_set(&raiser.flag);
    raiser.begun = span_begin();
    require_null(sluice_exchange_open(&parties.party[0].attr, SLUICE_FOREVER), ETIMEDOUT, "");
    require_took(span_since(raiser.begun), 0, SOON);
    sluice_interrupt_set(NULL);
}

/* Code that sets a flag of its own gives the thread its flag back; each thread has its own. */
static void *other_thread(void *argument)
{
    require(sluice_interrupt_set(argument) == NULL, "%s", "it has the flag of another thread");
    return NULL;
}

TEST(flags_nest)
{
    const volatile int flags[2] = {0, 0};
    pthread_t thread;

    require(sluice_interrupt_set(&flags[0]) == NULL, "%s", "a flag from the start");
    require(sluice_interrupt_set(&flags[1]) == &flags[0], "%s", "not the flag before");
    require(pthread_create(&thread, NULL, other_thread, (void *)(uintptr_t)&flags[1]) == 0, "%s",
            "no thread");
    require(pthread_join(thread, NULL) == 0, "%s", "no end");
    require(sluice_interrupt_set(NULL) == &flags[1], "%s", "not the flag before");
    require(sluice_interrupt_set(NULL) == NULL, "%s", "a flag that was taken away");
}

int main(void)
{
    return run_tests("interrupt", 60);
}
