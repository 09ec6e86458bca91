# SPDX-License-Identifier: MIT
# sluice-launch, which is linked with nothing. One source or header a line, sorted.
bin_PROGRAMS += tools/sluice-launch
tools_sluice_launch_SOURCES = \
	%D%/bind.c \
	%D%/buffer.c \
	%D%/buffer.h \
	%D%/children.c \
	%D%/events.c \
	%D%/frame.c \
	%D%/frame.h \
	%D%/job.c \
	%D%/launch.h \
	%D%/link.c \
	%D%/loop.c \
	%D%/main.c \
	%D%/meet.c \
	%D%/options.c \
	%D%/output.c \
	%D%/places.c \
	%D%/process.c \
	%D%/ranks.c \
	%D%/remote.c \
	%D%/signals.c \
	%D%/watcher.c
tools_sluice_launch_LDADD =
