/* SPDX-License-Identifier: MIT */
/*
 * The errors of the list in sluice_errors(7), each with a call that produces it: misuse in
 * mistakes.c, objects.c and ranks.c, runtime errors in runtime.c, and both kinds for agents in
 * agents.c, for connecting by address in connect.c, for prepared lists in lists.c, for plain memory
 * in plain_memory.c, for blocks in blocks.c, for buffers in buffers.c and for allocators in
 * allocators.c.
 */
#ifndef MISUSE_MISTAKES_H
#define MISUSE_MISTAKES_H

#include "../../support/pair.h"

#define WORLD_BYTES 4096

/* The arguments of the calls. */
struct world {
    struct sides sides;
    struct pair pair;
    struct sluice_channel_attr attr;
    struct sluice_context_attr context_attr;
    struct sluice_multichannel *loop; /* of 2 peers, connected to each other */
    struct memory memory;
    struct memory far; /* of the peer of the first channel */
    struct sluice_sge sge;
    struct sluice_remote_mr remote;
    struct sluice_request request; /* a send */
    struct sluice_completion completion;
    struct sluice_handle handle;
    struct sluice_listener *listener; /* for calls that need one */
};

/* Makes the error, and returns its negative errno value. */
typedef int mistake_call(struct world *world);

/* A row of the list, and a call that makes this error. */
struct mistake {
    const char *name; /* of the errno value, as in the page */
    const char *row;
    const char *words; /* of the text */
    mistake_call *call;
};

/* The public function that the mistake is made with, and the call of it. */
extern const char *called;
#define CALL(function) (called = #function, function)

/* Mistakes of one call with these arguments, which returns a number, an object or nothing. */
#define RETURNS(name, function, ...) MISTAKE_(name, return CALL(function)(__VA_ARGS__))
#define MAKES(name, function, ...) MISTAKE_(name, return result_of(CALL(function)(__VA_ARGS__)))
#define ENDS(name, function, ...) MISTAKE_(name, CALL(function)(__VA_ARGS__); return 0)
/* Submits the world's request, or prepares a channel of its attributes, after these statements. */
#define SUBMITS(name, ...) MISTAKE_(name, __VA_ARGS__; return submit_request(world))
#define PREPARES(name, ...)     \
    MISTAKE_(name, __VA_ARGS__; \
             return result_of(CALL(sluice_channel_prepare)(world->sides.pds[0], &world->attr)))
#define MISTAKE_(name, ...)                               \
    mistake_call name;                                    \
    int name(struct world *world __attribute__((unused))) \
    {                                                     \
        __VA_ARGS__;                                      \
    }                                                     \
    mistake_call name

/* An object of another kind, in place of one of this type. */
#define OTHER(type) ((struct type *)(void *)world->sides.pds[0])

/* The name of the errno value 0. */
#define NONE "none"

/* In the order of the page; the last element has no row. */
extern const struct mistake misuses[];
extern const struct mistake runtime_errors[];

/* Returns whether the wire of the channel takes part in it, beyond the checks of the call. */
bool is_of_wire(const struct mistake *mistake);

/* Submits the request of the world. */
mistake_call submit_request;

/* lists.c: mistakes with prepared lists, and failures of lists. */
mistake_call aimed_at_another_length, too_deep_a_list, busy_list, list_in_flight, result_in_flight,
    list_of_no_channel;

/* blocks.c: requests of blocks. */
mistake_call sizeless_blocks, wild_size_of_blocks, pages_without_indices, flag_of_blocks,
    count_of_contiguous_blocks, reserved_field_of_layout, stride_of_pages, atomic_of_blocks,
    send_with_blocks_of_the_peer, inline_blocks, blocks_of_two_elements, unknown_layout,
    blocks_of_no_bytes, sides_of_different_length, block_outside, page_outside, newer_blocks,
    remote_block_outside, blocks_deeper_than_the_queue, blocks_without_staging;

/* buffers.c: remote buffers by name. */
mistake_call null_buffer_handle, null_local_memory, null_place_of_handle, other_buffer_service,
    other_buffer, other_batch, other_domain_of_buffers, close_other_buffer_service,
    release_other_buffer, no_size_of_buffer_service, wild_size_of_buffer_info,
    too_many_users_of_buffers, right_of_no_peer, flag_of_action, reserved_field_of_action,
    rights_of_connections_to_owners, negative_deadline_of_buffer, no_domains_of_buffers,
    send_to_a_buffer, buffer_of_no_bytes, action_outside_its_region, two_domains_of_a_transport,
    region_of_no_domain_of_a_service, domain_that_a_service_has_not, batch_in_flight,
    batch_never_posted, buffer_not_for_this, buffer_that_was_released, owner_that_is_not_there,
    owner_that_is_another, service_of_a_buffer_that_was_closed, owner_that_is_not_connected,
    handle_that_was_damaged, beyond_a_buffer, no_time_for_a_buffer;

