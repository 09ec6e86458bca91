/* SPDX-License-Identifier: MIT */
/*
 * Which entry of a GID table is taken on hosts with many interfaces and in containers: that of an
 * interface and an address of this network namespace, and of those the one in the peer's subnet.
 * The addresses of the host are pretended as well.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "ports.h"

#define V1 IBV_GID_TYPE_ROCE_V1
#define V2 IBV_GID_TYPE_ROCE_V2

/* An address of an interface of this network namespace. */
struct address {
    const char *interface;
    int index;
    const char *ip;
    int prefix;
    bool down;
};

static struct {
    struct address addresses[8];
    int error; /* of getifaddrs(3) */
    struct ifaddrs list[16];
    char names[16][IF_NAMESIZE];
    struct sockaddr_storage values[16], masks[16];
    int count;
} host;

int __wrap_getifaddrs(struct ifaddrs **list);
void __wrap_freeifaddrs(struct ifaddrs *list);

static void add(const struct address *address, const void *value, size_t size)
{
    struct ifaddrs *entry = &host.list[host.count];
    *entry = (struct ifaddrs){.ifa_name = host.names[host.count],
                              .ifa_flags = address->down ? 0 : IFF_UP,
                              .ifa_addr = (struct sockaddr *)&host.values[host.count]};
    memcpy(&host.values[host.count], value, size);
    strcpy(host.names[host.count], address->interface);
    if (host.count > 0) {
        host.list[host.count - 1].ifa_next = entry;
    }
    host.count++;
}

static void set_bits(uint8_t *bytes, int bits)
{
    for (int i = 0; i < bits; i++) {
        bytes[i / 8] = (uint8_t)(bytes[i / 8] | 0x80 >> i % 8);
    }
}

static void add_ip(const struct address *address)
{
    struct sockaddr_in v4 = {.sin_family = AF_INET};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6};
    bool is_v4 = inet_pton(AF_INET, address->ip, &v4.sin_addr) == 1;
    struct sockaddr_storage *mask = &host.masks[host.count];
    memset(mask, 0, sizeof(*mask));
    mask->ss_family = is_v4 ? AF_INET : AF_INET6;
    set_bits(is_v4 ? (uint8_t *)&((struct sockaddr_in *)mask)->sin_addr
                   : (uint8_t *)&((struct sockaddr_in6 *)mask)->sin6_addr,
             address->prefix);
    if (is_v4) {
        add(address, &v4, sizeof(v4));
    } else {
        require(inet_pton(AF_INET6, address->ip, &v6.sin6_addr) == 1, "%s", address->ip);
        add(address, &v6, sizeof(v6));
    }
    host.list[host.count - 1].ifa_netmask = (struct sockaddr *)mask;
}

int __wrap_getifaddrs(struct ifaddrs **list)
{
    if (host.error) {
        errno = host.error;
        return -1;
    }
    host.count = 0;
    for (const struct address *at = host.addresses; at->interface; at++) {
        struct address link = *at;
        struct sockaddr_ll ll = {.sll_family = AF_PACKET, .sll_ifindex = at->index};
        link.interface = at->interface;
        add(&link, &ll, sizeof(ll));
        /* The kernel gives the name of the interface, and addresses may have a label. */
        host.names[host.count - 1][strcspn(host.names[host.count - 1], ":")] = 0;
        if (at->ip) {
            add_ip(at);
        }
    }
    *list = host.count > 0 ? host.list : NULL;
    return 0;
}

void __wrap_freeifaddrs(struct ifaddrs *list)
{
    require(list == NULL || list == host.list, "another list%s", "");
}

#define IP(name, number, address, bits)                                           \
    {                                                                             \
        .interface = (name), .index = (number), .ip = (address), .prefix = (bits) \
    }

/* Replaces the addresses of the host. */
#define HOST(...) host_set((const struct address[]){__VA_ARGS__, {.interface = NULL}})
static void host_set(const struct address *addresses)
{
    memset(&host, 0, sizeof(host));
    for (int i = 0; addresses[i].interface; i++) {
        host.addresses[i] = addresses[i];
    }
}

static void put_gid(struct fake_port *port, uint32_t index, uint32_t type, const char *ip,
                    uint32_t interface)
{
    uint8_t raw[16] = {[10] = 0xff, [11] = 0xff};
    if (inet_pton(AF_INET, ip, raw + 12) != 1) {
        require(inet_pton(AF_INET6, ip, raw) == 1, "%s", ip);
    }
    set_gid(port, index, type, (const char *)raw);
    port->gid[index].interface = interface;
}

