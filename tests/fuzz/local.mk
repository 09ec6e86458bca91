# SPDX-License-Identifier: MIT
# Targets of the fuzzer: fuzz.h tells of them. One program, source or header a line, sorted.
fuzz_programs = \
	tests/test_fuzz_agent \
	tests/test_fuzz_buffer_handle \
	tests/test_fuzz_connect \
	tests/test_fuzz_endpoint \
	tests/test_fuzz_exchange \
	tests/test_fuzz_frame \
	tests/test_fuzz_host_file \
	tests/test_fuzz_launch \
	tests/test_fuzz_meeting \
	tests/test_fuzz_remote_mr
test_programs += $(fuzz_programs)

tests_test_fuzz_agent_SOURCES = $(fuzz_driver) %D%/fuzz_agent.c
tests_test_fuzz_agent_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_agent_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_agent_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_buffer_handle_SOURCES = $(fuzz_driver) %D%/fuzz_buffer_handle.c
tests_test_fuzz_buffer_handle_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_buffer_handle_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_buffer_handle_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_connect_SOURCES = $(fuzz_driver) $(fuzz_world) %D%/fuzz_connect.c
tests_test_fuzz_connect_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_connect_LDFLAGS = $(FUZZ_LINK) -Wl,--wrap=slu_stream_dial
tests_test_fuzz_connect_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_endpoint_SOURCES = $(fuzz_driver) %D%/fuzz_endpoint.c
tests_test_fuzz_endpoint_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_endpoint_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_endpoint_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_exchange_SOURCES = $(fuzz_driver) $(fuzz_world) %D%/fuzz_exchange.c
tests_test_fuzz_exchange_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_exchange_LDFLAGS = $(FUZZ_LINK) -Wl,--wrap=epoll_wait,--wrap=poll
tests_test_fuzz_exchange_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_frame_SOURCES = $(fuzz_driver) %D%/fuzz_frame.c
tests_test_fuzz_frame_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_frame_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_frame_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_host_file_SOURCES = $(fuzz_driver) %D%/fuzz_host_file.c
tests_test_fuzz_host_file_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_host_file_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_host_file_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_launch_SOURCES = \
	$(fuzz_driver) \
	%D%/fuzz_launch.c \
	tools/launch/buffer.c \
	tools/launch/buffer.h \
	tools/launch/frame.c \
	tools/launch/frame.h
tests_test_fuzz_launch_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_launch_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_launch_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_meeting_SOURCES = $(fuzz_driver) $(fuzz_world) %D%/fuzz_meeting.c
tests_test_fuzz_meeting_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_meeting_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_meeting_LDADD = $(FUZZ_LIBS)
tests_test_fuzz_remote_mr_SOURCES = $(fuzz_driver) %D%/fuzz_remote_mr.c
tests_test_fuzz_remote_mr_CPPFLAGS = $(FUZZ_CPPFLAGS)
tests_test_fuzz_remote_mr_LDFLAGS = $(FUZZ_LINK)
tests_test_fuzz_remote_mr_LDADD = $(FUZZ_LIBS)

# What runs them: the fuzzer, which has a main() of its own, or the test.
fuzz_shared = \
	%D%/fuzz.c \
	%D%/fuzz.h
fuzz_world = \
	%D%/world.c \
	%D%/world.h
if FUZZERS
fuzz_driver = $(fuzz_shared)
FUZZ_LINK = $(AM_LDFLAGS) -fsanitize=fuzzer
else
fuzz_driver = $(fuzz_shared) %D%/replay.c
FUZZ_LINK = $(AM_LDFLAGS)
endif

FUZZ_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib \
	-DFUZZ_CORPUS='"$(abs_top_srcdir)/%D%/corpus"'
FUZZ_LIBS = \
	tests/libtestsupport.la \
	tests/libobjects.la \
	$(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)

# All inputs of a folder: scripts/soak --fuzz --merge adds some.
EXTRA_DIST += \
	%D%/corpus \
	%D%/replay.c \
	%D%/run
