# SPDX-License-Identifier: MIT
# One peer: prepared channel, channel. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/atomic.c \
	%D%/channel.c \
	%D%/channel.h \
	%D%/event.c \
	%D%/object.c \
	%D%/object.h \
	%D%/prepared.c \
	%D%/posted.c
