/* SPDX-License-Identifier: MIT */
/* Mistakes of a program. */
#include "mistakes.h"

#include <sys/mman.h>

const char *called;

RETURNS(submit_request, sluice_channel_submit, world->pair.channels[0], &world->request, 1,
        DEADLINE, &world->completion);

/* Structs and their fields. */

PREPARES(no_size, world->attr.size = 0);
RETURNS(no_size_of_info, sluice_channel_query, world->pair.channels[0],
        &(struct sluice_channel_info){.size = 0});
RETURNS(no_size_of_error, sluice_channel_error, world->pair.channels[0],
        &(struct sluice_error){.size = 0});
PREPARES(wild_size, world->attr.size = 0x7fffffff);
RETURNS(wild_size_of_counters, sluice_channel_counters, world->pair.channels[0],
        &(struct sluice_counters){.size = 0xcccccccc});
PREPARES(attribute_out_of_range, world->attr.send_depth = 1000000);
PREPARES(attribute_below_range, world->attr.max_message = 1);
PREPARES(mode_out_of_range, world->attr.wait_mode = 9);

static int gid_out_of_range(struct world *world)
{
    world->context_attr.flags = SLUICE_CONTEXT_GID_INDEX;
    world->context_attr.gid_index = 256;
    return result_of(CALL(sluice_context_open)(test_device(), &world->context_attr));
}

RETURNS(level_out_of_range, sluice_log_set, 99, NULL, NULL);
SUBMITS(unknown_flag, world->request.flags = UINT32_C(1) << 30);
MAKES(unknown_right, sluice_mr_register, world->sides.pds[0], world->memory.bytes, 8,
      UINT32_C(1) << 20);
MAKES(right_without_its_other, sluice_mr_register, world->sides.pds[0], world->memory.bytes, 8,
      SLUICE_ACCESS_REMOTE_WRITE);
PREPARES(field_without_its_flag, world->attr.psn = 7);
SUBMITS(reserved_field, world->request.reserved = 1);
SUBMITS(reserved_operand, world->request.operand[1] = 1);

/* Numbers. */

RETURNS(negative_deadline, sluice_channel_send, world->pair.channels[0], &world->sge, 1, -1);
RETURNS(negative_timeout, sluice_channel_flush, world->pair.channels[0], -1);
MAKES(negative_deadline_of_scope, sluice_channel_scope_begin, world->pair.channels[0], -1);
RETURNS(too_many_completions, sluice_channel_poll, world->pair.channels[0], &world->completion,
        UINT32_MAX);
MAKES(too_many_peers, sluice_multichannel_prepare, world->sides.pds[0], SLUICE_MAX_PEERS + 1, NULL);

static int wrong_number_of_endpoints(struct world *world)
{
    struct sluice_endpoint endpoints[3];
    struct sluice_prepared_multichannel *prepared =
        sluice_multichannel_prepare(world->sides.pds[0], 2, NULL);
    int result = CALL(sluice_prepared_multichannel_endpoints)(prepared, endpoints, 3);
    sluice_prepared_multichannel_free(prepared);
    return result;
}

SUBMITS(unknown_operation, world->request.opcode = 77);
RETURNS(wrong_operation, sluice_multichannel_gather_read, world->loop, &world->request, 1, DEADLINE,
        NULL);
RETURNS(no_such_peer, sluice_multichannel_send, world->loop, 2, &world->sge, 1, DEADLINE);
RETURNS(no_such_peer_to_ask, sluice_multichannel_peer_state, world->loop, 2);
SUBMITS(too_many_elements, world->request.sge_count = 33);
SUBMITS(forgotten_element, world->request.sges = NULL);
SUBMITS(list_of_no_elements, world->request.sge_count = 0);
SUBMITS(element_without_count, world->request.sges = NULL; world->request.sge_count = 0;
        world->request.sge = world->sge);
SUBMITS(too_many_inline_bytes, world->sge.length = WORLD_BYTES;
        world->request.flags = SLUICE_INLINE);

