/* SPDX-License-Identifier: MIT */
/*
 * Failures of a port in use: its link goes down, its address is removed. The program takes down the
 * network interface behind a soft-RoCE device, so it runs only where no other program uses that: in
 * a guest, as root.
 */
#include <net/if.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"

#define ADDRESS "192.0.2.77"

static char interface[IF_NAMESIZE];

/* Finds the interface behind the device. Returns false if the kernel reports none. */
static bool find_interface(void)
{
    char path[128];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/parent", test_device());
    FILE *file = fopen(path, "r");
    if (!file) {
        return false;
    }
    bool found = fscanf(file, "%15s", interface) == 1;
    fclose(file);
    return found;
}

/* ip(8) with these arguments, of which %s is the interface. */
static void ip(const char *format)
{
    char command[160];
    int used = snprintf(command, sizeof(command), "PATH=$PATH:/usr/sbin:/sbin ip ");
    snprintf(command + used, sizeof(command) - (size_t)used, format, interface);
    require(system(command) == 0, "%s failed", command);
}

static bool port_is_active(void)
{
    struct sluice_device_list *list = sluice_device_list_get();
    struct sluice_device_info info = {.size = sizeof(info)};
    bool active = false;
    for (uint32_t i = 0; i < sluice_device_list_count(list) && !active; i++) {
        require_ok(sluice_device_list_info(list, i, &info));
        active = strcmp(info.name, test_device()) == 0 && info.active;
    }
    sluice_device_list_free(list);
    return active;
}

/* The kernel works on a change for some time after ip(8) has ended. */
static void await_port(bool active)
{
    for (int64_t end = clock_now() + DEADLINE; clock_now() < end && port_is_active() != active;) {
        let_pass(SLUICE_MS(10));
    }
    require(port_is_active() == active, "the port is not %s", active ? "active" : "down");
}

static void link_down(void)
{
    ip("link set %s down");
    await_port(false);
}

static void link_up(void)
{
    ip("link set %s up");
    await_port(true);
}

static void require_lost_port(const struct sluice_channel *channel, const char *words)
{
    int64_t end = clock_now() + DEADLINE;
    while (clock_now() < end && sluice_channel_state(channel) == SLUICE_STATE_READY) {
        let_pass(SLUICE_MS(10));
    }
    struct sluice_error error = channel_error(channel);
    require(error.error_class == SLUICE_CLASS_DEVICE && error.error == -EIO, "%s", error.text);
    require(error.status == SLUICE_STATUS_FATAL_ERR, "%s", error.text);
    require(strstr(error.text, words), "no '%s' in: %s", words, error.text);
}

TEST(idle_channels_learn_that_the_port_went_down)
{
    struct pair first, second;
    pair_open(&first, NULL);
    pair_open(&second, NULL);
    link_down();
    for (int i = 0; i < 2; i++) {
        require_lost_port(first.channels[i], "the port went down");
        require_lost_port(second.channels[i], "the port went down");
    }
    require_null(sluice_channel_prepare(first.sides.pds[0], NULL), ENETDOWN, "not active");
    link_up();
    pair_close(&first);
    pair_close(&second);
}

TEST(a_request_of_a_port_that_is_down_fails_for_that)
{
    struct memory memory;
    struct pair pair;
    pair_open(&pair, NULL);
    memory_open(&memory, pair.sides.pds[0], 64);
    struct sluice_sge sge = memory_sge(&memory, 0, 64);
    link_down();
    require_result(sluice_channel_send(pair.channels[0], &sge, 1, DEADLINE), -EIO);
    require_lost_port(pair.channels[0], "the port went down");
    link_up();
    memory_close(&memory);
    pair_close(&pair);
}

/* A wait that sleeps, in a thread of its own. */
struct sleeper {
    struct pair pair;
    struct memory memory;
    pthread_t thread;
    int result;
    struct sluice_completion completion;
};

static void *sleep_in_receive(void *argument)
{
    struct sleeper *sleeper = argument;
    struct sluice_sge sge = memory_sge(&sleeper->memory, 0, 64);
    sleeper->result =
        sluice_channel_receive(sleeper->pair.channels[0], &sge, 1, DEADLINE, &sleeper->completion);
    return NULL;
}

