/* SPDX-License-Identifier: MIT */
/*
 * Attribute structs: each field out of range is refused with its name and range, and structs of
 * older and newer programs work. The same for structs that the library fills.
 */
#include <stdio.h>
#include <stdlib.h>

#include "../support/pair.h"
#include "../support/process.h"

/* A field, a value out of its range, and words of the text. */
struct bad_field {
    size_t offset;
    uint32_t value;
    const char *words;
};

#define FIELD(name) offsetof(struct sluice_channel_attr, name)

static const struct bad_field bad_fields[] = {
    {FIELD(flags), UINT32_C(1) << 4, "flags"},
    {FIELD(flags), UINT32_C(1) << 31, "flags"},
    {FIELD(send_depth), 16385, "send_depth 1 16384"},
    {FIELD(receive_depth), 16385, "receive_depth 1 16384"},
    {FIELD(send_depth), UINT32_MAX, "send_depth 1 16384"},
    {FIELD(max_sge), 33, "max_sge 1 32"},
    {FIELD(max_inline), 1025, "max_inline 1 1024 SLUICE_ZERO"},
    {FIELD(max_sge), SLUICE_ZERO, "max_sge 1..32 (0: 4)"},
    {FIELD(hop_limit), SLUICE_ZERO, "hop_limit 1..255 (0: 64)"},
    {FIELD(retry_count), SLUICE_ZERO - 1, "retry_count 1..6"},
    {FIELD(max_inline), SLUICE_ZERO - 1, "max_inline 1..1024"},
    {FIELD(access), SLUICE_ACCESS_LOCAL_WRITE, "access"},
    {FIELD(access), UINT32_C(1) << 30, "access"},
    {FIELD(access), SLUICE_ACCESS_NONE | SLUICE_ACCESS_REMOTE_READ, "access"},
    {FIELD(read_depth), 129, "read_depth 1 128"},
    {FIELD(ack_timeout), 32, "ack_timeout 1 31"},
    {FIELD(retry_count), 7, "retry_count 7 for ever 1 6"},
    {FIELD(retry_count), 8, "retry_count 8 1 6"},
    {FIELD(rnr_timer), 32, "rnr_timer 32 1 31"},
    {FIELD(rnr_retry), 8, "rnr_retry 8 1 7"},
    {FIELD(path_mtu), 255, "path_mtu 255 256 512 1024 2048 4096"},
    {FIELD(path_mtu), 1, "path_mtu 1, 256"},
    {FIELD(path_mtu), 1500, "path_mtu 1500"},
    {FIELD(path_mtu), 8192, "path_mtu 8192 4096"},
    {FIELD(pkey), 0x10000, "pkey 0x10000 0x1 0xffff"},
    {FIELD(pkey), 0x8000, "pkey 0x8000 0x1 0xffff"},
    {FIELD(service_level), 16, "service_level 16 0 15"},
    {FIELD(traffic_class), 256, "traffic_class 256 0 255"},
    {FIELD(flow_label), 0x100000, "flow_label 1048576 0 1048575"},
    {FIELD(hop_limit), 256, "hop_limit 256 1 255"},
    {FIELD(path_bits), 128, "path_bits 128 0 127"},
    {FIELD(psn), 5, "psn 5 SLUICE_CHANNEL_PSN"}, /* that flag is not set */
    {FIELD(wait_mode), 3, "wait_mode"},
    {FIELD(arrival_tags), 1048577, "arrival_tags 1048577 0..1048576"},
    {FIELD(queue_pairs), 9, "queue_pairs 9 1..8"},
    {FIELD(stripe_least), UINT32_C(1) << 31, "stripe_least 2147483648 1..2147483647"},
};

