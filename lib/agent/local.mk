# SPDX-License-Identifier: MIT
# Memory as a service. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/accept.c \
	%D%/agent.c \
	%D%/agent.h \
	%D%/connect.c \
	%D%/control.c \
	%D%/control_receive.c \
	%D%/data.c \
	%D%/events.c \
	%D%/handover.c \
	%D%/helper.c \
	%D%/inbox.c \
	%D%/lease.c \
	%D%/long_receive.c \
	%D%/memory.c \
	%D%/message.c \
	%D%/message.h \
	%D%/messages.c \
	%D%/object.c \
	%D%/peer.c \
	%D%/progress.c \
	%D%/regions.c \
	%D%/remote_regions.c \
	%D%/request_wait.c \
	%D%/requests.c \
	%D%/seam.h \
	%D%/shared.c \
	%D%/state.h \
	%D%/transfer.c
