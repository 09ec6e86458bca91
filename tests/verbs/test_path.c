/* SPDX-License-Identifier: MIT */
/*
 * The path of a connection: values that were set or chosen by default, what both sides agreed on,
 * and that sluice_channel_query() reports exactly that.
 */
#include "config.h"

#include <stdio.h>
#include <unistd.h>

#include <sluice/verbs.h>

#include "../support/pair.h"

#ifdef HAVE_VERBS
#include <infiniband/verbs.h>
#endif

/* Two contexts or one; the ends with attributes of their own. */
static void connect_unlike(struct pair *pair, const struct sluice_channel_attr attrs[2])
{
    struct halves halves;
    halves_prepare(&halves, &pair->sides, &attrs[0], &attrs[1]);
    halves_connect(&halves, pair);
}

/* Each side reports of its peer what the peer reports of itself. */
static void check_mirrored(const struct sluice_channel_info infos[2])
{
    for (int i = 0; i < 2; i++) {
        require_equal(infos[i].remote_qpn, infos[!i].qpn, infos[i].remote_psn, infos[!i].psn,
                      infos[i].path_mtu, infos[!i].path_mtu, infos[i].remote_read_depth,
                      infos[!i].read_depth, infos[i].level, infos[!i].level);
        require(strcmp(infos[i].remote_address, infos[!i].address) == 0, "'%s' and '%s'",
                infos[i].remote_address, infos[!i].address);
        require(infos[i].qpn > 0 && infos[i].address[0] != 0, "queue pair %u at '%s'", infos[i].qpn,
                infos[i].address);
    }
}

static void query_both(const struct pair *pair, struct sluice_channel_info infos[2])
{
    for (int i = 0; i < 2; i++) {
        infos[i] = channel_info(pair->channels[i]);
    }
    check_mirrored(infos);
}

TEST_WITH(pair, defaults, (NULL))
{
    struct sluice_channel_info infos[2];
    pair_works(pair);
    query_both(pair, infos);
    struct sluice_context_info context = context_info(pair->sides.contexts[0]);
    for (int i = 0; i < 2; i++) {
        require_equal(
            infos[i].send_depth, 128, infos[i].receive_depth, 128, infos[i].max_sge, 4,
            infos[i].max_inline, 64, infos[i].max_message, context.max_message, infos[i].read_depth,
            16, infos[i].remote_read_depth, 16, infos[i].service_level, 0, infos[i].traffic_class,
            0, infos[i].flow_label, 0, infos[i].port, context.port, infos[i].path_mtu,
            context.active_mtu, infos[i].gid_index,
            context.link_layer == SLUICE_LINK_ETHERNET ? context.gid_index : -1, infos[i].hop_limit,
            context.link_layer == SLUICE_LINK_ETHERNET ? 64 : 0, infos[i].ack_timeout,
            device_is_soft() ? 0 : 18, infos[i].retry_count, device_is_soft() ? 0 : 6,
            infos[i].rnr_timer, device_is_soft() ? 0 : 12, infos[i].rnr_retry,
            device_is_soft() ? 0 : 7, infos[i].pkey, device_is_soft() ? 0 : 0xffff);
    }
    if (!device_is_soft()) {
        require_equal(infos[0].level, SLUICE_LEVEL_NIC);
        require(infos[0].psn != infos[1].psn, "both sides begin with packet %u", infos[0].psn);
    } else if (current_wire() == WIRE_SELF) {
        require_equal(infos[0].level, SLUICE_LEVEL_MEMORY);
    } else if (current_wire() == WIRE_SHM) {
        /* Both sides are in this process, and so on one host. */
        char process[32];
        snprintf(process, sizeof(process), "process %d", (int)getpid());
        require_equal(infos[0].level, SLUICE_LEVEL_MEMORY);
        require(strcmp(infos[0].address, process) == 0, "%s", infos[0].address);
    } else {
        static const char tcp[] = "TCP 127.0.0.1 port ";
        require_equal(infos[0].level, SLUICE_LEVEL_TCP);
        require(strncmp(infos[0].address, tcp, sizeof(tcp) - 1) == 0, "%s", infos[0].address);
    }
}

