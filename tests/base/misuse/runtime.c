/* SPDX-License-Identifier: MIT */
/* Failures of devices, peers, resources and time in a correct program. */
#include "mistakes.h"

static int newer_attributes(struct world *world)
{
    struct {
        struct sluice_channel_attr attr;
        uint64_t unknown;
    } newer = {.unknown = 1};
    newer.attr.size = sizeof(newer);
    return result_of(sluice_channel_prepare(world->sides.pds[0], &newer.attr));
}

/* Opens a channel to itself with queues of 2. */
static struct sluice_multichannel *narrow_loop(struct world *world)
{
    world->attr.send_depth = 2;
    world->attr.max_message = 4096;
    return loop_open(world->sides.pds[0], 2, &world->attr);
}

static int too_many_parts(struct world *world)
{
    struct memory memory;
    memory_open(&memory, world->sides.pds[0], (size_t)3 * 4096);
    struct sluice_sge sge = memory_sge(&memory, 0, memory.length);
    struct sluice_remote_mr remote = memory_remote(&memory, 0, memory.length);
    return sluice_multichannel_post_write(narrow_loop(world), 0, &sge, 1, &remote, DEADLINE, NULL);
}

static int send_too_long(struct world *world)
{
    struct memory memory;
    memory_open(&memory, world->sides.pds[0], (size_t)3 * 4096);
    struct sluice_sge sge = memory_sge(&memory, 0, memory.length);
    return sluice_multichannel_send(narrow_loop(world), 0, &sge, 1, DEADLINE);
}

static int wrong_key(struct world *world)
{
    world->remote.rkey ^= 0x5a5a5a5a;
    return sluice_channel_write(world->pair.channels[0], &world->sge, 1, &world->remote, DEADLINE);
}

static int no_room(struct world *world)
{
    struct sluice_multichannel *loop = narrow_loop(world);
    int result = 0;
    /* The peer posts no receives, so the sends stay in flight. */
    for (int i = 0; i < 3 && result == 0; i++) {
        result = sluice_multichannel_post_send(loop, 0, &world->sge, 1, DEADLINE, NULL);
    }
    return result;
}

static int memory_in_use(struct world *world)
{
    world->request.opcode = SLUICE_OP_RECEIVE;
    post(world->pair.channels[0], &world->request);
    return sluice_mr_deregister(world->memory.mr);
}

static int unseen_in_strict_scope(struct world *world)
{
    struct sluice_scope_report report = {.size = sizeof(report), .flags = SLUICE_SCOPE_STRICT};
    struct sluice_scope *scope = begin_scope(world);
    require_ok(sluice_scope_post_write(scope, 0, &world->sge, 1, &world->remote, NULL));
    return sluice_scope_end(scope, &report);
}

MAKES(unmapped_memory, sluice_mr_register, world->sides.pds[0], (void *)4096, 4096, 0);

static int woken(struct world *world)
{
    world->request.opcode = SLUICE_OP_RECEIVE;
    world->handle = post(world->pair.channels[0], &world->request);
    require_ok(sluice_channel_wake(world->pair.channels[0]));
    return sluice_channel_wait(world->pair.channels[0], &world->handle, DEADLINE,
                               &world->completion);
}

PREPARES(more_than_the_device_can, world->attr.max_message = UINT64_MAX);

static int no_address(struct world *world)
{
    world->context_attr.address = "nowhere";
    return result_of(sluice_context_open("soft", &world->context_attr));
}

/* The address may come from the peer, so the error does not blame the caller. */
static int remote_not_aligned(struct world *world)
{
    world->remote.addr += 4;
    return sluice_channel_fetch_add(world->pair.channels[0], &world->sge, &world->remote, 1,
                                    DEADLINE);
}

MAKES(no_device, sluice_context_open, "nothing", NULL);
RETURNS(nothing_to_wait_for, sluice_channel_next, world->pair.channels[0], DEADLINE,
        &world->completion);
MAKES(too_much_memory, sluice_mr_alloc, world->sides.pds[0], SIZE_MAX / 2 + 1, 0);

static int failed_peer(struct world *world)
{
    require_ok(sluice_channel_shutdown(world->pair.channels[0], DEADLINE));
    return sluice_channel_send(world->pair.channels[0], &world->sge, 1, DEADLINE);
}

static int failed_peer_posted(struct world *world)
{
    require_ok(sluice_channel_shutdown(world->pair.channels[0], DEADLINE));
    return sluice_channel_post_send(world->pair.channels[0], &world->sge, 1, DEADLINE, NULL);
}

