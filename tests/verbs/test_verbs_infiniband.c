/* SPDX-License-Identifier: MIT */
/*
 * InfiniBand on a pretend device: routing by LID and by GID, several LIDs, ports and subnets,
 * partitions, and forged endpoints.
 */
#include <stdlib.h>

#include "check.h"
#include "ports.h"

static const char infiniband_gid[] = "\xfe\x80\0\0\0\0\0\0\0\x11\x22\x33\x44\x55\x66\x77";
static const char other_subnet[] = "\xfe\x80\0\0\0\0\0\x01\0\x11\x22\x33\x44\x55\x66\x88";

static void make_infiniband(struct fake_port *port, uint16_t lid, const char *gid)
{
    memset(port->gid, 0, sizeof(port->gid));
    port->state = IBV_PORT_ACTIVE;
    port->link_layer = IBV_LINK_LAYER_INFINIBAND;
    port->max_mtu = port->active_mtu = IBV_MTU_4096;
    port->max_msg_sz = 1 << 20;
    port->lid = lid;
    port->gids = FAKE_GIDS;
    port->pkeys = 1;
    port->pkey[0] = 0xffff;
    if (gid)
        set_gid(port, 0, IBV_GID_TYPE_IB, gid);
}

static void set_pkeys(struct fake_port *port, uint32_t count, const uint16_t *pkeys)
{
    port->pkeys = count;
    memcpy(port->pkey, pkeys, count * sizeof(*pkeys));
}

TEST(infiniband_by_lid)
{
    struct pair pair;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .service_level = 15};
    make_infiniband(PORT1, 7, infiniband_gid);
    open_ports(&pair.sides, 1);
    require_equal(context_info(pair.sides.contexts[0]).link_layer, SLUICE_LINK_INFINIBAND,
                  context_info(pair.sides.contexts[0]).active_mtu, 4096);
    connect_sides(&pair, &attr, &attr);
    for (uint32_t i = 0; i < 2; i++) {
        struct changes changes = changes_of(i);
        struct sluice_channel_info info = channel_info(pair.channels[i]);
        require_equal(changes.rtr.ah_attr.is_global, 0, changes.rtr.ah_attr.dlid, 7,
                      changes.rtr.ah_attr.sl, 15, changes.rtr.path_mtu, IBV_MTU_4096,
                      info.gid_index, -1, info.hop_limit, 0);
        require(strcmp(info.remote_address, "LID 7") == 0, "%s", info.remote_address);
    }
    pair_close(&pair);
}

static void check_global(const struct pair *pair, const char *address)
{
    for (uint32_t i = 0; i < 2; i++) {
        struct changes changes = changes_of(i);
        struct sluice_channel_info info = channel_info(pair->channels[i]);
        require_equal(changes.rtr.ah_attr.is_global, 1, changes.rtr.ah_attr.dlid, 7,
                      changes.rtr.ah_attr.grh.sgid_index, 0, changes.rtr.ah_attr.grh.hop_limit, 64);
        require(memcmp(changes.rtr.ah_attr.grh.dgid.raw, infiniband_gid, 16) == 0, "another GID");
        require_equal(info.gid_index, 0);
        require(strcmp(info.remote_address, address) == 0, "%s", info.remote_address);
    }
}

/* A path is global if one side or its subnet asks for that. */
TEST(infiniband_by_gid)
{
    struct pair pair;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .flags = SLUICE_CHANNEL_GLOBAL};
    const char *address = "LID 7, GID fe80::11:2233:4455:6677";
    make_infiniband(PORT1, 7, infiniband_gid);
    for (int i = 0; i < 3; i++) {
        PORT1->flags = i == 2 ? IBV_QPF_GRH_REQUIRED : 0;
        open_ports(&pair.sides, 1);
        connect_sides(&pair, i == 0 ? &attr : NULL, i == 1 ? &attr : NULL);
        check_global(&pair, address);
        pair_close(&pair);
    }
}

TEST(infiniband_without_gid)
{
    struct sides sides;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .flags = SLUICE_CHANNEL_GLOBAL};
    fake_verbs.device[0].ports = 2;
    make_infiniband(PORT1, 7, NULL);
    make_infiniband(PORT2, 8, infiniband_gid);
    open_ports(&sides, 2);
    require_equal(context_info(sides.contexts[0]).gid_index, -1);
    refuse_prepare(&sides, &attr, EADDRNOTAVAIL, "SLUICE_CHANNEL_GLOBAL port 1 GID");
    refuse_sides(&sides, NULL, &attr, "GID");
    /* They reach each other by LID. */
    struct pair pair = {.sides = sides};
    connect_sides(&pair, NULL, NULL);
    require_equal(changes_of(0).rtr.ah_attr.dlid, 8, changes_of(1).rtr.ah_attr.dlid, 7);
    pair_close(&pair);
}

