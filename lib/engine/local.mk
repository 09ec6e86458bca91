# SPDX-License-Identifier: MIT
# The completion engine under channels and multichannels: requests, slots, progress. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/attr.c \
	%D%/counters.c \
	%D%/detached.c \
	%D%/engine.c \
	%D%/engine.h \
	%D%/failure.c \
	%D%/handle.c \
	%D%/inline.h \
	%D%/members.c \
	%D%/members.h \
	%D%/peer.c \
	%D%/post.c \
	%D%/probe.c \
	%D%/progress.c \
	%D%/query.c \
	%D%/room.c \
	%D%/single.c \
	%D%/slot.c \
	%D%/source.c \
	%D%/submit.c \
	%D%/unpolled.c \
	%D%/wait.c \
	%D%/words.c
