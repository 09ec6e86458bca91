/* SPDX-License-Identifier: MIT */
#include "task.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "process.h"
#include "random.h"
#include "report.h"

/* Further stacks have no guard, since each costs two of the mappings that a process may have. */
enum { STACK_BYTES = 256 * 1024, GUARD_BYTES = 4096, STACKS = 1 << 16, GUARDED = 1 << 11 };

/* Hosts have been up for a while. */
#define FIRST_MOMENT INT64_C(100000000000)

struct sim_task *sim_task;
int64_t sim_pace = 1;

static struct sim_event **heap; /* from place 1 */
static size_t heap_count;
static uint64_t orders, turns, most_turns;
static int64_t event_time, most_time;
static void *scheduler_sp;
static bool stopped;
static char *stacks, *spare_stacks[STACKS];
static int stack_count, mapped_count, spare_count; /* of this run, of all runs, not in use */
static int heap_room;

int64_t sim_time(void)
{
    return sim_task != NULL ? sim_task->now : event_time;
}

void sim_time_reset(void)
{
    sim_require(heap_count == 0, "something is left to happen from an earlier run");
    event_time = FIRST_MOMENT;
    orders = 0;
}

uint64_t sim_turns(void)
{
    return turns;
}

static bool is_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->order < b->order;
}

static void put(struct sim_event *event, size_t place)
{
    heap[place] = event;
    event->place = place;
}

static void move_up(struct sim_event *event, size_t place)
{
    while (place > 1 && is_before(event, heap[place / 2])) {
        put(heap[place / 2], place);
        place /= 2;
    }
    put(event, place);
}

static void move_down(struct sim_event *event, size_t place)
{
    for (;;) {
        size_t child = 2 * place;
        if (child < heap_count && is_before(heap[child + 1], heap[child])) {
            child++;
        }
        if (child > heap_count || is_before(event, heap[child])) {
            break;
        }
        put(heap[child], place);
        place = child;
    }
    put(event, place);
}

void sim_event_clear(struct sim_event *event)
{
    size_t place = event->place;
    struct sim_event *last;
    if (place == 0) {
        return;
    }
    event->place = 0;
    last = heap[heap_count--];
    if (last == event) {
        return;
    }
    if (place > 1 && is_before(last, heap[place / 2])) {
        move_up(last, place);
    } else {
        move_down(last, place);
    }
}

void sim_event_set(struct sim_event *event, int64_t at)
{
    sim_event_clear(event);
    if (heap_count + 1 >= (size_t)heap_room) {
        heap = sim_grow(heap, &heap_room, sizeof *heap);
    }
    event->at = at;
    event->order = ++orders;
    move_up(event, ++heap_count);
}

/*
 * sim_switch(&save, load): keeps the registers that a call keeps on the stack, and goes on with
 * another stack that has them.
 */
void sim_switch(void **save, void *load);
__asm__(".text\n"
        ".globl sim_switch\n"
        ".type sim_switch, @function\n"
        "sim_switch:\n"
        "    pushq %rbp\n"
        "    pushq %rbx\n"
        "    pushq %r12\n"
        "    pushq %r13\n"
        "    pushq %r14\n"
        "    pushq %r15\n"
        "    movq %rsp, (%rdi)\n"
        "    movq %rsi, %rsp\n"
        "    popq %r15\n"
        "    popq %r14\n"
        "    popq %r13\n"
        "    popq %r12\n"
        "    popq %rbx\n"
        "    popq %rbp\n"
        "    ret\n"
        ".size sim_switch, . - sim_switch\n");

static void take_turn(struct sim_event *event);

static int64_t held_until(const struct sim_task *task)
{
    const struct sim_process *process = task->process;
    return task->helps && process->helpers_held_until > process->paused_until
               ? process->helpers_held_until
               : process->paused_until;
}

/* Returns the task whose turn is next, or NULL if the scheduler has something else to do. */
static struct sim_task *find_next(void)
{
    struct sim_event *event = heap_count > 0 ? heap[1] : NULL;
    struct sim_task *task = (struct sim_task *)event;
    if (event == NULL || event->happen != take_turn || stopped || turns >= most_turns ||
        event->at > most_time || held_until(task) > event->at) {
        return NULL;
    }
    return task;
}

static void enter(struct sim_task *task, void **save)
{
    task->now = event_time = task->turn.at;
    sim_task = task;
    memcpy(sim_thread_variables, task->variables, sizeof task->variables);
    sim_switch(save, task->sp);
}

/* Goes on with another task, whose turn is not in the heap any more, or NULL: the scheduler. */
static void leave_to(struct sim_task *next)
{
    struct sim_task *self = sim_task;
    turns += next != NULL;
    if (next == self) {
        self->now = event_time = self->turn.at;
        return;
    }
    memcpy(self->variables, sim_thread_variables, sizeof self->variables);
    if (next != NULL) {
        enter(next, &self->sp);
    } else {
        sim_task = NULL;
        sim_switch(&self->sp, scheduler_sp);
    }
}

