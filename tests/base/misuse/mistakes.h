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

/* A row of the list, and a call that makes this error and returns its negative errno value. */
struct mistake {
    const char *name; /* of the errno value, as in the page */
    const char *row;
    const char *words; /* of the text */
    int (*call)(struct world *world);
};

/* The public function that the mistake is made with, and the call of it. */
extern const char *called;
#define CALL(function) (called = #function, function)

/* The name of the errno value 0. */
#define NONE "none"

/* In the order of the page; the last element has no row. */
extern const struct mistake misuses[];
extern const struct mistake runtime_errors[];

/* Returns whether the wire of the channel takes part in it, beyond the checks of the call. */
bool is_of_wire(const struct mistake *mistake);

/* lists.c: mistakes with prepared lists, and failures of lists. */
int aimed_at_another_length(struct world *world);
int too_deep_a_list(struct world *world);
int busy_list(struct world *world);
int list_in_flight(struct world *world);
int list_of_no_channel(struct world *world);

/* blocks.c: requests of blocks. */
int sizeless_blocks(struct world *world);
int wild_size_of_blocks(struct world *world);
int pages_without_indices(struct world *world);
int flag_of_blocks(struct world *world);
int count_of_contiguous_blocks(struct world *world);
int stride_of_pages(struct world *world);
int atomic_of_blocks(struct world *world);
int send_with_blocks_of_the_peer(struct world *world);
int inline_blocks(struct world *world);
int blocks_of_two_elements(struct world *world);
int unknown_layout(struct world *world);
int blocks_of_no_bytes(struct world *world);
int sides_of_different_length(struct world *world);
int block_outside(struct world *world);
int page_outside(struct world *world);
int newer_blocks(struct world *world);
int remote_block_outside(struct world *world);
int blocks_deeper_than_the_queue(struct world *world);
int blocks_without_staging(struct world *world);

/* buffers.c: remote buffers by name. */
int null_buffer_handle(struct world *world);
int null_local_memory(struct world *world);
int null_place_of_handle(struct world *world);
int other_buffer_service(struct world *world);
int other_buffer(struct world *world);
int other_batch(struct world *world);
int other_domain_of_buffers(struct world *world);
int close_other_buffer_service(struct world *world);
int release_other_buffer(struct world *world);
int no_size_of_buffer_service(struct world *world);
int wild_size_of_buffer_info(struct world *world);
int too_many_users_of_buffers(struct world *world);
int right_of_no_peer(struct world *world);
int reserved_field_of_action(struct world *world);
int rights_of_connections_to_owners(struct world *world);
int negative_deadline_of_buffer(struct world *world);
int no_domains_of_buffers(struct world *world);
int send_to_a_buffer(struct world *world);
int buffer_of_no_bytes(struct world *world);
int action_outside_its_region(struct world *world);
int two_domains_of_a_transport(struct world *world);
int region_of_no_domain_of_a_service(struct world *world);
int domain_that_a_service_has_not(struct world *world);
int batch_in_flight(struct world *world);
int batch_never_posted(struct world *world);
int buffer_not_for_this(struct world *world);
int buffer_that_was_released(struct world *world);
int owner_that_is_not_there(struct world *world);
int owner_that_is_another(struct world *world);
int service_of_a_buffer_that_was_closed(struct world *world);
int owner_that_is_not_connected(struct world *world);
int handle_that_was_damaged(struct world *world);
int beyond_a_buffer(struct world *world);
int no_time_for_a_buffer(struct world *world);

/* allocators.c: allocators and their blocks. */
int null_allocator(struct world *world);
int other_allocator(struct world *world);
int no_size_of_allocator(struct world *world);
int blocks_of_threads_out_of_range(struct world *world);
int block_of_no_bytes(struct world *world);
int alignment_that_is_none(struct world *world);
int block_freed_twice(struct world *world);
int free_within_a_block(struct world *world);
int free_of_other_memory(struct world *world);
int element_beyond_a_block(struct world *world);
int allocator_with_a_block(struct world *world);
int block_in_use(struct world *world);
int more_than_an_allocator_may(struct world *world);

/* plain_memory.c: requests of plain memory, and the cache of their channel. */
int plain_without_cache(struct world *world);
int plain_without_right(struct world *world);
int cache_of_other_domain(struct world *world);
int cache_of_a_channel(struct world *world);
int no_room_in_cache(struct world *world);

/* objects.c: mistakes with objects. */
int null_context(struct world *world);
int null_pd(struct world *world);
int null_endpoint(struct world *world);
int null_result(struct world *world);
int null_list(struct world *world);
int null_remote(struct world *world);
int null_handle(struct world *world);
int null_memory(struct world *world);
int null_device_list(struct world *world);
int null_info(struct world *world);
int null_slice(struct world *world);
int null_unpack(struct world *world);
int null_pack(struct world *world);
int null_to_pack(struct world *world);
int null_completions(struct world *world);
int null_address(struct world *world);
int null_length(struct world *world);
int null_key(struct world *world);
int null_page_size(struct world *world);
int null_peers(struct world *world);
int peers_of_other(struct world *world);
int null_count_of_devices(struct world *world);
int length_of_other(struct world *world);
int send_on_other(struct world *world);
int state_of_other(struct world *world);
int counters_of_other(struct world *world);
int sge_of_other(struct world *world);
int close_other(struct world *world);
int free_other(struct world *world);
int close_other_context(struct world *world);
int close_other_multichannel(struct world *world);
int free_other_prepared(struct world *world);

