/* SPDX-License-Identifier: MIT */
/*
 * Lists of devices as in SLUICE_DEVICE, on made-up devices; and the variables from which a process
 * takes its local rank.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/suite.h"
#include "device/choice.h"
#include "device/device.h"

/*
 * Made-up devices: a (port 1 active), b (its second port active), c (none active), d (both active),
 * and soft. Their distances: a and d 10, b 20, c unknown.
 */
static struct sluice_device_list list;
static struct slu_near near;

static unsigned warnings, notes;
static char last_warning[512];

static void keep_line(uint32_t level, const char *line, void *user)
{
    (void)user;
    notes += level == SLUICE_LOG_INFO;
    if (level <= SLUICE_LOG_WARN) {
        warnings++;
        snprintf(last_warning, sizeof(last_warning), "%s", line);
    }
}

static void add_device(const char *name, int32_t node, uint32_t ports, uint32_t active)
{
    struct slu_device *device = made(slu_device_add(&list, name, "made up"));
    require_ok(slu_device_add_ports(device, ports));
    device->info.level = strcmp(name, "soft") == 0 ? SLUICE_LEVEL_TCP : SLUICE_LEVEL_NIC;
    device->info.numa_node = node;
    device->info.active = active != 0;
    snprintf(device->info.description, sizeof(device->info.description), "made up");
    for (uint32_t i = 0; i < ports; i++) {
        device->ports[i].active = active >> i & 1;
    }
}

static void make_devices(void)
{
    for (uint32_t i = 0; i < SLU_NEAR_NODES; i++) {
        near.distance[i] = SLU_NEAR_UNKNOWN;
    }
    near.distance[0] = 10;
    near.distance[1] = 20;
    add_device("a", 0, 1, 1);
    add_device("b", 1, 2, 2);
    add_device("c", -1, 2, 0);
    add_device("d", 0, 2, 3);
    add_device("soft", -1, 1, 1);
    require_ok(sluice_log_set(SLUICE_LOG_DEBUG, keep_line, NULL));
}

static void free_devices(void)
{
    for (uint32_t i = 0; i < list.count; i++) {
        free(list.devices[i].ports);
    }
    free(list.devices);
    memset(&list, 0, sizeof(list));
}

static int choose(const char *names, uint32_t port, uint32_t rank, struct slu_choice *choice)
{
    struct slu_wish wish = {
        .names = names, .source = "SLUICE_DEVICE", .port = port, .local_rank = rank};
    warnings = 0;
    notes = 0;
    return slu_choose(&list, &wish, &near, choice);
}

/* Requires the device and, if it is not 0, the port that ranks 0 to 5 take: "a:1 d a:1 d a:1 d". */
static void expect_at(const char *names, uint32_t port, const char *wanted)
{
    char taken[200] = "";
    size_t used = 0;
    for (uint32_t rank = 0; rank < 6; rank++) {
        struct slu_choice choice;
        char number[16] = "";
        int result = choose(names, port, rank, &choice);
        require(result == 0, "%s: %s", names, sluice_last_error());
        if (choice.port > 0) {
            snprintf(number, sizeof(number), ":%u", choice.port);
        }
        used += (size_t)snprintf(taken + used, sizeof(taken) - used, "%s%s%s", rank > 0 ? " " : "",
                                 list.devices[choice.index].info.name, number);
    }
    require(strcmp(taken, wanted) == 0, "%s: %s, not %s", names ? names : "any", taken, wanted);
}

static void expect(const char *names, const char *wanted)
{
    expect_at(names, 0, wanted);
}

TEST(one_name)
{
    expect("a", "a a a a a a");
    expect("d:2", "d:2 d:2 d:2 d:2 d:2 d:2");
    expect("soft", "soft soft soft soft soft soft");
    expect("soft:1", "soft:1 soft:1 soft:1 soft:1 soft:1 soft:1");
    /* The only device is taken though it is not active: opening it reports the problem. */
    expect("c", "c c c c c c");
    expect("a:2", "a:2 a:2 a:2 a:2 a:2 a:2");
    require(warnings == 0 && notes == 0, "%s", last_warning);
}

TEST(nearest_in_the_order_of_the_list)
{
    expect("a,d", "a d a d a d");
    expect("d,a", "d a d a d a");
    expect("b,d,a", "d a d a d a");
    expect("b,a", "a a a a a a");
    expect("d:2,d:1", "d:2 d:1 d:2 d:1 d:2 d:1");
    expect("d:1,a,d:2", "d:1 a d:2 d:1 a d:2");
    /* A device that is named twice counts twice. */
    expect("a,a,d", "a a d a a d");
}

