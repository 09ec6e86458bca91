# SPDX-License-Identifier: MIT
# Test programs and checks of the tree. All speak TAP.

# A test, tests/test_NAME.c, is one line here, sorted. It is linked with the
# support library, libsluice and Check. If it needs more, it gets
# %C%_test_NAME_SOURCES, _LDADD ($(LDADD) and more) or _CFLAGS ($(AM_CFLAGS) and more).
test_programs = \
	%D%/test_access \
	%D%/test_arguments \
	%D%/test_atomics \
	%D%/test_attributes \
	%D%/test_barriers \
	%D%/test_barriers_blame \
	%D%/test_barriers_broken \
	%D%/test_barriers_mixed \
	%D%/test_choice \
	%D%/test_contention \
	%D%/test_counters \
	%D%/test_data \
	%D%/test_deadlines \
	%D%/test_deprived \
	%D%/test_descriptors \
	%D%/test_devices \
	%D%/test_elements \
	%D%/test_endpoints \
	%D%/test_engine \
	%D%/test_environment \
	%D%/test_errors \
	%D%/test_event_loop \
	%D%/test_exchange \
	%D%/test_exchange_hostile \
	%D%/test_exchange_memory \
	%D%/test_exchange_root \
	%D%/test_exchange_secret \
	%D%/test_exchange_tcp \
	%D%/test_fault_close \
	%D%/test_fault_depth \
	%D%/test_fault_exit \
	%D%/test_fault_fork \
	%D%/test_fault_kill \
	%D%/test_fault_page \
	%D%/test_fault_signals \
	%D%/test_fault_stop \
	%D%/test_fault_unpolled \
	%D%/test_gather \
	%D%/test_forked \
	%D%/test_handles \
	%D%/test_hostile \
	%D%/test_host_file \
	%D%/test_hosts \
	%D%/test_inline \
	%D%/test_keepalive \
	%D%/test_launch \
	%D%/test_listener \
	%D%/test_memory \
	%D%/test_misuse \
	%D%/test_near \
	%D%/test_node \
	%D%/test_node_alone \
	%D%/test_node_open \
	%D%/test_node_rejoin \
	%D%/test_objects \
	%D%/test_order \
	%D%/test_partly \
	%D%/test_path \
	%D%/test_peers \
	%D%/test_pmi \
	%D%/test_pmix \
	%D%/test_process \
	%D%/test_progress \
	%D%/test_reset \
	%D%/test_scale \
	%D%/test_scatter \
	%D%/test_scope \
	%D%/test_scope_block \
	%D%/test_scope_killed \
	%D%/test_scope_posts \
	%D%/test_scope_stale \
	%D%/test_semantics \
	%D%/test_soak \
	%D%/test_steady \
	%D%/test_submit \
	%D%/test_threads \
	%D%/test_unpolled \
	%D%/test_unpolled_forms \
	%D%/test_waiting \
	%D%/test_words \
	%D%/test_wrap

# A pretend RDMA device in the place of libibverbs. One source or header a line, sorted.
fake_verbs_sources = \
	%D%/verbs/fake_control.c \
	%D%/verbs/fake_cq.c \
	%D%/verbs/fake_device.c \
	%D%/verbs/fake_device.h \
	%D%/verbs/fake_events.c \
	%D%/verbs/fake_execute.c \
	%D%/verbs/fake_memory.c \
	%D%/verbs/fake_post.c \
	%D%/verbs/fake_qp.c \
	%D%/verbs/fake_verbs.h \
	%D%/verbs/fake_wire.c

# It is linked with a test of its own; and as a libibverbs that is found first, it
# lets the other test programs run on it. The -rpath only asks for a shared library.
if VERBS
%C%_verbs_libibverbs_la_SOURCES = $(fake_verbs_sources)
%C%_verbs_libibverbs_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_verbs_libibverbs_la_LDFLAGS = $(AM_LDFLAGS) \
	-rpath /nowhere \
	-version-info 1:0:0 \
	-Wl,--version-script=$(top_srcdir)/%D%/verbs/fake_verbs.map

# Tests of the library's own objects on it, linked into the program. Objects for a
# static libibverbs want its providers, which the pretend one has not got.
if !STATIC_VERBS
test_programs += \
	%D%/test_verbs \
	%D%/test_verbs_causes \
	%D%/test_verbs_choice \
	%D%/test_verbs_devices \
	%D%/test_verbs_events \
	%D%/test_verbs_forked \
	%D%/test_verbs_infiniband \
	%D%/test_verbs_limits \
	%D%/test_verbs_memory \
	%D%/test_verbs_nearest \
	%D%/test_verbs_path \
	%D%/test_verbs_peers \
	%D%/test_verbs_queues \
	%D%/test_verbs_status \
	%D%/test_verbs_watch
