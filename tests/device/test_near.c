/* SPDX-License-Identifier: MIT */
/*
 * Which device each of 16 ranks takes on made-up machines, bound and unbound: by the distances in
 * sysfs, and by the local rank if these are missing or nonsense.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/suite.h"
#include "device/choice.h"
#include "device/device.h"
#include "near/machine.h"

#define RANKS 16

/* The CPUs that a process is bound to, and the devices of its ranks 0 to 15, a digit each. */
struct binding {
    uint32_t first, last; /* CPUs */
    const char *devices;
};

struct puzzle {
    const char *name;
    struct machine machine;
    struct binding bindings[6];
};

#define EVEN_ODD "0101010101010101"
#define ALL_0 "0000000000000000"
#define ALL_1 "1111111111111111"

static const struct puzzle puzzles[] = {
    {.name = "no NUMA files",
     .machine = {.devices = 3, .numa = {"-1", "-1", "-1"}},
     .bindings = {{0, 7, "0120120120120120"}, {3, 3, "0120120120120120"}}},
    {.name = "a node that is nowhere",
     .machine = {.devices = 2, .numa = {"0", "0"}},
     .bindings = {{0, 7, EVEN_ODD}}},
    {.name = "one node, one device",
     .machine = {.nodes = {{0, "0-7", "10"}}, .devices = 1, .numa = {"0"}},
     .bindings = {{0, 7, ALL_0}, {3, 3, ALL_0}}},
    {.name = "two sockets with one each",
     .machine = {.nodes = {{0, "0-7", "10 21"}, {1, "8-15", "21 10"}},
                 .devices = 2,
                 .numa = {"0", "1"}},
     .bindings = {{0, 15, EVEN_ODD}, {0, 7, ALL_0}, {8, 15, ALL_1}, {7, 8, EVEN_ODD}}},
    {.name = "two sockets with four each",
     .machine = {.nodes = {{0, "0-7", "10 21"}, {1, "8-15", "21 10"}},
                 .devices = 8,
                 .numa = {"0", "0", "0", "0", "1", "1", "1", "1"}},
     .bindings = {{0, 15, "0123456701234567"},
                  {0, 7, "0123012301230123"},
                  {8, 15, "4567456745674567"},
                  {12, 12, "4567456745674567"}}},
    {.name = "two sockets, by turns",
     .machine = {.nodes = {{0, "0-3,8-11", "10 21"}, {1, "4-7,12-15", "21 10"}},
                 .devices = 5,
                 .numa = {"1", "0", "1", "0", "1"}},
     .bindings = {{0, 15, "0123401234012340"},
                  {8, 11, "1313131313131313"},
                  {3, 3, "1313131313131313"},
                  {12, 12, "0240240240240240"},
                  {4, 7, "0240240240240240"}}},
    {.name = "two sockets, devices at one",
     .machine = {.nodes = {{0, "0-7", "10 21"}, {1, "8-15", "21 10"}},
                 .devices = 2,
                 .numa = {"1", "1"}},
     .bindings = {{0, 15, EVEN_ODD}, {0, 7, EVEN_ODD}, {8, 15, EVEN_ODD}}},
    {.name = "four nodes, there and back not the same",
     .machine = {.nodes = {{0, "0-3", "10 11 20 30"},
                           {1, "4-7", "12 10 15 20"},
                           {2, "8-11", "40 16 10 11"},
                           {3, "12-15", "17 20 30 10"}},
                 .devices = 2,
                 .numa = {"1", "3"}},
     .bindings = {{0, 3, ALL_0},
                  {4, 7, ALL_0},
                  {8, 11, ALL_1},
                  {12, 15, ALL_1},
                  {0, 15, EVEN_ODD},
                  {3, 8, ALL_0}}},
    {.name = "a node without CPUs",
     .machine = {.nodes = {{0, "0-7", "10 17"}, {1, "", "17 10"}},
                 .devices = 2,
                 .numa = {"1", "0"}},
     .bindings = {{0, 7, ALL_1}, {2, 2, ALL_1}}},
    {.name = "numbers left out",
     .machine = {.nodes = {{0, "0-3", "10 32 21"}, {3, "4-7", "32 10 32"}, {8, "8-11", "21 32 10"}},
                 .devices = 3,
                 .numa = {"3", "8", "8"}},
     .bindings = {{0, 3, "1212121212121212"},
                  {4, 7, ALL_0},
                  {8, 11, "1212121212121212"},
                  {0, 11, "0120120120120120"}}},
    {.name = "numa_node -1, or none",
     .machine = {.nodes = {{0, "0-7", "10 21"}, {1, "8-15", "21 10"}},
                 .devices = 3,
                 .numa = {"-1", "1", NULL}},
     .bindings = {{0, 15, ALL_1}, {0, 7, ALL_1}, {8, 15, ALL_1}}},
    {.name = "numa_node -1 and none",
     .machine = {.nodes = {{0, "0-7", "10 21"}, {1, "8-15", "21 10"}},
                 .devices = 2,
                 .numa = {NULL, "-1"}},
     .bindings = {{0, 15, EVEN_ODD}, {0, 7, EVEN_ODD}}},
    {.name = "thousands of CPUs",
     .machine = {.nodes = {{0, "0-4095", "10 21"}, {1, "4096-8191", "21 10"}},
                 .devices = 2,
                 .numa = {"0", "1"}},
     .bindings = {{8191, 8191, ALL_1}, {2000, 2000, ALL_0}, {0, 8191, EVEN_ODD}}},
    {.name = "CPUs that belong to no node",
     .machine = {.nodes = {{0, "0-3", "10 21"}, {1, "4-7", "21 10"}},
                 .devices = 2,
                 .numa = {"0", "1"}},
     .bindings = {{8, 9, EVEN_ODD}}},
};

