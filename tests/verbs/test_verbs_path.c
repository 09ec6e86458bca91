/* SPDX-License-Identifier: MIT */
/*
 * Each attribute of a path reaches the driver, on a pretend RoCE device whose table of addresses
 * changes. Also: when fork support is turned on.
 */
#include <stdlib.h>

#include "check.h"
#include "ports.h"

static void check_defaults(const struct changes *ours, const struct changes *theirs)
{
    require_equal(ours->init.pkey_index, 0, ours->init.port_num, 1, ours->rtr.path_mtu,
                  IBV_MTU_1024, ours->rtr.dest_qp_num, theirs->info.qpn, ours->rtr.rq_psn,
                  theirs->rts.sq_psn, ours->rtr.max_dest_rd_atomic, 16, ours->rtr.min_rnr_timer, 12,
                  ours->rtr.ah_attr.port_num, 1, ours->rtr.ah_attr.sl, 0,
                  ours->rtr.ah_attr.src_path_bits, 0, ours->rtr.ah_attr.is_global, 1,
                  ours->rtr.ah_attr.grh.sgid_index, 3, ours->rtr.ah_attr.grh.hop_limit, 64,
                  ours->rtr.ah_attr.grh.traffic_class, 0, ours->rtr.ah_attr.grh.flow_label, 0);
    require(memcmp(ours->rtr.ah_attr.grh.dgid.raw, PORT1->gid[3].raw, 16) == 0, "another GID");
    require_equal(ours->rts.timeout, 18, ours->rts.retry_cnt, 6, ours->rts.rnr_retry, 7,
                  ours->rts.max_rd_atomic, 16);
    require(ours->rts.sq_psn <= 0xffffff, "packet %#x", ours->rts.sq_psn);
}

TEST_WITH(pair, defaults_reach_the_device, (NULL))
{
    pair_works(pair);
    struct changes first = changes_of(0);
    struct changes second = changes_of(1);
    check_defaults(&first, &second);
    check_defaults(&second, &first);
    require(first.rts.sq_psn != second.rts.sq_psn, "both begin with packet %u", first.rts.sq_psn);
}

/* Both ends of each range, and 0 where 0 is a valid number. */
static const struct sluice_channel_attr ends[3] = {
    {.size = sizeof(ends[0]),
     .flags = SLUICE_CHANNEL_PSN,
     .read_depth = 1,
     .path_mtu = 256,
     .pkey = 0x7fff,
     .service_level = 0,
     .traffic_class = 0,
     .flow_label = 0,
     .hop_limit = 1,
     .psn = 0,
     .ack_timeout = 1,
     .retry_count = 1,
     .rnr_timer = 1,
     .rnr_retry = 1},
    {.size = sizeof(ends[1]),
     .flags = SLUICE_CHANNEL_PSN,
     .read_depth = 128,
     .path_mtu = 4096,
     .pkey = 0xffff,
     .service_level = 15,
     .traffic_class = 255,
     .flow_label = 0xfffff,
     .hop_limit = 255,
     .psn = 0xffffff,
     .ack_timeout = 31,
     .retry_count = 6,
     .rnr_timer = 31,
     .rnr_retry = 7},
    {.size = sizeof(ends[2]),
     .flags = SLUICE_CHANNEL_PSN,
     .max_inline = SLUICE_ZERO,
     .read_depth = 128,
     .path_mtu = 4096,
     .hop_limit = 255,
     .ack_timeout = SLUICE_ZERO,
     .retry_count = SLUICE_ZERO,
     .rnr_timer = SLUICE_ZERO,
     .rnr_retry = SLUICE_ZERO},
};

static uint32_t number_of(uint32_t field)
{
    return field == SLUICE_ZERO ? 0 : field;
}

