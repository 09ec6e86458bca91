/* SPDX-License-Identifier: MIT */
/*
 * The list of devices, their ports and their GIDs agrees with itself, with an open context, and
 * with sysfs. Started as "test_devices files LEFT", it is a program that lists the devices first
 * thing, with this many file descriptors left.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../support/pair.h"
#include "../support/process.h"

/* The struct sluice_port_info of the device under test, and what belongs to it. */
struct found {
    struct sluice_device_list *list;
    uint32_t index;
    struct sluice_device_info info;
};

/* Returns the index of the device under test, or the count if it is missing. */
static uint32_t find_device(const struct sluice_device_list *list)
{
    uint32_t count = sluice_device_list_count(list);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(device_info(list, i).name, test_device()) == 0) {
            return i;
        }
    }
    return count;
}

static struct found find(void)
{
    struct found found = {.list = sluice_device_list_get()};
    require(found.list, "%s", sluice_last_error());
    found.index = find_device(found.list);
    require(found.index < sluice_device_list_count(found.list), "no %s", test_device());
    found.info = device_info(found.list, found.index);
    return found;
}

static void check_port(const struct sluice_device_info *device, const struct sluice_port_info *port)
{
    require(port->size == sizeof(*port) && port->state <= SLUICE_PORT_ACTIVE_DEFER &&
                port->link_layer <= SLUICE_LINK_ETHERNET && port->reserved == 0,
            "port %u: state %u, link layer %u", port->port, port->state, port->link_layer);
    require(port->description[0], "port %u", port->port);
    require(!port->active || port->state == SLUICE_PORT_ACTIVE, "port %u: state %u", port->port,
            port->state);
    require(port->speed % 500 == 0 && (port->width > 0) == (port->speed > 0), "%u lanes, %u Mbit/s",
            port->width, port->speed);
    if (device->level == SLUICE_LEVEL_NIC && port->active) {
        require(port->mtu >= 256 && port->mtu <= port->max_mtu && port->max_mtu <= 4096 &&
                    (port->mtu & (port->mtu - 1)) == 0,
                "MTU %u of %u", port->mtu, port->max_mtu);
        require(port->max_message >= port->mtu && port->pkey_table > 0, "%llu bytes, %u keys",
                (unsigned long long)port->max_message, port->pkey_table);
    }
}

/* Requires that the text has the kind of the entry and the address in its bytes. */
static void check_gid_text(const struct sluice_gid_info *gid)
{
    static const char *const kinds[] = {
        [SLUICE_GID_INFINIBAND] = "GID ",
        [SLUICE_GID_ROCE_V1] = "RoCE v1 ",
        [SLUICE_GID_ROCE_V2] = "RoCE v2 ",
    };
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    uint8_t bytes[16];
    require(gid->type >= SLUICE_GID_INFINIBAND && gid->type <= SLUICE_GID_ROCE_V2, "type %u",
            gid->type);
    size_t kind = strlen(kinds[gid->type]);
    require(strncmp(gid->text, kinds[gid->type], kind) == 0, "%s, type %u", gid->text, gid->type);
    memcpy(bytes, mapped, sizeof(mapped));
    require(inet_pton(AF_INET, gid->text + kind, bytes + 12) == 1 ||
                inet_pton(AF_INET6, gid->text + kind, bytes) == 1,
            "%s", gid->text);
    require(memcmp(bytes, gid->gid, sizeof(bytes)) == 0, "%s", gid->text);
}

/*
 * Requires that entries are in order and belong to a port, and that a usable port has a chosen one.
 */
static void check_gids(const struct sluice_device_list *list, uint32_t index,
                       const struct sluice_device_info *device)
{
    uint32_t chosen[256] = {0};
    struct sluice_gid_info last = {.port = 0};
    for (uint32_t i = 0; i < device->gids; i++) {
        struct sluice_gid_info gid = gid_info(list, index, i);
        require(gid.port >= 1 && gid.port <= device->ports, "port %u", gid.port);
        require(gid.index < port_info(list, index, gid.port).gid_table, "index %u", gid.index);
        require(gid.port > last.port || (gid.port == last.port && gid.index > last.index),
                "port %u, index %u", gid.port, gid.index);
        require(gid.chosen <= 1, "%u", gid.chosen);
        check_gid_text(&gid);
        chosen[gid.port] += gid.chosen;
        last = gid;
    }
    for (uint32_t i = 1; i <= device->ports; i++) {
        struct sluice_port_info port = port_info(list, index, i);
        if (port.link_layer == SLUICE_LINK_ETHERNET) {
            require(chosen[i] == port.active, "%u GIDs of port %u are chosen", chosen[i], i);
        }
        require(chosen[i] <= port.active, "%u GIDs of port %u are chosen", chosen[i], i);
    }
}