TEST(active_before_near)
{
    expect("c,b", "b b b b b b");
    require(warnings == 0 && notes == 1, "%u, %u", warnings, notes);
    expect("d:1,b:1", "d:1 d:1 d:1 d:1 d:1 d:1");
    expect("b:1,b:2", "b:2 b:2 b:2 b:2 b:2 b:2");
    expect("a:2,b", "b b b b b b");
    expect("d:3,b", "b b b b b b");
    /* None of them is active. */
    expect("c,b:1", "b:1 b:1 b:1 b:1 b:1 b:1");
    expect("c:1,c:2", "c:1 c:2 c:1 c:2 c:1 c:2");
}

/*
 * Ranks on soft and ranks on RDMA could not meet, so soft is only for hosts without another device.
 */
TEST(soft_is_the_last)
{
    expect("soft,a", "a a a a a a");
    expect("soft,a,d", "a d a d a d");
    list.devices[0].info.numa_node = -1;
    expect("soft,a", "a a a a a a");
    list.devices[0].info.numa_node = 0;
    expect("c,soft", "soft soft soft soft soft soft");
    require(warnings == 1 && strstr(last_warning, "c is passed over"), "%s", last_warning);
    expect("x,soft", "soft soft soft soft soft soft");
}

TEST(any)
{
    expect(NULL, "a d a d a d");
    list.devices[0].info.active = 0;
    list.devices[3].info.active = 0;
    expect(NULL, "b b b b b b");
    require(warnings == 0 && notes == 3, "%u, %u", warnings, notes);
    list.devices[1].info.active = 0;
    expect(NULL, "soft soft soft soft soft soft");
    require(warnings == 4, "%u", warnings);
    /* Without soft, which never happens, a device is left whose opening fails with the reason. */
    list.count--;
    expect(NULL, "a d a d a d");
    list.count = 0;
    struct slu_choice choice;
    require_error(choose(NULL, 0, 0, &choice), -ENODEV, "any");
    list.count = 5;
}

/* The program's port overrides that of the list, and must be active. */
TEST(port_of_the_attributes)
{
    expect_at("d:1", 2, "d:2 d:2 d:2 d:2 d:2 d:2");
    require(warnings == 1 && strstr(last_warning, "SLUICE_DEVICE names port 1 of d") &&
                strstr(last_warning, "port 2, which is used"),
            "%s", last_warning);
    expect_at("d:2", 2, "d:2 d:2 d:2 d:2 d:2 d:2");
    require(warnings == 0, "%s", last_warning);
    expect_at("b:1,d:1", 2, "d:2 d:2 d:2 d:2 d:2 d:2");
    expect_at("a,b:1", 2, "b:2 b:2 b:2 b:2 b:2 b:2");
    expect_at("b,a", 1, "a:1 a:1 a:1 a:1 a:1 a:1");
    expect_at(NULL, 1, "a:1 d:1 a:1 d:1 a:1 d:1");
    expect_at(NULL, 2, "d:2 d:2 d:2 d:2 d:2 d:2");
    /* Names match as a whole. */
    expect_at(NULL, 3, "a:3 d:3 a:3 d:3 a:3 d:3");
}

TEST(devices_of_other_hosts)
{
    struct slu_choice choice;
    expect("x,a,d", "a d a d a d");
    require(warnings == 1 && strstr(last_warning, "SLUICE_DEVICE names x,") &&
                strstr(last_warning, "ignored"),
            "%s", last_warning);
    expect("x:1,y,d:2", "d:2 d:2 d:2 d:2 d:2 d:2");
    require(warnings == 2 && strstr(last_warning, " y,"), "%s", last_warning);
    require_error(choose("x,y:1", 0, 0, &choice), -ENODEV, "x,y:1 SLUICE_DEVICE a, b, c, d, soft");
    require(warnings == 0, "%s", last_warning);
    /* Names are whole. */
    require_error(choose("A,aa,sof,softy", 0, 0, &choice), -ENODEV, "SLUICE_DEVICE");
}