/* All values that can be chosen. */
static const struct sluice_channel_attr chosen = {.size = sizeof(chosen),
                                                  .flags =
                                                      SLUICE_CHANNEL_PSN | SLUICE_CHANNEL_GLOBAL,
                                                  .send_depth = 7,
                                                  .receive_depth = 9,
                                                  .max_sge = 3,
                                                  .max_inline = 17,
                                                  .read_depth = 4,
                                                  .max_message = 8192,
                                                  .path_mtu = 512,
                                                  .pkey = 0x7fff,
                                                  .service_level = 3,
                                                  .traffic_class = 104,
                                                  .flow_label = 0x12345,
                                                  .hop_limit = 2,
                                                  .psn = 0xabcdef,
                                                  .ack_timeout = 17,
                                                  .retry_count = 5,
                                                  .rnr_timer = 1,
                                                  .rnr_retry = 6};

/* Chosen at one end; the other has the defaults. */
TEST(chosen_values_are_used)
{
    struct pair pair;
    struct sluice_channel_info infos[2];
    struct sluice_channel_attr attrs[2] = {chosen, {.size = sizeof(attrs[1])}};
    sides_open(&pair.sides);
    connect_unlike(&pair, attrs);
    pair_works(&pair);
    query_both(&pair, infos);
    require_equal(infos[0].send_depth, 7, infos[0].receive_depth, 9, infos[0].max_sge, 3,
                  infos[0].max_inline, 17, infos[0].max_message, 8192, infos[0].read_depth, 4,
                  infos[1].read_depth, 4, infos[1].send_depth, 128);
    /* Soft ignores the rest. */
    bool used = !device_is_soft();
    require_equal(infos[0].psn, used ? 0xabcdef : 0, infos[0].path_mtu, used ? 512 : 0,
                  infos[0].pkey, used ? 0xffff : 0); /* the full member of the partition */
    require_equal(infos[0].service_level, used ? 3 : 0, infos[0].traffic_class, used ? 104 : 0,
                  infos[0].flow_label, used ? 0x12345 : 0, infos[0].hop_limit, used ? 2 : 0,
                  infos[0].ack_timeout, used ? 17 : 0, infos[0].retry_count, used ? 5 : 0,
                  infos[0].rnr_timer, used ? 1 : 0, infos[0].rnr_retry, used ? 6 : 0,
                  infos[1].hop_limit, used ? 64 : 0);
    pair_close(&pair);
}

#ifdef HAVE_VERBS

/*
 * The device's own query reports the same values. PSNs advance with traffic, so this is checked
 * before any.
 */
TEST(device_reports_the_chosen_values)
{
    struct pair pair;
    struct sluice_channel_attr attrs[2] = {chosen, {.size = sizeof(attrs[1])}};
    struct ibv_qp_init_attr init;
    struct ibv_qp_attr attr;
    if (device_is_soft()) {
        return; /* this device has none of them */
    }
    sides_open(&pair.sides);
    connect_unlike(&pair, attrs);
    struct ibv_qp *qp = made(sluice_verbs_channel_qp(pair.channels[0]));
    require_ok(ibv_query_qp(qp, &attr, IBV_QP_STATE, &init));
    require_equal(attr.qp_state, IBV_QPS_RTS, attr.path_mtu, IBV_MTU_512, attr.sq_psn, 0xabcdef,
                  attr.rq_psn, channel_info(pair.channels[1]).psn, attr.dest_qp_num,
                  channel_info(pair.channels[1]).qpn, attr.pkey_index, 0, attr.port_num, 1,
                  attr.timeout, 17, attr.retry_cnt, 5, attr.rnr_retry, 6, attr.min_rnr_timer, 1,
                  attr.max_rd_atomic, 4, attr.max_dest_rd_atomic, 4, attr.ah_attr.is_global, 1,
                  attr.ah_attr.grh.sgid_index, channel_info(pair.channels[0]).gid_index,
                  attr.ah_attr.grh.traffic_class, 104, attr.ah_attr.grh.flow_label, 0x12345);
    /* On RoCE the kernel replaces the hop limit by that of the route. */
    require(attr.ah_attr.grh.hop_limit > 0, "%u", attr.ah_attr.grh.hop_limit);
    pair_works(&pair);
    pair_close(&pair);
}

#endif

