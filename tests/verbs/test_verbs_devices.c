/* SPDX-License-Identifier: MIT */
/*
 * The list of several pretend RDMA devices, some of which cannot be used, and their NUMA nodes
 * where the kernel reports them.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "ports.h"

static const char infiniband_gid[] = "\xfe\x80\0\0\0\0\0\0\0\x11\x22\x33\x44\x55\x66\x77";

/* The place of the first device in sysfs, or none. */
static char device_path[100];

struct ibv_device **__real_ibv_get_device_list(int *count);
struct ibv_device **__wrap_ibv_get_device_list(int *count);

struct ibv_device **__wrap_ibv_get_device_list(int *count)
{
    struct ibv_device **list = __real_ibv_get_device_list(count);
    if (list && list[0] && device_path[0]) {
        snprintf(list[0]->ibdev_path, sizeof(list[0]->ibdev_path), "%s", device_path);
    }
    return list;
}

static struct sluice_device_list *get_list(uint32_t devices)
{
    struct sluice_device_list *list = made(sluice_device_list_get());
    require_equal(sluice_device_list_count(list), devices + 1);
    return list;
}

/* Requires that the only device is unusable for this reason. */
static void unusable(const char *reason)
{
    struct sluice_device_list *list = get_list(1);
    struct sluice_device_info info = device_info(list, 0);
    require(strstr(info.description, reason), "'%s', not '%s'", info.description, reason);
    require_equal(info.active, 0);
    require(strcmp(info.name, "fake0") == 0, "%s", info.name);
    sluice_device_list_free(list);
    require_equal(fake_verbs_alive(), 0);
}

/* iWARP is described, and is not active: most programs cannot use it. */
TEST(device_that_is_iwarp)
{
    fake_verbs.device[0].transport_type = IBV_TRANSPORT_IWARP;
    struct sluice_device_list *list = get_list(1);
    require_words(device_info(list, 0).description, "port 1 active, iWARP, rdma_cm alone");
    require_equal(device_info(list, 0).active, 0, port_info(list, 0, 1).state, SLUICE_PORT_ACTIVE,
                  port_info(list, 0, 1).active, 0, port_info(list, 0, 1).link_layer,
                  SLUICE_LINK_IWARP);
    sluice_device_list_free(list);
}

TEST(devices_of_all_kinds)
{
    fake_verbs.devices = 4;
    fake_verbs.device[0].transport_type = IBV_TRANSPORT_USNIC;
    fake_verbs.device[1].port[0].state = IBV_PORT_DOWN;
    memset(fake_verbs.device[2].port[0].gid, 0, sizeof(fake_verbs.device[2].port[0].gid));
    struct sluice_device_list *list = get_list(4);
    static const char *const reasons[] = {"not supported", "port 1 ", "address", "RoCE v2 "};
    for (uint32_t i = 0; i < 4; i++) {
        struct sluice_device_info info = device_info(list, i);
        require_equal(info.active, i == 3, info.guid, UINT64_C(0x0011223344556600) + i, info.level,
                      SLUICE_LEVEL_NIC, info.numa_node, -1, info.ports, i > 0);
        require(strcmp(info.firmware, i > 0 ? "1.0" : "") == 0, "%s", info.firmware);
        require(strstr(info.description, reasons[i]), "%s", info.description);
    }
    require_equal(port_info(list, 1, 1).state, SLUICE_PORT_DOWN, port_info(list, 2, 1).state,
                  SLUICE_PORT_ACTIVE, port_info(list, 2, 1).active, 0, device_info(list, 2).gids, 0,
                  port_info(list, 3, 1).active, 1, port_info(list, 3, 1).speed, 2500,
                  port_info(list, 3, 1).width, 1);
    sluice_device_list_free(list);
    /* Without a name the working one is taken. */
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    require(strcmp(context_info(context).device, "fake3") == 0, "%s", context_info(context).device);
    sluice_context_close(context);
}

