# SPDX-License-Identifier: MIT
# The completion engine under channels and multichannels: requests, rings, progress. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/arrivals.c \
	%D%/arrived.c \
	%D%/aside.c \
	%D%/attr.c \
	%D%/blocks.c \
	%D%/borrow.c \
	%D%/borrow.h \
	%D%/chain.c \
	%D%/chain.h \
	%D%/connect.c \
	%D%/connected.c \
	%D%/counters.c \
	%D%/detached.c \
	%D%/engine.c \
	%D%/engine.h \
	%D%/event.c \
	%D%/failure.c \
	%D%/handle.c \
	%D%/histogram.c \
	%D%/histogram.h \
	%D%/inline.h \
	%D%/inside.h \
	%D%/list_aim.c \
	%D%/list_post.c \
	%D%/listed.c \
	%D%/listed.h \
	%D%/members.c \
	%D%/message.c \
	%D%/message.h \
	%D%/opcode.c \
	%D%/order.c \
	%D%/parts.c \
	%D%/parts.h \
	%D%/peer.c \
	%D%/poll.c \
	%D%/post.c \
	%D%/probe.c \
	%D%/progress.c \
	%D%/progress.h \
	%D%/query.c \
	%D%/result.c \
	%D%/ring.c \
	%D%/room.c \
	%D%/seam.h \
	%D%/source.c \
	%D%/state.h \
	%D%/submit.c \
	%D%/timing.c \
	%D%/timing.h \
	%D%/unpolled.c \
	%D%/usual.c \
	%D%/wait.c \
	%D%/words.c

EXTRA_DIST += %D%/README.md