/* Ports of different subnets; and the number of the port in each query. */
TEST(infiniband_between_subnets)
{
    struct pair pair;
    fake_verbs.device[0].ports = 2;
    make_infiniband(PORT1, 7, infiniband_gid);
    make_infiniband(PORT2, 9, other_subnet);
    open_ports(&pair.sides, 2);
    connect_sides(&pair, NULL, NULL);
    for (uint32_t i = 0; i < 2; i++) {
        struct changes changes = changes_of(i);
        require_equal(context_info(pair.sides.contexts[i]).port, i + 1,
                      channel_info(pair.channels[i]).port, i + 1, changes.init.port_num, i + 1,
                      changes.rtr.ah_attr.port_num, i + 1, changes.rtr.ah_attr.is_global, 1);
    }
    pair_close(&pair);
}

TEST(path_bits_of_a_port_with_several_lids)
{
    struct pair pair;
    struct sluice_channel_attr attrs[2] = {{.size = sizeof(attrs[0]), .path_bits = 7},
                                           {.size = sizeof(attrs[1]), .path_bits = 2}};
    struct sluice_channel_attr beyond = {.size = sizeof(beyond), .path_bits = 8};
    make_infiniband(PORT1, 16, infiniband_gid);
    PORT1->lmc = 3;
    open_ports(&pair.sides, 1);
    refuse_prepare(&pair.sides, &beyond, EINVAL, "path_bits 8 port 1 0..7");
    connect_sides(&pair, &attrs[0], &attrs[1]);
    require_equal(changes_of(0).rtr.ah_attr.src_path_bits, 7, changes_of(0).rtr.ah_attr.dlid, 18,
                  changes_of(1).rtr.ah_attr.src_path_bits, 2, changes_of(1).rtr.ah_attr.dlid, 23);
    require(strcmp(channel_info(pair.channels[0]).address, "LID 23") == 0, "%s",
            channel_info(pair.channels[0]).address);
    pair_close(&pair);
}

#define PARTITIONS 8

/* The index of a partition key that was asked for, and the key itself. */
struct partition {
    uint32_t wanted, index, found;
};

TEST(partition_key_by_value, .times = PARTITIONS)
{
    static const uint16_t table[] = {0x7fff, 0x0001, 0x8001, 0x0002, 0, 0x8003, 0x0003};
    static const struct partition partitions[] = {
        {0, 0, 0x7fff},      {0x7fff, 0, 0x7fff}, {0xffff, 0, 0x7fff}, {0x0001, 2, 0x8001},
        {0x8001, 2, 0x8001}, {0x0002, 3, 0x0002}, {0x8002, 3, 0x0002}, {0x0003, 5, 0x8003},
    };
    const struct partition *partition = &partitions[_i];
    struct sluice_channel_attr attr = {.size = sizeof(attr), .pkey = partition->wanted};
    struct sluice_channel_attr absent = {.size = sizeof(absent), .pkey = 0x1234};
    struct sluice_endpoint endpoint;
    struct fake_qp_info info;
    struct sides sides;
    make_infiniband(PORT1, 7, infiniband_gid);
    set_pkeys(PORT1, COUNT(table), table);
    sides_open(&sides);
    refuse_prepare(&sides, &absent, EINVAL,
                   "pkey 0x1234 port 1 0x7fff, 0x1, 0x8001, 0x2, 0x8003, 0x3");
    struct sluice_prepared_channel *prepared = prepare_channel(sides.pds[0], &attr, &endpoint);
    require(fake_verbs_qp(0, &info), "no queue pair");
    require_equal(fake_verbs_change(&info, IBV_QPS_INIT)->pkey_index, partition->index);
    sluice_prepared_channel_free(prepared);
    sides_close(&sides);
}

/* Whether two members of a partition can talk is known before a packet is sent. */
TEST(partitions_of_both_sides)
{
    static const uint16_t limited[] = {0xffff, 0x0001, 0x8002};
    static const uint16_t full[] = {0xffff, 0x8001, 0x0002};
    struct sluice_channel_attr attrs[3] = {{.size = sizeof(attrs[0])},
                                           {.size = sizeof(attrs[1]), .pkey = 1},
                                           {.size = sizeof(attrs[2]), .pkey = 2}};
    struct pair pair;
    fake_verbs.device[0].ports = 2;
    make_infiniband(PORT1, 7, infiniband_gid);
    make_infiniband(PORT2, 8, infiniband_gid);
    set_pkeys(PORT1, COUNT(limited), limited);
    set_pkeys(PORT2, COUNT(full), full);
    open_ports(&pair.sides, 2);
    refuse_sides(&pair.sides, &attrs[1], &attrs[2], "partition key differ");
    refuse_sides(&pair.sides, NULL, &attrs[1], "partition key differ");
    for (int i = 0; i < 3; i++) {
        connect_sides(&pair, &attrs[i], &attrs[i]);
        require_equal(channel_info(pair.channels[0]).pkey, limited[i],
                      channel_info(pair.channels[1]).pkey, full[i]);
        sluice_channel_close(pair.channels[0]);
        sluice_channel_close(pair.channels[1]);
    }
    sides_close(&pair.sides);
    open_ports(&pair.sides, 1);
    refuse_sides(&pair.sides, &attrs[1], &attrs[1], "limited members partition 0x1");
    sides_close(&pair.sides);
}