/* A peer that gives no right to its memory cannot be probed. */
static int no_way_to_ask(struct world *world)
{
    world->attr.access = SLUICE_ACCESS_NONE;
    return sluice_multichannel_wait_connected(loop_open(world->sides.pds[0], 2, &world->attr),
                                              DEADLINE);
}

static int no_histograms(struct world *world)
{
    struct sluice_histogram histogram = {.size = sizeof(histogram)};
    return sluice_channel_histogram(world->pair.channels[0], SLUICE_OP_SEND, &histogram);
}

static int no_endpoint(struct world *world)
{
    struct sluice_prepared_channel *prepared = sluice_channel_prepare(world->sides.pds[0], NULL);
    struct sluice_endpoint endpoint;
    memset(&endpoint, 0x55, sizeof(endpoint));
    return result_of(sluice_prepared_channel_handshake(prepared, &endpoint));
}

static int no_memory_handle(struct world *world)
{
    uint8_t bytes[SLUICE_REMOTE_MR_BYTES] = {0};
    return sluice_remote_mr_unpack(bytes, &world->remote);
}

static int remote_too_short(struct world *world)
{
    world->remote.length = 3;
    return sluice_channel_read(world->pair.channels[0], &world->sge, 1, &world->remote, DEADLINE);
}

RETURNS(slice_outside, sluice_remote_mr_slice, &world->remote, WORLD_BYTES, 1, &world->remote);

static int no_such_device(struct world *world)
{
    struct sluice_device_info info = {.size = sizeof(info)};
    struct sluice_device_list *list = sluice_device_list_get();
    (void)world;
    int result = sluice_device_list_info(list, 99, &info);
    sluice_device_list_free(list);
    return result;
}

/* The endpoint of a peer that this one was connected to before, and that was not reset. */
static int stale_endpoint(struct world *world)
{
    struct sluice_endpoint endpoints[2];
    struct sluice_endpoint remotes[2];
    struct sluice_endpoint unused;
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(world->sides.pds[0], 2, NULL);
    require_ok(sluice_prepared_multichannel_endpoints(prepared, endpoints, 2));
    remotes[0] = endpoints[1];
    remotes[1] = endpoints[0];
    struct sluice_multichannel *loop = sluice_prepared_multichannel_handshake(prepared, remotes, 2);
    require_ok(sluice_multichannel_wait_connected(loop, DEADLINE));
    require_ok(sluice_multichannel_peer_reset(loop, 0, &unused));
    return sluice_multichannel_peer_handshake(loop, 0, &remotes[0]);
}

/* A shutdown fails the peer for certain; a peer that fails by itself may not be noticed yet. */
static int handshake_of_failed_peer(struct world *world)
{
    struct sluice_endpoint endpoint;
    memset(&endpoint, 0, sizeof(endpoint));
    require_ok(sluice_multichannel_shutdown(world->loop, DEADLINE));
    return sluice_multichannel_peer_handshake(world->loop, 0, &endpoint);
}

/* So many results came since that its place was reused. */
static int old_handle(struct world *world)
{
    struct sluice_multichannel *loop = narrow_loop(world);
    struct sluice_remote_mr own = memory_remote(&world->memory, 8, 8);
    require_ok(
        sluice_multichannel_post_write(loop, 0, &world->sge, 1, &own, DEADLINE, &world->handle));
    for (int i = 0; i < 20; i++) {
        require_ok(sluice_multichannel_flush(loop, DEADLINE));
        require_ok(sluice_multichannel_post_write(loop, 0, &world->sge, 1, &own, DEADLINE, NULL));
    }
    return sluice_multichannel_wait(loop, &world->handle, 0, &world->completion);
}

/* A detached handle looks like an old one. */
static int detached_handle(struct world *world)
{
    world->request.opcode = SLUICE_OP_RECEIVE;
    world->handle = post(world->pair.channels[0], &world->request);
    require_ok(sluice_channel_detach(world->pair.channels[0], &world->handle));
    return sluice_channel_cancel(world->pair.channels[0], &world->handle, &world->completion);
}

static int timeout(struct world *world)
{
    world->request.opcode = SLUICE_OP_RECEIVE;
    world->handle = post(world->pair.channels[0], &world->request);
    return sluice_channel_wait(world->pair.channels[0], &world->handle, 0, &world->completion);
}

RETURNS(deadline, sluice_channel_receive, world->pair.channels[0], &world->sge, 1, SLUICE_MS(1),
        NULL);