TEST_WITH(sides, channel_fields_out_of_range, (), .times = COUNT(bad_fields))
{
    const struct bad_field *bad = &bad_fields[_i];
    struct sluice_channel_attr attr = {.size = sizeof(attr)};
    int fds = count_fds();
    memcpy((char *)&attr + bad->offset, &bad->value, sizeof(bad->value));
    require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL, bad->words);
    require_null(sluice_multichannel_prepare(sides->pds[0], 3, &attr), EINVAL, bad->words);
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
}

/* Durations, which are of one type. */
TEST_WITH(sides, channel_durations_out_of_range, ())
{
    static const struct {
        size_t offset;
        int64_t value;
        const char *words;
    } durations[] = {
        {offsetof(struct sluice_channel_attr, spin_time), -1, "spin_time -1 1..1000000000"},
        {offsetof(struct sluice_channel_attr, spin_time), INT64_MIN, "spin_time -9223"},
        {offsetof(struct sluice_channel_attr, spin_time), SLUICE_S(1) + 1, "spin_time 1000000001"},
        {offsetof(struct sluice_channel_attr, spin_time), SLUICE_FOREVER, "spin_time 9223"},
        {offsetof(struct sluice_channel_attr, keepalive), -1, "keepalive -1 1000000..3600"},
        {offsetof(struct sluice_channel_attr, keepalive), 999999, "keepalive 999999"},
        {offsetof(struct sluice_channel_attr, keepalive), SLUICE_S(3600) + 1, "keepalive 36000"},
        {offsetof(struct sluice_channel_attr, keepalive), SLUICE_FOREVER, "keepalive 9223"},
    };
    for (size_t i = 0; i < COUNT(durations); i++) {
        struct sluice_channel_attr attr = {.size = sizeof(attr)};
        memcpy((char *)&attr + durations[i].offset, &durations[i].value, sizeof(int64_t));
        require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL, durations[i].words);
    }
}

TEST_WITH(sides, channel_max_message_out_of_range, ())
{
    struct sluice_channel_attr attr = {.size = sizeof(attr), .max_message = 4095};
    uint64_t most = context_info(sides->contexts[0]).max_message;
    require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL, "max_message 4096");
    attr.max_message = most + 1;
    require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL, "max_message 4096");
    attr.max_message = most;
    sluice_prepared_channel_free(sluice_channel_prepare(sides->pds[0], &attr));
}

TEST_WITH(sides, channel_psn_out_of_range, ())
{
    struct sluice_channel_attr attr = *ATTR(.flags = SLUICE_CHANNEL_PSN, .psn = 0x1000000);
    require_null(sluice_channel_prepare(sides->pds[0], &attr), EINVAL, "psn 16777216 0 16777215");
    require_null(sluice_multichannel_prepare(sides->pds[0], 3, &attr), EINVAL, "psn");
}

/* Every limit itself is legal. */
TEST(channel_fields_at_their_limits)
{
    struct sluice_channel_attr least =
        *ATTR(.send_depth = 1, .receive_depth = 1, .max_sge = 1, .max_inline = 1,
              .access = SLUICE_ACCESS_NONE, .read_depth = 1, .ack_timeout = 1, .retry_count = 1,
              .rnr_timer = 1, .rnr_retry = 1, .flags = SLUICE_CHANNEL_PSN, .psn = 0,
              .path_mtu = 256, .pkey = device_is_soft() ? 1 : 0x7fff, .service_level = 1,
              .traffic_class = 1, .flow_label = 1, .hop_limit = 1, .wait_mode = SLUICE_WAIT_SPIN,
              .spin_time = 1, .max_message = 4096);
    struct sluice_channel_attr most = {.size = sizeof(most),
                                       /*
                                        * On rxe, half a completion queue of 32767 has room for
                                        * this.
                                        */
                                       .send_depth = device_is_soft() ? 16384 : 16383,
                                       .receive_depth = device_is_soft() ? 16384 : 16383,
                                       .max_sge = 32,
                                       .max_inline = device_is_soft() ? 1024 : 64,
                                       .access = SLUICE_ACCESS_REMOTE_READ,
                                       .read_depth = device_is_soft() ? 128 : 16,
                                       .ack_timeout = 31,
                                       .retry_count = 6,
                                       .rnr_timer = 31,
                                       .rnr_retry = 7,
                                       .flags = SLUICE_CHANNEL_PSN | SLUICE_CHANNEL_GLOBAL,
                                       .psn = 0xffffff,
                                       .path_mtu = device_is_soft() ? 4096 : 1024,
                                       .pkey = 0xffff,
                                       .service_level = 15,
                                       .traffic_class = 255,
                                       .flow_label = 0xfffff,
                                       .hop_limit = 255,
                                       .path_bits = device_is_soft() ? 127 : 0,
                                       .wait_mode = SLUICE_WAIT_EVENT,
                                       .spin_time = SLUICE_S(1)};
    struct pair pair;
    pair_open(&pair, &least);
    pair_works(&pair);
    pair_close(&pair);
    pair_open(&pair, &most);
    pair_works(&pair);
    pair_close(&pair);
}