TEST(wrong_lists)
{
    static const struct {
        const char *names, *words;
    } lists[] = {
        {"", "SLUICE_DEVICE element 1, '' empty"},
        {",", "SLUICE_DEVICE element 1, '' empty"},
        {"a,", "SLUICE_DEVICE element 2, '' empty"},
        {",a", "SLUICE_DEVICE element 1, '' empty"},
        {"a,,d", "SLUICE_DEVICE element 2, '' empty"},
        {":1", "SLUICE_DEVICE element 1, ':1' empty"},
        {"a, d", "SLUICE_DEVICE element 2, ' d' blank"},
        {" ", "SLUICE_DEVICE element 1, ' ' blank"},
        {"a\t", "SLUICE_DEVICE element 1, blank"},
        {"x,a:", "SLUICE_DEVICE element 2, 'a:' 1 to 255"},
        {"a:0", "SLUICE_DEVICE element 1, 'a:0' 1 to 255"},
        {"a:256,d", "SLUICE_DEVICE element 1, 'a:256' 1 to 255"},
        {"a:one", "SLUICE_DEVICE element 1, 'a:one' 1 to 255"},
        {"a:-1", "SLUICE_DEVICE element 1, 'a:-1' 1 to 255"},
        {"a:1:1", "SLUICE_DEVICE element 1, 'a:1:1' 1 to 255"},
        {"a:000000000001", "SLUICE_DEVICE element 1, 1 to 255"},
        {"a:00000011", "SLUICE_DEVICE element 1, 1 to 255"},
        {"d,1234567890123456789012345678901234567890123456789012345678901234,a",
         "SLUICE_DEVICE element 2, '1234567 63 bytes"},
    };
    for (size_t i = 0; i < COUNT(lists); i++) {
        struct slu_choice choice;
        require_error(choose(lists[i].names, 0, 0, &choice), -EINVAL, lists[i].words);
        require(warnings == 0, "%s", last_warning);
    }
    /* The longest list possible. */
    expect("a:255,123456789012345678901234567890123456789012345678901234567890123:255,d",
           "d d d d d d");
}

static const char *const looked_at[] = {
    "SLUICE_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",   "SLURM_LOCALID",
    "LOCAL_RANK",        "WORLD_SIZE",
    "SLUICE_DEVICE",
};

/* Sets these variables, separated by blanks, and clears all others of those above. */
static void set_environment(const char *words)
{
    char copy[256];
    char *rest;
    for (size_t i = 0; i < COUNT(looked_at); i++) {
        unsetenv(looked_at[i]);
    }
    snprintf(copy, sizeof(copy), "%s", words);
    for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        char *value = strchr(word, '=');
        *value = '\0';
        setenv(word, value + 1, 1);
    }
}

static void expect_rank(const char *words, uint32_t wanted, const char *wanted_source)
{
    uint32_t rank = 77;
    const char *source = "?";
    set_environment(words);
    require_ok(slu_local_rank(&rank, &source));
    require(rank == wanted, "%s: %u", words, rank);
    require(wanted_source ? source && strcmp(source, wanted_source) == 0 : !source, "%s: %s", words,
            source ? source : "nothing");
}

static void refuse_rank(const char *words, const char *text)
{
    uint32_t rank;
    const char *source;
    set_environment(words);
    require_error(slu_local_rank(&rank, &source), -EINVAL, text);
}

TEST(local_ranks)
{
    expect_rank("", 0, NULL);
    expect_rank("SLUICE_LOCAL_RANK=3", 3, "SLUICE_LOCAL_RANK");
    expect_rank("SLUICE_LOCAL_RANK=65535", 65535, "SLUICE_LOCAL_RANK");
    expect_rank("OMPI_COMM_WORLD_LOCAL_RANK=4", 4, "OMPI_COMM_WORLD_LOCAL_RANK");
    expect_rank("MPI_LOCALRANKID=5", 5, "MPI_LOCALRANKID");
    expect_rank("SLURM_LOCALID=6", 6, "SLURM_LOCALID");
    expect_rank("LOCAL_RANK=7 WORLD_SIZE=8", 7, "LOCAL_RANK");
    /* A name that other programs use as well. */
    expect_rank("LOCAL_RANK=7", 0, NULL);
    expect_rank("LOCAL_RANK=-1 WORLD_SIZE=1", 0, NULL);
    /* The first of several counts, in the order of the launchers; an empty variable is ignored. */
    expect_rank("SLUICE_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_RANK=1 MPI_LOCALRANKID=2", 0,
                "SLUICE_LOCAL_RANK");
    expect_rank("OMPI_COMM_WORLD_LOCAL_RANK=1 MPI_LOCALRANKID=2 SLURM_LOCALID=3", 1,
                "OMPI_COMM_WORLD_LOCAL_RANK");
    expect_rank("MPI_LOCALRANKID=2 SLURM_LOCALID=3 LOCAL_RANK=4 WORLD_SIZE=5", 2,
                "MPI_LOCALRANKID");
    expect_rank("SLURM_LOCALID=0 LOCAL_RANK=4 WORLD_SIZE=5", 4, "LOCAL_RANK");
    expect_rank("SLUICE_LOCAL_RANK= SLURM_LOCALID=3", 3, "SLURM_LOCALID");
}

