# SPDX-License-Identifier: MIT
# The verbs transport, where libibverbs is: its table, and its rooms. One source or header a line,
# sorted.
if VERBS
lib_libsluice_la_SOURCES += \
	%D%/memory.c \
	%D%/table.h \
	%D%/verbs.c \
	%D%/verbs.h \
	%D%/device/device.h \
	%D%/device/devices.c \
	%D%/device/fork.c \
	%D%/device/fork.h \
	%D%/device/gids.c \
	%D%/device/limits.c \
	%D%/device/open.c \
	%D%/device/path.c \
	%D%/events/events.c \
	%D%/events/events.h \
	%D%/events/watch.c \
	%D%/pairs/alert.c \
	%D%/pairs/connect.c \
	%D%/pairs/pairs.h \
	%D%/pairs/pool.c \
	%D%/pairs/post.c \
	%D%/pairs/qp.c \
	%D%/queues/cq.c \
	%D%/queues/members.c \
	%D%/queues/parts.c \
	%D%/queues/poll.c \
	%D%/queues/queues.h \
	%D%/queues/seam.h \
	%D%/words/farewell.c \
	%D%/words/hint.c \
	%D%/words/places.c \
	%D%/words/words.h
endif
# Over rdma_cm.
if RDMACM
lib_libsluice_la_SOURCES += \
	%D%/events/cm.c \
	%D%/pairs/agreed.c
endif

EXTRA_DIST += %D%/README.md