TEST(everything_agrees)
{
    struct found found = find();
    uint32_t count = sluice_device_list_count(found.list);
    for (uint32_t i = 0; i < count; i++) {
        struct sluice_device_info device = device_info(found.list, i);
        uint32_t active = 0;
        bool decided = false;
        require(device.name[0] && device.description[0], "device %u", i);
        require(device.numa_node >= -1, "%d", device.numa_node);
        for (uint32_t port = 1; port <= device.ports; port++) {
            struct sluice_port_info info = port_info(found.list, i, port);
            require(info.port == port, "%u is %u", port, info.port);
            check_port(&device, &info);
            if (info.state == SLUICE_PORT_ACTIVE && !decided) {
                active = info.active;
                decided = true;
            }
        }
        require(device.active == active, "%s: active %u, its port %u", device.name, device.active,
                active);
        check_gids(found.list, i, &device);
    }
    sluice_device_list_free(found.list);
}

TEST(soft_is_always_there)
{
    struct found found = find();
    uint32_t last = sluice_device_list_count(found.list) - 1;
    struct sluice_device_info device = device_info(found.list, last);
    require(strcmp(device.name, "soft") == 0 && device.active == 1, "%s", device.name);
    require_equal(device.ports, 1, device.gids, 0, device.numa_node, -1, device.guid, 0);
    struct sluice_port_info port = port_info(found.list, last, 1);
    require_equal(port.state, SLUICE_PORT_ACTIVE, port.active, 1, port.link_layer, SLUICE_LINK_NONE,
                  port.mtu, 0);
    /* The description names the addresses that peers get. */
    require(strstr(port.description, "TCP, ") && strpbrk(port.description, ".:"), "%s",
            port.description);
    sluice_device_list_free(found.list);

    setenv("SLUICE_TCP_ADDRESS", "127.0.0.9", 1);
    found = find();
    port = port_info(found.list, sluice_device_list_count(found.list) - 1, 1);
    require(strstr(port.description, "127.0.0.9"), "%s", port.description);
    sluice_device_list_free(found.list);
}

/* A context has and uses what the list says. */
TEST(context_is_as_listed)
{
    struct found found = find();
    require(found.info.active == 1, "%s", found.info.description);
    struct sluice_context *context = open_context();
    struct sluice_context_info info = context_info(context);
    require(strcmp(info.transport, found.info.transport) == 0, "%s", info.transport);
    require_equal(info.level, found.info.level, info.numa_node, found.info.numa_node);
    if (!device_is_soft()) {
        struct sluice_port_info port = port_info(found.list, found.index, info.port);
        require(port.active == 1, "port %u: %s", info.port, port.description);
        require(info.active_mtu == port.mtu && info.link_layer == port.link_layer &&
                    info.max_message <= port.max_message,
                "MTU %u and %u", info.active_mtu, port.mtu);
        int32_t chosen = -1;
        for (uint32_t i = 0; i < found.info.gids; i++) {
            struct sluice_gid_info gid = gid_info(found.list, found.index, i);
            if (gid.port == info.port && gid.chosen) {
                chosen = (int32_t)gid.index;
            }
        }
        require(chosen == info.gid_index, "chosen %d, used %d", chosen, info.gid_index);
    }
    sluice_context_close(context);
    sluice_device_list_free(found.list);
}

/*
 * The device that opening a context takes, by name and by the environment, is the one that the list
 * reports.
 */
TEST(choice_is_what_is_opened)
{
    struct found found = find();
    uint32_t count = sluice_device_list_count(found.list);
    for (int i = 0; i < 2; i++) {
        const char *name = i == 0 ? test_device() : NULL;
        uint32_t taken = count;
        setenv("SLUICE_DEVICE", test_device(), 1);
        struct sluice_context *context = made(sluice_context_open(name, NULL));
        for (uint32_t at = 0; at < count; at++) {
            struct sluice_choice_info info = {.size = sizeof(info)};
            require_ok(sluice_device_list_choice(found.list, at, name, &info));
            require(info.verdict == SLUICE_CHOICE_TAKEN || info.verdict == SLUICE_CHOICE_NOT_NAMED,
                    "%u: %s", info.verdict, info.reason);
            taken = info.verdict == SLUICE_CHOICE_TAKEN ? at : taken;
        }
        require(taken == found.index, "%u, not %u", taken, found.index);
        require(strcmp(context_info(context).device, found.info.name) == 0, "%s", found.info.name);
        sluice_context_close(context);
        unsetenv("SLUICE_DEVICE");
    }
    sluice_device_list_free(found.list);
}