/* Rows of the page. */
#define NO_LEASE "memory of a peer after its lease, or without the right"
#define NO_BUFFER "a buffer that was released, or not published for this"
#define NO_OWNER "a buffer whose owner is gone, or whose service was closed"
#define NO_ADDRESS "an address that is none"
#define NOT_CONNECTED "a peer that has failed or is not connected"
#define NO_PROTOCOL "bytes of a peer that are no endpoint, or no handle of memory"
#define TOO_SHORT "a remote range that is too short"
#define NO_REQUEST "a handle that is detached, or whose place was needed"
#define TIMED_OUT "a timeout or a deadline that passed"

const struct mistake runtime_errors[] = {
    {"E2BIG", "attributes of a newer version", "sluice_channel_attr not know", newer_attributes},
    {"E2BIG", "attributes of a newer version", "request 0 blocks not all 0", newer_blocks},
    {"E2BIG", "a send longer than max_message", "12288 max_message 4096", send_too_long},
    {"E2BIG", "a message that is longer than a peer of an agent takes", "101 bytes",
     message_too_long_for_a_peer},
    {"E2BIG", "a request of more parts than the queues have room", "3 parts", too_many_parts},
    {"E2BIG", "a request of more parts than the queues have room", "3 parts",
     blocks_deeper_than_the_queue},
    {"E2BIG", "a list that is longer than the queues are deep", "2 peer 0", too_deep_a_list},
    {"E2BIG", "blocks in more pieces than elements, and no staging buffer",
     "max_sge 4 staging is 0", blocks_without_staging},
    {"EACCES", "how a request ended: all errno values of classes", "write access", wrong_key},
    {"EACCES", "a secret that others may read, or that the other side has not", "mode 0644",
     secret_for_all},
    {"EACCES", NO_LEASE, "lease is over", late_use_of_memory},
    {"EACCES", NO_LEASE, "our rights", right_that_was_not_given},
    {"EACCES", NO_BUFFER, "not published for a read", buffer_not_for_this},
    {"EACCES", NO_BUFFER, "released", buffer_that_was_released},
    {"EADDRINUSE", "a port at which somebody else listens", "cannot listen", port_in_use},
    {"EADDRNOTAVAIL", "an address that is not of this host", "cannot listen 240.0.0.1",
     address_of_nobody},
    {"EAGAIN", "no room now", "no room", no_room},
    {"EAGAIN", "a thread that cannot be started", "thread of the agent SLUICE_AGENT_NO_THREAD",
     thread_beyond_the_limit},
    {"EBUSY", "memory that posted work names", "posted work", memory_in_use},
    {"EBUSY", "memory that posted work names", "posted work", block_in_use},
    {"EBUSY", "an allocator whose blocks are not all free", "1 block freed first",
     allocator_with_a_block},
    {"EBUSY", "a cache of registrations that a channel has", "1 channel", cache_of_a_channel},
    {"EBUSY", "results that a strict scope found unseen", "1", unseen_in_strict_scope},
    {"EBUSY", "a list that is in flight", "in flight", busy_list},
    {"EBUSY", "a list that is in flight", "in flight", result_in_flight},
    {"EBUSY", "a batch that is in flight", "in flight", batch_in_flight},
    {"EBUSY", "a second address for an agent", "listens already", second_listen_of_an_agent},
    {"ECONNABORTED", "a connect that the other side could not go on with", "could not connect wake",
     who_gave_up},
    {"ECONNREFUSED", "a listener that is not there, or refuses", "refused", nobody_listens},
    {"ECONNREFUSED", "a listener that is not there, or refuses", "buffer 1 its owner refused",
     owner_that_is_not_there},
    {"ECONNRESET", "a connect whose other side has left", "left", who_has_left},
    {"EDQUOT", "more memory than a peer's quota", "quota", more_than_a_quota},
    {"EFAULT", "memory to register that is not mapped", "not mapped", unmapped_memory},
    {"EINTR", "a wake", "wake", woken},
    {"EINTR", "a wake", "wake", woken_listener},
    {"EINTR", "a wake", "wake", woken_agent},
    {"EINVAL", "an attribute or a read that the device or its port cannot do", "max_message",
     more_than_the_device_can},
    {"EINVAL", NO_ADDRESS, "nowhere address", no_address},
    {"EINVAL", NO_ADDRESS, "127.0.0.1 host:port", no_port_to_listen},
    {"EINVAL", NO_ADDRESS, "::1:5 host:port", no_port_to_connect},
    {"EINVAL", "a remote word that is not aligned to 8", "remote.addr multiple of 8",
     remote_not_aligned},
    {"EINVAL", "a handshake of a peer that has failed", "peer 0 failed reset",
     handshake_of_failed_peer},
    {"EINVAL", "a file that has no secret of a possible length", "secret 5 bytes 16 4096",
     secret_too_short},
    {"EINVAL", "another number of channels than the other side wants", "2 channels 1",
     wrong_number_to_accept},
    {"ENOBUFS", "more peers than an agent may have", "as many peers 1",
     more_peers_than_an_agent_takes},
    {"ENOBUFS", "plain memory that a cache has no room for", "request 1 element 0 1 regions",
     no_room_in_cache},
    {"ENOBUFS", "more memory than an allocator may have", "max_bytes", more_than_an_allocator_may},
    {"ENODEV", "a device that does not exist", "nothing", no_device},
    {"ENOENT", "nothing to wait for", "nothing", nothing_to_wait_for},
    {"ENOENT", "nothing to wait for", "never posted", batch_never_posted},
    {"ENOENT", "a name that is not known", "nobody.invalid", unknown_name},
    {"ENOENT", "the address of an agent that does not listen", "not listen",
     agent_that_does_not_listen},
    {"ENOENT", "a region that the peer does not have", "no region 5",
     region_that_a_peer_does_not_have},
    {"ENOMEM", "too little memory, or files, or another resource", "memory", too_much_memory},
    {"ENOTCONN", NOT_CONNECTED, "peer 0", failed_peer},
    {"ENOTCONN", NOT_CONNECTED, "peer 0", failed_peer_posted},
    {"ENOTCONN", NOT_CONNECTED, "peer lost", peer_of_an_agent_that_left},
    {"ENOTCONN", NOT_CONNECTED, "owner of buffer 1", owner_that_is_not_connected},
    {"EOPNOTSUPP", "what transport, device or kernel cannot do", "sign of life neither",
     no_way_to_ask},
    {"EOPNOTSUPP", "the histogram of what was prepared without", "SLUICE_CHANNEL_HISTOGRAMS",
     no_histograms},
    {"EPROTO", NO_PROTOCOL, "endpoint", no_endpoint},
    {"EPROTO", NO_PROTOCOL, "handle", no_memory_handle},
    {"EPROTO", NO_PROTOCOL, "handle damaged", handle_that_was_damaged},
    {"EPROTO", "at an address something that is no listener of sluice", "no listener of sluice",
     other_kind_of_listener},
    {"ERANGE", TOO_SHORT, "remote 3", remote_too_short},
    {"ERANGE", TOO_SHORT, "outside 4096", slice_outside},
    {"ERANGE", TOO_SHORT, "request 0 remote block 1 8 bytes 16 23", remote_block_outside},
    {"ERANGE", "bytes outside of a buffer", "read of 8 bytes at offset 57 buffer 1 64 bytes",
     beyond_a_buffer},
    {"ERANGE", "no such entry in what a device has", "99", no_such_device},
    {"ERANGE", "too little room for a text", "address 8 bytes", no_room_for_address},
    {"ESTALE", "an endpoint of an earlier connection", "stale generation", stale_endpoint},
    {"ESTALE", NO_REQUEST, "handle place", old_handle},
    {"ESTALE", NO_REQUEST, "handle place", detached_handle},
    {"ESTALE", "a list whose peer was reset, or whose channel was closed", "closed",
     list_of_no_channel},
    {"ESTALE", NO_OWNER, "its owner is gone", owner_that_is_another},
    {"ESTALE", NO_OWNER, "service closed", service_of_a_buffer_that_was_closed},
    {"ETIMEDOUT", TIMED_OUT, "pending", timeout},
    {"ETIMEDOUT", TIMED_OUT, "deadline", deadline},
    {"ETIMEDOUT", TIMED_OUT, "1 of the 1 receive peer 0", list_in_flight},
    {"ETIMEDOUT", TIMED_OUT, "nobody yet", nobody_comes},
    {"ETIMEDOUT", TIMED_OUT, "buffer 1 deadline 0 of 8 bytes", no_time_for_a_buffer},
    {"ETIMEDOUT", TIMED_OUT, "no message yet", nothing_from_an_agent},
    {NULL, NULL, NULL, NULL},
};

bool is_of_wire(const struct mistake *mistake)
{
    static int (*const calls[])(struct world * world) = {
        wrong_key,
        block_in_use,
        busy_list,
        result_in_flight,
        list_in_flight,
        memory_in_use,
        failed_peer,
        timeout,
        failed_peer_posted,
        detached_handle,
        deadline,
        woken,
        unseen_in_strict_scope,
        buffer_that_was_released,
    };
    for (size_t i = 0; i < COUNT(calls); i++) {
        if (calls[i] == mistake->call) {
            return true;
        }
    }
    return false;
}