/* All devices of the machine with an active port, and soft. */
static void make_list(const struct machine *machine, struct sluice_device_list *list)
{
    memset(list, 0, sizeof(*list));
    for (uint32_t i = 0; i <= machine->devices; i++) {
        char name[64], path[160];
        snprintf(name, sizeof(name), i < machine->devices ? "dev%u" : "soft", i);
        snprintf(path, sizeof(path), "%s/class/infiniband/%s", machine->root, name);
        struct slu_device *device = made(slu_device_add(list, name, "made up"));
        device->info.active = 1;
        device->info.level = i < machine->devices ? SLUICE_LEVEL_NIC : SLUICE_LEVEL_TCP;
        device->info.numa_node = slu_near_node(path);
    }
}

static void free_list(struct sluice_device_list *list)
{
    free(list->devices);
}

static void read_near(const struct machine *machine, uint32_t first, uint32_t last,
                      struct slu_near *near)
{
    struct slu_cpus cpus;
    memset(&cpus, 0, sizeof(cpus));
    for (uint32_t cpu = first; cpu <= last; cpu++) {
        CPU_SET_S(cpu, sizeof(cpus), cpus.sets);
    }
    errno = 77;
    slu_near_read(machine->root, &cpus, near);
    require_result(errno, 77);
}

static uint32_t choose(const struct sluice_device_list *list, const struct slu_near *near,
                       uint32_t rank)
{
    struct slu_wish wish = {.source = "the test", .local_rank = rank};
    struct slu_choice choice;
    require_ok(slu_choose(list, &wish, near, &choice));
    require(choice.place == rank % choice.equals + 1, "%u of %u", choice.place, choice.equals);
    return choice.index;
}

static void check_ranks(const char *name, const struct sluice_device_list *list,
                        const struct slu_near *near, const char *wanted)
{
    char taken[RANKS + 1] = "";
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        taken[rank] = (char)('0' + choose(list, near, rank));
    }
    require(strcmp(taken, wanted) == 0, "%s: %s, not %s", name, taken, wanted);
    /* 2^32 - 1 is 15 modulo 16, 7 modulo 8, 0 modulo 3 and 5, and 1 modulo 2. */
    uint32_t last = choose(list, near, UINT32_MAX);
    require(strchr(wanted, (int)('0' + last)), "%s: %u", name, last);
}

