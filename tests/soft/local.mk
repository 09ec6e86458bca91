# SPDX-License-Identifier: MIT
# The soft transport. One program, source or header a line, sorted.
test_programs += \
	tests/test_answers \
	tests/test_deprived \
	tests/test_direct \
	tests/test_direct_ends \
	tests/test_direct_shown \
	tests/test_early \
	tests/test_forbidden \
	tests/test_hostile \
	tests/test_idle \
	tests/test_interleave \
	tests/test_keys \
	tests/test_lent \
	tests/test_listener \
	tests/test_loans \
	tests/test_offers \
	tests/test_shared \
	tests/test_shortage \
	tests/test_starved \
	tests/test_wire

tests_test_answers_SOURCES = %D%/test_answers.c
tests_test_deprived_SOURCES = %D%/test_deprived.c
tests_test_direct_SOURCES = %D%/test_direct.c %D%/direct.c %D%/direct.h
tests_test_direct_ends_SOURCES = %D%/test_direct_ends.c %D%/direct.c %D%/direct.h
tests_test_direct_shown_SOURCES = %D%/test_direct_shown.c %D%/direct.c %D%/direct.h
tests_test_early_SOURCES = %D%/test_early.c
tests_test_forbidden_SOURCES = %D%/test_forbidden.c
tests_test_hostile_SOURCES = %D%/test_hostile.c
tests_test_idle_SOURCES = %D%/test_idle.c
tests_test_interleave_SOURCES = %D%/test_interleave.c %D%/machine.h
tests_test_interleave_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_keys_SOURCES = %D%/test_keys.c
tests_test_keys_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_keys_LDADD = \
	tests/libtestsupport.la \
	tests/libobjects.la \
	$(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)
tests_test_lent_SOURCES = %D%/test_lent.c
tests_test_listener_SOURCES = %D%/test_listener.c
tests_test_loans_SOURCES = %D%/test_loans.c
tests_test_offers_SOURCES = %D%/test_offers.c
tests_test_shared_SOURCES = %D%/test_shared.c
tests_test_shortage_SOURCES = %D%/test_shortage.c
tests_test_starved_SOURCES = %D%/test_starved.c
tests_test_wire_SOURCES = %D%/test_wire.c