/* allocators.c: allocators and their blocks. */
mistake_call null_allocator, other_allocator, no_size_of_allocator, blocks_of_threads_out_of_range,
    block_of_no_bytes, alignment_that_is_none, block_freed_twice, free_within_a_block,
    free_of_other_memory, element_beyond_a_block, allocator_with_a_block, block_in_use,
    more_than_an_allocator_may;

/* plain_memory.c: requests of plain memory, and the cache of their channel. */
mistake_call plain_without_cache, plain_without_right, cache_of_other_domain, cache_of_a_channel,
    no_room_in_cache;

/* objects.c: mistakes with objects. */
mistake_call null_context, null_pd, null_endpoint, null_result, null_list, null_remote, null_handle,
    null_memory, null_device_list, null_info, null_slice, null_unpack, null_pack, null_to_pack,
    pack_of_a_reserved_field, slice_of_a_reserved_field, null_completions, null_address,
    null_length, null_key, null_page_size, null_peers, peers_of_other, null_count_of_devices,
    length_of_other, send_on_other, state_of_other, counters_of_other, sge_of_other, close_other,
    free_other, close_other_context, close_other_multichannel, free_other_prepared;

/* ranks.c: mistakes with exchanges and nodes. */
mistake_call null_exchange, null_buffers, null_missing, null_provider, null_node,
    null_node_endpoints, null_node_handshake, other_exchange, other_exchange_to_open_a_node,
    other_node, multichannel_of_other_node, other_prepared_node, ended_node, close_other_exchange,
    close_other_node, close_multichannel_of_node, free_domain_of_node, close_context_of_node,
    exchange_of_node_without, shut_down_multichannel_of_node, add_to_multichannel_of_node,
    remove_from_multichannel_of_node, free_other_prepared_node, no_size_of_exchange,
    wild_size_of_node, kind_out_of_range, rank_out_of_range, ranks_over_pmix, barrier_out_of_range,
    reserved_field_of_provider, negative_deadline_of_exchange, negative_deadline_of_barrier,
    too_many_bytes_to_exchange, no_ranks, wrong_number_of_ranks, group_that_descends, no_such_rank,
    null_node_to_grow, null_own_endpoint, other_node_to_shrink, grow_by_none, grow_a_fixed_node,
    grow_by_a_member, shrink_by_no_member, null_members, generation_of_other_node,
    ranks_of_a_node_that_does_not_connect_later;

/* connect.c: mistakes with addresses and listeners, and failures that others cause. */
mistake_call null_listener, null_address_to_listen, null_address_to_connect, null_incoming,
    null_multichannel_to_connect, null_peers_to_accept, other_listener, address_of_other_listener,
    other_incoming, close_other_listener, refuse_other_incoming, no_size_of_connect,
    no_size_of_incoming_info, wild_size_of_listen, backlog_out_of_range, too_much_private_data,
    unknown_flag_of_listen, unknown_flag_of_connect, unknown_flag_of_accept, capacity_without_peers,
    negative_timeout_of_listener, negative_deadline_of_connect, negative_deadline_of_accept,
    too_many_to_connect, socket_that_does_not_listen, socket_that_is_not_of_tcp, secret_for_all,
    secret_too_short, no_port_to_listen, no_port_to_connect, port_in_use, address_of_nobody,
    unknown_name, nobody_listens, other_kind_of_listener, who_has_left, who_gave_up, woken_listener,
    wrong_number_to_accept, no_room_for_address, nobody_comes;

/* agents.c: mistakes with agents, and failures of a correct program. */
mistake_call null_agent, null_bytes_to_send, other_peer_of_an_agent, other_agent_memory,
    close_other_agent, close_peer_that_was_not_taken, no_size_of_agent, wild_size_of_agent_info,
    eager_out_of_range, unknown_flag_of_agent, no_right_of_a_peer, negative_lease,
    message_in_a_list_of_an_agent, second_peer_of_a_peer, no_bytes_of_a_peer, no_time_for_a_peer,
    secret_of_one_listen, secret_of_one_connect, peer_of_another_agent, late_use_of_memory,
    right_that_was_not_given, second_listen_of_an_agent, more_than_a_quota,
    more_peers_than_an_agent_takes, message_too_long_for_a_peer, agent_that_does_not_listen,
    region_that_a_peer_does_not_have, peer_of_an_agent_that_left, woken_agent,
    thread_beyond_the_limit, nothing_from_an_agent;

static inline int result_of(const void *object)
{
    return object ? 0 : -errno;
}

/* On the first channel. */
static inline struct sluice_scope *begin_scope(struct world *world)
{
    struct sluice_scope *scope =
        made(sluice_channel_scope_begin(world->pair.channels[0], DEADLINE));
    return scope;
}

#endif