static void clear_gids(void)
{
    fake_verbs.device[0].ports = 2;
    for (int i = 0; i < 2; i++) {
        memset(fake_verbs.device[0].port[i].gid, 0, sizeof(PORT1->gid));
    }
}

/* Opens port 1 and requires that channels use this entry. */
static void require_gid(int32_t index)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .port = 1};
    struct sluice_context *context = made(sluice_context_open("fake0", &attr));
    require_result(context_info(context).gid_index, index);
    sluice_context_close(context);
}

/* A pod: the table has entries of the host and of another pod before its own. */
TEST(entry_of_this_namespace_is_taken)
{
    clear_gids();
    HOST(IP("net1", 5, "10.2.0.9", 24));
    put_gid(PORT1, 0, V2, "fe80::1", 2);
    put_gid(PORT1, 1, V2, "10.1.0.1", 2);
    put_gid(PORT1, 2, V1, "10.2.0.7", 3);
    put_gid(PORT1, 3, V2, "10.2.0.7", 3);
    /* A number of an interface means another one in another namespace. */
    put_gid(PORT1, 4, V2, "10.2.0.8", 5);
    put_gid(PORT1, 10, V1, "10.2.0.9", 5);
    put_gid(PORT1, 11, V2, "10.2.0.9", 5);
    require_gid(11);
    /* The same address on two interfaces, of which one is here. */
    put_gid(PORT1, 4, V2, "10.2.0.9", 3);
    require_gid(11);
    /* Our RoCE v1 goes before another's v2. */
    clear_gid(PORT1, 11);
    require_gid(10);
}

/* An old kernel does not name interfaces: an address of ours goes before one that may be ours. */
TEST(entries_without_an_interface)
{
    clear_gids();
    HOST(IP("net1", 5, "10.2.0.9", 24));
    put_gid(PORT1, 1, V2, "10.1.0.1", 0);
    put_gid(PORT1, 3, V2, "10.2.0.9", 0);
    require_gid(3);
    clear_gid(PORT1, 3);
    require_gid(1);
}

static char line[500];

static void keep_line(enum sluice_log_level level, const char *text, void *argument)
{
    (void)level;
    (void)argument;
    if (strstr(text, "GID")) {
        snprintf(line, sizeof(line), "%s", text);
    }
}

/* Without the addresses of the host, type and scope decide, and the log says so. */
TEST(addresses_that_cannot_be_read)
{
    clear_gids();
    HOST(IP("net1", 5, "10.2.0.9", 24));
    put_gid(PORT1, 1, V2, "10.1.0.1", 2);
    put_gid(PORT1, 3, V2, "10.2.0.9", 5);
    require_ok(sluice_log_set(SLUICE_LOG_INFO, keep_line, NULL));
    line[0] = 0;
    require_gid(3);
    require(line[0] == 0, "%s", line);
    host.error = ENOMEM;
    require_gid(1);
    require(strstr(line, "port 1 of fake0: channels use GID 1, RoCE v2 10.1.0.1, although it is "
                         "not known"),
            "'%s'", line);
    require_ok(sluice_log_set(SLUICE_LOG_NONE, NULL, NULL));
}

/* An address of an interface that is down comes after those of interfaces that are up. */
TEST(interfaces_that_are_down)
{
    clear_gids();
    HOST({.interface = "eth0.10", .index = 2, .ip = "10.1.0.1", .prefix = 24, .down = true},
         IP("eth0.20", 3, "10.2.0.1", 24));
    put_gid(PORT1, 1, V2, "10.1.0.1", 2);
    put_gid(PORT1, 3, V2, "10.2.0.1", 3);
    require_gid(3);
    clear_gid(PORT1, 3);
    require_gid(1);
}

/* An address that no router forwards comes last, and one with a label is one of its interface. */
TEST(link_local_addresses_and_labels)
{
    clear_gids();
    HOST(IP("eth0", 2, "fe80::2", 64), IP("eth0:1", 2, "10.2.0.1", 24));
    put_gid(PORT1, 0, V2, "fe80::2", 2);
    put_gid(PORT1, 1, V2, "fe80::211:22ff:fe33:4455", 2); /* of the hardware address */
    put_gid(PORT1, 3, V2, "10.2.0.1", 2);
    require_gid(3);
    clear_gid(PORT1, 3);
    require_gid(0);
    clear_gid(PORT1, 0);
    require_gid(1);
}