/* A given PSN is used for each connection; otherwise each connection has a random one. */
TEST(sequence_numbers_of_resets)
{
    struct pair pair;
    struct sluice_channel_info first[2], second[2];
    struct sluice_channel_attr attrs[2] = {
        {.size = sizeof(attrs[0]), .flags = SLUICE_CHANNEL_PSN, .psn = 0xfffffe},
        {.size = sizeof(attrs[1])}};
    sides_open(&pair.sides);
    connect_unlike(&pair, attrs);
    pair_works(&pair);
    query_both(&pair, first);
    pair_reset(&pair);
    pair_works(&pair);
    query_both(&pair, second);
    require_equal(second[0].psn, first[0].psn);
    if (!device_is_soft()) {
        require_equal(second[0].psn, 0xfffffe);
        require(second[1].psn != first[1].psn, "packet %u again", first[1].psn);
        require(second[0].qpn != first[0].qpn, "queue pair %u again", first[0].qpn);
    }
    pair_close(&pair);
}

TEST_WITH(star, peers_of_a_multichannel, (3, ATTR(.read_depth = 3)))
{
    struct sluice_endpoint endpoint;
    for (uint32_t i = 0; i < 3; i++) {
        struct sluice_channel_info infos[2] = {{.size = sizeof(infos[0])}};
        star_works(star, i);
        require_ok(sluice_multichannel_peer_query(star->hub, i, &infos[0]));
        infos[1] = channel_info(star->spokes[i]);
        check_mirrored(infos);
        require_equal(infos[0].read_depth, 3);
    }
    /* Before the connection, only the local number is known. */
    struct sluice_channel_info info = {.size = sizeof(info)};
    require_ok(sluice_multichannel_peer_reset(star->hub, 1, &endpoint));
    require_ok(sluice_multichannel_peer_query(star->hub, 1, &info));
    require_equal(info.level, 0, info.read_depth, 0, info.remote_qpn, 0, info.path_mtu, 0,
                  info.gid_index, -1, info.send_depth, 128);
    require(info.qpn > 0 && info.remote_address[0] == 0, "%u, '%s'", info.qpn, info.remote_address);
}

TEST_WITH(star, query_arguments, (2, NULL))
{
    struct sluice_channel_info info = {.size = sizeof(info)};
    require_error(sluice_channel_query(NULL, &info), -EINVAL, "channel");
    require_error(sluice_channel_query(star->spokes[0], NULL), -EINVAL, "info");
    require_error(sluice_multichannel_peer_query(NULL, 0, &info), -EINVAL, "multichannel");
    require_error(sluice_multichannel_peer_query(star->hub, 2, &info), -EINVAL, "peer 2");
    require_error(sluice_multichannel_peer_query(star->hub, 0, NULL), -EINVAL, "info");
    memset(&info, 0x5a, sizeof(info));
    info.size = sizeof(info.size); /* fields may be added, so the least size is that of 0.1 */
    require_error(sluice_channel_query(star->spokes[0], &info), -EINVAL, "size");
    require_error(sluice_multichannel_peer_query(star->hub, 0, &info), -EINVAL, "size");
    value_check(&info.level, sizeof(info) - sizeof(info.size), 0x5a);
}

/* A failed channel can be queried all the same. */
TEST_WITH(pair, query_of_a_failed_channel, (NULL))
{
    pair_works(pair);
    struct sluice_channel_info before = channel_info(pair->channels[0]);
    require_result(sluice_channel_receive(pair->channels[0], NULL, 0, SLUICE_MS(1), NULL),
                   -ETIMEDOUT);
    struct sluice_channel_info after = channel_info(pair->channels[0]);
    require_equal(after.qpn, before.qpn, after.remote_qpn, before.remote_qpn, after.level,
                  before.level, after.read_depth, before.read_depth);
}

TEST(context_description)
{
    struct sluice_context *context = open_context();
    struct sluice_context_info info = context_info(context);
    require(info.max_inline >= 64, "%u", info.max_inline);
    require(info.numa_node >= -1, "%d", info.numa_node);
    if (device_is_soft()) {
        require_equal(info.port, 0, info.link_layer, SLUICE_LINK_NONE, info.active_mtu, 0,
                      info.gid_index, -1, info.numa_node, -1);
    } else {
        require_equal(info.port, 1);
        require(info.link_layer == SLUICE_LINK_ETHERNET ||
                    info.link_layer == SLUICE_LINK_INFINIBAND,
                "%u", info.link_layer);
        require(info.active_mtu >= 256 && info.active_mtu <= 4096, "%u", info.active_mtu);
        require(info.gid_index >= 0, "%d", info.gid_index);
    }
    sluice_context_close(context);
}

/*
 * Whatever the kernel requires for fork support, it is set up when the first context asks for it.
 */