/* If the device has limits, the total for all programs is at least that of one channel. */
TEST(limits_of_the_device)
{
    struct sluice_context *context = open_context();
    struct sluice_context_info info = context_info(context);
    require(info.max_completions >= info.max_send_depth && info.reserved == 0, "%u, %u",
            info.max_completions, info.max_send_depth);
    require((info.max_channels > 0) == !device_is_soft() &&
                (info.max_regions > 0) == !device_is_soft() &&
                (info.max_region > 0) == !device_is_soft(),
            "%u channels, %u regions of %llu bytes", info.max_channels, info.max_regions,
            (unsigned long long)info.max_region);
    sluice_context_close(context);
}

/* Reads a file of the device in sysfs. Returns false if there is none. */
static bool read_sysfs(const char *file, char *text, size_t size)
{
    char path[300];
    snprintf(path, sizeof(path), "/sys/class/infiniband/%s/%s", test_device(), file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    ssize_t got = read(fd, text, size - 1);
    close(fd);
    text[got > 0 ? got : 0] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return got > 0;
}

static void check_sysfs(const char *file, const char *wanted)
{
    char text[100];
    require(read_sysfs(file, text, sizeof(text)), "no %s", file);
    require(strcmp(text, wanted) == 0, "%s is %s, not %s", file, text, wanted);
}

static void check_port_in_sysfs(const struct sluice_port_info *port)
{
    char file[60];
    char text[100];
    unsigned lid;
    unsigned state;
    double rate;
    int lanes;
    snprintf(file, sizeof(file), "ports/%u/state", port->port);
    require(read_sysfs(file, text, sizeof(text)) && sscanf(text, "%u:", &state) == 1, "%s", file);
    require(state == port->state, "state %u, not %u", port->state, state);
    snprintf(file, sizeof(file), "ports/%u/rate", port->port);
    require(read_sysfs(file, text, sizeof(text)) &&
                sscanf(text, "%lf Gb/sec (%dX", &rate, &lanes) == 2,
            "%s", file);
    require((uint32_t)(rate * 1000) == port->speed && (uint32_t)lanes == port->width,
            "%u Mbit/s on %u lanes, not %s", port->speed, port->width, text);
    snprintf(file, sizeof(file), "ports/%u/lid", port->port);
    require(read_sysfs(file, text, sizeof(text)) && sscanf(text, "%x", &lid) == 1, "%s", file);
    require(lid == port->lid, "LID %u, not %u", port->lid, lid);
    snprintf(file, sizeof(file), "ports/%u/link_layer", port->port);
    check_sysfs(file, port->link_layer == SLUICE_LINK_ETHERNET ? "Ethernet" : "InfiniBand");
}

static void check_gid_in_sysfs(const struct sluice_gid_info *gid)
{
    char file[60];
    char text[60] = "";
    for (int i = 0; i < 16; i += 2) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, "%s%02x%02x", i > 0 ? ":" : "", gid->gid[i],
                 gid->gid[i + 1]);
    }
    snprintf(file, sizeof(file), "ports/%u/gids/%u", gid->port, gid->index);
    check_sysfs(file, text);
    if (gid->type != SLUICE_GID_INFINIBAND) {
        snprintf(file, sizeof(file), "ports/%u/gid_attrs/types/%u", gid->port, gid->index);
        check_sysfs(file, gid->type == SLUICE_GID_ROCE_V2 ? "RoCE v2" : "IB/RoCE v1");
        snprintf(file, sizeof(file), "ports/%u/gid_attrs/ndevs/%u", gid->port, gid->index);
        check_sysfs(file, gid->interface);
    }
}

