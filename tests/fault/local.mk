# SPDX-License-Identifier: MIT
# Faults of processes, hosts and links, and long runs with them.
# One program, source or header a line, sorted.
test_programs += \
	tests/test_farewell \
	tests/test_fault_cancel \
	tests/test_fault_close \
	tests/test_fault_depth \
	tests/test_fault_exit \
	tests/test_fault_fork \
	tests/test_fault_kill \
	tests/test_fault_page \
	tests/test_fault_signals \
	tests/test_fault_stop \
	tests/test_hosts \
	tests/test_hosts_steps \
	tests/test_keepalive \
	tests/test_restarts \
	tests/test_soak

tests_test_farewell_SOURCES = %D%/test_farewell.c
tests_test_fault_cancel_SOURCES = %D%/test_fault_cancel.c
tests_test_fault_close_SOURCES = %D%/test_fault_close.c
tests_test_fault_depth_SOURCES = %D%/test_fault_depth.c
tests_test_fault_exit_SOURCES = %D%/test_fault_exit.c
tests_test_fault_fork_SOURCES = %D%/test_fault_fork.c
tests_test_fault_kill_SOURCES = %D%/test_fault_kill.c
tests_test_fault_page_SOURCES = %D%/test_fault_page.c
tests_test_fault_signals_SOURCES = %D%/test_fault_signals.c
tests_test_fault_stop_SOURCES = %D%/test_fault_stop.c
tests_test_hosts_SOURCES = %D%/test_hosts.c
tests_test_hosts_steps_SOURCES = %D%/test_hosts_steps.c
tests_test_keepalive_SOURCES = %D%/test_keepalive.c
tests_test_restarts_SOURCES = %D%/test_restarts.c

# Only a guest can run it, on a device of its own; see softroce/README.md.
guest_programs = tests/test_events
tests_test_events_SOURCES = %D%/test_events.c

include tests/fault/soak/local.mk