/* No address is ours: soft is taken, and a device that is named is refused, except by its index. */
TEST(only_entries_of_other_namespaces)
{
    struct sluice_context_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_CONTEXT_GID_INDEX, .gid_index = 3};
    clear_gids();
    HOST(IP("eth0", 2, "172.17.0.2", 16));
    put_gid(PORT1, 3, V2, "10.1.0.1", 7);
    require_null(sluice_context_open("fake0", NULL), EADDRNOTAVAIL,
                 "port 1 of fake0 has no address of this network namespace 3 RoCE v2 10.1.0.1 "
                 "gid_index");
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    require(strcmp(context_info(context).device, "soft") == 0, "%s", context_info(context).device);
    sluice_context_close(context);
    context = made(sluice_context_open("fake0", &attr));
    require_result(context_info(context).gid_index, 3);
    sluice_context_close(context);
}

/* A port that is active and has no address of ours is passed over, unless it is named. */
TEST(ports_without_an_address)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .port = 1};
    clear_gids();
    HOST(IP("eth1", 3, "10.2.0.1", 24));
    put_gid(PORT1, 1, V2, "10.1.0.1", 7);
    put_gid(PORT2, 1, V2, "10.2.0.1", 3);
    struct sluice_context *context = made(sluice_context_open("fake0", NULL));
    require_equal(context_info(context).port, 2, context_info(context).gid_index, 1);
    sluice_context_close(context);
    require_null(sluice_context_open("fake0", &attr), EADDRNOTAVAIL, "port 1 network namespace");
    clear_gid(PORT2, 1);
    require_null(sluice_context_open("fake0", NULL), EADDRNOTAVAIL, "port 1 network namespace");
}

/* Two ports, and the entries that their channel must take. */
struct meeting {
    struct {
        const char *ip;
        int prefix;
    } gids[2][3];
    int32_t taken[2];
};

static const struct meeting meetings[] = {
    /* Both have the VLANs 10 and 20, in another order. */
    {.gids = {{{"10.1.0.1", 24}, {"10.2.0.1", 24}}, {{"10.2.0.2", 24}, {"10.1.0.2", 24}}},
     .taken = {0, 1}},
    {.gids = {{{"10.2.0.1", 24}, {"10.1.0.1", 24}}, {{"10.1.0.2", 24}, {"10.2.0.2", 24}}},
     .taken = {1, 0}},
    /* One has only the second. */
    {.gids = {{{"10.1.0.1", 24}, {"10.2.0.1", 24}}, {{"10.2.0.2", 24}}}, .taken = {1, 0}},
    {.gids = {{{"10.2.0.1", 24}}, {{"10.1.0.2", 24}, {"10.3.0.2", 24}, {"10.2.0.2", 24}}},
     .taken = {0, 2}},
    /* Both subnets of both contain both, or neither does: the first ones. */
    {.gids = {{{"10.1.0.1", 8}, {"10.2.0.1", 8}}, {{"10.2.0.2", 8}, {"10.1.0.2", 8}}},
     .taken = {0, 0}},
    {.gids = {{{"10.1.0.1", 32}, {"10.2.0.1", 32}}, {{"10.2.0.2", 32}, {"10.1.0.2", 32}}},
     .taken = {0, 0}},
    /* A subnet of which one side sees only a part. */
    {.gids = {{{"10.1.0.1", 16}, {"10.2.0.1", 24}}, {{"10.1.9.2", 24}, {"10.2.0.2", 24}}},
     .taken = {1, 1}},
    /* One has no IPv4. */
    {.gids = {{{"10.1.0.1", 24}, {"2001:db8::1", 64}}, {{"2001:db8::2", 64}}}, .taken = {1, 0}},
    {.gids = {{{"10.1.0.1", 24}, {"2001:db8::1", 64}}, {{"2001:db8:1::2", 64}}}, .taken = {1, 0}},
};

static void put_meeting(const struct meeting *meeting)
{
    static const char *const names[2][3] = {{"a0", "a1", "a2"}, {"b0", "b1", "b2"}};
    struct address addresses[7] = {{.interface = NULL}};
    int count = 0;
    clear_gids();
    for (int side = 0; side < 2; side++) {
        for (int i = 0; i < 3 && meeting->gids[side][i].ip; i++, count++) {
            addresses[count] = (struct address){.interface = names[side][i],
                                                .index = count + 1,
                                                .ip = meeting->gids[side][i].ip,
                                                .prefix = meeting->gids[side][i].prefix};
            put_gid(side == 0 ? PORT1 : PORT2, (uint32_t)i, V2, meeting->gids[side][i].ip,
                    (uint32_t)count + 1);
        }
    }
    host_set(addresses);
}