/* Fields of 0, where 0 selects the default. */
TEST(channel_fields_that_are_zero)
{
    struct sluice_channel_attr attr =
        *ATTR(.max_inline = SLUICE_ZERO, .ack_timeout = SLUICE_ZERO, .retry_count = SLUICE_ZERO,
              .rnr_timer = SLUICE_ZERO, .rnr_retry = SLUICE_ZERO);
    struct pair pair;
    pair_open(&pair, &attr);
    pair_works(&pair);
    struct sluice_channel_info info = channel_info(pair.channels[0]);
    require_equal(info.max_inline, 0, info.ack_timeout, 0, info.retry_count, 0, info.rnr_timer, 0,
                  info.rnr_retry, 0);
    struct memory memory = side_memory(&pair.sides, 0, 8);
    struct sluice_sge sge = memory_sge(&memory, 0, 1);
    struct sluice_request request = request_of(SLUICE_OP_SEND, 0, &sge);
    request.flags = SLUICE_INLINE;
    require_error(sluice_channel_submit(pair.channels[0], &request, 1, DEADLINE, NULL), -E2BIG,
                  "max_inline is 0");
    pair_close(&pair);
    struct sluice_multichannel *loop;
    sides_open(&pair.sides);
    loop = loop_open(pair.sides.pds[0], 2, &attr);
    sluice_multichannel_close(loop);
    sides_close(&pair.sides);
}

/* The query shows the length in use. */
TEST(staging_is_shown, .times = 2)
{
    struct pair pair;
    pair_open(&pair, ATTR(.staging = _i == 0 ? 0 : 100));
    require_equal(channel_info(pair.channels[0]).staging, _i == 0 ? 0 : 128);
    pair_close(&pair);
}

/* Attributes of a newer program: longer, and zero in the fields unknown to this library. */
TEST_WITH(sides, channel_attr_of_another_version, ())
{
    struct {
        struct sluice_channel_attr attr;
        uint32_t newer[4];
    } longer = {.attr = {.size = sizeof(longer)}};
    struct sluice_channel_attr shorter = {.size = 144 - 1};
    struct sluice_prepared_channel *prepared =
        made(sluice_channel_prepare(sides->pds[0], &longer.attr));
    sluice_prepared_channel_free(prepared);
    longer.newer[3] = 0x01000000;
    require_null(sluice_channel_prepare(sides->pds[0], &longer.attr), E2BIG, "");
    require_null(sluice_multichannel_prepare(sides->pds[0], 1, &longer.attr), E2BIG, "");
    longer.newer[3] = 0;
    longer.newer[0] = 1;
    require_null(sluice_channel_prepare(sides->pds[0], &longer.attr), E2BIG, "");

    /* No version was shorter than 1.0, nor as short as a pointer. */
    require_null(sluice_channel_prepare(sides->pds[0], &shorter), EINVAL, "size");
    shorter.size = sizeof(&shorter);
    require_null(sluice_channel_prepare(sides->pds[0], &shorter), EINVAL, "size");
    shorter.size = 0;
    require_null(sluice_channel_prepare(sides->pds[0], &shorter), EINVAL, "size");
    shorter.size = 3;
    require_null(sluice_channel_prepare(sides->pds[0], &shorter), EINVAL, "size");
}