TEST(whole_distribution, .times = COUNT(puzzles))
{
    const struct puzzle *puzzle = &puzzles[_i];
    struct machine machine = puzzle->machine;
    struct sluice_device_list list;
    machine_make(&machine, "dev");
    make_list(&machine, &list);
    for (size_t i = 0; i < COUNT(puzzle->bindings) && puzzle->bindings[i].devices; i++) {
        const struct binding *binding = &puzzle->bindings[i];
        struct slu_near near;
        read_near(&machine, binding->first, binding->last, &near);
        check_ranks(puzzle->name, &list, &near, binding->devices);
    }
    free_list(&list);
    machine_remove(&machine);
}

/* Without any CPU all devices are equally near. */
TEST(no_affinity)
{
    struct machine machine = puzzles[3].machine;
    struct sluice_device_list list;
    struct slu_cpus cpus;
    struct slu_near near;
    machine_make(&machine, "dev");
    make_list(&machine, &list);
    memset(&cpus, 0, sizeof(cpus));
    slu_near_read(machine.root, &cpus, &near);
    check_ranks("none", &list, &near, EVEN_ODD);
    require(slu_near_distance(&near, 0) == SLU_NEAR_UNKNOWN, "%u", near.distance[0]);
    free_list(&list);
    machine_remove(&machine);
}

TEST(distances)
{
    struct machine machine = {
        .nodes = {{0, "0-3", "10 11 255"}, {5, "4-7", "12 10 15"}, {1023, "8-11", "40 16 10"}}};
    struct slu_near near;
    machine_make(&machine, "dev");
    read_near(&machine, 3, 4, &near);
    require_result(slu_near_distance(&near, 0), 10);
    require_result(slu_near_distance(&near, 5), 10);
    require_result(slu_near_distance(&near, 1023), 15);
    require_result(slu_near_distance(&near, 1), SLU_NEAR_UNKNOWN);
    require_result(slu_near_distance(&near, -1), SLU_NEAR_UNKNOWN);
    require_result(slu_near_distance(&near, 1024), SLU_NEAR_UNKNOWN);
    require_result(slu_near_distance(&near, INT32_MIN), SLU_NEAR_UNKNOWN);
    require_result(slu_near_distance(&near, INT32_MAX), SLU_NEAR_UNKNOWN);
    machine_remove(&machine);
    /* Without the machine's files no distance is known. */
    read_near(&machine, 3, 4, &near);
    require_result(slu_near_distance(&near, 0), SLU_NEAR_UNKNOWN);
}

static const char *const nonsense[] = {
    "x",        "-",        "0-",
    "3-0",      "0,,1",     "0-3,x",
    "0-3,",     ",0-7",     "0 - 7",
    "0-7 ",     " 0-7",     "0x0",
    "0-7\n0",   "0-7:1",    "10 ",
    " 10",      "10  21",   "10;21",
    "10 21 x",  "10 -21",   "10 21\n10 21",
    "0 0",      "10 0",     "10",
    "10 21 31", "10 65536", "99999999999999999999 1",
    "\xff\xfe", "+1",       "1.0",
    "0-7-8",    "--",
};

/* A file of the first node that has an unexpected format is treated as missing. */
TEST(nonsense_of_a_node)
{
    static const char *const files[] = {"devices/system/node/node0/cpulist",
                                        "devices/system/node/node0/distance"};
    for (size_t i = 0; i < 2 * COUNT(nonsense); i++) {
        struct machine machine = puzzles[3].machine;
        struct slu_near near;
        if (i % 2 == 0 && strcmp(nonsense[i / 2], "10") == 0) {
            continue; /* the file is a valid list of CPUs */
        }
        machine_make(&machine, "dev");
        machine_write(&machine, files[i % 2], nonsense[i / 2]);
        read_near(&machine, 0, 7, &near);
        require(slu_near_distance(&near, 0) == SLU_NEAR_UNKNOWN &&
                    slu_near_distance(&near, 1) == SLU_NEAR_UNKNOWN,
                "%s is '%s': %u", files[i % 2], nonsense[i / 2], near.distance[0]);
        /* The other node is unaffected. */
        read_near(&machine, 0, 15, &near);
        require_result(slu_near_distance(&near, 0), 21);
        require_result(slu_near_distance(&near, 1), 10);
        machine_write(&machine, files[i % 2], NULL);
        read_near(&machine, 0, 7, &near);
        require_result(slu_near_distance(&near, 0), SLU_NEAR_UNKNOWN);
        machine_remove(&machine);
    }
}

