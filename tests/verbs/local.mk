# SPDX-License-Identifier: MIT
# The verbs transport. One program, source or header a line, sorted.
test_programs += \
	tests/test_path \
	tests/test_wrap

# It asks the device what it was told, where there is libibverbs.
tests_test_path_SOURCES = %D%/test_path.c
tests_test_path_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_path_LDADD = $(LDADD) $(VERBS_LIBS)
# It opens a device by itself, where there is libibverbs.
tests_test_wrap_SOURCES = %D%/test_wrap.c
tests_test_wrap_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_wrap_LDADD = $(LDADD) $(VERBS_LIBS)

# A pretend RDMA device in the place of libibverbs. One source or header a line, sorted.
fake_verbs_sources = \
	%D%/fake_control.c \
	%D%/fake_cq.c \
	%D%/fake_device.c \
	%D%/fake_device.h \
	%D%/fake_events.c \
	%D%/fake_execute.c \
	%D%/fake_memory.c \
	%D%/fake_post.c \
	%D%/fake_qp.c \
	%D%/fake_srq.c \
	%D%/fake_verbs.h \
	%D%/fake_wire.c \
	%D%/fake_words.c
EXTRA_DIST += %D%/fake_verbs.map

# It is linked with a test of its own; and as a libibverbs that is found first, it
# lets the other test programs run on it. The -rpath only asks for a shared library.
if VERBS
if CHECK
check_LTLIBRARIES += %D%/libfake.la %D%/libibverbs.la
endif
%C%_libibverbs_la_SOURCES = $(fake_verbs_sources)
%C%_libibverbs_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
%C%_libibverbs_la_LDFLAGS = $(AM_LDFLAGS) \
	-rpath /nowhere \
	-version-info 1:0:0 \
	-Wl,--version-script=$(top_srcdir)/%D%/fake_verbs.map
%C%_libfake_la_SOURCES = $(fake_verbs_sources)
%C%_libfake_la_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
FAKE_LIBS = \
	tests/libtestsupport.la \
	tests/libobjects.la \
	%D%/libfake.la \
	$(CHECK_LIBS) \
	$(SODIUM_LIBS)

# Tests of the library's own objects on it, linked into the program. Objects for a
# static libibverbs want its providers, which the pretend one has not got.
if !STATIC_VERBS
test_programs += \
	tests/test_verbs \
	tests/test_verbs_agents \
	tests/test_verbs_causes \
	tests/test_verbs_choice \
	tests/test_verbs_devices \
	tests/test_verbs_drains \
	tests/test_verbs_events \
	tests/test_verbs_farewell \
	tests/test_verbs_forked \
	tests/test_verbs_gids \
	tests/test_verbs_hints \
	tests/test_verbs_infiniband \
	tests/test_verbs_limits \
	tests/test_verbs_members \
	tests/test_verbs_memory \
	tests/test_verbs_nearest \
	tests/test_verbs_path \
	tests/test_verbs_peers \
	tests/test_verbs_pool \
	tests/test_verbs_queues \
	tests/test_verbs_status \
	tests/test_verbs_stripes \
	tests/test_verbs_watch
if RDMACM
test_programs += tests/test_verbs_iwarp tests/test_verbs_rdmacm
endif
endif

# Its allocations and fds fail as well.
tests_test_verbs_SOURCES = \
	%D%/test_verbs.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=calloc,--wrap=realloc,--wrap=mmap \
	-Wl,--wrap=eventfd,--wrap=epoll_create1,--wrap=epoll_ctl
tests_test_verbs_LDADD = $(FAKE_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS)
tests_test_verbs_agents_SOURCES = \
	%D%/test_verbs_agents.c \
	%D%/check.c \
	%D%/check.h \
	tests/agent/agents.c \
	tests/agent/agents.h
tests_test_verbs_agents_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_agents_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_agents_LDADD = $(FAKE_LIBS) $(JANSSON_LIBS)
# It looks at what completion queues are made with.
tests_test_verbs_causes_SOURCES = \
	%D%/test_verbs_causes.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_causes_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_causes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_create_cq
tests_test_verbs_causes_LDADD = $(FAKE_LIBS)
tests_test_verbs_choice_SOURCES = \
	%D%/test_verbs_choice.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_choice_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_choice_LDADD = $(FAKE_LIBS)
tests_test_verbs_devices_SOURCES = \
	%D%/test_verbs_devices.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_devices_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_devices_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_get_device_list
tests_test_verbs_devices_LDADD = $(FAKE_LIBS)
tests_test_verbs_drains_SOURCES = \
	%D%/test_verbs_drains.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_drains_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_drains_LDADD = $(FAKE_LIBS) $(JANSSON_LIBS)
tests_test_verbs_events_SOURCES = \
	%D%/test_verbs_events.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_events_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_events_LDADD = $(FAKE_LIBS)