TEST_WITH(sides, numbers_of_peers, ())
{
    require_null(sluice_multichannel_prepare(sides->pds[0], SLUICE_MAX_PEERS + 1, NULL), EINVAL,
                 "0 65536");
    /* Peers may be added later. */
    sluice_prepared_multichannel_free(made(sluice_multichannel_prepare(sides->pds[0], 0, NULL)));
    require_null(sluice_multichannel_prepare(sides->pds[0], UINT32_MAX, NULL), EINVAL, "65536");
    require_null(sluice_multichannel_prepare(NULL, 1, NULL), EINVAL, "");
    require_null(sluice_channel_prepare(NULL, NULL), EINVAL, "");
}

/* Fields of lazy nodes are refused in others. */
TEST_WITH(sides, node_fields, ())
{
    static const uint32_t none = 0;
    struct {
        struct sluice_node_attr attr;
        uint64_t newer;
    } longer = {.attr = {.size = sizeof(longer)}};
    struct sluice_node_attr attr = {.size = sizeof(attr), .connect = 2};
    struct sluice_pd *pd = sides->pds[0];
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "connect");
    attr = (struct sluice_node_attr){.size = sizeof(attr), .barrier = 4};
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "barrier");
    attr = (struct sluice_node_attr){.size = sizeof(attr), .max_connections = 1};
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "max_connections lazy");
    attr = (struct sluice_node_attr){.size = sizeof(attr), .max_ranks = 1};
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "max_ranks lazy");
    attr.connect = SLUICE_NODE_CONNECT_LAZY;
    attr.max_ranks = SLUICE_MAX_PEERS + 1;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "max_ranks 65537 0..65536");
    attr.max_ranks = 2;
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "1 rank max_ranks 2");
    attr = (struct sluice_node_attr){
        .size = sizeof(attr), .connect = SLUICE_NODE_CONNECT_ALL, .peers = &none, .peer_count = 1};
    require_null(sluice_node_prepare(pd, 0, 1, &attr), EINVAL, "peers lazy");
    sluice_prepared_node_free(made(sluice_node_prepare(pd, 0, 1, &longer.attr)));
    longer.newer = 1;
    require_null(sluice_node_prepare(pd, 0, 1, &longer.attr), E2BIG, "");
}

TEST(context_fields)
{
    struct {
        struct sluice_context_attr attr;
        uint64_t newer;
    } longer = {.attr = {.size = sizeof(longer)}};
    struct sluice_context_attr attr = {.size = sizeof(attr), .flags = 4};
    const char *device = test_device();
    require_null(sluice_context_open(device, &attr), EINVAL, "flags");
    attr = (struct sluice_context_attr){.size = sizeof(attr), .gid_index = 1};
    require_null(sluice_context_open(device, &attr), EINVAL,
                 "gid_index 1 SLUICE_CONTEXT_GID_INDEX");
    attr.flags = SLUICE_CONTEXT_GID_INDEX;
    attr.gid_index = 256;
    require_null(sluice_context_open(device, &attr), EINVAL, "gid_index 256 0 255");
    attr = (struct sluice_context_attr){.size = 3};
    require_null(sluice_context_open(device, &attr), EINVAL, "size");
    struct sluice_context *context = made(sluice_context_open(device, &longer.attr));
    sluice_context_close(context);
    longer.newer = 1;
    require_null(sluice_context_open(device, &longer.attr), E2BIG, "");
}

