# SPDX-License-Identifier: MIT
# sluice-perf. One source or header a line, sorted.
bin_PROGRAMS += tools/sluice-perf
tools_sluice_perf_SOURCES = \
	%D%/await_server.c \
	%D%/calls.c \
	%D%/complain.c \
	%D%/content.c \
	%D%/histogram.c \
	%D%/link.c \
	%D%/local.c \
	%D%/main.c \
	%D%/measure.c \
	%D%/options.c \
	%D%/perf.h \
	%D%/place.c \
	%D%/plan.h \
	%D%/report.c \
	%D%/team.c \
	%D%/ticks.c \
	%D%/ticks.h \
	%D%/work_group.c \
	%D%/work_lists.c \
	%D%/work_send.c \
	%D%/work_single.c \
	%D%/work_stream.c \
	%D%/works.c
tools_sluice_perf_LDADD = lib/libsluice.la