TEST(fork_support)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .flags = SLUICE_CONTEXT_FORK};
    struct pair pair;
    for (int i = 0; i < 2; i++) {
        pair.sides.contexts[i] = made(sluice_context_open(test_device(), &attr));
        pair.sides.pds[i] = made(sluice_pd_alloc(pair.sides.contexts[i]));
    }
    pair_connect(&pair, NULL);
    pair_works(&pair);
    pair_close(&pair);
}

/* Opens a context with an entry of the GID table. Returns NULL with errno and text. */
static struct sluice_context *open_gid(uint32_t index)
{
    struct sluice_context_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_CONTEXT_GID_INDEX, .gid_index = index};
    return sluice_context_open(test_device(), &attr);
}

static void open_side(struct sides *sides, int side, uint32_t index)
{
    sides->contexts[side] = made(open_gid(index));
    sides->pds[side] = made(sluice_pd_alloc(sides->contexts[side]));
}

/* The GIDs of port 1 of the device under test; none on soft, and where there is no RoCE. */
#define GIDS 32
struct gids {
    uint32_t table; /* length of the whole table */
    uint32_t count;
    struct sluice_gid_info gids[GIDS];
};

static void add_gids(struct gids *gids, const struct sluice_device_list *list, uint32_t device)
{
    struct sluice_device_info info = {.size = sizeof(info)};
    struct sluice_port_info port = {.size = sizeof(port)};
    require_ok(sluice_device_list_info(list, device, &info));
    if (strcmp(info.name, test_device()) != 0) {
        return;
    }
    require_ok(sluice_device_list_port(list, device, 1, &port));
    if (port.link_layer != SLUICE_LINK_ETHERNET) {
        return;
    }
    gids->table = port.gid_table;
    for (uint32_t i = 0; i < info.gids && gids->count < GIDS; i++) {
        struct sluice_gid_info *gid = &gids->gids[gids->count];
        gid->size = sizeof(*gid);
        require_ok(sluice_device_list_gid(list, device, i, gid));
        gids->count += gid->port == 1 && gid->index < 256;
    }
}

static struct gids find_gids(void)
{
    struct gids gids = {0};
    struct sluice_device_list *list = made(sluice_device_list_get());
    for (uint32_t i = 0; i < sluice_device_list_count(list); i++) {
        add_gids(&gids, list, i);
    }
    sluice_device_list_free(list);
    return gids;
}

/* In the guest, 0 is the link-local IPv6 address and 1 is IPv4. */
TEST(each_gid_carries_data)
{
    struct gids gids = find_gids();
    for (uint32_t i = 0; i < gids.count; i++) {
        struct pair pair;
        struct sluice_channel_info infos[2];
        open_side(&pair.sides, 0, gids.gids[i].index);
        open_side(&pair.sides, 1, gids.gids[i].index);
        require_equal(context_info(pair.sides.contexts[0]).gid_index, (int32_t)gids.gids[i].index);
        pair_connect(&pair, NULL);
        pair_works(&pair);
        query_both(&pair, infos);
        require_equal(infos[0].gid_index, (int32_t)gids.gids[i].index);
        require(strcmp(infos[0].address, gids.gids[i].text) == 0, "%s, not %s", infos[0].address,
                gids.gids[i].text);
        pair_close(&pair);
    }
}

/* RoCE v1, v2 over IPv4 and v2 over IPv6 cannot connect to each other. */
static bool unlike(const struct sluice_gid_info *a, const struct sluice_gid_info *b)
{
    static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
    bool both_v2 = a->type == SLUICE_GID_ROCE_V2 && b->type == SLUICE_GID_ROCE_V2;
    bool a_is_ipv4 = memcmp(a->gid, mapped, sizeof(mapped)) == 0;
    bool b_is_ipv4 = memcmp(b->gid, mapped, sizeof(mapped)) == 0;
    return a->type != b->type || (both_v2 && a_is_ipv4 != b_is_ipv4);
}

static void refuse_gids(const struct sluice_gid_info *first, const struct sluice_gid_info *second)
{
    struct sides sides;
    struct sluice_endpoint ours, theirs;
    char words[200];
    open_side(&sides, 0, first->index);
    open_side(&sides, 1, second->index);
    struct sluice_prepared_channel *prepared[2] = {prepare_channel(sides.pds[0], NULL, &ours),
                                                   prepare_channel(sides.pds[1], NULL, &theirs)};
    snprintf(words, sizeof(words), "%s another kind %s", second->text, first->text);
    require_null(sluice_prepared_channel_handshake(prepared[0], &theirs), EPROTO, words);
    snprintf(words, sizeof(words), "%s another kind %s", first->text, second->text);
    require_null(sluice_prepared_channel_handshake(prepared[1], &ours), EPROTO, words);
    sides_close(&sides);
}