TEST(context_address)
{
    static const char *const wrong[] = {"nonsense", "1.2.3.4.5", "localhost", "127.0.0.1:1"};
    struct sluice_context_attr attr = {.size = sizeof(attr)};
    int fds = count_fds();
    if (!device_is_soft()) {
        return; /* it has no addresses */
    }
    for (size_t i = 0; i < COUNT(wrong); i++) {
        attr.address = wrong[i];
        require_null(sluice_context_open("soft", &attr), EINVAL, "address");
    }
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
    attr.address = "127.0.0.1";
    struct sluice_context *context = made(sluice_context_open("soft", &attr));
    sluice_context_close(context);
    /* The same from the environment, which the attribute overrides. */
    setenv("SLUICE_TCP_ADDRESS", "nonsense", 1);
    context = made(sluice_context_open("soft", &attr));
    sluice_context_close(context);
    require_null(sluice_context_open("soft", NULL), EINVAL, "SLUICE_TCP_ADDRESS");
    setenv("SLUICE_TCP_ADDRESS", "127.0.0.1", 1);
    context = made(sluice_context_open("soft", NULL));
    sluice_context_close(context);
    unsetenv("SLUICE_TCP_ADDRESS");
}

TEST(unknown_device)
{
    int fds = count_fds();
    require_null(sluice_context_open("no-such-device", NULL), ENODEV, "no-such-device soft");
    require_null(sluice_context_open("", NULL), EINVAL, "element 1 empty");
    setenv("SLUICE_DEVICE", "neither-this", 1);
    require_null(sluice_context_open(NULL, NULL), ENODEV, "neither-this soft");
    unsetenv("SLUICE_DEVICE");
    require(settle_fds(fds) == fds, "%d fds, were %d", count_fds(), fds);
}

/* An object of each kind about which the library returns information. */
struct objects {
    struct pair pair;
    struct sluice_multichannel *loop;
    struct sluice_device_list *list;
    uint32_t with_gids; /* index of a device that has GIDs, or the count */
};

/* A function that has the library write an info about one of them. */
#define WRITER(name, call)                                                                     \
    static int write_##name(const struct objects *objects __attribute__((unused)), void *info) \
    {                                                                                          \
        return call;                                                                           \
    }
WRITER(context, sluice_context_query(objects->pair.sides.contexts[0], info))
WRITER(device, sluice_device_list_info(objects->list, 0, info))
WRITER(port,
       sluice_device_list_port(objects->list, sluice_device_list_count(objects->list) - 1, 1, info))
WRITER(gid, sluice_device_list_gid(objects->list, objects->with_gids, 0, info))
WRITER(channel, sluice_channel_query(objects->pair.channels[0], info))
WRITER(peer, sluice_multichannel_peer_query(objects->loop, 1, info))
WRITER(error, sluice_channel_error(objects->pair.channels[0], info))
WRITER(peer_error, sluice_multichannel_peer_error(objects->loop, 1, info))
WRITER(counters, sluice_channel_counters(objects->pair.channels[0], info))
WRITER(all_counters, sluice_multichannel_counters(objects->loop, info))
WRITER(peer_counters, sluice_multichannel_peer_counters(objects->loop, 1, info))
WRITER(choice, sluice_device_list_choice(objects->list, 0, test_device(), info))
WRITER(variable, sluice_environment_variable(0, info))

/* Fails in a process that is not a rank. */
static int write_launch(const struct objects *objects __attribute__((unused)), void *info)
{
    setenv("SLUICE_RANK", "0", 1);
    setenv("SLUICE_RANKS", "1", 1);
    return sluice_launch_query(info);
}

/* A struct, its size now and in the first release, and a call that writes it. */
#define WRITTEN(name, first_size, call)              \
    {                                                \
#name, sizeof(struct name), first_size, call \
    }