endif
%C%_verbs_libfake_la_SOURCES = $(fake_verbs_sources)
%C%_verbs_libfake_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
FAKE_LIBS = \
	%D%/libtestsupport.la \
	%D%/libobjects.la \
	%D%/verbs/libfake.la \
	$(CHECK_LIBS)

# Its allocations and fds fail as well.
%C%_test_verbs_SOURCES = \
	%D%/test_verbs.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=calloc,--wrap=realloc,--wrap=mmap \
	-Wl,--wrap=eventfd,--wrap=epoll_create1,--wrap=epoll_ctl
%C%_test_verbs_LDADD = $(FAKE_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS)

# It looks at what completion queues are made with.
%C%_test_verbs_causes_SOURCES = \
	%D%/test_verbs_causes.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_causes_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_causes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_create_cq
%C%_test_verbs_causes_LDADD = $(FAKE_LIBS)

%C%_test_verbs_choice_SOURCES = \
	%D%/test_verbs_choice.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_choice_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_choice_LDADD = $(FAKE_LIBS)

%C%_test_verbs_devices_SOURCES = \
	%D%/test_verbs_devices.c \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_devices_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_devices_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_get_device_list
%C%_test_verbs_devices_LDADD = $(FAKE_LIBS)

%C%_test_verbs_events_SOURCES = \
	%D%/test_verbs_events.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_events_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_events_LDADD = $(FAKE_LIBS)

# Opening and closing takes its time there.
%C%_test_verbs_forked_SOURCES = \
	%D%/test_verbs_forked.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_forked_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_forked_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=ibv_open_device,--wrap=ibv_close_device \
	-Wl,--wrap=ibv_create_comp_channel,--wrap=ibv_destroy_comp_channel
%C%_test_verbs_forked_LDADD = $(FAKE_LIBS)

%C%_test_verbs_infiniband_SOURCES = \
	%D%/test_verbs_infiniband.c \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_infiniband_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_infiniband_LDADD = $(FAKE_LIBS)

%C%_test_verbs_limits_SOURCES = \
	%D%/test_verbs_limits.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_limits_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_limits_LDADD = $(FAKE_LIBS)

%C%_test_verbs_memory_SOURCES = \
	%D%/test_verbs_memory.c \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_memory_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_memory_LDADD = $(FAKE_LIBS)

# Its machine is made up.
%C%_test_verbs_nearest_SOURCES = \
	$(made_up_machine) \
	%D%/test_verbs_nearest.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_nearest_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
%C%_test_verbs_nearest_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_nearest_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=ibv_get_device_list,--wrap=slu_near_read
%C%_test_verbs_nearest_LDADD = $(FAKE_LIBS)

%C%_test_verbs_path_SOURCES = \
	%D%/test_verbs_path.c \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_path_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_path_LDADD = $(FAKE_LIBS)

%C%_test_verbs_peers_SOURCES = \
	%D%/test_verbs_peers.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_peers_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_peers_LDADD = $(FAKE_LIBS)

%C%_test_verbs_queues_SOURCES = \
	%D%/test_verbs_queues.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_queues_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_queues_LDADD = $(FAKE_LIBS)

%C%_test_verbs_status_SOURCES = \
	%D%/test_verbs_status.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h
%C%_test_verbs_status_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_status_LDADD = $(FAKE_LIBS)

%C%_test_verbs_watch_SOURCES = \
	%D%/test_verbs_watch.c \
	%D%/verbs/check.c \
	%D%/verbs/check.h \
	%D%/verbs/ports.c \
	%D%/verbs/ports.h
%C%_test_verbs_watch_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_verbs_watch_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_create_qp
%C%_test_verbs_watch_LDADD = $(FAKE_LIBS)
endif

# Those that only a guest can run, on a device of its own; see softroce/README.md.
guest_programs = \
	%D%/test_events

