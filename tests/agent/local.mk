# SPDX-License-Identifier: MIT
# Memory as a service. One program, source or header a line, sorted.
test_programs += \
	tests/test_agent \
	tests/test_agent_circle \
	tests/test_agent_crowd \
	tests/test_agent_hostile \
	tests/test_agent_keys \
	tests/test_agent_lease \
	tests/test_agent_long \
	tests/test_agent_messages \
	tests/test_agent_owners \
	tests/test_agent_pool \
	tests/test_agent_regions \
	tests/test_agent_wakes

agent_strangers = %D%/strangers.c %D%/strangers.h
agent_support = %D%/agents.c %D%/agents.h

tests_test_agent_SOURCES = %D%/test_agent.c $(agent_support)
tests_test_agent_circle_SOURCES = %D%/test_agent_circle.c $(agent_support)
tests_test_agent_crowd_SOURCES = %D%/test_agent_crowd.c $(agent_support)
tests_test_agent_hostile_SOURCES = %D%/test_agent_hostile.c $(agent_strangers) $(agent_support)
tests_test_agent_keys_SOURCES = %D%/test_agent_keys.c $(agent_support)
tests_test_agent_lease_SOURCES = %D%/test_agent_lease.c $(agent_support)
tests_test_agent_long_SOURCES = %D%/test_agent_long.c $(agent_support)
tests_test_agent_messages_SOURCES = %D%/test_agent_messages.c $(agent_support)
tests_test_agent_owners_SOURCES = %D%/test_agent_owners.c $(agent_strangers) $(agent_support)
tests_test_agent_pool_SOURCES = %D%/test_agent_pool.c $(agent_strangers) $(agent_support)
tests_test_agent_regions_SOURCES = %D%/test_agent_regions.c $(agent_support)
tests_test_agent_wakes_SOURCES = %D%/test_agent_wakes.c $(agent_support)
