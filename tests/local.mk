# SPDX-License-Identifier: MIT
# Test programs and checks of the tree. All speak TAP.

# A test is the program tests/test_NAME, of the source test_NAME.c in the folder that has the
# name of one of lib/, whose local.mk lists it twice, sorted: in test_programs, and with its
# sources. It is linked with the support library, libsluice and Check. If it needs more, it gets
# tests_test_NAME_LDADD ($(LDADD) and more) or _CFLAGS ($(AM_CFLAGS) and more).
test_programs =
include tests/agent/local.mk
include tests/base/local.mk
include tests/buffer/local.mk
include tests/calls/local.mk
include tests/connect/local.mk
include tests/consumers/local.mk
include tests/device/local.mk
include tests/endpoint/local.mk
include tests/engine/local.mk
include tests/exchange/local.mk
include tests/fault/local.mk
include tests/fuzz/local.mk
include tests/list/local.mk
include tests/memory/local.mk
include tests/node/local.mk
include tests/scope/local.mk
include tests/sim/local.mk
include tests/soft/local.mk
include tests/verbs/local.mk

# Those test programs in which no threads meet, or as in others, or which count what
# ThreadSanitizer does itself; scripts/test --full runs the others under it.
unthreaded_tests = \
	%D%/test_choice \
	%D%/test_descriptors \
	%D%/test_engine \
	%D%/test_environment \
	%D%/test_exchange_hostile \
	%D%/test_exchange_refused \
	%D%/test_exchange_secret \
	%D%/test_forked \
	%D%/test_host_file \
	%D%/test_interleave \
	%D%/test_launch \
	%D%/test_misuse \
	%D%/test_near \
	%D%/test_steady \
	%D%/test_verbs_choice \
	%D%/test_verbs_devices \
	%D%/test_verbs_forked \
	%D%/test_verbs_gids \
	%D%/test_verbs_hints \
	%D%/test_verbs_infiniband \
	%D%/test_verbs_limits \
	%D%/test_verbs_memory \
	%D%/test_verbs_nearest \
	%D%/test_verbs_path \
	%D%/test_verbs_status \
	$(fuzz_programs)

# Those that scripts/test runs under ThreadSanitizer. In each of them several threads make calls, or
# those of the library meet: of connections, closed channels, agents, buffers and exchanges. Most
# other programs have one thread, and the library has one beside it, which waits.
threaded_tests = \
	%D%/test_admitted \
	%D%/test_agent \
	%D%/test_agent_circle \
	%D%/test_agent_lease \
	%D%/test_agent_messages \
	%D%/test_agent_owners \
	%D%/test_agent_pool \
	%D%/test_allocator_threads \
	%D%/test_answers \
	%D%/test_barriers \
	%D%/test_buffer \
	%D%/test_buffer_batch \
	%D%/test_buffer_cancel \
	%D%/test_buffer_hold \
	%D%/test_buffer_owners \
	%D%/test_buffer_quick \
	%D%/test_buffer_region \
	%D%/test_connect \
	%D%/test_contention \
	%D%/test_data \
	%D%/test_deprived \
	%D%/test_direct_ends \
	%D%/test_exchange \
	%D%/test_exchange_root \
	%D%/test_exchange_tcp \
	%D%/test_fault_close \
	%D%/test_fault_signals \
	%D%/test_files \
	%D%/test_gather \
	%D%/test_hostile \
	%D%/test_keys \
	%D%/test_meeting \
	%D%/test_members \
	%D%/test_mr_cache \
	%D%/test_node \
	%D%/test_node_connect \
	%D%/test_node_grow \
	%D%/test_node_lazy \
	%D%/test_node_lazy_calls \
	%D%/test_node_limit \
	%D%/test_node_open \
	%D%/test_node_rejoin \
	%D%/test_pmix \
	%D%/test_pool \
	%D%/test_relay \
	%D%/test_release \
	%D%/test_room \
	%D%/test_scope_stale \
	%D%/test_shared \
	%D%/test_soak \
	%D%/test_stripes \
	%D%/test_submit \
	%D%/test_threads \
	%D%/test_told \
	%D%/test_verbs \
	%D%/test_verbs_agents \
	%D%/test_verbs_events \
	%D%/test_verbs_queues \
	%D%/test_verbs_rdmacm \
	%D%/test_verbs_stripes \
	%D%/test_waiting \
	%D%/test_wrap