static int request_too_long(struct world *world)
{
    struct sluice_sge sges[2] = {{.addr = 4096, .length = UINT32_MAX},
                                 {.addr = 4096, .length = UINT32_MAX}};
    world->request.sges = sges;
    world->request.sge_count = 2;
    return submit_request(world);
}

/* A device would pin so much memory. */
static int element_too_long(struct world *world)
{
    size_t length = (size_t)UINT32_MAX + 1;
    struct sluice_context *context = made(sluice_context_open("soft", NULL));
    struct sluice_pd *pd = made(sluice_pd_alloc(context));
    void *space = mmap(NULL, length, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct sluice_mr *mr = made(sluice_mr_register(pd, space, length, 0));
    return CALL(sluice_mr_sge)(mr, 0, length, &world->sge);
}

RETURNS(receive_without_a_pool, sluice_multichannel_post_receive_any, world->loop, &world->request,
        1, NULL);
PREPARES(pool_of_a_channel, world->attr.receive_pool = 4);

static int receive_of_one_peer(struct world *world)
{
    world->attr.receive_pool = 4;
    struct sluice_multichannel *loop = loop_open(world->sides.pds[0], 2, &world->attr);
    return CALL(sluice_multichannel_receive)(loop, 0, &world->sge, 1, DEADLINE, NULL);
}

/* Memory. */

MAKES(memory_of_no_bytes, sluice_mr_register, world->sides.pds[0], world->memory.bytes, 0, 0);

static int memory_that_wraps(struct world *world)
{
    void *last = (void *)(UINTPTR_MAX - 4095);
    return result_of(CALL(sluice_mr_register)(world->sides.pds[0], last, 8192, 0));
}

MAKES(closed_descriptor, sluice_mr_register_dmabuf, world->sides.pds[0], 1000000, 0, 4096, 0, 0);
RETURNS(element_outside, sluice_mr_sge, world->memory.mr, WORLD_BYTES - 1, 2, &world->sge);
SUBMITS(old_value_of_wrong_size, world->request.opcode = SLUICE_OP_FETCH_ADD;
        world->request.remote = world->remote; world->sge.length = 4);
SUBMITS(old_value_not_aligned, world->request.opcode = SLUICE_OP_FETCH_ADD;
        world->request.remote = world->remote; world->sge.addr += 4);

/* State. */

static int handshake_of_connected_peer(struct world *world)
{
    struct sluice_endpoint endpoint;
    memset(&endpoint, 0, sizeof(endpoint));
    return CALL(sluice_multichannel_peer_handshake)(world->loop, 0, &endpoint);
}

RETURNS(null_scope, sluice_scope_post, NULL, &world->request, 1, NULL);

static int ended_scope(struct world *world)
{
    struct sluice_scope *volatile scope = begin_scope(world);
    require_ok(sluice_scope_end(scope, NULL));
    return CALL(sluice_scope_wait)(scope, &world->handle, 0, &world->completion);
}

static int second_scope(struct world *world)
{
    begin_scope(world);
    return result_of(CALL(sluice_channel_scope_begin)(world->pair.channels[0], DEADLINE));
}

static int send_beside_scope(struct world *world)
{
    begin_scope(world);
    return CALL(sluice_channel_send)(world->pair.channels[0], &world->sge, 1, DEADLINE);
}

static int poll_beside_scope(struct world *world)
{
    begin_scope(world);
    return CALL(sluice_channel_poll)(world->pair.channels[0], &world->completion, 1);
}

RETURNS(zero_handle, sluice_channel_wait, world->pair.channels[0], &world->handle, 0,
        &world->completion);

static int foreign_handle(struct world *world)
{
    world->request.opcode = SLUICE_OP_RECEIVE;
    world->handle = post(world->pair.channels[1], &world->request);
    return CALL(sluice_channel_wait)(world->pair.channels[0], &world->handle, 0,
                                     &world->completion);
}

/* Rows of the page. */
#define IS_NULL "NULL where an object, a list or a place for a result is needed"
#define IS_OTHER "something that is not such an object, or has ended"
#define PEERS_OF_NODE "peers that are to come or go in a multichannel of a node"
#define END_OF_OTHER "the end of something that is not such an object, or has ended"
#define NO_SIZE "a struct whose size is not set"
#define WILD_SIZE "a struct whose size is above 4096, or a histogram's above 65536"
#define OUT_OF_RANGE "an attribute outside of its documented range"
#define WRONG_FLAG "an unknown flag or right, or one that needs another"
#define NOT_ZERO "a field that must be 0 and is not"
#define NEGATIVE "a negative deadline or timeout"
#define WRONG_COUNT "a count that is too large, or not that of the peers"
#define WRONG_OPERATION "an operation that the call does not know"
#define NO_PEER "a peer that does not exist"
#define PEERS_OF_FIXED_NODE "ranks that are to come or go in a node without max_ranks"
#define NO_NEW_MEMBER "a new member that is one already, or the end of one that is none"
#define NO_MEMORY "memory to register that has no bytes, or wraps"
#define BLOCKS_OF_NONE "blocks of an atomic or inline request, or without exactly one element"
#define BLOCKS_UNLIKE "blocks whose two sides differ in bytes, or remote blocks of a message"
#define BLOCKS_OUTSIDE "blocks outside of their own memory"
#define NO_LAYOUT "blocks of an unknown kind, or of 0 bytes"
#define NO_BLOCK "a block of an allocator that is free, or is none"
#define NOT_OF_SERVICE "a region or domain that is not of the service of buffers"
#define PLAIN "plain memory without a cache, or where that has no right to write"
#define NO_OLD_VALUE "an old value that is not 8 bytes, aligned to 8"
#define NO_LISTENER "a file descriptor of no TCP socket that listens"
#define NOT_LENT "memory of a peer, or for it, that has no bytes or no time"
#define AGENTS_OWN "a secret, or private data, of one connection of an agent"
#define NO_SCOPE "something that is no scope, or a scope that can only be ended"
#define SCOPE_OPEN "a second scope, or a call that an open scope forbids"
#define NO_POOL "a receive for a pool that there is not, or of one peer where there is a pool"
#define NO_HANDLE "a handle that is zero, or of another object"

const struct mistake misuses[] = {
    {"EINVAL", IS_NULL, "protection domain needs context", null_context},
    {"EINVAL", IS_NULL, "channel needs protection domain", null_pd},
    {"EINVAL", IS_NULL, "handshake endpoint", null_endpoint},
    {"EINVAL", IS_NULL, "endpoint NULL", null_result},
    {"EINVAL", IS_NULL, "1 request is NULL", null_list},
    {"EINVAL", IS_NULL, "write remote NULL", null_remote},
    {"EINVAL", IS_NULL, "handle NULL", null_handle},
    {"EINVAL", IS_NULL, "memory NULL", null_memory},
    {"EINVAL", IS_NULL, "device list NULL", null_device_list},
    {"EINVAL", IS_NULL, "device list NULL", null_count_of_devices},
    {"EINVAL", IS_NULL, "sluice_context_info NULL", null_info},
    {"EINVAL", IS_NULL, "slice NULL", null_slice},
    {"EINVAL", IS_NULL, "bytes NULL", null_unpack},
    {"EINVAL", IS_NULL, "bytes NULL", null_pack},
    {"EINVAL", IS_NULL, "remote NULL", null_to_pack},
    {"EINVAL", IS_NULL, "completions NULL 1", null_completions},
    {"EINVAL", IS_NULL, "not a memory region NULL", null_address},
    {"EINVAL", IS_NULL, "not a memory region NULL", null_length},
    {"EINVAL", IS_NULL, "not a memory region NULL", null_key},
    {"EINVAL", IS_NULL, "not a memory region NULL", null_page_size},
    {"EINVAL", IS_NULL, "not a multichannel", null_peers},
    {"EINVAL", IS_NULL, "not an exchange", null_exchange},
    {"EINVAL", IS_NULL, "buffers NULL", null_buffers},
    {"EINVAL", IS_NULL, "1 ranks NULL", null_missing},
    {"EINVAL", IS_NULL, "sluice_exchange_provider NULL", null_provider},
    {"EINVAL", IS_NULL, "not a node", null_node},
    {"EINVAL", IS_NULL, "endpoints NULL", null_node_endpoints},
    {"EINVAL", IS_NULL, "not a node", null_node_to_grow},
    {"EINVAL", IS_NULL, "endpoint NULL", null_own_endpoint},
    {"EINVAL", IS_NULL, "list NULL", null_members},
    {"EINVAL", IS_NULL, "handshake endpoints", null_node_handshake},
    {"EINVAL", IS_NULL, "not a listener", null_listener},
    {"EINVAL", IS_NULL, "address", null_address_to_listen},
    {"EINVAL", IS_NULL, "address", null_address_to_connect},
    {"EINVAL", IS_NULL, "not an incoming connection", null_incoming},
    {"EINVAL", IS_NULL, "multichannel NULL", null_multichannel_to_connect},
    {"EINVAL", IS_NULL, "peers NULL", null_peers_to_accept},
    {"EINVAL", IS_NULL, "sluice_admitted.peers peer_capacity 2", capacity_without_peers},
    {"EINVAL", IS_NULL, "not an agent", null_agent},
    {"EINVAL", IS_NULL, "bytes NULL", null_bytes_to_send},
    {"EINVAL", IS_NULL, "request 0 local indices NULL", pages_without_indices},
    {"EINVAL", IS_NULL, "handle NULL", null_buffer_handle},
    {"EINVAL", IS_NULL, "addr NULL", null_local_memory},
    {"EINVAL", IS_NULL, "handle NULL", null_place_of_handle},
    {"EINVAL", IS_NULL, "not an allocator NULL", null_allocator},
    {"EINVAL", IS_OTHER, "not a memory region", length_of_other},
    {"EINVAL", IS_OTHER, "not a channel", send_on_other},
    {"EINVAL", IS_OTHER, "not a multichannel", state_of_other},
    {"EINVAL", IS_OTHER, "not a multichannel", peers_of_other},
    {"EINVAL", IS_OTHER, "not a channel", counters_of_other},
    {"EINVAL", IS_OTHER, "not a memory region", sge_of_other},
    {"EINVAL", IS_OTHER, "not an exchange", other_exchange},
    {"EINVAL", IS_OTHER, "not an exchange", other_exchange_to_open_a_node},
    {"EINVAL", IS_OTHER, "not a node", other_node},
    {"EINVAL", IS_OTHER, "not a node", other_node_to_shrink},
    {"EINVAL", IS_OTHER, "not a node", generation_of_other_node},
    {"EINVAL", IS_OTHER, "not a node", multichannel_of_other_node},
    {"EINVAL", IS_OTHER, "not a node", ended_node},
    {"EINVAL", IS_OTHER, "not a prepared node", other_prepared_node},
    {"EINVAL", IS_OTHER, "not a listener", other_listener},
    {"EINVAL", IS_OTHER, "not a listener", address_of_other_listener},
    {"EINVAL", IS_OTHER, "not an incoming connection", other_incoming},
    {"EINVAL", IS_OTHER, "not a peer", other_peer_of_an_agent},
    {"EINVAL", IS_OTHER, "not a region of a peer", other_agent_memory},
    {"EINVAL", IS_OTHER, "not a buffer service", other_buffer_service},
    {"EINVAL", IS_OTHER, "not a buffer", other_buffer},
    {"EINVAL", IS_OTHER, "not a batch", other_batch},
    {"EINVAL", IS_OTHER, "pds[0] not a protection domain", other_domain_of_buffers},
    {"EINVAL", IS_OTHER, "not an allocator", other_allocator},
    {NONE, END_OF_OTHER, "not a channel", close_other},
    {NONE, END_OF_OTHER, "not a protection domain", free_other},
    {NONE, END_OF_OTHER, "not a context", close_other_context},
    {NONE, END_OF_OTHER, "not a multichannel", close_other_multichannel},
    {NONE, END_OF_OTHER, "not a prepared channel", free_other_prepared},
    {NONE, END_OF_OTHER, "not an exchange", close_other_exchange},
    {NONE, END_OF_OTHER, "not a node", close_other_node},
    {NONE, END_OF_OTHER, "not a prepared node", free_other_prepared_node},
    {NONE, END_OF_OTHER, "not a listener", close_other_listener},
    {NONE, END_OF_OTHER, "not an incoming connection", refuse_other_incoming},
    {NONE, END_OF_OTHER, "not an agent", close_other_agent},
    {NONE, END_OF_OTHER, "not a buffer service", close_other_buffer_service},
    {NONE, END_OF_OTHER, "not a buffer", release_other_buffer},
    {NONE, END_OF_OTHER, "belongs to a node sluice_node_close()", close_multichannel_of_node},
    {NONE, END_OF_OTHER, "belongs to a node sluice_node_close()", free_domain_of_node},
    {NONE, END_OF_OTHER, "belongs to a node sluice_node_close()", close_context_of_node},
    {NONE, "the end of a peer that has come to an agent and was not taken", "never taken",
     close_peer_that_was_not_taken},
    {"EINVAL", NO_SIZE, "sluice_channel_attr.size", no_size},
    {"EINVAL", NO_SIZE, "sluice_channel_info.size", no_size_of_info},
    {"EINVAL", NO_SIZE, "sluice_error.size", no_size_of_error},
    {"EINVAL", NO_SIZE, "sluice_exchange_attr.size", no_size_of_exchange},
    {"EINVAL", NO_SIZE, "sluice_connect_attr.size", no_size_of_connect},
    {"EINVAL", NO_SIZE, "sluice_incoming_info.size", no_size_of_incoming_info},
    {"EINVAL", NO_SIZE, "blocks.size", sizeless_blocks},
    {"EINVAL", NO_SIZE, "sluice_agent_attr.size", no_size_of_agent},
    {"EINVAL", NO_SIZE, "sluice_buffer_service_attr.size", no_size_of_buffer_service},
    {"EINVAL", NO_SIZE, "sluice_allocator_attr.size", no_size_of_allocator},
    {"E2BIG", WILD_SIZE, "sluice_channel_attr.size", wild_size},
    {"E2BIG", WILD_SIZE, "sluice_counters.size", wild_size_of_counters},
    {"E2BIG", WILD_SIZE, "sluice_node_attr.size", wild_size_of_node},
    {"E2BIG", WILD_SIZE, "sluice_listen_attr.size", wild_size_of_listen},
    {"E2BIG", WILD_SIZE, "sluice_agent_info.size", wild_size_of_agent_info},
    {"E2BIG", WILD_SIZE, "request 0 blocks.size 5000", wild_size_of_blocks},
    {"E2BIG", WILD_SIZE, "sluice_buffer_info.size 5000", wild_size_of_buffer_info},
    {"EINVAL", OUT_OF_RANGE, "send_depth 1000000 1..16384", attribute_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "max_message 1 4096", attribute_below_range},
    {"EINVAL", OUT_OF_RANGE, "wait_mode 9 0..2", mode_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "gid_index 256 0..255", gid_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "level 99", level_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "sluice_exchange_attr.kind 3", kind_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "sluice_exchange_attr.rank 2 2", rank_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "sluice_node_attr.barrier 4 0..3", barrier_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "sluice_listen_attr.backlog 5000 1..4096", backlog_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "private data 1025 1024", too_much_private_data},
    {"EINVAL", OUT_OF_RANGE, "sluice_agent_attr.eager 63 64..65536", eager_out_of_range},
    {"EINVAL", OUT_OF_RANGE, "sluice_buffer_service_attr.max_peers 65537 1..65536",
     too_many_users_of_buffers},
    {"EINVAL", OUT_OF_RANGE, "thread_blocks 1 2..1024", blocks_of_threads_out_of_range},
    {"EINVAL", WRONG_FLAG, "flags 0x40000000 send", unknown_flag},
    {"EINVAL", WRONG_FLAG, "access 0x100000", unknown_right},
    {"EINVAL", WRONG_FLAG, "REMOTE_WRITE LOCAL_WRITE", right_without_its_other},
    {"EINVAL", WRONG_FLAG, "psn SLUICE_CHANNEL_PSN", field_without_its_flag},
    {"EINVAL", WRONG_FLAG, "sluice_listen_attr.flags 0x8", unknown_flag_of_listen},
    {"EINVAL", WRONG_FLAG, "sluice_connect_attr.flags 0x8", unknown_flag_of_connect},
    {"EINVAL", WRONG_FLAG, "sluice_accept_attr.flags 0x8", unknown_flag_of_accept},
    {"EINVAL", WRONG_FLAG, "sluice_agent_attr.flags 0x8", unknown_flag_of_agent},
    {"EINVAL", WRONG_FLAG, "access 0x1", no_right_of_a_peer},
    {"EINVAL", WRONG_FLAG, "access 0x1 of a buffer", right_of_no_peer},
    {"EINVAL", NOT_ZERO, "request 0 reserved", reserved_field},
    {"EINVAL", NOT_ZERO, "request 0 operand", reserved_operand},
    {"EINVAL", NOT_ZERO, "remote.reserved {0, 7, 0}", pack_of_a_reserved_field},
    {"EINVAL", NOT_ZERO, "remote.reserved {0, 7, 0}", slice_of_a_reserved_field},
    {"EINVAL", NOT_ZERO, "sluice_exchange_provider.reserved 1", reserved_field_of_provider},
    {"EINVAL", NOT_ZERO, "sluice_exchange_attr.ranks PMIx", ranks_over_pmix},
    {"EINVAL", NOT_ZERO, "request 0 blocks.flags 0x1", flag_of_blocks},
    {"EINVAL", NOT_ZERO, "request 0 local contiguous count 2 bytes 8", count_of_contiguous_blocks},
    {"EINVAL", NOT_ZERO, "request 0 remote.stride 16 not strided", stride_of_pages},
    {"EINVAL", NOT_ZERO, "request 0 remote.reserved", reserved_field_of_layout},
    {"EINVAL", NOT_ZERO, "flags 0x1", flag_of_action},
    {"EINVAL", NOT_ZERO, "reserved 0", reserved_field_of_action},
    {"EINVAL", NOT_ZERO, "sluice_buffer_service_attr.channel access",
     rights_of_connections_to_owners},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline},
    {"EINVAL", NEGATIVE, "timeout -1 negative", negative_timeout},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline_of_scope},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline_of_exchange},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline_of_barrier},
    {"EINVAL", NEGATIVE, "timeout -1 negative", negative_timeout_of_listener},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline_of_connect},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline_of_accept},
    {"EINVAL", NEGATIVE, "lease -1 negative", negative_lease},
    {"EINVAL", NEGATIVE, "deadline -1 negative", negative_deadline_of_buffer},
    {"EINVAL", WRONG_COUNT, "count 4294967295 above 2^31", too_many_completions},
    {"EINVAL", WRONG_COUNT, "65537 peers", too_many_peers},
    {"EINVAL", WRONG_COUNT, "3 endpoints 2 peers", wrong_number_of_endpoints},
    {"EINVAL", WRONG_COUNT, "1048577 1048576", too_many_bytes_to_exchange},
    {"EINVAL", WRONG_COUNT, "0 ranks", no_ranks},
    {"EINVAL", WRONG_COUNT, "at least one", grow_by_none},
    {"EINVAL", WRONG_COUNT, "2 endpoints 1 rank", wrong_number_of_ranks},
    {"EINVAL", WRONG_COUNT, "65 channels 1..64", too_many_to_connect},
    {"EINVAL", WRONG_COUNT, "0 protection domains 1..4", no_domains_of_buffers},
    {"EINVAL", WRONG_OPERATION, "opcode 77", unknown_operation},
    {"EINVAL", WRONG_OPERATION, "opcode send read", wrong_operation},
    {"EINVAL", WRONG_OPERATION, "request 0 sluice_agent_send()", message_in_a_list_of_an_agent},
    {"EINVAL", WRONG_OPERATION, "opcode 1 SLUICE_OP_READ", send_to_a_buffer},
    {"EINVAL", NO_PEER, "peer 2 0..1", no_such_peer},
    {"EINVAL", NO_PEER, "peer 2 0..1", no_such_peer_to_ask},
    {"EINVAL", NO_PEER, "request 0 peer 0", second_peer_of_a_peer},
    {"EINVAL", NO_PEER, "ranks[0] 1 0..0", no_such_rank},
    {"EINVAL", PEERS_OF_FIXED_NODE, "max_ranks", grow_a_fixed_node},
    {"EINVAL", PEERS_OF_FIXED_NODE, "max_ranks lazy", ranks_of_a_node_that_does_not_connect_later},
    {"EINVAL", NO_NEW_MEMBER, "endpoints[0] rank 0 member", grow_by_a_member},
    {"EINVAL", NO_NEW_MEMBER, "ranks[0] 1 no member", shrink_by_no_member},
    {"EINVAL", NO_POOL, "no pool receive_pool", receive_without_a_pool},
    {"EINVAL", NO_POOL, "receive_pool multichannels", pool_of_a_channel},
    {"EINVAL", NO_POOL, "pool all peers receive_pool", receive_of_one_peer},
    {"EINVAL", "a group of ranks that does not ascend, or lacks its own", "0 after 0 ascending",
     group_that_descends},
    {"EINVAL", "more elements than max_sge", "33 max_sge", too_many_elements},
    {"EINVAL", "an element that was forgotten: all zeros", "sge zeros forgotten",
     forgotten_element},
    {"EINVAL", "a list of elements whose count is 0", "list sge_count 0", list_of_no_elements},
    {"EINVAL", "an element in a request whose sge_count is 0", "sge_count 0 forgotten",
     element_without_count},
    {"EINVAL", BLOCKS_OF_NONE, "request 0 fetch-add no blocks", atomic_of_blocks},
    {"EINVAL", BLOCKS_OF_NONE, "request 0 inline", inline_blocks},
    {"EINVAL", BLOCKS_OF_NONE, "request 0 2 SGEs", blocks_of_two_elements},
    {"EINVAL", NO_LAYOUT, "request 0 local.kind 9", unknown_layout},
    {"EINVAL", NO_LAYOUT, "request 0 remote 0 bytes", blocks_of_no_bytes},
    {"EINVAL", BLOCKS_UNLIKE, "request 0 local 16 remote 18", sides_of_different_length},
    {"EINVAL", BLOCKS_UNLIKE, "request 0 blocks.remote send", send_with_blocks_of_the_peer},
    {"EINVAL", PLAIN, "request 0 no cache mr_cache NULL", plain_without_cache},
    {"EINVAL", PLAIN, "request 0 receive LOCAL_WRITE", plain_without_right},
    {"EINVAL", "a cache of another protection domain than that of its channel",
     "another protection domain", cache_of_other_domain},
    {"E2BIG", "more inline bytes than max_inline", "4096 max_inline", too_many_inline_bytes},
    {"E2BIG", "a request of more than 2^32 - 1 bytes", "8589934590 2^32", request_too_long},
    {"EMSGSIZE", "an element of more than 2^32 - 1 bytes", "4294967296 2^32", element_too_long},
    {"EINVAL", NO_MEMORY, "length 1 byte", memory_of_no_bytes},
    {"EINVAL", NO_MEMORY, "8192 wraps", memory_that_wraps},
    {"EINVAL", NO_MEMORY, "length 0 of a buffer", buffer_of_no_bytes},
    {"EINVAL", "a block of an allocator of no bytes, or a wrong alignment", "1 byte",
     block_of_no_bytes},
    {"EINVAL", "a block of an allocator of no bytes, or a wrong alignment", "align 24 power of 2",
     alignment_that_is_none},
    {"EINVAL", NO_BLOCK, "free freed twice", block_freed_twice},
    {"EINVAL", NO_BLOCK, "within a block", free_within_a_block},
    {"EINVAL", NO_BLOCK, "no block of this allocator", free_of_other_memory},
    {"EBADF", "a file descriptor that is not open", "1000000 not open", closed_descriptor},
    {"ERANGE", "an element outside of its own region", "4095 outside 4096", element_outside},
    {"ERANGE", "an element outside of its own region", "4096 bytes its block 64",
     element_beyond_a_block},
    {"ERANGE", BLOCKS_OUTSIDE, "request 0 local block 1 stride 4096", block_outside},
    {"ERANGE", BLOCKS_OUTSIDE, "request 0 local index 1 512", page_outside},
    {"ERANGE", "memory of a read or write of a buffer outside of its region", "8 bytes region 16",
     action_outside_its_region},
    {"EINVAL", NO_OLD_VALUE, "SGE fetch-add 8 4", old_value_of_wrong_size},
    {"EINVAL", NO_OLD_VALUE, "SGE multiple of 8", old_value_not_aligned},
    {"EINVAL", "an element of another region or length than that of a list", "8 bytes 7",
     aimed_at_another_length},
    {"EINVAL", "a handshake of what is not prepared", "peer 0 connected reset",
     handshake_of_connected_peer},
    {"EINVAL", "the end of a multichannel that belongs to a node",
     "belongs to a node sluice_node_shutdown()", shut_down_multichannel_of_node},
    {"EINVAL", PEERS_OF_NODE, "belongs to a node ranks", add_to_multichannel_of_node},
    {"EINVAL", PEERS_OF_NODE, "belongs to a node ranks", remove_from_multichannel_of_node},
    {"EINVAL", "the exchange of a node that did not open it", "did not open its exchange",
     exchange_of_node_without},
    {"EINVAL", NO_LISTENER, "fd no socket that listens", socket_that_does_not_listen},
    {"EINVAL", NO_LISTENER, "fd no socket of TCP", socket_that_is_not_of_tcp},
    {"EINVAL", NOT_LENT, "0 bytes", no_bytes_of_a_peer},
    {"EINVAL", NOT_LENT, "lease 0", no_time_for_a_peer},
    {"EINVAL", AGENTS_OWN, "secret_file agent's", secret_of_one_listen},
    {"EINVAL", AGENTS_OWN, "secret_file agent's", secret_of_one_connect},
    {"EINVAL", "a peer of another agent", "another agent", peer_of_another_agent},
    {"EINVAL", "two domains of one transport for a service of buffers", "pds[0] pds[1]",
     two_domains_of_a_transport},
    {"EINVAL", NOT_OF_SERVICE, "mr no protection domain of the service",
     region_of_no_domain_of_a_service},
    {"EINVAL", NOT_OF_SERVICE, "pd no protection domain of the service",
     domain_that_a_service_has_not},
    {"EINVAL", NO_SCOPE, "scope", null_scope},
    {"ESTALE", "a scope that has ended", "scope ended", ended_scope},
    {"EBUSY", SCOPE_OPEN, "scope open", second_scope},
    {"EBUSY", SCOPE_OPEN, "scope open", send_beside_scope},
    {"EBUSY", SCOPE_OPEN, "scope open", poll_beside_scope},
    {"ESTALE", NO_HANDLE, "handle", zero_handle},
    {"ESTALE", NO_HANDLE, "handle", foreign_handle},
    {NULL, NULL, NULL, NULL},
};