# Those test programs in which no threads meet, or as in others, or which count what
# ThreadSanitizer does itself; scripts/test runs the others under it.
unthreaded_tests = \
	%D%/test_choice \
	%D%/test_descriptors \
	%D%/test_environment \
	%D%/test_exchange_hostile \
	%D%/test_exchange_secret \
	%D%/test_forked \
	%D%/test_host_file \
	%D%/test_launch \
	%D%/test_misuse \
	%D%/test_near \
	%D%/test_steady \
	%D%/test_verbs_choice \
	%D%/test_verbs_devices \
	%D%/test_verbs_forked \
	%D%/test_verbs_infiniband \
	%D%/test_verbs_limits \
	%D%/test_verbs_memory \
	%D%/test_verbs_nearest \
	%D%/test_verbs_path \
	%D%/test_verbs_status

# What differs where libsodium and jansson are not; scripts/test runs them there, too.
exchange_tests = \
	%D%/test_exchange_root \
	%D%/test_exchange_secret \
	%D%/test_exchange_tcp \
	%D%/test_host_file \
	%D%/test_launch \
	%D%/test_pmi

# Takes long, because launchers do.
launch_checks = %D%/check-launch.sh %D%/check-munge.sh

# Checks of what was built, one a line, sorted.
build_checks = \
	%D%/check-examples.sh \
	%D%/check-install.sh \
	%D%/check-instructions.sh \
	%D%/check-manual.sh \
	%D%/check-symbols.sh \
	%D%/check-verbs.sh

# Checks of configure, one a line, sorted. They take long: scripts/test runs them once.
configure_checks = \
	%D%/check-linkage.sh

# Checks of the sources, one a line, sorted.
source_checks = \
	%D%/check-abi.sh \
	%D%/check-headers.sh \
	%D%/check-style.sh \
	%D%/check-typestate.sh

# What the test programs share. One source or header a line, sorted.
%C%_libtestsupport_la_SOURCES = \
	%D%/support/crew.c \
	%D%/support/crew.h \
	%D%/support/fair.c \
	%D%/support/fair.h \
	%D%/support/fault.c \
	%D%/support/fault.h \
	%D%/support/group.c \
	%D%/support/group.h \
	%D%/support/hostile.c \
	%D%/support/hostile.h \
	%D%/support/memory.c \
	%D%/support/memory.h \
	%D%/support/pair.c \
	%D%/support/pair.h \
	%D%/support/process.c \
	%D%/support/process.h \
	%D%/support/suite.c \
	%D%/support/suite.h \
	%D%/support/words.c \
	%D%/support/words.h

# The library's objects as an archive. Of an archive the linker takes what is still
# missing: a test that brings a transport and a clock gets the rest of the library,
# and neither the real transports nor the real clock.
%C%_libobjects_la_SOURCES =
%C%_libobjects_la_LIBADD = $(lib_libsluice_la_OBJECTS)

# The engine on a pretend device; engine/unwind.c makes its allocations fail. One
# source or header a line, sorted.
%C%_test_engine_SOURCES = \
	%D%/engine/fake.c \
	%D%/engine/fake.h \
	%D%/engine/fake_queues.c \
	%D%/engine/fake_queues.h \
	%D%/engine/fuzz.c \
	%D%/engine/fuzz.h \
	%D%/engine/fuzz_scope.c \
	%D%/engine/fuzz_state.h \
	%D%/engine/fuzz_unpolled.c \
	%D%/engine/handles.c \
	%D%/engine/handles.h \
	%D%/engine/invariants.c \
	%D%/engine/invariants.h \
	%D%/engine/probes.c \
	%D%/engine/probes.h \
	%D%/engine/proof.c \
	%D%/engine/proof.h \
	%D%/engine/rig.c \
	%D%/engine/rig.h \
	%D%/engine/split.c \
	%D%/engine/split.h \
	%D%/engine/unwind.c \
	%D%/engine/unwind.h \
	%D%/test_engine.c
%C%_test_engine_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
%C%_test_engine_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc
%C%_test_engine_LDADD = \
	%D%/libtestsupport.la \
	%D%/libobjects.la \
	$(CHECK_LIBS)

# One source or header a line, sorted.
%C%_test_counters_SOURCES = \
	%D%/counters/desk.c \
	%D%/counters/desk.h \
	%D%/counters/failures.c \
	%D%/test_counters.c

# Ranks in threads, on the loopback. One source or header a line, sorted.
exchange_ranks = \
	%D%/exchange/ranks.c \
	%D%/exchange/ranks.h
exchange_liar = \
	%D%/exchange/liar.c \
	%D%/exchange/liar.h
