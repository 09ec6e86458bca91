# SPDX-License-Identifier: MIT
# Memory as a service. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/agent.c \
	%D%/agent.h \
	%D%/asked.c \
	%D%/control.c \
	%D%/data.c \
	%D%/drive.c \
	%D%/hand.c \
	%D%/heard.c \
	%D%/held.c \
	%D%/helper.c \
	%D%/inbox.c \
	%D%/meeting.c \
	%D%/message.c \
	%D%/message.h \
	%D%/peer.c \
	%D%/reading.c \
	%D%/regions.c \
	%D%/staging.c \
	%D%/staging.h \
	%D%/transfer.c