/* ranks.c: mistakes with exchanges and nodes. */
int null_exchange(struct world *world);
int null_buffers(struct world *world);
int null_missing(struct world *world);
int null_provider(struct world *world);
int null_node(struct world *world);
int null_node_endpoints(struct world *world);
int null_node_handshake(struct world *world);
int other_exchange(struct world *world);
int other_exchange_to_open_a_node(struct world *world);
int other_node(struct world *world);
int multichannel_of_other_node(struct world *world);
int other_prepared_node(struct world *world);
int ended_node(struct world *world);
int close_other_exchange(struct world *world);
int close_other_node(struct world *world);
int close_multichannel_of_node(struct world *world);
int free_domain_of_node(struct world *world);
int close_context_of_node(struct world *world);
int exchange_of_node_without(struct world *world);
int shut_down_multichannel_of_node(struct world *world);
int add_to_multichannel_of_node(struct world *world);
int remove_from_multichannel_of_node(struct world *world);
int free_other_prepared_node(struct world *world);
int no_size_of_exchange(struct world *world);
int wild_size_of_node(struct world *world);
int kind_out_of_range(struct world *world);
int rank_out_of_range(struct world *world);
int ranks_over_pmix(struct world *world);
int barrier_out_of_range(struct world *world);
int reserved_field_of_provider(struct world *world);
int negative_deadline_of_exchange(struct world *world);
int negative_deadline_of_barrier(struct world *world);
int too_many_bytes_to_exchange(struct world *world);
int no_ranks(struct world *world);
int wrong_number_of_ranks(struct world *world);
int group_that_descends(struct world *world);
int no_such_rank(struct world *world);

/* connect.c: mistakes with addresses and listeners, and failures that others cause. */
int null_listener(struct world *world);
int null_address_to_listen(struct world *world);
int null_address_to_connect(struct world *world);
int null_incoming(struct world *world);
int null_multichannel_to_connect(struct world *world);
int null_peers_to_accept(struct world *world);
int other_listener(struct world *world);
int address_of_other_listener(struct world *world);
int other_incoming(struct world *world);
int close_other_listener(struct world *world);
int refuse_other_incoming(struct world *world);
int no_size_of_connect(struct world *world);
int no_size_of_incoming_info(struct world *world);
int wild_size_of_listen(struct world *world);
int backlog_out_of_range(struct world *world);
int too_much_private_data(struct world *world);
int unknown_flag_of_listen(struct world *world);
int unknown_flag_of_connect(struct world *world);
int negative_timeout_of_listener(struct world *world);
int negative_deadline_of_connect(struct world *world);
int negative_deadline_of_accept(struct world *world);
int too_many_to_connect(struct world *world);
int socket_that_does_not_listen(struct world *world);
int socket_that_is_not_of_tcp(struct world *world);
int secret_for_all(struct world *world);
int secret_too_short(struct world *world);
int no_port_to_listen(struct world *world);
int no_port_to_connect(struct world *world);
int port_in_use(struct world *world);
int address_of_nobody(struct world *world);
int unknown_name(struct world *world);
int nobody_listens(struct world *world);
int other_kind_of_listener(struct world *world);
int who_has_left(struct world *world);
int who_gave_up(struct world *world);
int woken_listener(struct world *world);
int wrong_number_to_accept(struct world *world);
int no_room_for_address(struct world *world);
int nobody_comes(struct world *world);

/* agents.c: mistakes with agents, and failures of a correct program. */
int null_agent(struct world *world);
int null_bytes_to_send(struct world *world);
int other_peer_of_an_agent(struct world *world);
int other_agent_memory(struct world *world);
int close_other_agent(struct world *world);
int close_peer_that_was_not_taken(struct world *world);
int no_size_of_agent(struct world *world);
int wild_size_of_agent_info(struct world *world);
int eager_out_of_range(struct world *world);
int unknown_flag_of_agent(struct world *world);
int no_right_of_a_peer(struct world *world);
int negative_lease(struct world *world);
int message_in_a_list_of_an_agent(struct world *world);
int second_peer_of_a_peer(struct world *world);
int no_bytes_of_a_peer(struct world *world);
int no_time_for_a_peer(struct world *world);
int secret_of_one_listen(struct world *world);
int secret_of_one_connect(struct world *world);
int peer_of_another_agent(struct world *world);
int late_use_of_memory(struct world *world);
int right_that_was_not_given(struct world *world);
int second_listen_of_an_agent(struct world *world);
int more_than_a_quota(struct world *world);
int more_peers_than_an_agent_takes(struct world *world);
int message_too_long_for_a_peer(struct world *world);
int agent_that_does_not_listen(struct world *world);
int region_that_a_peer_does_not_have(struct world *world);
int peer_of_an_agent_that_left(struct world *world);
int woken_agent(struct world *world);
int nothing_from_an_agent(struct world *world);

static inline int result_of(const void *object)
{
    return object ? 0 : -errno;
}

/* On the first channel. */
static inline struct sluice_scope *begin_scope(struct world *world)
{
    struct sluice_scope *scope = sluice_channel_scope_begin(world->pair.channels[0], DEADLINE);
    require(scope, "%s", sluice_last_error());
    return scope;
}

#endif
