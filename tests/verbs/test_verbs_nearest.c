/* SPDX-License-Identifier: MIT */
/*
 * Which of four pretend devices on a made-up machine sluice_context_open() opens, by SLUICE_DEVICE,
 * the affinity of the thread, and the local rank.
 */
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#include "../device/near/machine.h"
#include "check.h"
#include "device/near.h"

struct ibv_device **__real_ibv_get_device_list(int *count);
struct ibv_device **__wrap_ibv_get_device_list(int *count);
void __real_slu_near_read(const char *root, const struct slu_cpus *cpus, struct slu_near *near);
void __wrap_slu_near_read(const char *root, const struct slu_cpus *cpus, struct slu_near *near);

/* Devices 0 and 2 are at node 0, which has the first CPU; 1 and 3 at node 1, with the last. */
static struct machine machine;
static cpu_set_t all_cpus;
static int first_cpu = -1, last_cpu = -1;
static char cpulists[2][16];

struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
    struct ibv_device **list = __real_ibv_get_device_list(count);
    for (int i = 0; list && list[i]; i++) {
        snprintf(list[i]->ibdev_path, sizeof(list[i]->ibdev_path), "%s/class/infiniband/%s",
                 machine.root, list[i]->name);
    }
    return list;
}

void __wrap_slu_near_read(const char *root, const struct slu_cpus *cpus, struct slu_near *near)
{
    require(strcmp(root, "/sys") == 0, "%s", root);
    __real_slu_near_read(machine.root, cpus, near);
}

static char choice_line[512];
static unsigned warnings;
static char last_warning[512];

static void keep_line(uint32_t level, const char *line, void *user)
{
    (void)user;
    if (strstr(line, " chosen by ")) {
        snprintf(choice_line, sizeof(choice_line), "%s", line);
        require(level == SLUICE_LOG_INFO, "%u", level);
    }
    if (level <= SLUICE_LOG_WARN) {
        warnings++;
        snprintf(last_warning, sizeof(last_warning), "%s", line);
    }
}

static void set_up(void)
{
    require(sched_getaffinity(0, sizeof(all_cpus), &all_cpus) == 0, "%s", strerror(errno));
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (CPU_ISSET(cpu, &all_cpus)) {
            first_cpu = first_cpu < 0 ? cpu : first_cpu;
            last_cpu = cpu;
        }
    }
    snprintf(cpulists[0], sizeof(cpulists[0]), "%d", first_cpu);
    snprintf(cpulists[1], sizeof(cpulists[1]), first_cpu < last_cpu ? "%d" : "", last_cpu);
    machine = (struct machine){.nodes = {{0, cpulists[0], "10 21"}, {1, cpulists[1], "21 10"}},
                               .devices = 4,
                               .numa = {"0", "1", "0", "1"}};
    machine_make(&machine, "fake");
    fake_verbs.devices = 4;
    for (uint32_t i = 0; i < 4; i++) {
        fake_verbs.device[i].ports = 2;
    }
    unsetenv("SLUICE_DEVICE");
    unsetenv("SLUICE_LOCAL_RANK");
    require_ok(sluice_log_set(SLUICE_LOG_INFO, keep_line, NULL));
}

static void tear_down(void)
{
    machine_remove(&machine);
    check_nothing_left();
}

static void bind_to(int cpu)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    require(sched_setaffinity(0, sizeof(one), &one) == 0, "%s", strerror(errno));
}

static bool has_two_cpus(void)
{
    return first_cpu < last_cpu;
}

static void set_rank(uint32_t rank)
{
    char text[12];
    snprintf(text, sizeof(text), "%u", rank);
    setenv("SLUICE_LOCAL_RANK", text, 1);
}

static uint32_t open_one(const char *names, uint32_t port, uint32_t *opened_port)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .port = port};
    warnings = 0;
    struct sluice_context *context = made(sluice_context_open(names, &attr));
    struct sluice_context_info info = context_info(context);
    *opened_port = info.port;
    sluice_context_close(context);
    return strcmp(info.device, "soft") == 0 ? 9 : (uint32_t)(info.device[4] - '0');
}

/* Devices and ports of local ranks 0 to 4, "0:1 2:1 ..."; soft is 9, and its port is 0. */
static void expect(const char *names, uint32_t port, const char *wanted)
{
    char taken[80] = "";
    size_t used = 0;
    for (uint32_t rank = 0; rank < 5; rank++) {
        uint32_t opened_port;
        set_rank(rank);
        uint32_t device = open_one(names, port, &opened_port);
        used += (size_t)snprintf(taken + used, sizeof(taken) - used, "%s%u:%u", rank > 0 ? " " : "",
                                 device, opened_port);
    }
    require(strcmp(taken, wanted) == 0, "%s, not %s", taken, wanted);
}

static void expect_listed(const char *device, uint32_t port, const char *wanted)
{
    setenv("SLUICE_DEVICE", device, 1);
    expect(NULL, port, wanted);
    unsetenv("SLUICE_DEVICE");
    /* A device that the program names gives the same result. */
    expect(device, port, wanted);
}

