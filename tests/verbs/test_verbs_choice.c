/* SPDX-License-Identifier: MIT */
/*
 * Defaults that the library chooses on pretend devices: an address of a made-up table, a port, an
 * MTU, the depth of reads, and the kind of atomics.
 */
#include <stdio.h>

#include "../support/words.h"
#include "check.h"
#include "ports.h"

/* Kinds of address, the best one first. Tests below cover several addresses of one kind. */
enum kind { V2_IPV4, V2_IPV6, V2_LINK, V1_IPV4, V1_IPV6, V1_LINK, KINDS };

static void put_gid(struct fake_gid *gid, enum kind kind, uint8_t host)
{
    static const uint8_t ipv4[16] = {[10] = 0xff, [11] = 0xff, [12] = 198, [13] = 51, [14] = 100};
    static const uint8_t ipv6[16] = {0x20, 0x01, 0x0d, 0xb8};
    static const uint8_t link[16] = {0xfe, 0x80, [11] = 0xff, [12] = 0xfe};
    const uint8_t *const bytes[] = {ipv4, ipv6, link};
    memcpy(gid->raw, bytes[kind % 3], 16);
    gid->raw[15] = host;
    gid->type = 1 + (kind < V1_IPV4 ? IBV_GID_TYPE_ROCE_V2 : IBV_GID_TYPE_ROCE_V1);
}

static void check_gid(uint32_t wanted)
{
    struct pair pair;
    pair_open(&pair, NULL);
    struct sluice_context_info info = context_info(pair.sides.contexts[0]);
    require_equal(info.gid_index, (int32_t)wanted);
    struct changes changes = changes_of(0);
    require_equal(changes.rtr.ah_attr.grh.sgid_index, wanted);
    pair_works(&pair);
    pair_close(&pair);
}

/* Every set of kinds, in ascending and in descending order of worth, with holes in between. */
TEST(best_address, .times = 2)
{
    for (uint32_t set = 1; set < 1 << KINDS; set++) {
        uint32_t best = 0, index = 0;
        memset(PORT1->gid, 0, sizeof(PORT1->gid));
        for (int i = 0; i < KINDS; i++) {
            enum kind kind = (enum kind)(_i == 0 ? i : KINDS - 1 - i);
            if (!(set & 1 << kind)) {
                continue;
            }
            index += 1 + set % 2;
            put_gid(&PORT1->gid[index], kind, (uint8_t)index);
            if (_i == 1 || best == 0) {
                best = index;
            }
        }
        check_gid(best);
    }
}

/*
 * Among addresses of one kind the lowest index wins. Addresses valid only on this host or this link
 * come last.
 */
TEST(address_among_equals)
{
    static const uint8_t loopback[4] = {127, 0, 0, 1}, link_local[4] = {169, 254, 1, 2};
    for (int kind = 0; kind < KINDS; kind++) {
        memset(PORT1->gid, 0, sizeof(PORT1->gid));
        for (uint32_t i = 3; i < 9; i++) {
            put_gid(&PORT1->gid[i], (enum kind)kind, (uint8_t)(100 - i));
        }
        check_gid(3);
    }
    memset(PORT1->gid, 0, sizeof(PORT1->gid));
    for (uint32_t i = 0; i < 3; i++) {
        put_gid(&PORT1->gid[i], i == 2 ? V2_IPV6 : V2_IPV4, 1);
    }
    memcpy(PORT1->gid[0].raw + 12, loopback, 4);
    memcpy(PORT1->gid[1].raw + 12, link_local, 4);
    check_gid(2);
    PORT1->gid[2].type = 0;
    check_gid(1);
}

/* Only the table of the port that is used counts. */
TEST(addresses_of_another_port)
{
    fake_verbs.device[0].ports = 2;
    memset(PORT1->gid, 0, sizeof(PORT1->gid));
    put_gid(&PORT1->gid[4], V1_LINK, 4);
    check_gid(4);
}

