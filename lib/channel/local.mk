# SPDX-License-Identifier: MIT
# One peer: prepared channel, channel, work engine, scope. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/attr.c \
	%D%/channel.c \
	%D%/engine.c \
	%D%/engine.h \
	%D%/failure.c \
	%D%/inline.h \
	%D%/peer.c \
	%D%/post.c \
	%D%/prepared.c \
	%D%/progress.c \
	%D%/query.c \
	%D%/scope.c \
	%D%/single.c \
	%D%/slot.c \
	%D%/source.c \
	%D%/submit.c \
	%D%/unpolled.c