TEST(nonsense_of_a_device)
{
    static const char *const more[] = {"", "-2", "1024", "2147483648", "4294967296", "4294967295"};
    struct machine machine = puzzles[3].machine;
    struct slu_near near;
    char path[160];
    machine_make(&machine, "dev");
    read_near(&machine, 0, 15, &near);
    snprintf(path, sizeof(path), "%s/class/infiniband/dev1", machine.root);
    require_result(slu_near_node(path), 1);
    for (size_t i = 0; i < COUNT(nonsense) + COUNT(more); i++) {
        const char *text = i < COUNT(more) ? more[i] : nonsense[i - COUNT(more)];
        struct sluice_device_list list;
        if (strcmp(text, "10") == 0) {
            continue; /* the file is a valid number of a node */
        }
        machine_write(&machine, "class/infiniband/dev1/device/numa_node", text);
        int32_t node = slu_near_node(path);
        require(node == -1 || node == 1024, "'%s' is node %d", text, node);
        make_list(&machine, &list);
        check_ranks(text, &list, &near, ALL_0);
        free_list(&list);
    }
    machine_remove(&machine);
    require_result(slu_near_node(path), -1);
}

/* Folders beside those of the nodes, and files of that name. */
TEST(other_names)
{
    struct machine machine = puzzles[3].machine;
    struct slu_near near;
    machine_make(&machine, "dev");
    machine_write(&machine, "devices/system/node/online", "0-1");
    machine_write(&machine, "devices/system/node/power/control", "auto");
    machine_write(&machine, "devices/system/node/node/cpulist", "0-15");
    machine_write(&machine, "devices/system/node/node1x/cpulist", "0-15");
    machine_write(&machine, "devices/system/node/node1024/cpulist", "0-15");
    machine_write(&machine, "devices/system/node/nodes", "0");
    read_near(&machine, 0, 7, &near);
    require_result(slu_near_distance(&near, 0), 10);
    require_result(slu_near_distance(&near, 1), 21);
    /* A node that was added meanwhile: the tables have another number of nodes. */
    machine_write(&machine, "devices/system/node/node2/cpulist", "");
    read_near(&machine, 0, 7, &near);
    require_result(slu_near_distance(&near, 0), SLU_NEAR_UNKNOWN);
    machine_remove(&machine);
}

/* The affinity is that of the calling thread, not of its process. */
TEST(own_affinity)
{
    cpu_set_t before, one;
    struct slu_cpus cpus;
    int cpu = 0;
    require(sched_getaffinity(0, sizeof(before), &before) == 0, "%s", strerror(errno));
    slu_cpus_read(&cpus);
    require(memcmp(&before, cpus.sets, sizeof(before)) == 0, "another set");
    while (!CPU_ISSET(cpu, &before)) {
        cpu++;
    }
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    require(sched_setaffinity(0, sizeof(one), &one) == 0, "%s", strerror(errno));
    slu_cpus_read(&cpus);
    require(CPU_COUNT_S(sizeof(cpus), cpus.sets) == 1 &&
                CPU_ISSET_S((size_t)cpu, sizeof(cpus), cpus.sets),
            "%d CPUs", CPU_COUNT_S(sizeof(cpus), cpus.sets));
    sched_setaffinity(0, sizeof(before), &before);
}

int main(void)
{
    static const struct tests cases[] = {{"near", WIRE_SELF, 30}};
    return run_groups("near", cases, COUNT(cases));
}