TEST(chosen_values_reach_the_device, .times = COUNT(ends))
{
    const struct sluice_channel_attr *attr = &ends[_i];
    struct pair pair;
    PORT1->active_mtu = IBV_MTU_4096;
    pair_open(&pair, attr);
    pair_works(&pair);
    for (uint32_t i = 0; i < 2; i++) {
        struct changes changes = changes_of(i);
        struct sluice_channel_info info = channel_info(pair.channels[i]);
        require_equal(
            changes.rtr.path_mtu, _i == 0 ? IBV_MTU_256 : IBV_MTU_4096, changes.rtr.rq_psn,
            attr->psn, changes.info.init.cap.max_inline_data,
            attr->max_inline ? number_of(attr->max_inline) : 64, changes.rtr.max_dest_rd_atomic,
            attr->read_depth, changes.rtr.min_rnr_timer, number_of(attr->rnr_timer),
            changes.rtr.ah_attr.sl, attr->service_level, changes.rtr.ah_attr.grh.traffic_class,
            attr->traffic_class, changes.rtr.ah_attr.grh.flow_label, attr->flow_label,
            changes.rtr.ah_attr.grh.hop_limit, attr->hop_limit, changes.rts.timeout,
            number_of(attr->ack_timeout), changes.rts.retry_cnt, number_of(attr->retry_count),
            changes.rts.rnr_retry, number_of(attr->rnr_retry), changes.rts.sq_psn, attr->psn,
            changes.rts.max_rd_atomic, attr->read_depth);
        /* The reported values are those that were set. */
        require_equal(info.path_mtu, attr->path_mtu, info.psn, changes.rts.sq_psn, info.remote_psn,
                      changes.rtr.rq_psn, info.qpn, changes.info.qpn, info.remote_qpn,
                      changes.rtr.dest_qp_num, info.gid_index, changes.rtr.ah_attr.grh.sgid_index,
                      info.rnr_timer, changes.rtr.min_rnr_timer, info.ack_timeout,
                      changes.rts.timeout, info.retry_count, changes.rts.retry_cnt, info.rnr_retry,
                      changes.rts.rnr_retry, info.max_inline, changes.info.init.cap.max_inline_data,
                      info.flow_label, changes.rtr.ah_attr.grh.flow_label);
    }
    pair_close(&pair);
}

/* Each side announces its limits, and both compute the same result. */
TEST(unlike_sides_agree)
{
    struct pair pair;
    struct sluice_channel_attr attr = *ATTR(.path_mtu = 512, .read_depth = 3, .service_level = 5);
    PORT1->active_mtu = IBV_MTU_2048;
    open_ports(&pair.sides, 1);
    connect_sides(&pair, &attr, NULL);
    struct changes first = changes_of(0);
    struct changes second = changes_of(1);
    require_equal(first.rtr.path_mtu, IBV_MTU_512, second.rtr.path_mtu, IBV_MTU_512,
                  first.rts.max_rd_atomic, 3, first.rtr.max_dest_rd_atomic, 3,
                  second.rts.max_rd_atomic, 3, second.rtr.max_dest_rd_atomic, 3,
                  first.rtr.ah_attr.sl, 5, second.rtr.ah_attr.sl, 0);
    pair_close(&pair);
}

static struct sluice_context *open_gid(uint32_t index)
{
    struct sluice_context_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_CONTEXT_GID_INDEX, .gid_index = index};
    return sluice_context_open("fake0", &attr);
}

/* Each index can be chosen: 0 and 2, which are RoCE v1, and 1 and 3, which are v2. */
TEST(gid_by_index, .times = 4)
{
    struct pair pair;
    struct sluice_context_attr attr = {
        .size = sizeof(attr), .flags = SLUICE_CONTEXT_GID_INDEX, .gid_index = (uint32_t)_i};
    open_side(&pair.sides, 0, &attr);
    open_side(&pair.sides, 1, &attr);
    require_equal(context_info(pair.sides.contexts[0]).gid_index, _i);
    connect_sides(&pair, NULL, NULL);
    require_equal(changes_of(0).rtr.ah_attr.grh.sgid_index, _i);
    require(memcmp(changes_of(0).rtr.ah_attr.grh.dgid.raw, PORT1->gid[_i].raw, 16) == 0,
            "another GID");
    pair_close(&pair);
}

TEST(gids_that_are_not_there)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    struct sides sides;
    require_null(open_gid(16), EINVAL, "gid_index 16 port 1 fake0 0..15 0 RoCE v1 fe80::");
    require_null(open_gid(255), EINVAL, "gid_index 255 0..15");
    require_null(open_gid(4), EADDRNOTAVAIL,
                 "gid_index 4 port 1 fake0 empty 0 RoCE v1 fe80:: 1 RoCE v2 fe80::");
    require_equal(fake_verbs_alive(), 0);
    /*
     * If the address is removed later, the next channel fails; it works again when the address is
     * back.
     */
    struct sluice_context_attr given = {
        .size = sizeof(given), .flags = SLUICE_CONTEXT_GID_INDEX, .gid_index = 3};
    open_side(&sides, 0, &given);
    open_side(&sides, 1, &given);
    clear_gid(PORT1, 3);
    forget_port();
    refuse_prepare(&sides, &attr, EADDRNOTAVAIL, "gid_index 3 empty 0 RoCE v1");
    set_gid(PORT1, 3, IBV_GID_TYPE_ROCE_V2, "\0\0\0\0\0\0\0\0\0\0\xff\xff\xc0\x00\x02\x63");
    struct pair pair = {.sides = sides};
    connect_sides(&pair, NULL, NULL);
    require(strcmp(channel_info(pair.channels[0]).address, "RoCE v2 192.0.2.99") == 0, "%s",
            channel_info(pair.channels[0]).address);
    pair_close(&pair);
}