static void leave(void)
{
    struct sim_task *next = find_next();
    if (next != NULL) {
        sim_event_clear(&next->turn);
    }
    leave_to(next);
}

static void begin(void)
{
    sim_task->result = sim_task->run(sim_task->argument);
    sim_process_thread_ends(sim_task);
    sim_task_end(sim_task);
}

static void take_turn(struct sim_event *event)
{
    struct sim_task *task = (struct sim_task *)event;
    int64_t paused = held_until(task);
    if (paused > event->at) {
        sim_event_set(event, paused);
        return;
    }
    enter(task, &scheduler_sp);
}

void sim_stacks_begin(void)
{
    if (stacks == NULL) {
        stacks = sim_reserve(SIM_STACKS, (size_t)STACKS * STACK_BYTES);
    }
    stack_count = spare_count = 0;
}

static char *make_stack(void)
{
    size_t guard = stack_count < GUARDED ? GUARD_BYTES : 0;
    char *stack;
    if (spare_count > 0) {
        return spare_stacks[--spare_count];
    }
    sim_require(stack_count < STACKS, "too many threads");
    stack = stacks + (size_t)stack_count++ * STACK_BYTES;
    if (stack_count > mapped_count) {
        mapped_count = stack_count;
        sim_require(mprotect(stack + guard, STACK_BYTES - guard, PROT_READ | PROT_WRITE) == 0,
                    "no memory for a stack: %m");
    }
    return stack;
}

struct sim_task *sim_task_start(struct sim_process *process, void *(*run)(void *), void *argument)
{
    struct sim_task *task = sim_alloc(1, sizeof *task);
    void **sp;
    task->turn.happen = take_turn;
    task->process = process;
    task->run = run;
    task->argument = argument;
    task->stack = make_stack();
    /* The first switch pops six registers and returns to begin(), the stack as after a call. */
    sp = (void **)(void *)(task->stack + STACK_BYTES) - 1;
    *--sp = (void *)begin;
    sp -= 6;
    memset(sp, 0, 6 * sizeof *sp);
    task->sp = sp;
    sim_image_tls(&process->image, task->variables);
    task->next = process->tasks;
    process->tasks = task;
    sim_event_set(&task->turn, sim_time() + (int64_t)sim_below(SIM_SCHEDULE, 20000));
    return task;
}

void sim_task_end(struct sim_task *task)
{
    sim_event_clear(&task->turn);
    task->ended = true;
    task->blocked = false;
    spare_stacks[spare_count++] = task->stack;
    task->stack = NULL;
    if (task == sim_task) {
        leave();
    }
}

void sim_task_free(struct sim_task *task)
{
    free(task);
}

void sim_tick(int64_t ns)
{
    struct sim_task *task = sim_task, *next;
    uint64_t drawn = sim_random(SIM_SCHEDULE);
    ns *= sim_pace;
    task->now += ns + (int64_t)((drawn >> 32) * ((uint64_t)ns + 1) >> 32);
    /* Once in 1024 calls, another program takes the processor away. */
    if ((drawn & 1023) == 0) {
        task->now += (int64_t)sim_spread(SIM_SCHEDULE, 4000000);
    }
    if (heap_count == 0 || heap[1]->at > task->now) {
        return;
    }
    next = find_next();
    if (next == NULL) {
        sim_event_set(&task->turn, task->now);
    } else {
        /* This task takes the place of that one. */
        next->turn.place = 0;
        task->turn.at = task->now;
        task->turn.order = ++orders;
        move_down(&task->turn, 1);
    }
    leave_to(next);
}

bool sim_wait(int64_t until)
{
    struct sim_task *task = sim_task;
    task->blocked = true;
    if (until != INT64_MAX) {
        sim_event_set(&task->turn, until > task->now ? until : task->now);
    }
    leave();
    if (!task->blocked) {
        return true;
    }
    task->blocked = false;
    return false;
}

void sim_wake(struct sim_task *task)
{
    int64_t at = sim_time();
    if (!task->blocked || task->ended) {
        return;
    }
    task->blocked = false;
    at = at > task->now ? at : task->now;
    sim_event_set(&task->turn, at + 500 + (int64_t)sim_below(SIM_SCHEDULE, 4000));
}

bool sim_run(int64_t until, uint64_t most)
{
    stopped = false;
    most_time = until;
    most_turns = most;
    while (!stopped && heap_count > 0 && turns < most && heap[1]->at <= until) {
        struct sim_event *event = heap[1];
        sim_event_clear(event);
        event_time = event->at;
        turns++;
        event->happen(event);
    }
    return stopped;
}

void sim_stop(void)
{
    stopped = true;
}