/* The entries of a table of GIDs in sysfs that are in use. */
static uint32_t gids_in_sysfs(const struct sluice_port_info *port)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < port->gid_table; i++) {
        char file[60];
        char text[60];
        snprintf(file, sizeof(file), "ports/%u/gids/%u", port->port, i);
        count += read_sysfs(file, text, sizeof(text)) && strspn(text, "0:") < strlen(text);
    }
    return count;
}

TEST(sysfs_agrees)
{
    char guid[30];
    char text[100];
    struct found found = find();
    uint32_t gids = 0;
    snprintf(guid, sizeof(guid), "%04x:%04x:%04x:%04x", (unsigned)(found.info.guid >> 48),
             (unsigned)(found.info.guid >> 32 & 0xffff), (unsigned)(found.info.guid >> 16 & 0xffff),
             (unsigned)(found.info.guid & 0xffff));
    if (device_is_soft() || !read_sysfs("node_guid", text, sizeof(text))) {
        sluice_device_list_free(found.list);
        return; /* a device that the kernel does not know */
    }
    check_sysfs("node_guid", guid);
    /* rxe has an empty file there. */
    if (read_sysfs("fw_ver", text, sizeof(text)) && text[0]) {
        check_sysfs("fw_ver", found.info.firmware);
    }
    if (!read_sysfs("device/numa_node", text, sizeof(text))) {
        snprintf(text, sizeof(text), "-1");
    }
    require(atoi(text) == found.info.numa_node, "node %d, not %s", found.info.numa_node, text);
    for (uint32_t i = 1; i <= found.info.ports; i++) {
        struct sluice_port_info port = port_info(found.list, found.index, i);
        check_port_in_sysfs(&port);
        gids += gids_in_sysfs(&port);
    }
    require(found.info.gids == gids, "%u GIDs, not %u", found.info.gids, gids);
    for (uint32_t i = 0; i < found.info.gids; i++) {
        struct sluice_gid_info gid = gid_info(found.list, found.index, i);
        check_gid_in_sysfs(&gid);
    }
    sluice_device_list_free(found.list);
}

TEST(wrong_arguments)
{
    struct found found = find();
    uint32_t count = sluice_device_list_count(found.list);
    struct sluice_port_info port;
    struct sluice_gid_info gid;
    memset(&port, 0xcc, sizeof(port));
    memset(&gid, 0xcc, sizeof(gid));
    port.size = sizeof(port);
    gid.size = sizeof(gid);
    require_error(sluice_device_list_port(found.list, count, 1, &port), -ERANGE, "");
    require_error(sluice_device_list_port(found.list, found.index, 0, &port), -ERANGE, "no port 0");
    require_error(sluice_device_list_port(found.list, found.index, found.info.ports + 1, &port),
                  -ERANGE, test_device());
    require_error(sluice_device_list_port(found.list, found.index, 1, NULL), -EINVAL, "");
    require_error(sluice_device_list_port(NULL, 0, 1, &port), -EINVAL, "");
    require_error(sluice_device_list_gid(found.list, count, 0, &gid), -ERANGE, "");
    require_error(sluice_device_list_gid(found.list, found.index, found.info.gids, &gid), -ERANGE,
                  "GID");
    require_error(sluice_device_list_gid(found.list, found.index, UINT32_MAX, &gid), -ERANGE, "");
    require_error(sluice_device_list_gid(found.list, found.index, 0, NULL), -EINVAL, "");
    require_error(sluice_device_list_gid(NULL, 0, 0, &gid), -EINVAL, "");
    value_check((const uint8_t *)&port + 4, sizeof(port) - 4, 0xcc);
    value_check((const uint8_t *)&gid + 4, sizeof(gid) - 4, 0xcc);
    port.size--;
    gid.size--;
    require_error(sluice_device_list_port(found.list, found.index, 1, &port), -EINVAL,
                  "sluice_port_info.size");
    require_error(sluice_device_list_gid(found.list, found.index, 0, &gid), -EINVAL,
                  "sluice_gid_info.size");
    sluice_device_list_free(found.list);
}

/* Listing leaves nothing open, and does not change the text of the last failure. */
TEST(listing_changes_nothing)
{
    char text[500];
    int fds = count_fds();
    require_error(sluice_device_list_info(NULL, 0, NULL), -EINVAL, "");
    snprintf(text, sizeof(text), "%s", sluice_last_error());
    for (int i = 0; i < 100; i++) {
        sluice_device_list_free(sluice_device_list_get());
    }
    require(count_fds() == fds, "%d fds, were %d", count_fds(), fds);
    require(strcmp(text, sluice_last_error()) == 0, "%s", sluice_last_error());
}