/* The first active port, unless one is given, which then has to be active. */
TEST(port)
{
    fake_verbs.device[0].ports = 4;
    for (uint32_t set = 0; set < 16; set++) {
        uint32_t first = 0;
        for (uint32_t i = 0; i < 4; i++) {
            bool active = set >> i & 1;
            fake_verbs.device[0].port[i].state = active ? IBV_PORT_ACTIVE : IBV_PORT_INIT;
            first = active && first == 0 ? i + 1 : first;
        }
        if (first == 0) {
            require_null(sluice_context_open("fake0", NULL), ENETDOWN, "4 ports fake0 init");
        } else {
            struct pair pair;
            pair_open(&pair, NULL);
            require_equal(context_info(pair.sides.contexts[0]).port, first,
                          changes_of(0).init.port_num, first);
            pair_works(&pair);
            pair_close(&pair);
        }
        for (uint32_t i = 1; i <= 4; i++) {
            struct sluice_context_attr attr = {.size = sizeof(attr), .port = i};
            if (set >> (i - 1) & 1) {
                struct sluice_context *context = made(sluice_context_open("fake0", &attr));
                require_equal(context_info(context).port, i);
                sluice_context_close(context);
            } else {
                char words[40];
                snprintf(words, sizeof(words), "port %u fake0 init", i);
                require_null(sluice_context_open("fake0", &attr), ENETDOWN, words);
            }
        }
    }
    struct sluice_context_attr attr = {.size = sizeof(attr), .port = 5};
    require_null(sluice_context_open("fake0", &attr), EINVAL, "port 5 fake0 1 4");
}

/* A NULL name takes the first RDMA device with an active port, not the first one. */
TEST(device)
{
    fake_verbs.devices = 3;
    fake_verbs.device[0].port[0].state = IBV_PORT_DOWN;
    fake_verbs.device[1].transport_type = IBV_TRANSPORT_USNIC;
    struct sluice_context *context = made(sluice_context_open(NULL, NULL));
    struct sluice_context_info info = context_info(context);
    require(strcmp(info.device, "fake2") == 0, "%s", info.device);
    sluice_context_close(context);
    require_null(sluice_context_open("fake1", NULL), ENODEV, "fake1 neither");
    require_null(sluice_context_open("fake7", NULL), ENODEV, "fake7");
}

/*
 * iWARP is taken only by its name. This device has no GID, and endpoints connect nothing on it. The
 * limits of siw are those that its kernel module can keep.
 */
TEST(iwarp)
{
    static const char words[] = "fake0 is iWARP rdma_cm rdmacm:host:port soft";
    struct sluice_context_attr attr = {.size = sizeof(attr), .flags = SLUICE_CONTEXT_GID_INDEX};
    struct sluice_context_info info;
    struct sluice_context *context;
    struct sluice_endpoint endpoint;
    fake_verbs.device[0].transport_type = IBV_TRANSPORT_IWARP;
    fake_verbs.device[0].atomic_cap = IBV_ATOMIC_NONE;
    fake_verbs.device[0].port[0].max_msg_sz = UINT32_MAX;
    fake_verbs.device[0].vendor_id = 0x626d74;
    context = made(sluice_context_open(NULL, NULL));
    require(strcmp(context_info(context).device, "soft") == 0, "%s", context_info(context).device);
    sluice_context_close(context);
    require_null(sluice_context_open("fake0", &attr), EINVAL, "gid_index 0 fake0 no GIDs");
    context = made(sluice_context_open("fake0", NULL));
    info = context_info(context);
    require_equal(info.link_layer, SLUICE_LINK_IWARP, info.gid_index, -1, info.atomics,
                  SLUICE_ATOMICS_NONE, info.max_message, 1 << 30, info.max_sge, 1);
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    require_null(sluice_channel_prepare(pd, NULL), EOPNOTSUPP, words);
    require_null(sluice_multichannel_prepare(pd, 2, NULL), EOPNOTSUPP, words);
    struct sluice_multichannel *many = made(
        sluice_prepared_multichannel_handshake(sluice_multichannel_prepare(pd, 0, NULL), NULL, 0));
    require_error(sluice_multichannel_peer_add(many, &endpoint), -EOPNOTSUPP, words);
    require_null(sluice_multichannel_prepare(pd, 0, ATTR(.arrival_tags = 4)), EOPNOTSUPP,
                 "arrival_tags immediates fake0");
    require_equal(fake_verbs_count("qp"), 0);
    sluice_multichannel_close(many);
    sluice_pd_free(pd);
    sluice_context_close(context);
}