%C%_test_descriptors_SOURCES = \
	$(exchange_ranks) \
	%D%/test_descriptors.c
%C%_test_exchange_hostile_SOURCES = \
	$(exchange_liar) \
	$(exchange_ranks) \
	%D%/test_exchange_hostile.c
%C%_test_exchange_memory_SOURCES = \
	$(exchange_liar) \
	$(exchange_ranks) \
	%D%/test_exchange_memory.c
%C%_test_exchange_memory_CPPFLAGS = $(PMIX_TEST_CPPFLAGS)
%C%_test_exchange_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=malloc
%C%_test_exchange_memory_LDADD = $(LAUNCH_LIBS)
EXTRA_%C%_test_exchange_memory_DEPENDENCIES = %D%/pmix/libpmix.la
%C%_test_exchange_root_SOURCES = \
	$(exchange_ranks) \
	%D%/test_exchange_root.c
%C%_test_exchange_secret_SOURCES = \
	$(exchange_liar) \
	$(exchange_ranks) \
	%D%/test_exchange_secret.c
%C%_test_exchange_tcp_SOURCES = \
	$(exchange_ranks) \
	%D%/test_exchange_tcp.c
%C%_test_node_alone_SOURCES = \
	$(exchange_ranks) \
	%D%/test_node_alone.c
%C%_test_node_open_SOURCES = \
	$(exchange_ranks) \
	%D%/test_node_open.c

# It compares its lists with those of the manual. One source or header a line, sorted.
%C%_test_misuse_SOURCES = \
	%D%/misuse/mistakes.c \
	%D%/misuse/mistakes.h \
	%D%/misuse/objects.c \
	%D%/misuse/ranks.c \
	%D%/misuse/runtime.c \
	%D%/test_misuse.c
%C%_test_misuse_CPPFLAGS = $(AM_CPPFLAGS) -DMAP='"$(abs_top_srcdir)/lib/sluice.map"' \
	-DERRORS_PAGE='"$(abs_top_srcdir)/man/sluice_errors.7"'

# One source or header a line, sorted.
%C%_test_semantics_SOURCES = \
	%D%/semantics/desk.c \
	%D%/semantics/desk.h \
	%D%/semantics/handles.c \
	%D%/semantics/peers.c \
	%D%/test_semantics.c

# It asks the device what it was told, where there is libibverbs.
%C%_test_path_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_path_LDADD = $(LDADD) $(VERBS_LIBS)

# It opens a device by itself, where there is libibverbs.
%C%_test_wrap_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_test_wrap_LDADD = $(LDADD) $(VERBS_LIBS)

# What an exchange is opened by: internal functions, on nothing but the environment.
LAUNCH_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
LAUNCH_LIBS = \
	%D%/libtestsupport.la \
	%D%/libobjects.la \
	$(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)
%C%_test_environment_CPPFLAGS = $(LAUNCH_CPPFLAGS)
%C%_test_environment_LDADD = $(LAUNCH_LIBS)
%C%_test_host_file_CPPFLAGS = $(LAUNCH_CPPFLAGS)
%C%_test_host_file_LDADD = $(LAUNCH_LIBS)
%C%_test_launch_CPPFLAGS = $(LAUNCH_CPPFLAGS)
%C%_test_launch_LDADD = $(LAUNCH_LIBS)

# Which device is taken, of lists and on machines that are made up.
made_up_machine = \
	%D%/near/machine.c \
	%D%/near/machine.h
%C%_test_choice_CPPFLAGS = $(LAUNCH_CPPFLAGS)
%C%_test_choice_LDADD = $(LAUNCH_LIBS)
%C%_test_near_SOURCES = \
	$(made_up_machine) \
	%D%/test_near.c
%C%_test_near_CPPFLAGS = $(LAUNCH_CPPFLAGS)
%C%_test_near_LDADD = $(LAUNCH_LIBS)

# The program that check-launch.sh starts by all kinds of launchers; it builds mpi.c itself.
check_PROGRAMS += %D%/launch/ranks
%C%_launch_ranks_SOURCES = %D%/launch/ranks.c
%C%_launch_ranks_LDADD = lib/libsluice.la

include tests/soak/local.mk