/* The result of listing with few file descriptors. */
enum outcome { OUT_WHOLE = 10, OUT_REFUSED, OUT_SHORT, OUT_OTHER, OUT_SPOILT };

/* Opens descriptors up to the limit, and closes this many again. */
static void fill_files(int left)
{
    struct rlimit limit = {.rlim_cur = 256, .rlim_max = 256};
    int fd;
    int last = -1;
    setrlimit(RLIMIT_NOFILE, &limit);
    while ((fd = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0) {
        last = fd;
    }
    for (; left > 0; left--) {
        close(last--);
    }
}

static enum outcome list_once(void)
{
    struct sluice_device_list *list = sluice_device_list_get();
    if (!list) {
        return (errno == EMFILE || errno == ENFILE) && strstr(sluice_last_error(), "descriptors")
                   ? OUT_REFUSED
                   : OUT_OTHER;
    }
    enum outcome outcome =
        find_device(list) < sluice_device_list_count(list) ? OUT_WHOLE : OUT_SHORT;
    sluice_device_list_free(list);
    return outcome;
}

/* Lists with this many left, and then with enough, on which the first must have no effect. */
static int list_with_few_files(int left)
{
    fill_files(left);
    enum outcome outcome = list_once();
    for (int fd = 255; fd > 2; fd--) {
        close(fd);
    }
    return list_once() == OUT_WHOLE ? outcome : OUT_SPOILT;
}

static int run_with_few_files(int left)
{
    char text[12];
    int status = 0;
    snprintf(text, sizeof(text), "%d", left);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "test_devices", "files", text, (char *)NULL);
        _exit(1);
    }
    require(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status), "status %#x",
            (unsigned)status);
    return WEXITSTATUS(status);
}

/*
 * Without file descriptors the error is just that, and never that there is no device; the software
 * transport needs none.
 */
TEST(few_file_descriptors)
{
    bool rdma = access("/sys/class/infiniband", F_OK) == 0;
    if (!rdma && !device_is_soft()) {
        return; /* a device that the kernel does not know */
    }
    for (int left = 0; left < 12; left++) {
        int outcome = run_with_few_files(left);
        bool refused = outcome == OUT_REFUSED && rdma;
        require(outcome == OUT_WHOLE || refused, "%d left: outcome %d", left, outcome);
        require(refused || left > 0 || !rdma, "none left: outcome %d", outcome);
        require(!refused || left < 8, "%d left: outcome %d", left, outcome);
    }
}

/* Whatever devices the host has, the call returns the one that the open takes, for each rank. */
TEST(nearest_is_what_is_opened)
{
    struct sluice_device_list *list = sluice_device_list_get();
    char both[140];
    require(list, "%s", sluice_last_error());
    snprintf(both, sizeof(both), "no-such-device:1,%s,%s", test_device(), test_device());
    const char *const names[] = {NULL, test_device(), "soft", both};
    for (size_t i = 0; i < COUNT(names); i++) {
        if (names[i]) {
            setenv("SLUICE_DEVICE", names[i], 1);
        }
        for (uint32_t rank = 0; rank < 5; rank++) {
            char text[12];
            snprintf(text, sizeof(text), "%u", rank);
            setenv("SLUICE_LOCAL_RANK", text, 1);
            int index = sluice_device_list_nearest(list, rank);
            require(index >= 0, "%d, %s", index, sluice_last_error());
            struct sluice_context *context = made(sluice_context_open(NULL, NULL));
            struct sluice_device_info info = device_info(list, (uint32_t)index);
            require(strcmp(info.name, context_info(context).device) == 0, "%s, not %s", info.name,
                    context_info(context).device);
            require(!names[i] || strstr(names[i], info.name), "%s", info.name);
            sluice_context_close(context);
        }
    }
    unsetenv("SLUICE_DEVICE");
    unsetenv("SLUICE_LOCAL_RANK");
    sluice_device_list_free(list);
    require_error(sluice_device_list_nearest(NULL, 0), -EINVAL, "device list NULL");
}

int main(int argc, char **argv)
{
    static const struct tests cases[] = {{"devices", WIRE_SELF, 60}};
    if (argc == 3 && strcmp(argv[1], "files") == 0) {
        return list_with_few_files(atoi(argv[2]));
    }
    return run_groups("devices", cases, COUNT(cases));
}