/* The entries of each port in their order, with the kinds and the one that would be taken. */
TEST(tables_of_several_ports)
{
    static const char v4[] = "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\0\x02\x09";
    fake_verbs.device[0].ports = 3;
    struct fake_port *ports = fake_verbs.device[0].port;
    memset(ports[0].gid, 0, sizeof(ports[0].gid));
    memset(ports[1].gid, 0, sizeof(ports[1].gid));
    ports[0].state = IBV_PORT_INIT;
    set_gid(&ports[0], 4, IBV_GID_TYPE_ROCE_V1, infiniband_gid);
    set_gid(&ports[1], 2, IBV_GID_TYPE_ROCE_V2, infiniband_gid);
    set_gid(&ports[1], 5, IBV_GID_TYPE_ROCE_V1, v4);
    set_gid(&ports[1], 9, IBV_GID_TYPE_ROCE_V2, v4);
    ports[2] = ports[1];
    ports[2].link_layer = IBV_LINK_LAYER_INFINIBAND;
    ports[2].lid = 12;
    memset(ports[2].gid, 0, sizeof(ports[2].gid));
    set_gid(&ports[2], 0, IBV_GID_TYPE_IB, infiniband_gid);
    ports[0].gid[4].interface = ports[1].gid[2].interface = 1;
    struct sluice_device_list *list = get_list(1);
    static const struct sluice_gid_info wanted[] = {
        {.port = 1, .index = 4, .type = SLUICE_GID_ROCE_V1, .text = "RoCE v1 fe80::"},
        {.port = 2, .index = 2, .type = SLUICE_GID_ROCE_V2, .text = "RoCE v2 fe80::"},
        {.port = 2, .index = 5, .type = SLUICE_GID_ROCE_V1, .text = "RoCE v1 192.0.2.9"},
        {.port = 2, .index = 9, .type = SLUICE_GID_ROCE_V2, .chosen = 1, .text = "RoCE v2 192."},
        {.port = 3, .index = 0, .type = SLUICE_GID_INFINIBAND, .chosen = 1, .text = "GID fe80::"},
    };
    require_equal(device_info(list, 0).gids, COUNT(wanted));
    for (uint32_t i = 0; i < COUNT(wanted); i++) {
        struct sluice_gid_info gid = gid_info(list, 0, i);
        require_equal(gid.port, wanted[i].port, gid.index, wanted[i].index, gid.type,
                      wanted[i].type, gid.chosen, wanted[i].chosen);
        require(strstr(gid.text, wanted[i].text) == gid.text, "%s", gid.text);
        require(strcmp(gid.interface, gid.index % 2 == 0 && gid.port < 3 ? "lo" : "") == 0, "%s",
                gid.interface);
    }
    /* The device is described by its first active port, here port 2. */
    require(strncmp(device_info(list, 0).description, "port 2 ", 7) == 0, "%s",
            device_info(list, 0).description);
    require_equal(device_info(list, 0).active, 1, port_info(list, 0, 1).state, SLUICE_PORT_INIT,
                  port_info(list, 0, 3).link_layer, SLUICE_LINK_INFINIBAND,
                  port_info(list, 0, 3).lid, 12, port_info(list, 0, 3).sm_lid, 1);
    require(strstr(port_info(list, 0, 3).description, "LID 12"), "%s",
            port_info(list, 0, 3).description);
    sluice_device_list_free(list);
}

