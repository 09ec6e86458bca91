# SPDX-License-Identifier: MIT
# Many peers: prepared multichannel, peers, scatter, gather, multicast. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/atomic.c \
	%D%/blocking.c \
	%D%/event.c \
	%D%/members.c \
	%D%/multichannel.h \
	%D%/peers.c \
	%D%/prepared.c \
	%D%/scatter.c \
	%D%/posted.c