TEST(gids_of_unlike_kinds)
{
    struct gids gids = find_gids();
    uint32_t refused = 0;
    for (uint32_t i = 0; i + 1 < gids.count; i++) {
        if (unlike(&gids.gids[i], &gids.gids[i + 1])) {
            refuse_gids(&gids.gids[i], &gids.gids[i + 1]);
            refused++;
        }
    }
    /* This holds for the devices that are known to us. */
    require(refused > 0 || strcmp(test_device(), "rxe0") != 0, "all %u alike", gids.count);
}

TEST(gids_that_are_not_there)
{
    struct gids gids = find_gids();
    uint32_t free = 0;
    char words[100];
    if (device_is_soft()) {
        struct sluice_context *context = made(open_gid(255));
        sluice_context_close(context);
    }
    if (gids.count == 0) {
        return;
    }
    for (uint32_t i = 0; i < gids.count; i++) {
        free = gids.gids[i].index >= free ? gids.gids[i].index + 1 : free;
    }
    snprintf(words, sizeof(words), "gid_index %u port 1 empty %u %s", free, gids.gids[0].index,
             gids.gids[0].text);
    if (free < gids.table) {
        require_null(open_gid(free), EADDRNOTAVAIL, words);
    }
    snprintf(words, sizeof(words), "gid_index 255 0..%u %u %s", gids.table - 1, gids.gids[0].index,
             gids.gids[0].text);
    if (gids.table < 255) {
        require_null(open_gid(255), EINVAL, words);
    }
}

/* Legal values that this port does not support. */
TEST(values_beyond_the_port)
{
    struct sides sides;
    struct sluice_channel_attr attr = {.size = sizeof(attr), .path_mtu = 4096};
    char words[80];
    sides_open(&sides);
    uint32_t mtu = context_info(sides.contexts[0]).active_mtu;
    if (device_is_soft() || mtu == 4096) {
        sides_close(&sides);
        return;
    }
    snprintf(words, sizeof(words), "path_mtu 4096 port 1 %u", mtu);
    require_null(sluice_channel_prepare(sides.pds[0], &attr), EINVAL, words);
    attr = (struct sluice_channel_attr){.size = sizeof(attr), .pkey = 0x1234};
    require_null(sluice_channel_prepare(sides.pds[0], &attr), EINVAL, "pkey 0x1234 port 1 0xffff");
    attr = (struct sluice_channel_attr){.size = sizeof(attr), .path_bits = 1};
    require_null(sluice_channel_prepare(sides.pds[0], &attr), EINVAL, "path_bits 1 port 1 0..0");
    sides_close(&sides);
}

/* Each side may ask for a smaller MTU than its peer. */
TEST(smaller_mtu_holds)
{
    for (uint32_t mtu = 256; mtu <= 1024; mtu *= 2) {
        for (int side = 0; side < 2; side++) {
            struct pair pair;
            struct sluice_channel_info infos[2];
            struct sluice_channel_attr attrs[2] = {{.size = sizeof(attrs[0]), .path_mtu = 1024},
                                                   {.size = sizeof(attrs[1]), .path_mtu = 1024}};
            attrs[side].path_mtu = mtu;
            sides_open(&pair.sides);
            connect_unlike(&pair, attrs);
            pair_works(&pair);
            query_both(&pair, infos);
            require_equal(infos[0].path_mtu, device_is_soft() ? 0 : mtu);
            pair_close(&pair);
        }
    }
}

/* Reads in flight: the smaller of what one side starts and the other answers, each way. */
TEST(smaller_read_depth_holds)
{
    struct pair pair;
    struct sluice_channel_info infos[2];
    struct sluice_channel_attr attrs[2] = {{.size = sizeof(attrs[0]), .read_depth = 8},
                                           {.size = sizeof(attrs[1]), .read_depth = 2}};
    sides_open(&pair.sides);
    connect_unlike(&pair, attrs);
    pair_works(&pair);
    query_both(&pair, infos);
    require_equal(infos[0].read_depth, 2, infos[1].read_depth, 2);
    pair_close(&pair);
}

int main(void)
{
    return run_tests("path", 60);
}