# Those that wait for long, which scripts/test --quick leaves to the others.
long_tests = \
	%D%/test_exchange_hostile \
	%D%/test_exchange_refused \
	%D%/test_interleave \
	%D%/test_soak \
	%D%/test_waiting

# What it runs of the checks.
quick_checks = \
	%D%/check-headers.sh \
	%D%/check-style.sh \
	%D%/check-symbols.sh \
	%D%/check-words.sh

# What make coverage runs: all programs, on soft and on pretend devices.
coverage_tests = $(test_programs) %D%/check-verbs.sh

# Those of the next list in which no bytes of peers and no memory are at stake; scripts/test does not
# run them under AddressSanitizer.
uninstrumented_tests = \
	%D%/test_choice \
	%D%/test_devices \
	%D%/test_environment \
	%D%/test_launch \
	%D%/test_near \
	%D%/test_told \
	%D%/test_verbs_choice \
	%D%/test_verbs_devices \
	%D%/test_words

# What scripts/test runs under AddressSanitizer and for coverage, for it has not the time for all:
# each test there is a process, which starts slowly, or adds to 230 files of counters when it ends.
# They reach nearly as many lines; scripts/test --full runs all of them under sanitizers.
chosen_tests = \
	%D%/test_admitted \
	%D%/test_agent \
	%D%/test_agent_lease \
	%D%/test_agent_messages \
	%D%/test_agent_owners \
	%D%/test_agent_regions \
	%D%/test_allocator \
	%D%/test_atomics \
	%D%/test_attributes \
	%D%/test_barriers \
	%D%/test_blocks \
	%D%/test_buffer \
	%D%/test_buffer_batch \
	%D%/test_buffer_blocks \
	%D%/test_buffer_cancel \
	%D%/test_buffer_hold \
	%D%/test_buffer_owners \
	%D%/test_buffer_quick \
	%D%/test_buffer_region \
	%D%/test_choice \
	%D%/test_connect \
	%D%/test_counters \
	%D%/test_data \
	%D%/test_deprived \
	%D%/test_devices \
	%D%/test_direct \
	%D%/test_direct_ends \
	%D%/test_door \
	%D%/test_engine \
	%D%/test_environment \
	%D%/test_exchange \
	%D%/test_exchange_root \
	%D%/test_exchange_secret \
	%D%/test_exchange_tcp \
	%D%/test_farewell \
	%D%/test_fault_kill \
	%D%/test_forbidden \
	%D%/test_forms \
	%D%/test_fuzz_agent \
	%D%/test_fuzz_buffer_handle \
	%D%/test_fuzz_connect \
	%D%/test_fuzz_endpoint \
	%D%/test_fuzz_exchange \
	%D%/test_fuzz_frame \
	%D%/test_fuzz_host_file \
	%D%/test_fuzz_launch \
	%D%/test_fuzz_meeting \
	%D%/test_fuzz_remote_mr \
	%D%/test_gather \
	%D%/test_host_file \
	%D%/test_hostile \
	%D%/test_launch \
	%D%/test_list \
	%D%/test_list_change \
	%D%/test_meeting \
	%D%/test_memory \
	%D%/test_messages \
	%D%/test_misuse \
	%D%/test_mr_cache \
	%D%/test_near \
	%D%/test_negotiation \
	%D%/test_node \
	%D%/test_node_connect \
	%D%/test_node_grow \
	%D%/test_node_lazy \
	%D%/test_node_lazy_calls \
	%D%/test_node_limit \
	%D%/test_node_open \
	%D%/test_node_rejoin \
	%D%/test_objects \
	%D%/test_pmi \
	%D%/test_pmix \
	%D%/test_pool \
	%D%/test_rdmacm \
	%D%/test_release \
	%D%/test_room \
	%D%/test_scope \
	%D%/test_scope_posts \
	%D%/test_scope_stale \
	%D%/test_shared \
	%D%/test_threads \
	%D%/test_told \
	%D%/test_verbs \
	%D%/test_verbs_agents \
	%D%/test_verbs_choice \
	%D%/test_verbs_devices \
	%D%/test_verbs_events \
	%D%/test_verbs_infiniband \
	%D%/test_verbs_iwarp \
	%D%/test_verbs_limits \
	%D%/test_verbs_memory \
	%D%/test_verbs_queues \
	%D%/test_verbs_rdmacm \
	%D%/test_verbs_stripes \
	%D%/test_words \
	%D%/test_wrap

# What differs where jansson is not; scripts/test runs them there, too.
exchange_tests = \
	%D%/test_exchange_root \
	%D%/test_exchange_secret \
	%D%/test_exchange_tcp \
	%D%/test_host_file \
	%D%/test_launch \
	%D%/test_pmi

