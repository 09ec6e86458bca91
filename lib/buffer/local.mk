# SPDX-License-Identifier: MIT
# Remote buffers by name. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/action.c \
	%D%/batch.c \
	%D%/batch.h \
	%D%/domain.c \
	%D%/group.c \
	%D%/hold.c \
	%D%/known.c \
	%D%/link.c \
	%D%/link.h \
	%D%/name.c \
	%D%/name.h \
	%D%/piece.c \
	%D%/posted.c \
	%D%/publish.c \
	%D%/query.c \
	%D%/quick.c \
	%D%/quick.h \
	%D%/serve.c \
	%D%/service.c \
	%D%/service.h \
	%D%/waiter.c \
	%D%/waiter.h \
	%D%/work.c