TEST(wrong_local_ranks)
{
    refuse_rank("SLUICE_LOCAL_RANK=65536", "SLUICE_LOCAL_RANK '65536' 0 to 65535");
    refuse_rank("SLUICE_LOCAL_RANK=-1", "SLUICE_LOCAL_RANK '-1'");
    refuse_rank("SLUICE_LOCAL_RANK=x SLURM_LOCALID=3", "SLUICE_LOCAL_RANK 'x'");
    refuse_rank("OMPI_COMM_WORLD_LOCAL_RANK=x", "OMPI_COMM_WORLD_LOCAL_RANK 'x' 0 to 65535");
    refuse_rank("MPI_LOCALRANKID=-1", "MPI_LOCALRANKID '-1'");
    refuse_rank("SLURM_LOCALID=65536", "SLURM_LOCALID '65536'");
}

/* If only one device is named, the local rank is not read. */
TEST(local_rank_of_no_use)
{
    struct slu_choice choice;
    set_environment("SLUICE_LOCAL_RANK=x");
    require_error(slu_choose_here(&list, NULL, 0, &choice), -EINVAL, "SLUICE_LOCAL_RANK");
    require_error(slu_choose_here(&list, "a,d", 0, &choice), -EINVAL, "SLUICE_LOCAL_RANK");
    require_ok(slu_choose_here(&list, "d:2", 0, &choice));
    require(choice.index == 3 && choice.port == 2, "%u:%u", choice.index, choice.port);
    setenv("SLUICE_DEVICE", "d:1", 1);
    require_ok(slu_choose_here(&list, NULL, 0, &choice));
    require(choice.index == 3 && choice.port == 1, "%u:%u", choice.index, choice.port);
    require_result(sluice_device_list_nearest(&list, 5), 3);
    set_environment("");
}

static struct sluice_choice_info told(const char *names, uint32_t index)
{
    struct sluice_choice_info info = {.size = sizeof(info)};
    require_ok(sluice_device_list_choice(&list, index, names, &info));
    require(info.size == sizeof(info) && info.reserved == 0, "%u, %u", info.size, info.reserved);
    require(info.reason[0], "%s, device %u", names ? names : "any", index);
    return info;
}

/* Requires the verdicts of a, b, c, d and soft, as digits; the one taken is the one chosen. */
static void expect_verdicts(const char *names, const char *wanted)
{
    char verdicts[6] = "";
    struct slu_choice choice;
    require_ok(slu_choose_here(&list, names, 0, &choice));
    warnings = 0;
    notes = 0;
    for (uint32_t i = 0; i < 5; i++) {
        struct sluice_choice_info info = told(names, i);
        verdicts[i] = (char)('0' + info.verdict);
        require((info.verdict == SLUICE_CHOICE_TAKEN) == (i == choice.index), "%s: %s",
                list.devices[i].info.name, info.reason);
        if (i == choice.index) {
            require_equal(info.port, choice.port, info.place, choice.place, info.equals,
                          choice.equals);
        }
    }
    require(strcmp(verdicts, wanted) == 0, "%s: %s, not %s", names ? names : "any", verdicts,
            wanted);
    require(warnings == 0 && notes == 0, "%s", last_warning);
}

TEST(verdicts)
{
    /* The distances are those of this machine here: a and d stay as near as each other. */
    set_environment("SLUICE_LOCAL_RANK=1");
    list.devices[1].info.numa_node = -1;
    list.devices[0].info.numa_node = list.devices[3].info.numa_node = -1;
    expect_verdicts(NULL, "21425");
    expect_verdicts("a,d", "26616");
    expect_verdicts("soft,a", "16663");
    expect_verdicts("soft", "66661");
    expect_verdicts("c", "66166");
    expect_verdicts("d:2,c,d:1", "66416");
    expect_verdicts("x,a:2,d", "46616");
    set_environment("");
    expect_verdicts(NULL, "12425");
    list.devices[0].info.active = list.devices[1].info.active = list.devices[3].info.active = 0;
    expect_verdicts(NULL, "44441");
    set_environment("SLUICE_DEVICE=b,c");
    expect_verdicts(NULL, "61266");
    set_environment("");
}