# Takes long, because launchers do.
launch_checks = \
	%D%/check-launch.sh \
	%D%/check-launch-hosts.sh \
	%D%/check-munge.sh

# Checks of what was built, one a line, sorted.
build_checks = \
	%D%/check-connect.sh \
	%D%/check-copies.sh \
	%D%/check-dlopen.sh \
	%D%/check-examples.sh \
	%D%/check-fortran.sh \
	%D%/check-html.sh \
	%D%/check-info.sh \
	%D%/check-install.sh \
	%D%/check-instructions.sh \
	%D%/check-manual.sh \
	%D%/check-many.sh \
	%D%/check-perf.sh \
	%D%/check-places.sh \
	%D%/check-probes.sh \
	%D%/check-python.sh \
	%D%/check-simulate-calls.sh \
	%D%/check-simulate-diagram.sh \
	%D%/check-simulate.sh \
	%D%/check-symbols.sh \
	%D%/check-tutorial.sh \
	%D%/check-usage.sh \
	%D%/check-valgrind.sh \
	%D%/check-verbs.sh \
	%D%/check-versions.sh \
	%D%/check-wheel.sh

# What differs in a build without verbs and jansson; scripts/test runs these there, with the programs
# of exchange_tests.
featureless_checks = \
	%D%/check-connect.sh \
	%D%/check-copies.sh \
	%D%/check-dlopen.sh \
	%D%/check-info.sh \
	%D%/check-install.sh \
	%D%/check-probes.sh \
	%D%/check-symbols.sh \
	%D%/check-verbs.sh

# Builds with four tools what knows nothing but what is installed.
consumer_checks = %D%/check-consumers.sh

# Checks of configure, one a line, sorted. They take long: scripts/test runs them once, as
# more_checks of the stage plain.
configure_checks = \
	%D%/check-linkage.sh
more_checks =

# Checks of the sources, one a line, sorted.
source_checks = \
	%D%/check-abi.sh \
	%D%/check-contributing.sh \
	%D%/check-docs.sh \
	%D%/check-headers.sh \
	%D%/check-layers.sh \
	%D%/check-lint.sh \
	%D%/check-manual-self.sh \
	%D%/check-packaging.sh \
	%D%/check-style.sh \
	%D%/check-typestate.sh \
	%D%/check-words.sh

# What waits for long, and only concerns who changes scripts: scripts/test --full runs them.
script_checks = \
	%D%/check-dist.sh \
	%D%/check-scripts.sh

# What the test programs share. One source or header a line, sorted.
%C%_libtestsupport_la_SOURCES = \
	%D%/support/client.c \
	%D%/support/client.h \
	%D%/support/fair.c \
	%D%/support/fair.h \
	%D%/support/fault.c \
	%D%/support/fault.h \
	%D%/support/forms.c \
	%D%/support/forms.h \
	%D%/support/group.c \
	%D%/support/group.h \
	%D%/support/halfway.c \
	%D%/support/halfway.h \
	%D%/support/heap.h \
	%D%/support/hostile.c \
	%D%/support/hostile.h \
	%D%/support/inodes.c \
	%D%/support/inodes.h \
	%D%/support/iwarp.c \
	%D%/support/iwarp.h \
	%D%/support/memory.c \
	%D%/support/memory.h \
	%D%/support/near.c \
	%D%/support/near.h \
	%D%/support/pair.c \
	%D%/support/pair.h \
	%D%/support/process.c \
	%D%/support/process.h \
	%D%/support/ranks.c \
	%D%/support/ranks.h \
	%D%/support/stranger.c \
	%D%/support/stranger.h \
	%D%/support/suite.c \
	%D%/support/suite.h \
	%D%/support/words.c \
	%D%/support/words.h

# The library's objects as an archive. Of an archive the linker takes what is still
# missing: a test that brings a transport and a clock gets the rest of the library,
# and neither the real transports nor the real clock.
%C%_libobjects_la_SOURCES =
%C%_libobjects_la_LIBADD = $(lib_libsluice_la_OBJECTS)

LDADD = $(TEST_LIBS)
TEST_LIBS = \
	%D%/libtestsupport.la \
	lib/libsluice.la \
	$(CHECK_LIBS) \
	$(SODIUM_LIBS)

