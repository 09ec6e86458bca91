# SPDX-License-Identifier: MIT
# Memory as a service. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/agent.c \
	%D%/agent.h \
	%D%/connect.c \
	%D%/control.c \
	%D%/control_receive.c \
	%D%/data.c \
	%D%/handover.c \
	%D%/helper.c \
	%D%/inbox.c \
	%D%/long_receive.c \
	%D%/message.c \
	%D%/message.h \
	%D%/peer.c \
	%D%/progress.c \
	%D%/regions.c \
	%D%/remote_regions.c \
	%D%/requests.c \
	%D%/staging.c \
	%D%/staging.h \
	%D%/transfer.c