static void sleeper_start(struct sleeper *sleeper)
{
    const struct sluice_channel_attr attr = {.size = sizeof(attr), .wait_mode = SLUICE_WAIT_EVENT};
    pair_open(&sleeper->pair, &attr);
    memory_open(&sleeper->memory, sleeper->pair.sides.pds[0], 64);
    require(pthread_create(&sleeper->thread, NULL, sleep_in_receive, sleeper) == 0, "no thread%s",
            "");
}

/* Both threads are notified, whichever reads the event. */
static void wake_two(struct sleeper *sleepers)
{
    for (int i = 0; i < 2; i++) {
        sleeper_start(&sleepers[i]);
    }
    let_pass(SLUICE_MS(200)); /* so that they sleep; if one does not yet, it is only easier */
    int64_t begun = fair_now();
    link_down();
    for (int i = 0; i < 2; i++) {
        pthread_join(sleepers[i].thread, NULL);
    }
    require(fair_now() - begun < DEADLINE / 2, "woken by the deadline only%s", "");
    for (int i = 0; i < 2; i++) {
        require_result(sleepers[i].result, -EIO);
        require_class(&sleepers[i].completion, SLUICE_CLASS_DEVICE);
    }
    link_up();
    for (int i = 0; i < 2; i++) {
        memory_close(&sleepers[i].memory);
        pair_close(&sleepers[i].pair);
    }
}

TEST(all_sleepers_are_woken)
{
    struct sleeper sleepers[2];
    wake_two(sleepers);
}

TEST(a_reset_recovers_when_the_port_is_back)
{
    struct pair pair;
    pair_open(&pair, NULL);
    link_down();
    link_up();
    for (int i = 0; i < 2; i++) {
        require_lost_port(pair.channels[i], "the port went down");
    }
    pair_reset(&pair);
    pair_works(&pair);
    pair_close(&pair);
}

/* Index of the GID with these words in its text. */
static uint32_t find_gid(const char *words)
{
    struct sluice_device_list *list = sluice_device_list_get();
    struct sluice_device_info info = {.size = sizeof(info)};
    struct sluice_gid_info gid = {.size = sizeof(gid)};
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < sluice_device_list_count(list); i++) {
        require_ok(sluice_device_list_info(list, i, &info));
        if (strcmp(info.name, test_device()) != 0) {
            continue;
        }
        for (uint32_t n = 0; sluice_device_list_gid(list, i, n, &gid) == 0; n++) {
            if (strstr(gid.text, words)) {
                found = gid.index;
            }
        }
    }
    sluice_device_list_free(list);
    return found;
}

static void await_gid(const char *words)
{
    for (int64_t end = clock_now() + DEADLINE;
         clock_now() < end && find_gid(words) == UINT32_MAX;) {
        let_pass(SLUICE_MS(10));
    }
}

static void connect_over(struct pair *pair, const char *address)
{
    await_gid(address);
    const struct sluice_context_attr attr = {
        .size = sizeof(attr),
        .flags = SLUICE_CONTEXT_GID_INDEX,
        .gid_index = find_gid(address),
    };
    memset(pair, 0, sizeof(*pair));
    for (int i = 0; i < 2; i++) {
        pair->sides.contexts[i] = sluice_context_open(test_device(), &attr);
        require(pair->sides.contexts[i], "%s: %s", address, sluice_last_error());
        pair->sides.pds[i] = made(sluice_pd_alloc(pair->sides.contexts[i]));
    }
    pair_connect(pair, NULL);
    pair_works(pair);
}

TEST(only_channels_of_a_lost_address_are_lost)
{
    struct pair stays, goes;
    ip("address add " ADDRESS "/24 dev %s");
    connect_over(&goes, ADDRESS);
    pair_open(&stays, NULL);
    ip("address del " ADDRESS "/24 dev %s");
    require_lost_port(goes.channels[0], "lost the address");
    require_lost_port(goes.channels[1], "lost the address");
    pair_works(&stays);
    pair_close(&stays);
    pair_close(&goes);
}

int main(void)
{
    /* The guest sets this variable; its network is its own. */
    if (device_is_soft() || !getenv("SOFTROCE_HOST") || !find_interface()) {
        printf("1..0 # SKIP takes network interfaces down: runs in a guest alone\n");
        return EXIT_SUCCESS;
    }
    return RUN_GROUPS("events", {"tcp", WIRE_TCP, 60});
}