tests_test_verbs_farewell_SOURCES = \
	%D%/test_verbs_farewell.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_farewell_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_farewell_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_farewell_LDADD = $(FAKE_LIBS)
# Opening and closing takes its time there.
tests_test_verbs_forked_SOURCES = \
	%D%/test_verbs_forked.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_forked_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_forked_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=ibv_open_device,--wrap=ibv_close_device \
	-Wl,--wrap=ibv_create_comp_channel,--wrap=ibv_destroy_comp_channel
tests_test_verbs_forked_LDADD = $(FAKE_LIBS)
# The addresses of the host are pretended, too.
tests_test_verbs_gids_SOURCES = \
	%D%/test_verbs_gids.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_gids_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_gids_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getifaddrs,--wrap=freeifaddrs
tests_test_verbs_gids_LDADD = $(FAKE_LIBS)
tests_test_verbs_hints_SOURCES = \
	%D%/test_verbs_hints.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_hints_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_hints_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_hints_LDADD = $(FAKE_LIBS)
tests_test_verbs_infiniband_SOURCES = \
	%D%/test_verbs_infiniband.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_infiniband_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_infiniband_LDADD = $(FAKE_LIBS)
tests_test_verbs_limits_SOURCES = \
	%D%/test_verbs_limits.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_limits_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_limits_LDADD = $(FAKE_LIBS)
# Its allocations fail as well.
tests_test_verbs_members_SOURCES = \
	%D%/test_verbs_members.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_members_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_members_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=realloc
tests_test_verbs_members_LDADD = $(FAKE_LIBS)
# It looks at what a dmabuf is registered with.
tests_test_verbs_memory_SOURCES = \
	%D%/test_verbs_memory.c \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_memory_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_memory_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_reg_dmabuf_mr
tests_test_verbs_memory_LDADD = $(FAKE_LIBS)
# Its machine is made up.
tests_test_verbs_nearest_SOURCES = \
	$(made_up_machine) \
	%D%/test_verbs_nearest.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_nearest_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_nearest_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_nearest_LDFLAGS = $(AM_LDFLAGS) \
	-Wl,--wrap=ibv_get_device_list,--wrap=slu_near_read
tests_test_verbs_nearest_LDADD = $(FAKE_LIBS)
tests_test_verbs_path_SOURCES = \
	%D%/test_verbs_path.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_path_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_path_LDADD = $(FAKE_LIBS)
tests_test_verbs_peers_SOURCES = \
	%D%/test_verbs_peers.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_peers_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_peers_LDADD = $(FAKE_LIBS)
tests_test_verbs_pool_SOURCES = \
	%D%/test_verbs_pool.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_pool_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_pool_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_pool_LDADD = $(FAKE_LIBS)
tests_test_verbs_queues_SOURCES = \
	%D%/test_verbs_queues.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_queues_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_queues_LDADD = $(FAKE_LIBS)
# The pretend rdma_cm is in the place of what loads the real one.
tests_test_verbs_iwarp_SOURCES = \
	%D%/test_verbs_iwarp.c \
	%D%/check.c \
	%D%/check.h \
	%D%/fake_address.h \
	%D%/fake_iwarp.c \
	%D%/fake_iwarp.h \
	%D%/fake_rdmacm.c \
	%D%/fake_rdmacm.h
tests_test_verbs_iwarp_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_iwarp_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_iwarp_LDADD = $(FAKE_LIBS) $(SODIUM_LIBS)
tests_test_verbs_rdmacm_SOURCES = \
	%D%/test_verbs_rdmacm.c \
	%D%/check.c \
	%D%/check.h \
	%D%/fake_address.h \
	%D%/fake_iwarp.c \
	%D%/fake_iwarp.h \
	%D%/fake_rdmacm.c \
	%D%/fake_rdmacm.h
tests_test_verbs_rdmacm_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tests_test_verbs_rdmacm_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_rdmacm_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=epoll_ctl
tests_test_verbs_rdmacm_LDADD = $(FAKE_LIBS) $(SODIUM_LIBS)
tests_test_verbs_status_SOURCES = \
	%D%/test_verbs_status.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_status_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_status_LDADD = $(FAKE_LIBS)
# Its allocations fail as well.
tests_test_verbs_stripes_SOURCES = \
	%D%/test_verbs_stripes.c \
	%D%/check.c \
	%D%/check.h
tests_test_verbs_stripes_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_stripes_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=calloc,--wrap=realloc
tests_test_verbs_stripes_LDADD = $(FAKE_LIBS)
tests_test_verbs_watch_SOURCES = \
	%D%/test_verbs_watch.c \
	%D%/check.c \
	%D%/check.h \
	%D%/ports.c \
	%D%/ports.h
tests_test_verbs_watch_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_verbs_watch_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ibv_create_qp
tests_test_verbs_watch_LDADD = $(FAKE_LIBS)
endif