TEST(reasons)
{
    struct sluice_choice_info info;
    set_environment("SLUICE_LOCAL_RANK=1 SLUICE_DEVICE=a,d:2,c");
    list.devices[0].info.numa_node = list.devices[3].info.numa_node = -1;
    info = told(NULL, 3);
    require(strstr(info.reason, "chosen by SLUICE_DEVICE") && strstr(info.reason, "2 of 2") &&
                strstr(info.reason, "local rank 1 (SLUICE_LOCAL_RANK)"),
            "%s", info.reason);
    require(info.port == 2 && info.local_rank == 1 && info.distance == 0 &&
                strcmp(info.source, "SLUICE_DEVICE") == 0 &&
                strcmp(info.rank_source, "SLUICE_LOCAL_RANK") == 0,
            "port %u, %s", info.port, info.source);
    info = told(NULL, 0);
    require(strstr(info.reason, "as near as d") && info.place == 0, "%s", info.reason);
    info = told(NULL, 1);
    require(strstr(info.reason, "SLUICE_DEVICE names 'a,d:2,c'"), "%s", info.reason);
    info = told(NULL, 2);
    require(strstr(info.reason, "not active: made up"), "%s", info.reason);
    info = told("c", 2);
    require(strstr(info.reason, "chosen by the caller") && strstr(info.reason, "not active"), "%s",
            info.reason);
    info = told("a:7,d", 0);
    require(strstr(info.reason, "port 7 is not active: the device has no such port"), "%s",
            info.reason);
    set_environment("");
    info = told(NULL, 4);
    require(strstr(info.reason, "soft is taken only where no RDMA device is active, and a is"),
            "%s", info.reason);
}

TEST(choices_that_fail)
{
    struct sluice_choice_info info = {.size = sizeof(info), .verdict = 77};
    set_environment("");
    require_error(sluice_device_list_choice(NULL, 0, NULL, &info), -EINVAL, "list NULL");
    require_error(sluice_device_list_choice(&list, 0, NULL, NULL), -EINVAL, "NULL");
    require_error(sluice_device_list_choice(&list, 5, NULL, &info), -ERANGE, "5 0..4");
    require_error(sluice_device_list_choice(&list, 0, "a,,b", &info), -EINVAL, "element 2");
    require_error(sluice_device_list_choice(&list, 0, "x,y", &info), -ENODEV, "x,y a, b, c, d");
    set_environment("SLUICE_LOCAL_RANK=x");
    require_error(sluice_device_list_choice(&list, 0, NULL, &info), -EINVAL, "SLUICE_LOCAL_RANK");
    set_environment("SLUICE_DEVICE=a:0");
    require_error(sluice_device_list_choice(&list, 0, NULL, &info), -EINVAL, "SLUICE_DEVICE");
    set_environment("");
    info.size = 8;
    require_error(sluice_device_list_choice(&list, 0, NULL, &info), -EINVAL, "too small");
    info.size = 5000;
    require_error(sluice_device_list_choice(&list, 0, NULL, &info), -E2BIG, "4096");
    require(info.verdict == 77, "%u", info.verdict);
}

/* As long as the table of variables permits. */
TEST(long_list)
{
    static char names[4100];
    memset(names, 'x', sizeof(names) - 1);
    for (size_t i = 40; i < sizeof(names) - 1; i += 40) {
        names[i] = ',';
    }
    set_environment("");
    names[4096] = '\0';
    setenv("SLUICE_DEVICE", names, 1);
    require_error(sluice_device_list_nearest(&list, 0), -EINVAL, "SLUICE_DEVICE 4096 4095");
    memcpy(names + 4092, ",a", 3);
    setenv("SLUICE_DEVICE", names, 1);
    warnings = 0;
    require_result(sluice_device_list_nearest(&list, 0), 0);
    require(warnings == 103, "%u", warnings);
    set_environment("");
}

int main(void)
{
    static const struct tests cases[] = {{"choice", WIRE_SELF, 30}};
    each_test(make_devices, free_devices);
    return run_groups("choice", cases, COUNT(cases));
}
