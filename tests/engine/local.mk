# SPDX-License-Identifier: MIT
# The completion engine: slots, order, waiting, progress.
# One program, source or header a line, sorted.
test_programs += \
	tests/test_arrivals \
	tests/test_counters \
	tests/test_deadlines \
	tests/test_engine \
	tests/test_handles \
	tests/test_histograms \
	tests/test_order \
	tests/test_partly \
	tests/test_progress \
	tests/test_steady \
	tests/test_posted \
	tests/test_waiting \
	tests/test_words

# One source or header a line, sorted.
tests_test_counters_SOURCES = \
	%D%/counters/fixture.c \
	%D%/counters/fixture.h \
	%D%/counters/failures.c \
	%D%/test_counters.c
tests_test_arrivals_SOURCES = %D%/test_arrivals.c
tests_test_deadlines_SOURCES = %D%/test_deadlines.c
# The engine on a pretend device; engine/unwind.c makes its allocations fail. One
# source or header a line, sorted.
tests_test_engine_SOURCES = \
	%D%/arrivals.c \
	%D%/fake.c \
	%D%/fake.h \
	%D%/fake_queues.c \
	%D%/fake_queues.h \
	%D%/fuzz.c \
	%D%/fuzz.h \
	%D%/fuzz_blocks.c \
	%D%/fuzz_list.c \
	%D%/fuzz_scope.c \
	%D%/fuzz_state.h \
	%D%/fuzz_posted.c \
	%D%/handles.c \
	%D%/invariants.c \
	%D%/invariants.h \
	%D%/lists.c \
	%D%/probes.c \
	%D%/proof.c \
	%D%/rig.c \
	%D%/rig.h \
	%D%/split.c \
	%D%/unwind.c \
	%D%/unwind.h \
	%D%/test_engine.c
tests_test_engine_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_engine_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
tests_test_engine_LDADD = \
	tests/libtestsupport.la \
	tests/libobjects.la \
	$(CHECK_LIBS) \
	$(SODIUM_LIBS)
tests_test_handles_SOURCES = %D%/test_handles.c
tests_test_histograms_SOURCES = %D%/test_histograms.c
tests_test_order_SOURCES = %D%/test_order.c
tests_test_partly_SOURCES = %D%/test_partly.c
tests_test_progress_SOURCES = %D%/test_progress.c
tests_test_steady_SOURCES = %D%/test_steady.c
tests_test_posted_SOURCES = %D%/test_posted.c
tests_test_waiting_SOURCES = %D%/test_waiting.c
tests_test_words_SOURCES = %D%/test_words.c