# A pretend libpmix, found under its name once the test has loaded it.
%C%_pmix_libpmix_la_SOURCES = %D%/pmix/fake.c
%C%_pmix_libpmix_la_CFLAGS = $(AM_CFLAGS) $(PMIX_CFLAGS)
%C%_pmix_libpmix_la_LDFLAGS = $(AM_LDFLAGS) -rpath /nowhere -version-info 2:0:0
PMIX_TEST_CPPFLAGS = $(AM_CPPFLAGS) \
	-DFAKE_PMIX='"$(abs_builddir)/%D%/pmix/.libs/libpmix.so.2"'
%C%_test_pmix_CPPFLAGS = $(PMIX_TEST_CPPFLAGS)
%C%_test_pmix_DEPENDENCIES = $(TEST_LIBS) %D%/pmix/libpmix.la

LDADD = $(TEST_LIBS)
TEST_LIBS = \
	%D%/libtestsupport.la \
	lib/libsluice.la \
	$(CHECK_LIBS)

if CHECK
if VERBS
check_LTLIBRARIES += %D%/verbs/libfake.la %D%/verbs/libibverbs.la
endif
check_LTLIBRARIES += %D%/libobjects.la %D%/libtestsupport.la %D%/pmix/libpmix.la
check_PROGRAMS += $(test_programs) $(guest_programs)
TESTS = $(test_programs) $(build_checks) $(launch_checks) $(source_checks)
else
TESTS = $(build_checks) $(source_checks)
check-local:
	@echo 'configure did not find Check: only the checks of the tree are run'
endif