/* Both sides take the addresses that are in one subnet, before and after a reset. */
TEST(addresses_in_one_subnet_are_taken, .times = COUNT(meetings))
{
    const struct meeting *meeting = &meetings[_i];
    struct pair pair;
    put_meeting(meeting);
    open_ports(&pair.sides, 2);
    connect_sides(&pair, NULL, NULL);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 2; i++) {
            char wanted[80];
            snprintf(wanted, sizeof(wanted), "RoCE v2 %s", meeting->gids[i][meeting->taken[i]].ip);
            require_result(channel_info(pair.channels[i]).gid_index, meeting->taken[i]);
            require(strcmp(channel_info(pair.channels[i]).address, wanted) == 0, "%s, not %s",
                    channel_info(pair.channels[i]).address, wanted);
            require(strcmp(channel_info(pair.channels[!i]).remote_address, wanted) == 0,
                    "%s, not %s", channel_info(pair.channels[!i]).remote_address, wanted);
        }
        pair_reset(&pair);
        pair_works(&pair);
    }
    pair_close(&pair);
}

/* If both sides have several in common, both take the same two, whichever side is first. */
TEST(ties_are_decided_alike, .times = 2)
{
    static const struct meeting tie = {
        .gids = {{{"10.1.0.1", 24}, {"10.2.0.1", 24}}, {{"10.2.0.2", 24}, {"10.1.0.2", 24}}}};
    struct pair pair;
    put_meeting(&tie);
    for (uint32_t i = 0; i < 2; i++) {
        struct sluice_context_attr attr = {.size = sizeof(attr), .port = i + 1};
        open_side(&pair.sides, (int)i ^ _i, &attr);
    }
    connect_sides(&pair, ATTR(.queue_pairs = 3), ATTR(.queue_pairs = 3));
    require_equal(channel_info(pair.channels[0]).gid_index, _i,
                  channel_info(pair.channels[1]).gid_index, !_i);
    pair_close(&pair);
}

/* Makes an endpoint that offers its first address alone. */
static void offer_one(struct sluice_endpoint *endpoint)
{
    uint32_t hash = UINT32_C(2166136261);
    memset(endpoint->bytes + 140, 0, 72);
    for (int i = 0; i < SLUICE_ENDPOINT_BYTES - 4; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    for (int i = 0; i < 4; i++) {
        endpoint->bytes[SLUICE_ENDPOINT_BYTES - 4 + i] = (uint8_t)(hash >> (24 - 8 * i));
    }
}

/* If neither side offers further addresses, both take the first one of each. */
TEST(sides_that_offer_one_take_it)
{
    struct pair pair;
    struct halves halves;
    put_meeting(&meetings[2]);
    open_ports(&pair.sides, 2);
    halves_prepare(&halves, &pair.sides, NULL, NULL);
    offer_one(&halves.endpoints[0]);
    offer_one(&halves.endpoints[1]);
    halves_connect(&halves, &pair);
    pair_works(&pair);
    require_equal(channel_info(pair.channels[0]).gid_index, 0,
                  channel_info(pair.channels[1]).gid_index, 0);
    pair_close(&pair);
}

/* A program that names an entry offers no other one. */
TEST(an_index_that_is_given_stays)
{
    struct sluice_context_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_CONTEXT_GID_INDEX, .port = 1, .gid_index = 0};
    struct pair pair;
    put_meeting(&meetings[0]);
    open_side(&pair.sides, 0, &attr);
    attr = (struct sluice_context_attr){.size = sizeof(attr), .port = 2};
    open_side(&pair.sides, 1, &attr);
    connect_sides(&pair, NULL, NULL);
    require_equal(channel_info(pair.channels[0]).gid_index, 0,
                  channel_info(pair.channels[1]).gid_index, 1);
    pair_close(&pair);
}

/* If the address that a channel has taken goes, the channel ends, and no other one does. */
TEST(an_address_that_goes)
{
    struct pair pair;
    put_meeting(&meetings[2]);
    open_ports(&pair.sides, 2);
    connect_sides(&pair, NULL, NULL);
    clear_gid(PORT1, 0);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    require_result(sluice_channel_state(pair.channels[0]), SLUICE_STATE_READY);
    pair_works(&pair);
    clear_gid(PORT1, 1);
    fake_verbs_port_event(0, 1, IBV_EVENT_GID_CHANGE);
    require_result(sluice_channel_state(pair.channels[0]), SLUICE_STATE_FAILED);
    pair_close(&pair);
}

int main(void)
{
    return run_verbs("verbs_gids", WIRE_TCP, 30);
}