static const struct written {
    const char *name;
    uint32_t size, first_size;
    int (*call)(const struct objects *objects, void *info);
} writtens[] = {
    WRITTEN(sluice_context_info, 168, write_context),
    WRITTEN(sluice_device_info, 312, write_device),
    WRITTEN(sluice_port_info, 192, write_port),
    WRITTEN(sluice_gid_info, 116, write_gid),
    WRITTEN(sluice_channel_info, 248, write_channel),
    WRITTEN(sluice_channel_info, 248, write_peer),
    WRITTEN(sluice_error, 384, write_error),
    WRITTEN(sluice_error, 384, write_peer_error),
    WRITTEN(sluice_counters, 856, write_counters),
    WRITTEN(sluice_counters, 856, write_all_counters),
    WRITTEN(sluice_counters, 856, write_peer_counters),
    WRITTEN(sluice_choice_info, 320, write_choice),
    WRITTEN(sluice_variable_info, 840, write_variable),
    WRITTEN(sluice_launch_info, 504, write_launch),
};

#define MOST 4096 /* no struct is larger */
#define UNTOUCHED 0xcc

static union {
    uint32_t size;
    uint64_t aligned;
    uint8_t bytes[MOST + 64];
} room;

static void set_size(uint32_t size)
{
    memset(room.bytes, UNTOUCHED, sizeof(room.bytes));
    room.size = size;
}

/*
 * Known fields are written, unknown fields are zeroed, and the bytes behind the struct are
 * unchanged.
 */
static void write_with_size(const struct objects *objects, const struct written *written,
                            uint32_t size)
{
    uint32_t known = size < written->size ? size : written->size;
    set_size(size);
    require_ok(written->call(objects, &room));
    require(room.size == size, "%s: %u, was %u", written->name, room.size, size);
    for (uint32_t at = sizeof(size); at + 8 <= known; at += 4) {
        uint32_t word;
        memcpy(&word, room.bytes + at, sizeof(word));
        require(word != UNTOUCHED * UINT32_C(0x01010101), "%s: byte %u", written->name, at);
    }
    value_check(room.bytes + known, size - known, 0);
    value_check(room.bytes + size, sizeof(room.bytes) - size, UNTOUCHED);
}

static void refuse_size(const struct objects *objects, const struct written *written, uint32_t size,
                        int error)
{
    char words[100];
    snprintf(words, sizeof(words), "%s.size %u", written->name, size);
    set_size(size);
    require_error(written->call(objects, &room), error, words);
    require(room.size == size, "%s: %u, was %u", written->name, room.size, size);
    value_check(room.bytes + sizeof(size), sizeof(room.bytes) - sizeof(size), UNTOUCHED);
}

static void open_objects(struct objects *objects)
{
    memset(objects, 0, sizeof(*objects));
    pair_open(&objects->pair, NULL);
    objects->loop = loop_open(objects->pair.sides.pds[0], 2, NULL);
    objects->list = made(sluice_device_list_get());
    uint32_t count = sluice_device_list_count(objects->list);
    while (objects->with_gids < count && device_info(objects->list, objects->with_gids).gids == 0) {
        objects->with_gids++;
    }
}

/* Programs that were built with an older or a newer header than the library. */
TEST(information_of_another_version)
{
    struct objects objects;
    open_objects(&objects);
    for (size_t i = 0; i < COUNT(writtens); i++) {
        const struct written *written = &writtens[i];
        if (written->call != write_gid ||
            objects.with_gids < sluice_device_list_count(objects.list)) {
            for (uint32_t size = written->first_size; size <= written->size + 24; size += 4) {
                write_with_size(&objects, written, size);
            }
            write_with_size(&objects, written, written->size + 1);
            write_with_size(&objects, written, MOST);
        }
        refuse_size(&objects, written, 0, -EINVAL);
        refuse_size(&objects, written, sizeof(void *), -EINVAL);
        refuse_size(&objects, written, written->first_size - 1, -EINVAL);
        refuse_size(&objects, written, MOST + 1, -E2BIG);
        refuse_size(&objects, written, UINT32_MAX, -E2BIG);
        require_error(written->call(&objects, NULL), -EINVAL, written->name);
    }
    sluice_device_list_free(objects.list);
    sluice_multichannel_close(objects.loop);
    pair_close(&objects.pair);
}

