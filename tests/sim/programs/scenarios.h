/* SPDX-License-Identifier: MIT */
/* The scenarios: scenarios.c has their names and wires. Each rank runs the function. */
#ifndef SIM_SCENARIOS_H
#define SIM_SCENARIOS_H

#include "scene.h"

/* scene_faults.c */
void a1_killed_busy(void);
void a2_killed_idle(void);
void a3_killed_in_scatter(void);
void a4_stopped(void);
void a5_closed(void);
void a6_all_close(void);
void a7_black_hole(void);
void a7_power_fails(void);
void a8_loss(void);
void a9_link_down(void);
void a10_address_changes(void);
void a11_device_dies(void);
void a12_restarts(void);
void a13_stale_endpoint(void);
void reset_by_the_network(void);
void clock_jumps(void);
void no_proc(void);
void starved(void);
void starved_early(void);
void absent(void);
void meet_with_loss(void);
void slow_memory(void);
void slow_device(void);
void descriptors_in_flight(void);
void region_ends_starved(void);

/* scene_requests.c */
void b1_wrong_keys(void);
void b2_wrong_ranges(void);
void b3_wrapping_ranges(void);
void b4_missing_rights(void);
void b5_no_bytes(void);
void b7_withdrawn(void);
void b8_lengths(void);
void b9_local_memory(void);
void c1_floods(void);
void c3_no_receive(void);
void c5_posted_too_late(void);
void c6_part_of_a_list(void);
void c8_no_room(void);
void c9_refused_calls(void);
void c10_limits(void);
void c11_no_device(void);

/* scene_results.c */
void c2_never_polled(void);

/* scene_ranks.c */
void silent_ranks(void);
void silent_limit(void);
void wanted_again(void);
void no_route(void);
void reached_in_vain(void);
void knock_without_memory(void);
void dial_without_memory(void);
void stopped_closing(void);
void killed_connecting(void);

/* scene_helper.c */
void helper_replaced(void);
void helper_replaced_starved(void);

/* scene_jobs.c */
void connects_at_once(void);
void d1_strangers(void);
void d3_wrong_secret(void);
void d5_late(void);
void d5_missing(void);
void d5_dies(void);
void e4_threads(void);
void e7_numbers_wrap(void);

#endif