static uint32_t smaller(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/*
 * Both sides use the smaller MTU of their ports and the read depths as given; reads then work both
 * ways.
 */
TEST(minimum_of_both)
{
    static const uint32_t depths[] = {1, 3, 16, 128};
    fake_verbs.device[0].ports = 2;
    for (int mtu1 = IBV_MTU_256; mtu1 <= IBV_MTU_4096; mtu1++) {
        for (int mtu2 = IBV_MTU_256; mtu2 <= IBV_MTU_4096; mtu2++) {
            struct pair pair = {.channels = {NULL, NULL}};
            struct sluice_channel_attr attrs[2] = {
                {.size = sizeof(attrs[0]), .read_depth = depths[mtu1 % 4]},
                {.size = sizeof(attrs[1]), .read_depth = depths[mtu2 % 4]}};
            PORT1->active_mtu = (enum ibv_mtu)mtu1;
            PORT2->active_mtu = (enum ibv_mtu)mtu2;
            open_ports(&pair.sides, 2);
            connect_sides(&pair, &attrs[0], &attrs[1]);
            uint32_t reads = smaller(attrs[0].read_depth, attrs[1].read_depth);
            for (uint32_t i = 0; i < 2; i++) {
                struct changes changes = changes_of(i);
                require_equal((int)changes.rtr.path_mtu, mtu1 < mtu2 ? mtu1 : mtu2,
                              changes.rts.max_rd_atomic, reads, changes.rtr.max_dest_rd_atomic,
                              reads);
                require_ok(sluice_channel_read(pair.channels[i], NULL, 0,
                                               &(struct sluice_remote_mr){0}, DEADLINE));
            }
            pair_close(&pair);
            check_nothing_left();
        }
    }
}

/* A device may answer more reads at a time than it sends, or fewer. */
TEST_WITH(pair, read_depths_of_the_device,
          (ON_DEVICE(NULL, fake_verbs.device[0].max_qp_rd_atom = _i == 0 ? 4 : 128,
                     fake_verbs.device[0].max_qp_init_rd_atom = _i == 0 ? 128 : 4)),
          .times = 2)
{
    require_equal(context_info(pair->sides.contexts[0]).max_read_depth, 4,
                  changes_of(0).rts.max_rd_atomic, 4, changes_of(0).rtr.max_dest_rd_atomic, 4);
    pair_works(pair);
}

/* The program gets the atomics that the device reports. */
TEST(atomics_of_the_device)
{
    static const struct {
        enum ibv_atomic_cap has;
        uint32_t told;
    } kinds[] = {{IBV_ATOMIC_HCA, SLUICE_ATOMICS_DEVICE}, {IBV_ATOMIC_GLOB, SLUICE_ATOMICS_GLOBAL}};
    const unsigned all =
        IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct fixture fixture;
        fake_verbs.device[0].atomic_cap = kinds[i].has;
        fixture_open(&fixture, NULL, ACCESS);
        require_equal(context_info(fixture.star.sides.contexts[0]).atomics, kinds[i].told,
                      changes_of(0).init.qp_access_flags, all);
        struct sluice_sge sge = result_sge(&fixture, 0);
        struct sluice_remote_mr remote = word_of(&fixture, 0);
        require_ok(sluice_multichannel_fetch_add(fixture.star.hub, 1, &sge, &remote, 1, DEADLINE));
        require_word(fixture.results[0], START, "the old value");
        fixture_close(&fixture);
        check_nothing_left();
    }
}

/* Without atomics the device gets no such request, and all else works. */
TEST_WITH(fixture, no_atomics,
          (NULL, ON_DEVICE(ACCESS_ALL, fake_verbs.device[0].atomic_cap = IBV_ATOMIC_NONE)))
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .access = SLUICE_ACCESS_REMOTE_ATOMIC};
    struct sluice_pd *pd = fixture->star.sides.pds[0];
    struct sluice_sge sge = result_sge(fixture, 0);
    struct sluice_remote_mr remote = word_of(fixture, 0);
    require_equal(context_info(fixture->star.sides.contexts[0]).atomics, SLUICE_ATOMICS_NONE,
                  changes_of(0).init.qp_access_flags,
                  IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_WRITE);
    require_error(sluice_multichannel_fetch_add(fixture->star.hub, 1, &sge, &remote, 1, DEADLINE),
                  -EOPNOTSUPP, "fake0");
    require_error(
        sluice_multichannel_compare_swap(fixture->star.hub, 1, &sge, &remote, START, 1, DEADLINE),
        -EOPNOTSUPP, "compare-swap");
    struct sluice_request request = add_request(fixture, 0, &sge, 1);
    require_error(sluice_multichannel_post(fixture->star.hub, &request, 1, DEADLINE, NULL),
                  -EOPNOTSUPP, "fetch-add");
    require_null(sluice_channel_prepare(pd, &attr), EOPNOTSUPP, "REMOTE_ATOMIC");
    require_null(sluice_mr_alloc(pd, 8, ACCESS), EOPNOTSUPP, "REMOTE_ATOMIC");
    check_others(fixture, 0);
    star_works(&fixture->star, 1);
}

int main(void)
{
    return run_verbs("verbs_choice", WIRE_SELF, 60);
}
