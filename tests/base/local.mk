# SPDX-License-Identifier: MIT
# The ground floor, and what the library may do to its process.
# One program, source or header a line, sorted.
test_programs += \
	tests/test_descriptors \
	tests/test_environment \
	tests/test_forked \
	tests/test_interrupt \
	tests/test_log \
	tests/test_misuse \
	tests/test_process \
	tests/test_refused \
	tests/test_stack

tests_test_descriptors_SOURCES = \
	$(exchange_parties) \
	%D%/test_descriptors.c
tests_test_environment_SOURCES = %D%/test_environment.c
tests_test_environment_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_environment_LDADD = $(LAUNCH_LIBS)
tests_test_forked_SOURCES = %D%/test_forked.c
tests_test_interrupt_SOURCES = \
	$(exchange_parties) \
	%D%/test_interrupt.c
# It compares its lists with those of the manual. One source or header a line, sorted.
tests_test_misuse_SOURCES = \
	%D%/misuse/agents.c \
	%D%/misuse/allocators.c \
	%D%/misuse/blocks.c \
	%D%/misuse/buffers.c \
	%D%/misuse/connect.c \
	%D%/misuse/lists.c \
	%D%/misuse/mistakes.c \
	%D%/misuse/mistakes.h \
	%D%/misuse/objects.c \
	%D%/misuse/plain_memory.c \
	%D%/misuse/ranks.c \
	%D%/misuse/runtime.c \
	%D%/test_misuse.c
tests_test_misuse_CPPFLAGS = $(AM_CPPFLAGS) -DMAP='"$(abs_top_srcdir)/lib/sluice.map"' \
	-DERRORS_PAGE='"$(abs_top_srcdir)/man/sluice_errors.7"'
tests_test_process_SOURCES = %D%/test_process.c
tests_test_refused_SOURCES = \
	$(exchange_parties) \
	%D%/test_refused.c
tests_test_stack_SOURCES = %D%/test_stack.c
# Of the library's own objects, so that it can log what it likes.
tests_test_log_SOURCES = %D%/test_log.c
tests_test_log_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_log_LDADD = $(LAUNCH_LIBS)
