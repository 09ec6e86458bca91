# SPDX-License-Identifier: MIT
# The calls of channels and multichannels. One program, source or header a line, sorted.
test_programs += \
	tests/test_arguments \
	tests/test_atomics \
	tests/test_attributes \
	tests/test_blocks \
	tests/test_classes \
	tests/test_contention \
	tests/test_data \
	tests/test_drop_long \
	tests/test_elements \
	tests/test_errors \
	tests/test_event_loop \
	tests/test_forms \
	tests/test_inline \
	tests/test_members \
	tests/test_messages \
	tests/test_objects \
	tests/test_peers \
	tests/test_pool \
	tests/test_reset \
	tests/test_scale \
	tests/test_scatter \
	tests/test_semantics \
	tests/test_stripes \
	tests/test_submit \
	tests/test_threads

tests_test_arguments_SOURCES = %D%/test_arguments.c
tests_test_atomics_SOURCES = %D%/test_atomics.c
tests_test_attributes_SOURCES = %D%/test_attributes.c
tests_test_blocks_SOURCES = %D%/test_blocks.c
tests_test_classes_SOURCES = %D%/test_classes.c
tests_test_contention_SOURCES = %D%/test_contention.c
tests_test_data_SOURCES = %D%/test_data.c
tests_test_drop_long_SOURCES = %D%/test_drop_long.c
tests_test_elements_SOURCES = %D%/test_elements.c
tests_test_errors_SOURCES = %D%/test_errors.c
tests_test_event_loop_SOURCES = %D%/test_event_loop.c
tests_test_forms_SOURCES = %D%/test_forms.c
tests_test_inline_SOURCES = %D%/test_inline.c
# One source or header a line, sorted.
tests_test_members_SOURCES = \
	%D%/members/fixture.c \
	%D%/members/fixture.h \
	%D%/members/holes.c \
	%D%/members/stale.c \
	%D%/test_members.c
# One source or header a line, sorted.
tests_test_messages_SOURCES = \
	%D%/messages/fixture.c \
	%D%/messages/fixture.h \
	%D%/messages/room.c \
	%D%/test_messages.c
tests_test_objects_SOURCES = %D%/test_objects.c
tests_test_peers_SOURCES = %D%/test_peers.c
# One source or header a line, sorted.
tests_test_pool_SOURCES = \
	%D%/pool/arrivals.c \
	%D%/pool/early.c \
	%D%/pool/fixture.c \
	%D%/pool/fixture.h \
	%D%/pool/peers.c \
	%D%/pool/stripes.c \
	%D%/test_pool.c
tests_test_reset_SOURCES = %D%/test_reset.c
tests_test_scale_SOURCES = %D%/test_scale.c
tests_test_scatter_SOURCES = %D%/test_scatter.c
tests_test_semantics_SOURCES = %D%/test_semantics.c
tests_test_stripes_SOURCES = %D%/test_stripes.c
tests_test_submit_SOURCES = %D%/test_submit.c
tests_test_threads_SOURCES = %D%/test_threads.c
