# SPDX-License-Identifier: MIT
# Exchanges, and who tells a process its rank. One program, source or header a line, sorted.
test_programs += \
	tests/test_exchange \
	tests/test_exchange_hostile \
	tests/test_exchange_memory \
	tests/test_exchange_refused \
	tests/test_exchange_relay \
	tests/test_exchange_root \
	tests/test_exchange_secret \
	tests/test_exchange_tcp \
	tests/test_host_file \
	tests/test_launch \
	tests/test_pmi \
	tests/test_pmix

tests_test_exchange_SOURCES = %D%/test_exchange.c
tests_test_exchange_hostile_SOURCES = \
	$(exchange_liar) \
	$(exchange_parties) \
	%D%/test_exchange_hostile.c
tests_test_exchange_memory_SOURCES = \
	$(exchange_liar) \
	$(exchange_parties) \
	%D%/test_exchange_memory.c
tests_test_exchange_memory_CPPFLAGS = $(PMIX_TEST_CPPFLAGS)
tests_test_exchange_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=malloc
tests_test_exchange_memory_LDADD = $(LAUNCH_LIBS)
EXTRA_tests_test_exchange_memory_DEPENDENCIES = %D%/pmix/libpmix.la
tests_test_exchange_refused_SOURCES = \
	$(exchange_liar) \
	$(exchange_parties) \
	%D%/test_exchange_refused.c
tests_test_exchange_relay_SOURCES = \
	$(exchange_liar) \
	$(exchange_parties) \
	%D%/test_exchange_relay.c
tests_test_exchange_root_SOURCES = \
	$(exchange_parties) \
	%D%/test_exchange_root.c
tests_test_exchange_secret_SOURCES = \
	$(exchange_liar) \
	$(exchange_parties) \
	%D%/test_exchange_secret.c
tests_test_exchange_tcp_SOURCES = \
	$(exchange_parties) \
	%D%/test_exchange_tcp.c
tests_test_host_file_SOURCES = %D%/test_host_file.c
tests_test_host_file_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_host_file_LDADD = $(LAUNCH_LIBS)
tests_test_launch_SOURCES = %D%/test_launch.c
tests_test_launch_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_launch_LDADD = $(LAUNCH_LIBS)
tests_test_pmi_SOURCES = %D%/test_pmi.c
tests_test_pmix_SOURCES = %D%/test_pmix.c
tests_test_pmix_CPPFLAGS = $(PMIX_TEST_CPPFLAGS)
tests_test_pmix_DEPENDENCIES = $(TEST_LIBS) %D%/pmix/libpmix.la

# Ranks in threads, on the loopback. One source or header a line, sorted.
exchange_parties = \
	%D%/parties.c \
	%D%/parties.h
exchange_liar = \
	%D%/liar.c \
	%D%/liar.h

# What an exchange is opened by: internal functions, on nothing but the environment.
LAUNCH_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
LAUNCH_LIBS = \
	tests/libtestsupport.la \
	tests/libobjects.la \
	$(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)

# The program that check-launch.sh starts by all kinds of launchers; it builds mpi.c itself.
check_PROGRAMS += %D%/launch/ranks
%C%_launch_ranks_SOURCES = %D%/launch/ranks.c
%C%_launch_ranks_LDADD = lib/libsluice.la

EXTRA_DIST += \
	%D%/launch/mpi.c \
	%D%/launch/slurm

# A pretend libpmix, found under its name once the test has loaded it.
%C%_pmix_libpmix_la_SOURCES = %D%/pmix/fake.c
%C%_pmix_libpmix_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
%C%_pmix_libpmix_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nowhere -version-info 2:0:0
PMIX_TEST_CPPFLAGS = $(AM_CPPFLAGS) \
	-DFAKE_PMIX='"$(abs_builddir)/%D%/pmix/.libs/libpmix.so.2"'
if CHECK
check_LTLIBRARIES += %D%/pmix/libpmix.la
endif
