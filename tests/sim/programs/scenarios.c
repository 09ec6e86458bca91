/* SPDX-License-Identifier: MIT */
/*
 * The scenarios by name, and the wires of each: scripts/simulate and tests/check-simulate.sh read
 * this table. The first word of a name that begins with a letter and a number is the row of the
 * fault matrix.
 */
#include "scenarios.h"

#include <string.h>

static const struct {
    const char *name;
    void (*run)(void);
    const char *wires;
} scenarios[] = {
    {"A1", a1_killed_busy, "shm tcp fabric"},
    {"A2", a2_killed_idle, "shm tcp fabric"},
    {"A3", a3_killed_in_scatter, "shm tcp fabric"},
    {"A4", a4_stopped, "shm tcp fabric"},
    {"A5", a5_closed, "shm tcp fabric"},
    {"A6", a6_all_close, "self shm tcp fabric"},
    {"A7", a7_black_hole, "tcp fabric"},
    {"A7-power", a7_power_fails, "tcp fabric"},
    {"A8", a8_loss, "tcp fabric"},
    {"A9", a9_link_down, "tcp fabric"},
    {"A10", a10_address_changes, "tcp"},
    {"A11", a11_device_dies, "fabric"},
    {"A12", a12_restarts, "shm tcp fabric"},
    {"A13", a13_stale_endpoint, "shm tcp fabric"},
    {"B1", b1_wrong_keys, "self shm tcp fabric"},
    {"B2", b2_wrong_ranges, "self shm tcp fabric"},
    {"B3", b3_wrapping_ranges, "self shm tcp fabric"},
    {"B4", b4_missing_rights, "self shm tcp fabric"},
    {"B5", b5_no_bytes, "self shm tcp fabric"},
    {"B7", b7_withdrawn, "shm tcp fabric"},
    {"B8", b8_lengths, "shm tcp fabric"},
    {"B9", b9_local_memory, "self shm tcp fabric"},
    {"C1", c1_floods, "shm tcp fabric"},
    {"C2", c2_never_polled, "self shm tcp fabric"},
    {"C3", c3_no_receive, "self shm tcp fabric"},
    {"C5", c5_posted_too_late, "self shm tcp fabric"},
    {"C6", c6_part_of_a_list, "shm tcp fabric"},
    {"C8", c8_no_room, "shm fabric"},
    {"C9", c9_refused_calls, "shm fabric"},
    {"C10", c10_limits, "self fabric"},
    {"C11", c11_no_device, "self fabric"},
    {"D1", d1_strangers, "tcp fabric"},
    {"D3", d3_wrong_secret, "tcp fabric"},
    {"D5-late", d5_late, "shm tcp fabric"},
    {"D5-missing", d5_missing, "shm tcp fabric"},
    {"D5-dies", d5_dies, "shm tcp fabric"},
    {"E4", e4_threads, "self fabric"},
    {"E7", e7_numbers_wrap, "fabric"},
    {"connect", connects_at_once, "shm tcp fabric"},
    {"reset", reset_by_the_network, "tcp"},
    {"clock", clock_jumps, "self shm tcp fabric"},
    {"no-proc", no_proc, "shm tcp"},
    {"starved", starved, "shm tcp"},
    {"starved-early", starved_early, "shm tcp"},
    {"absent", absent, "shm"},
    {"lossy", meet_with_loss, "tcp"},
    {"slow-memory", slow_memory, "shm tcp"},
    {"helper-replaced", helper_replaced, "tcp"},
    {"helper-starved", helper_replaced_starved, "tcp"},
    {"slow-device", slow_device, "fabric"},
    {"in-flight", descriptors_in_flight, "shm"},
    {"starved-region", region_ends_starved, "shm"},
    {"silent-ranks", silent_ranks, "many"},
    {"silent-limit", silent_limit, "many"},
    {"wanted-again", wanted_again, "many"},
    {"no-route", no_route, "tcp"},
    {"reach", reached_in_vain, "shm tcp"},
    {"knock", knock_without_memory, "shm tcp"},
    {"stopped-closing", stopped_closing, "shm tcp"},
    {"killed-connecting", killed_connecting, "shm tcp"},
    {"dial", dial_without_memory, "shm tcp"},
};

int run_scenario(const char *name)
{
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        if (strcmp(scenarios[i].name, name) == 0) {
            scenarios[i].run();
            return 0;
        }
    }
    sim_break("there is no scenario %s", name);
}