/* Makes an object of attributes of the program. Returns 0, or errno. */
#define GIVER(name, end, make)                                                     \
    static int give_##name(const struct objects *objects __attribute__((unused)),  \
                           const void *attr __attribute__((unused)))               \
    {                                                                              \
        struct sluice_pd *pd __attribute__((unused)) = objects->pair.sides.pds[0]; \
        void *made_of_it = make;                                                   \
        int error = made_of_it == NULL ? errno : 0;                                \
        end(made_of_it);                                                           \
        return error;                                                              \
    }
GIVER(agent, sluice_agent_close, sluice_agent_open(pd, attr))
GIVER(allocator, sluice_allocator_destroy, sluice_allocator_create(pd, 0, attr))
GIVER(buffer_service, sluice_buffer_service_close, sluice_buffer_service_open(&pd, 1, attr))
GIVER(channel, sluice_prepared_channel_free, sluice_channel_prepare(pd, attr))
GIVER(connect, sluice_channel_close, sluice_connect("127.0.0.1:1", pd, NULL, attr, 0))
GIVER(context, sluice_context_close, sluice_context_open(test_device(), attr))
GIVER(exchange, sluice_exchange_close, sluice_exchange_open(attr, DEADLINE))
GIVER(listen, sluice_listener_close, sluice_listen("127.0.0.1:0", attr))
GIVER(mr_cache, sluice_mr_cache_destroy, sluice_mr_cache_create(pd, 0, attr))
GIVER(node, sluice_node_close, sluice_node_open(pd, NULL, attr, DEADLINE))

/* A struct that the program fills, its size in the first release, and a call that takes it. */
static const struct given {
    const char *name;
    uint32_t first_size;
    int (*call)(const struct objects *objects, const void *attr);
} givens[] = {
    {"sluice_agent_attr", 96, give_agent},
    {"sluice_allocator_attr", 32, give_allocator},
    {"sluice_buffer_service_attr", 24, give_buffer_service},
    {"sluice_channel_attr", 144, give_channel},
    {"sluice_connect_attr", 32, give_connect},
    {"sluice_context_attr", 24, give_context},
    {"sluice_exchange_attr", 48, give_exchange},
    {"sluice_listen_attr", 24, give_listen},
    {"sluice_mr_cache_attr", 16, give_mr_cache},
    {"sluice_node_attr", 40, give_node},
};

/* A program that was built with the first release is served, whatever fields came since. */
TEST(attributes_of_the_first_release)
{
    struct objects objects;
    open_objects(&objects);
    setenv("SLUICE_RANK", "0", 1);
    setenv("SLUICE_RANKS", "1", 1);
    for (size_t i = 0; i < COUNT(givens); i++) {
        const struct given *given = &givens[i];
        char words[100];
        snprintf(words, sizeof(words), "%s.size %u too small", given->name, given->first_size - 1);
        set_size(given->first_size - 1);
        require_error(-given->call(&objects, &room), -EINVAL, words);
        memset(room.bytes, 0, sizeof(room.bytes));
        room.size = given->first_size;
        int error = given->call(&objects, &room);
        require(error != EINVAL && error != E2BIG, "%s: %s", given->name, sluice_last_error());
        memset(room.bytes + given->first_size, UNTOUCHED, sizeof(room.bytes) - given->first_size);
        require(given->call(&objects, &room) == error, "%s: %s", given->name, sluice_last_error());
    }
    sluice_device_list_free(objects.list);
    sluice_multichannel_close(objects.loop);
    pair_close(&objects.pair);
}

int main(void)
{
    static const struct tests cases[] = {{"attributes", WIRE_SELF, 30}};
    return run_groups("attributes", cases, COUNT(cases));
}