EXTRA_DIST += \
	$(build_checks) \
	$(launch_checks) \
	$(configure_checks) \
	$(source_checks) \
	%D%/abi/libsluice.abi \
	%D%/abi/libsluice.constants \
	%D%/headers/durations.c \
	%D%/launch/mpi.c \
	%D%/launch/slurm \
	%D%/softroce/README.md \
	%D%/softroce/check-hosts.sh \
	%D%/softroce/check-run.sh \
	%D%/softroce/check-static.sh \
	%D%/softroce/guest \
	%D%/softroce/image \
	%D%/softroce/run \
	%D%/tap.sh \
	%D%/tsan.suppressions \
	%D%/verbs/fake_verbs.map \
	%D%/typestate/mpi.h \
	%D%/typestate/right-channel.c \
	%D%/typestate/right-exchange.c \
	%D%/typestate/right-multichannel.c \
	%D%/typestate/right-node.c \
	%D%/typestate/right-scope-block.c \
	%D%/typestate/right-scope.c \
	%D%/typestate/wrong-channel-endpoint-after-handshake.c \
	%D%/typestate/wrong-channel-forgotten-prepared.c \
	%D%/typestate/wrong-channel-forgotten.c \
	%D%/typestate/wrong-channel-free-prepared.c \
	%D%/typestate/wrong-channel-free.c \
	%D%/typestate/wrong-channel-handshake-after-free.c \
	%D%/typestate/wrong-channel-handshake-again.c \
	%D%/typestate/wrong-channel-ignored-cancel.c \
	%D%/typestate/wrong-channel-ignored-flush.c \
	%D%/typestate/wrong-channel-ignored-handshake.c \
	%D%/typestate/wrong-channel-ignored-post.c \
	%D%/typestate/wrong-channel-ignored-prepare.c \
	%D%/typestate/wrong-channel-ignored-send.c \
	%D%/typestate/wrong-channel-ignored-send-unpolled.c \
	%D%/typestate/wrong-channel-second-handshake.c \
	%D%/typestate/wrong-channel-send-after-close.c \
	%D%/typestate/wrong-channel-send-after-reset.c \
	%D%/typestate/wrong-channel-send-before-handshake.c \
	%D%/typestate/wrong-context-forgotten-wrapped.c \
	%D%/typestate/wrong-context-forgotten.c \
	%D%/typestate/wrong-context-free.c \
	%D%/typestate/wrong-context-ignored.c \
	%D%/typestate/wrong-context-pd-after-close.c \
	%D%/typestate/wrong-device-list-after-free.c \
	%D%/typestate/wrong-device-list-forgotten.c \
	%D%/typestate/wrong-device-list-ignored-nearest.c \
	%D%/typestate/wrong-exchange-barrier-after-close.c \
	%D%/typestate/wrong-exchange-forgotten-mpi.c \
	%D%/typestate/wrong-exchange-forgotten-wrapped.c \
	%D%/typestate/wrong-exchange-forgotten.c \
	%D%/typestate/wrong-exchange-free.c \
	%D%/typestate/wrong-exchange-ignored-allgather.c \
	%D%/typestate/wrong-exchange-ignored-mpi.c \
	%D%/typestate/wrong-exchange-ignored-open.c \
	%D%/typestate/wrong-mr-ignored-alloc.c \
	%D%/typestate/wrong-mr-ignored-register-dmabuf.c \
	%D%/typestate/wrong-mr-ignored-register.c \
	%D%/typestate/wrong-mr-ignored-sge.c \
	%D%/typestate/wrong-mr-ignored-slice.c \
	%D%/typestate/wrong-mr-ignored-unpack.c \
	%D%/typestate/wrong-mr-of-context.c \
	%D%/typestate/wrong-mr-write-to-local.c \
	%D%/typestate/wrong-multichannel-forgotten-prepared.c \
	%D%/typestate/wrong-multichannel-forgotten.c \
	%D%/typestate/wrong-multichannel-free-prepared.c \
	%D%/typestate/wrong-multichannel-free.c \
	%D%/typestate/wrong-multichannel-gather-after-close.c \
	%D%/typestate/wrong-multichannel-ignored-peer-reset.c \
	%D%/typestate/wrong-multichannel-ignored-prepare.c \
	%D%/typestate/wrong-multichannel-ignored-scatter-gather.c \
	%D%/typestate/wrong-multichannel-ignored-scatter-unpolled.c \
	%D%/typestate/wrong-multichannel-scatter-before-handshake.c \
	%D%/typestate/wrong-multichannel-second-handshake.c \
	%D%/typestate/wrong-node-barrier-after-close.c \
	%D%/typestate/wrong-node-barrier-before-handshake.c \
	%D%/typestate/wrong-node-forgotten-prepared.c \
	%D%/typestate/wrong-node-forgotten.c \
	%D%/typestate/wrong-node-free-prepared.c \
	%D%/typestate/wrong-node-free.c \
	%D%/typestate/wrong-node-ignored-barrier.c \
	%D%/typestate/wrong-node-ignored-open.c \
	%D%/typestate/wrong-node-ignored-peer-reset.c \
	%D%/typestate/wrong-node-second-handshake.c \
	%D%/typestate/wrong-pd-forgotten.c \
	%D%/typestate/wrong-pd-free-wrapped.c \
	%D%/typestate/wrong-pd-free.c \
	%D%/typestate/wrong-pd-ignored.c \
	%D%/typestate/wrong-pd-of-device-list.c \
	%D%/typestate/wrong-pd-prepare-after-free.c \
	%D%/typestate/wrong-scope-block-of-channel.c \
	%D%/typestate/wrong-scope-end-in-block.c \
	%D%/typestate/wrong-scope-forgotten-attached.c \
	%D%/typestate/wrong-scope-forgotten-end.c \
	%D%/typestate/wrong-scope-free.c \
	%D%/typestate/wrong-scope-ignored-begin.c \
	%D%/typestate/wrong-scope-ignored-post-send.c \
	%D%/typestate/wrong-scope-ignored-post.c \
	%D%/typestate/wrong-scope-ignored-scatter.c \
	%D%/typestate/wrong-scope-keep-from-block.c \
	%D%/typestate/wrong-scope-of-pd.c \
	%D%/typestate/wrong-scope-post-after-end.c \
	%D%/typestate/wrong-scope-post-by-channel.c \
	%D%/typestate/wrong-scope-second-end.c

AM_TESTS_ENVIRONMENT = \
	CC='$(CC)' NM='$(NM)' PKG_CONFIG='$(PKG_CONFIG)' MAKE='$(MAKE)' \
	prefix='$(prefix)' libdir='$(libdir)' VERSION='$(VERSION)' \
	SANITIZE='$(SLUICE_SANITIZE)' VERBS='$(HAVE_VERBS)' VERBS_CFLAGS='$(VERBS_CFLAGS)' \
	MPICC='$(MPICC)' MPIEXEC='$(MPIEXEC)' MPI_CFLAGS='$(MPI_CFLAGS)'; \
	export CC NM PKG_CONFIG MAKE prefix libdir VERSION SANITIZE VERBS VERBS_CFLAGS MPICC \
	MPIEXEC MPI_CFLAGS;

TEST_EXTENSIONS = .sh
LOG_DRIVER = env AM_TAP_AWK='$(AWK)' $(SHELL) $(top_srcdir)/build-aux/tap-driver.sh
SH_LOG_DRIVER = $(LOG_DRIVER)
SH_LOG_COMPILER = $(SHELL)