TEST(any_device)
{
    if (has_two_cpus()) {
        expect(NULL, 0, "0:1 1:1 2:1 3:1 0:1");
        require(strstr(choice_line, "fake0 chosen by preference, NUMA distance 10, 1 of 4 ") &&
                    strstr(choice_line, "local rank 4 (SLUICE_LOCAL_RANK)"),
                "%s", choice_line);
        bind_to(last_cpu);
        expect(NULL, 0, "1:1 3:1 1:1 3:1 1:1");
        expect(NULL, 2, "1:2 3:2 1:2 3:2 1:2");
    }
    bind_to(first_cpu);
    expect(NULL, 0, "0:1 2:1 0:1 2:1 0:1");
    fake_verbs.device[0].port[0].state = IBV_PORT_DOWN;
    fake_verbs.device[0].port[1].state = IBV_PORT_DOWN;
    expect(NULL, 0, "2:1 2:1 2:1 2:1 2:1");
    fake_verbs.device[2].transport_type = IBV_TRANSPORT_IWARP;
    expect(NULL, 0, "1:1 3:1 1:1 3:1 1:1");
    require(strstr(choice_line, "fake1 chosen by preference, NUMA distance 21, 1 of 2 ") &&
                warnings == 0,
            "%s, %s", choice_line, last_warning);
}

TEST(lists)
{
    bind_to(first_cpu);
    expect_listed("fake3,fake2:2,fake1,fake0", 0, "2:2 0:1 2:2 0:1 2:2");
    expect_listed("fake3,fake1", 0, "3:1 1:1 3:1 1:1 3:1");
    expect_listed("fake3:2", 0, "3:2 3:2 3:2 3:2 3:2");
    expect_listed("soft,fake3", 0, "3:1 3:1 3:1 3:1 3:1");
    expect_listed("soft", 0, "9:0 9:0 9:0 9:0 9:0");
    expect_listed("mlx5_0,fake3,mlx5_1:2", 0, "3:1 3:1 3:1 3:1 3:1");
    require(warnings == 2 && strstr(last_warning, "mlx5_1"), "%u, %s", warnings, last_warning);
    fake_verbs.device[2].port[1].state = IBV_PORT_DOWN;
    expect_listed("fake3,fake2:2", 0, "3:1 3:1 3:1 3:1 3:1");
    expect_listed("fake3,fake2", 0, "2:1 2:1 2:1 2:1 2:1");
    /* The port in the attributes counts. */
    expect_listed("fake3:1,fake2:2", 2, "3:2 3:2 3:2 3:2 3:2");
    require(warnings == 1 && strstr(last_warning, "names port 1 of fake3"), "%s", last_warning);
    expect_listed("fake3:2,fake2:2", 1, "2:1 2:1 2:1 2:1 2:1");
}

TEST(lists_that_fail)
{
    static const struct {
        const char *names;
        int error;
        const char *words;
    } wrong[] = {
        {"fake0,", EINVAL, "SLUICE_DEVICE element 2"},
        {"fake0:0", EINVAL, "SLUICE_DEVICE 'fake0:0' 1 to 255"},
        {"fake0:3", EINVAL, "port 3 fake0"},
        {"mlx5_0:1,mlx5_1", ENODEV, "mlx5_0:1,mlx5_1 SLUICE_DEVICE fake0, fake1"},
        {"fake1", ENETDOWN, "2 ports of fake1"},
        {"fake1:2,mlx5_0", ENETDOWN, "port 2 fake1"},
    };
    fake_verbs.device[1].port[0].state = IBV_PORT_DOWN;
    fake_verbs.device[1].port[1].state = IBV_PORT_DOWN;
    for (size_t i = 0; i < COUNT(wrong); i++) {
        setenv("SLUICE_DEVICE", wrong[i].names, 1);
        require_null(sluice_context_open(NULL, NULL), wrong[i].error, wrong[i].words);
    }
    unsetenv("SLUICE_DEVICE");
    require_null(sluice_context_open("fake0,,fake1", NULL), EINVAL, "the caller element 2");
    require_null(sluice_context_open("", NULL), EINVAL, "the caller empty");
    require_null(sluice_context_open("mlx5_0", NULL), ENODEV, "mlx5_0 the caller fake0");
    setenv("SLUICE_LOCAL_RANK", "first", 1);
    require_null(sluice_context_open(NULL, NULL), EINVAL, "SLUICE_LOCAL_RANK 'first'");
    unsetenv("SLUICE_LOCAL_RANK");
}

/* The public call gives the same result as the open. */
TEST(nearest_of_the_list)
{
    bind_to(first_cpu);
    struct sluice_device_list *list = made(sluice_device_list_get());
    setenv("SLUICE_LOCAL_RANK", "nonsense that is not looked at", 1);
    for (uint32_t rank = 0; rank < 8; rank++) {
        require_result(sluice_device_list_nearest(list, rank), rank % 2 * 2);
    }
    setenv("SLUICE_DEVICE", "fake3,mlx5_0,fake1:2", 1);
    for (uint32_t rank = 0; rank < 8; rank++) {
        require_result(sluice_device_list_nearest(list, rank), rank % 2 == 0 ? 3 : 1);
    }
    setenv("SLUICE_DEVICE", "soft", 1);
    require_result(sluice_device_list_nearest(list, 5), 4);
    setenv("SLUICE_DEVICE", "mlx5_0", 1);
    require_error(sluice_device_list_nearest(list, 0), -ENODEV, "mlx5_0 SLUICE_DEVICE fake0");
    setenv("SLUICE_DEVICE", "fake0,fake1 ", 1);
    require_error(sluice_device_list_nearest(list, 0), -EINVAL, "SLUICE_DEVICE 'fake1 ' blank");
    unsetenv("SLUICE_DEVICE");
    unsetenv("SLUICE_LOCAL_RANK");
    sluice_device_list_free(list);
}

int main(void)
{
    static const struct tests cases[] = {{"nearest", WIRE_SELF, 60}};
    each_test(set_up, tear_down);
    setenv("SLUICE_TEST_DEVICE", "fake0", 1);
    return run_groups("verbs_nearest", cases, COUNT(cases));
}
