# SPDX-License-Identifier: MIT
# The verbs transport, where libibverbs is. One source or header a line, sorted.
if VERBS
lib_libsluice_la_SOURCES += \
	%D%/connect.c \
	%D%/context.c \
	%D%/cq.c \
	%D%/cq_parts.c \
	%D%/cq_poll.c \
	%D%/device.c \
	%D%/events.c \
	%D%/farewell.c \
	%D%/fork.c \
	%D%/hint.c \
	%D%/limits.c \
	%D%/memory.c \
	%D%/open.c \
	%D%/path.c \
	%D%/places.h \
	%D%/post.c \
	%D%/qp.c \
	%D%/verbs.c \
	%D%/verbs.h \
	%D%/watch.c
endif
# Over rdma_cm.
if RDMACM
lib_libsluice_la_SOURCES += %D%/agreed.c
endif