if CHECK
check_LTLIBRARIES += %D%/libobjects.la %D%/libtestsupport.la
check_PROGRAMS += $(test_programs) $(guest_programs) tests/probes
tests_probes_SOURCES = %D%/probes.c
tests_probes_LDADD = lib/libsluice.la
TESTS = $(test_programs) $(build_checks) $(consumer_checks) $(launch_checks) $(source_checks) \
	$(more_checks)
else
TESTS = $(build_checks) $(consumer_checks) $(source_checks)
check-local:
	@echo 'configure did not find Check: only the checks of the tree are run'
endif

EXTRA_DIST += \
	$(build_checks) \
	$(consumer_checks) \
	$(launch_checks) \
	$(configure_checks) \
	$(script_checks) \
	$(source_checks) \
	%D%/README.md \
	%D%/abi/libsluice.abi \
	%D%/abi/libsluice.constants \
	%D%/base/copies.c \
	%D%/check-layers.py \
	%D%/headers/durations.c \
	%D%/lint/cppcheck \
	%D%/lint/facts.h \
	%D%/lint/known \
	%D%/lint/queue.cfg \
	%D%/lint/words \
	%D%/packages/check \
	%D%/places/pair.c \
	%D%/packages/form.sh \
	%D%/packages/inside \
	%D%/packages/recipes \
	%D%/packages/rpm \
	%D%/packages/spack.py \
	%D%/previous-release \
	%D%/softroce/README.md \
	%D%/softroce/check-gids.sh \
	%D%/softroce/check-hosts.sh \
	%D%/softroce/check-ptrace.sh \
	%D%/softroce/check-python.sh \
	%D%/softroce/check-run.sh \
	%D%/softroce/check-static.sh \
	%D%/softroce/chosen \
	%D%/softroce/chosen-siw \
	%D%/softroce/guest \
	%D%/softroce/image \
	%D%/softroce/run \
	%D%/softroce/siw \
	%D%/tap.sh \
	%D%/timed.sh \
	%D%/tsan.suppressions \
	%D%/typestate/mpi.h \
	%D%/typestate/right-agent.c \
	%D%/typestate/right-allocator.c \
	%D%/typestate/right-buffer-batch.c \
	%D%/typestate/right-buffer.c \
	%D%/typestate/right-channel.c \
	%D%/typestate/right-connect.c \
	%D%/typestate/right-exchange.c \
	%D%/typestate/right-multichannel.c \
	%D%/typestate/right-node.c \
	%D%/typestate/right-scope-block.c \
	%D%/typestate/right-scope.c \
	%D%/typestate/wrong-agent.c \
	%D%/typestate/wrong-allocator.c \
	%D%/typestate/wrong-buffer-batch.c \
	%D%/typestate/wrong-buffer.c \
	%D%/typestate/wrong-channel.c \
	%D%/typestate/wrong-connect.c \
	%D%/typestate/wrong-context.c \
	%D%/typestate/wrong-device-list.c \
	%D%/typestate/wrong-exchange.c \
	%D%/typestate/wrong-mpi.c \
	%D%/typestate/wrong-mr.c \
	%D%/typestate/wrong-multichannel.c \
	%D%/typestate/wrong-node.c \
	%D%/typestate/wrong-pd.c \
	%D%/typestate/wrong-scope.c \
	%D%/typestate/wrong.h \
	%D%/versions/channels.c \
	%D%/versions/ranks.c \
	%D%/versions/services.c \
	%D%/versions/talk.c \
	%D%/versions/talk.h

AM_TESTS_ENVIRONMENT = \
	CC='$(CC)' NM='$(NM)' PKG_CONFIG='$(PKG_CONFIG)' MAKE='$(MAKE)' \
	prefix='$(prefix)' libdir='$(libdir)' VERSION='$(VERSION)' \
	SANITIZE='$(SLUICE_SANITIZE)' VERBS='$(HAVE_VERBS)' VERBS_CFLAGS='$(VERBS_CFLAGS)' \
	MPICC='$(MPICC)' MPIEXEC='$(MPIEXEC)' MPI_CFLAGS='$(MPI_CFLAGS)'; \
	export CC NM PKG_CONFIG MAKE prefix libdir VERSION SANITIZE VERBS VERBS_CFLAGS MPICC \
	MPIEXEC MPI_CFLAGS;

# What is installed serves whole projects of users, at its place.
installcheck-local:
	@$(AM_TESTS_ENVIRONMENT) srcdir='$(srcdir)' DESTDIR='$(DESTDIR)' TAP_EXIT=yes \
	  $(SHELL) $(srcdir)/%D%/check-consumers.sh --there

TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/tests/timed.sh \
	$(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