/* An unreadable table fails only a channel that asks for a key. */
TEST(partition_keys_that_cannot_be_read)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .pkey = 0xffff};
    struct pair pair;
    PORT1->pkeys = 0;
    open_ports(&pair.sides, 1);
    refuse_prepare(&pair.sides, &attr, EINVAL, "pkey 0xffff port 1 nothing");
    PORT1->pkeys = 1;
    fake_verbs_fail(1, FAKE_CALL(FAKE_QUERY_PKEY), EIO);
    forget_port();
    connect_sides(&pair, NULL, NULL);
    require_equal(channel_info(pair.channels[0]).pkey, 0);
    pair_close(&pair);
}

/* Computes the checksum, to make endpoints that are wrong in only one field. */
static void seal(struct sluice_endpoint *endpoint)
{
    uint32_t hash = UINT32_C(2166136261);
    for (int i = 0; i < SLUICE_ENDPOINT_BYTES - 4; i++) {
        hash = (hash ^ endpoint->bytes[i]) * UINT32_C(16777619);
    }
    for (int i = 0; i < 4; i++) {
        endpoint->bytes[SLUICE_ENDPOINT_BYTES - 4 + i] = (uint8_t)(hash >> (24 - 8 * i));
    }
}

/* Four bytes of an endpoint, and the text about them. */
struct forgery {
    uint32_t offset, value;
    const char *words;
};

static const struct forgery forgeries[] = {
    {4, 0, "queue pair"},
    {4, 1, "queue pair 1"},
    {4, 0xffffff, "queue pair"},
    {4, 0x1000000, "queue pair"},
    {8, 0x1000000, "packet"},
    {12, 0, "MTU 0"},
    {12, 128, "MTU 128"},
    {12, 1000, "MTU 1000"},
    {12, 8192, "MTU 8192"},
    {16, 0, "reads"},
    {16, 256, "256"},
    {20, 0, "reads"},
    {20, 256, "256"},
    {32, 0x10000, "LID 0x10000 above"},
    {32, 0xc000, "LID 49152"},
    {32, 0, "LID"},
    {36, 2, "link layer 2 1"},
    {36, 0, "link layer 0"},
    {48, 0x10000, "partition key 0x10000 above"},
    {48, 0x8005, "partition key 0x8005 0xffff differ"},
    {52, 2, "GRH"},
    {52, UINT32_MAX, "GRH"},
};

TEST(forged_endpoints, .times = COUNT(forgeries))
{
    const struct forgery *forgery = &forgeries[_i];
    struct sides sides;
    struct sluice_endpoint bad, ours;
    make_infiniband(PORT1, 7, infiniband_gid);
    sides_open(&sides);
    struct sluice_prepared_channel *peer = prepare_channel(sides.pds[1], NULL, &bad);
    struct sluice_prepared_channel *prepared = prepare_channel(sides.pds[0], NULL, &ours);
    if (forgery->offset == 32 && forgery->value == 0) {
        memset(bad.bytes + 56, 0, 16); /* its GID would suffice otherwise */
    }
    for (int i = 0; i < 4; i++) {
        bad.bytes[forgery->offset + (uint32_t)i] = (uint8_t)(forgery->value >> (24 - 8 * i));
    }
    seal(&bad);
    uint64_t modifies = fake_verbs.calls[FAKE_MODIFY_QP];
    require_null(sluice_prepared_channel_handshake(prepared, &bad), EPROTO, forgery->words);
    /* The only change that reached the device is that the queue pair was given up. */
    require(fake_verbs.calls[FAKE_MODIFY_QP] <= modifies + 1, "%llu changes",
            (unsigned long long)(fake_verbs.calls[FAKE_MODIFY_QP] - modifies));
    sluice_prepared_channel_free(peer);
    sides_close(&sides);
}

int main(void)
{
    return run_verbs("verbs_infiniband", WIRE_TCP, 30);
}