/* All channels of a port without a GID, and then one more. */
TEST(port_without_addresses)
{
    memset(PORT1->gid, 0, sizeof(PORT1->gid));
    require_null(sluice_context_open("fake0", NULL), EADDRNOTAVAIL, "port 1 fake0 no address");
    require_null(open_gid(0), EADDRNOTAVAIL, "gid_index 0 empty nothing");
    require_equal(fake_verbs_alive(), 0);
}

/*
 * Each new queue pair takes the best address at that time: a reset follows changes of the port's
 * table.
 */
TEST_WITH(pair, addresses_that_change, (NULL))
{
    pair_works(pair);
    require_equal(channel_info(pair->channels[0]).gid_index, 3);
    clear_gid(PORT1, 3);
    forget_port();
    fake_verbs_lock();
    PORT1->active_mtu = IBV_MTU_512;
    fake_verbs_unlock();
    pair_reset(pair);
    pair_works(pair);
    require_equal(changes_of(0).rtr.ah_attr.grh.sgid_index, 1, changes_of(0).rtr.path_mtu,
                  IBV_MTU_512, channel_info(pair->channels[0]).gid_index, 1);
}

TEST(mtu_of_the_port)
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .path_mtu = 1024};
    struct sides sides;
    struct sluice_endpoint endpoint;
    PORT1->active_mtu = IBV_MTU_1024;
    sides_open(&sides);
    sluice_prepared_channel_free(prepare_channel(sides.pds[0], &attr, &endpoint));
    attr.path_mtu = 2048;
    refuse_prepare(&sides, &attr, EINVAL, "path_mtu 2048 port 1 fake0 1024");
    PORT1->active_mtu = IBV_MTU_2048;
    forget_port();
    sluice_prepared_channel_free(prepare_channel(sides.pds[0], &attr, &endpoint));
    sides_close(&sides);
}

/* Fork support is the program's decision, and is set once. */
TEST(fork_support)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .flags = SLUICE_CONTEXT_FORK};
    struct sluice_context *contexts[3];
    fake_verbs.fork_status = IBV_FORK_DISABLED;
    contexts[0] = made(sluice_context_open("fake0", NULL));
    require_equal(fake_verbs.calls[FAKE_FORK_INIT], 0);
    for (int i = 1; i < 3; i++) {
        contexts[i] = made(sluice_context_open("fake0", &attr));
        require_equal(fake_verbs.calls[FAKE_FORK_INIT], 1, ibv_is_fork_initialized(),
                      IBV_FORK_ENABLED);
    }
    for (int i = 0; i < 3; i++) {
        sluice_context_close(contexts[i]);
    }
}

TEST(fork_support_of_the_kernel, .times = 2)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .flags = SLUICE_CONTEXT_FORK};
    fake_verbs.fork_status = _i == 0 ? IBV_FORK_UNNEEDED : IBV_FORK_ENABLED;
    struct sluice_context *context = made(sluice_context_open("fake0", &attr));
    require_equal(fake_verbs.calls[FAKE_FORK_INIT], 0);
    sluice_context_close(context);
}

TEST(fork_support_that_fails)
{
    struct sluice_context_attr attr = {.size = sizeof(attr), .flags = SLUICE_CONTEXT_FORK};
    struct sides sides;
    struct memory memory;
    fake_verbs.fork_status = IBV_FORK_DISABLED;
    fake_verbs_fail(1, FAKE_CALL(FAKE_FORK_INIT), ENOSYS);
    require_null(sluice_context_open("fake0", &attr), ENOSYS, "SLUICE_CONTEXT_FORK");
    require_equal(fake_verbs_alive(), 0);
    sides_open(&sides);
    memory_open(&memory, sides.pds[0], 100);
    require_null(sluice_context_open("fake0", &attr), EBUSY,
                 "SLUICE_CONTEXT_FORK too late RDMAV_FORK_SAFE");
    memory_close(&memory);
    sides_close(&sides);
}

int main(void)
{
    return run_verbs("verbs_path", WIRE_TCP, 30);
}