/* If a call fails, the list describes the failure or there is no list; nothing is left behind. */
TEST(calls_that_fail)
{
    fake_verbs_fail(1, FAKE_CALL(FAKE_OPEN_DEVICE), EACCES);
    unusable("cannot be opened: Permission denied");
    fake_verbs_fail(1, FAKE_CALL(FAKE_QUERY_DEVICE), EIO);
    unusable("cannot be queried: Input/output error");
    fake_verbs_fail(1, FAKE_CALL(FAKE_QUERY_PORT), EIO);
    unusable("port 1 cannot be queried: Input/output error");
    fake_verbs_fail(2, FAKE_CALL(FAKE_QUERY_GID_TABLE), EIO);
    unusable("GID table");
    fake_verbs.device[0].ports = 0;
    unusable("has no port");
    fake_verbs.device[0].ports = 1;
    static const int errors[] = {EMFILE, ENFILE};
    for (size_t i = 0; i < COUNT(errors); i++) {
        fake_verbs.devices = 3;
        fake_verbs_fail(2, FAKE_CALL(FAKE_OPEN_DEVICE), errors[i]);
        require_null(sluice_device_list_get(), errors[i], "descriptors");
        require_equal(fake_verbs_alive(), 0);
    }
    fake_verbs_fail(1, FAKE_CALL(FAKE_GET_DEVICE_LIST), ENOMEM);
    require_null(sluice_device_list_get(), ENOMEM, "");
    /* The error of a kernel without RDMA. */
    fake_verbs_fail(1, FAKE_CALL(FAKE_GET_DEVICE_LIST), ENOSYS);
    sluice_device_list_free(get_list(0));
}

/* Reasons stand only in the descriptions, because the call has not failed. */
TEST(text_of_the_last_failure_stays)
{
    fake_verbs.device[0].port[0].gids = 0;
    require_error(sluice_device_list_info(NULL, 0, NULL), -EINVAL, "");
    char text[400];
    snprintf(text, sizeof(text), "%s", sluice_last_error());
    unusable("address");
    require(strcmp(text, sluice_last_error()) == 0, "%s", sluice_last_error());
}

/* Listing makes few calls, however long the tables are. */
TEST(few_calls)
{
    uint64_t before[FAKE_CALLS], calls[FAKE_CALLS];
    fake_verbs.device[0].port[0].gids = FAKE_GIDS;
    memcpy(before, fake_verbs.calls, sizeof(before));
    sluice_device_list_free(get_list(1));
    for (int i = 0; i < FAKE_CALLS; i++) {
        calls[i] = fake_verbs.calls[i] - before[i];
    }
    require_equal(calls[FAKE_OPEN_DEVICE], 1, calls[FAKE_QUERY_DEVICE], 1);
    /* Once for the list, and once where the path is chosen. */
    require_equal(calls[FAKE_QUERY_PORT], 2, calls[FAKE_QUERY_GID_TABLE], 2, calls[FAKE_QUERY_GID],
                  0);
}

/* A NUMA node as sysfs reports it, and the value expected for it. */
struct node {
    const char *text; /* NULL: the file is not there */
    int32_t node;
};

TEST(numa_node_of_sysfs)
{
    static const struct node nodes[] = {{"3\n", 3}, {"0\n", 0}, {"-1\n", -1}, {"", -1}, {NULL, -1}};
    char folder[] = "/tmp/sluice-devices-XXXXXX";
    char device[sizeof(folder) + 20];
    char file[sizeof(folder) + 40];
    require(mkdtemp(folder), "%s", strerror(errno));
    snprintf(device, sizeof(device), "%s/device", folder);
    snprintf(file, sizeof(file), "%s/numa_node", device);
    require(mkdir(device, 0700) == 0, "%s", strerror(errno));
    snprintf(device_path, sizeof(device_path), "%s", folder);
    for (size_t i = 0; i < COUNT(nodes); i++) {
        FILE *out = nodes[i].text ? fopen(file, "we") : NULL;
        if (out) {
            fputs(nodes[i].text, out);
            fclose(out);
        } else {
            unlink(file);
        }
        struct sluice_device_list *list = get_list(1);
        int32_t listed = device_info(list, 0).numa_node;
        sluice_device_list_free(list);
        struct sluice_context *context = open_context();
        int32_t opened = context_info(context).numa_node;
        sluice_context_close(context);
        require(listed == nodes[i].node && opened == nodes[i].node, "case %zu: %d and %d", i,
                listed, opened);
    }
    device_path[0] = '\0';
    rmdir(device);
    rmdir(folder);
}

int main(void)
{
    return run_verbs("verbs_devices", WIRE_SELF, 30);
}
