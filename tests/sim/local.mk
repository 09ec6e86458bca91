# SPDX-License-Identifier: MIT
# The simulator. Its modules have the library's own objects, and the programs of the ranks; the
# fabric is in the place of the verbs transport. One source or header a line, sorted.
if SIMULATION
check_PROGRAMS += %D%/simulate
check_LTLIBRARIES += %D%/rank.la
if VERBS
check_LTLIBRARIES += %D%/fabric.la
endif
endif
%C%_simulate_SOURCES = \
	%D%/atomic.c \
	%D%/calls.c \
	%D%/calls.h \
	%D%/descriptor.c \
	%D%/fabric/answer.c \
	%D%/fabric/ask.c \
	%D%/fabric/fabric.c \
	%D%/fabric/fabric.h \
	%D%/fabric/pair.c \
	%D%/fabric/wire.c \
	%D%/fabric/wire.h \
	%D%/fault.c \
	%D%/fault.h \
	%D%/files.c \
	%D%/gather.c \
	%D%/heap.c \
	%D%/launch.c \
	%D%/launch.h \
	%D%/loader.c \
	%D%/loader.h \
	%D%/main.c \
	%D%/memory.c \
	%D%/network.c \
	%D%/network.h \
	%D%/object.c \
	%D%/process.c \
	%D%/process.h \
	%D%/random.c \
	%D%/random.h \
	%D%/report.h \
	%D%/share.c \
	%D%/share.h \
	%D%/sim.h \
	%D%/socket.c \
	%D%/stream.c \
	%D%/stream.h \
	%D%/system.h \
	%D%/task.c \
	%D%/task.h \
	%D%/thread.c \
	%D%/world.c \
	%D%/world.h
%C%_simulate_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% -I$(top_srcdir)/lib
%C%_simulate_CFLAGS = $(AM_CFLAGS) -Wno-unused-parameter
# The simulated calls are found by their names.
%C%_simulate_LDFLAGS = $(AM_LDFLAGS) -export-dynamic -Wl,--no-as-needed
%C%_simulate_LDADD = $(SODIUM_LIBS) $(JANSSON_LIBS)
%C%_rank_la_SOURCES = \
	%D%/programs/agent.c \
	%D%/programs/batch.c \
	%D%/programs/buffer.c \
	%D%/programs/crowd.c \
	%D%/programs/forms.c \
	%D%/programs/forms.h \
	%D%/programs/forms_inside.c \
	%D%/programs/forms_memory.c \
	%D%/programs/forms_vector.c \
	%D%/programs/grow.c \
	%D%/programs/lease.c \
	%D%/programs/listener.c \
	%D%/programs/message.c \
	%D%/programs/node.c \
	%D%/programs/programs.c \
	%D%/programs/programs.h \
	%D%/programs/rejoin.c \
	%D%/programs/ring.c \
	%D%/programs/ring.h \
	%D%/programs/scatter.c \
	%D%/programs/scenarios.c \
	%D%/programs/scenarios.h \
	%D%/programs/scene.c \
	%D%/programs/scene.h \
	%D%/programs/scene_faults.c \
	%D%/programs/scene_helper.c \
	%D%/programs/scene_jobs.c \
	%D%/programs/scene_ranks.c \
	%D%/programs/scene_requests.c \
	%D%/programs/scene_results.c \
	%D%/programs/store.c \
	%D%/programs/styles.c \
	%D%/programs/traffic.c \
	%D%/programs/traffic.h \
	%D%/programs/truth.c \
	%D%/sim.h
%C%_rank_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/%D% -I%D%/programs
%C%_rank_la_LDFLAGS = $(AM_LDFLAGS) -module -avoid-version -rpath /nowhere \
	-Wl,-Bsymbolic,-z,undefs
%C%_rank_la_LIBADD = tests/libobjects.la
# Calls of the programs, with their results, are in the trace.
%D%/programs/called.h: $(top_srcdir)/lib/sluice.map
	$(AM_V_GEN)$(MKDIR_P) %D%/programs && { \
	sed -n 's/^SLUICE_EXPORT void \(sluice_[a-z0-9_]*\)(.*/\1 CALL_IN_VOID/p' \
		$(top_srcdir)/include/sluice/*.h; \
	sed -n 's/^ *\(sluice_[a-z0-9_]*\);$$/\1 CALL/p' $(top_srcdir)/lib/sluice.map; } | \
	awk '!seen[$$1]++ && !/^sluice_(last_error|status_name|error_class_name|load_)/ { \
		printf "#define %s(...) %s(__COUNTER__, \"%s\", (%s)(__VA_ARGS__))\n", \
		       $$1, $$2, $$1, $$1 }' >$@.new && mv $@.new $@
$(%C%_rank_la_OBJECTS) $(%C%_fabric_la_OBJECTS): %D%/programs/called.h
CLEANFILES += %D%/programs/called.h
# The same programs on the fabric: its transport takes the place of that for verbs, so the library
# is linked as an archive, of which the linker leaves out what is not needed.
%C%_fabric_la_SOURCES = \
	%D%/fabric/device.c \
	%D%/fabric/fabric.h \
	$(%C%_rank_la_SOURCES)
%C%_fabric_la_CPPFLAGS = $(%C%_rank_la_CPPFLAGS) -I$(top_srcdir)/lib
%C%_fabric_la_LDFLAGS = $(%C%_rank_la_LDFLAGS) -Wl,tests/.libs/libobjects.a
%C%_fabric_la_DEPENDENCIES = tests/libobjects.la
EXTRA_DIST += %D%/README.md %D%/diagram %D%/mutate %D%/mutations %D%/night %D%/shrink %D%/simulate.gdb %D%/weights
