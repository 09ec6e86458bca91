# SPDX-License-Identifier: MIT
# Nodes, barriers and gathers. One program, source or header a line, sorted.
test_programs += \
	tests/test_alltoall \
	tests/test_barriers \
	tests/test_barriers_blame \
	tests/test_barriers_broken \
	tests/test_barriers_mixed \
	tests/test_deferred \
	tests/test_gather \
	tests/test_node \
	tests/test_node_alone \
	tests/test_node_connect \
	tests/test_node_grow \
	tests/test_node_lazy \
	tests/test_node_lazy_calls \
	tests/test_node_limit \
	tests/test_node_open \
	tests/test_node_rejoin \
	tests/test_node_starved \
	tests/test_tree

node_lazy = \
	%D%/lazy.c \
	%D%/lazy.h
node_values = \
	%D%/values.c \
	%D%/values.h
tests_test_alltoall_SOURCES = \
	%D%/test_alltoall.c \
	$(node_values)
tests_test_barriers_SOURCES = %D%/test_barriers.c
tests_test_barriers_blame_SOURCES = %D%/test_barriers_blame.c
tests_test_barriers_broken_SOURCES = %D%/test_barriers_broken.c
tests_test_barriers_mixed_SOURCES = %D%/test_barriers_mixed.c
tests_test_deferred_SOURCES = %D%/test_deferred.c
tests_test_deferred_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_deferred_LDADD = $(LAUNCH_LIBS)
tests_test_gather_SOURCES = \
	%D%/test_gather.c \
	$(node_values)
tests_test_node_SOURCES = %D%/test_node.c
tests_test_node_alone_SOURCES = \
	$(exchange_parties) \
	%D%/test_node_alone.c
tests_test_node_connect_SOURCES = %D%/test_node_connect.c
tests_test_node_grow_SOURCES = %D%/test_node_grow.c
tests_test_node_lazy_SOURCES = \
	%D%/test_node_lazy.c \
	$(node_lazy)
tests_test_node_lazy_calls_SOURCES = \
	%D%/test_node_lazy_calls.c \
	$(node_lazy)
tests_test_node_limit_SOURCES = %D%/test_node_limit.c
tests_test_node_open_SOURCES = \
	$(exchange_parties) \
	%D%/test_node_open.c
tests_test_node_rejoin_SOURCES = %D%/test_node_rejoin.c
tests_test_node_starved_SOURCES = \
	%D%/test_node_starved.c \
	$(node_lazy)
tests_test_tree_SOURCES = %D%/test_tree.c
tests_test_tree_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_tree_LDADD = $(LAUNCH_LIBS)
