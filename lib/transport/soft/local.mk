# SPDX-License-Identifier: MIT
# The software transport. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/ask.c \
	%D%/atomic.c \
	%D%/context.c \
	%D%/copy.c \
	%D%/cq.c \
	%D%/cq_room.c \
	%D%/device.c \
	%D%/dmabuf.c \
	%D%/touch.c \
	%D%/helper.c \
	%D%/helper.h \
	%D%/inbox.c \
	%D%/keys.c \
	%D%/keys.h \
	%D%/lead.c \
	%D%/linger.c \
	%D%/meet.c \
	%D%/meet.h \
	%D%/memory.c \
	%D%/probe_range.c \
	%D%/qp.c \
	%D%/query.c \
	%D%/queue.c \
	%D%/regions.h \
	%D%/reserve.c \
	%D%/shm.h \
	%D%/shm_copy.c \
	%D%/shm_process.c \
	%D%/shm_direct.c \
	%D%/shm_export.c \
	%D%/shm_import.c \
	%D%/shm_join.c \
	%D%/shm_ring.c \
	%D%/shm_ring.h \
	%D%/shm_segment.c \
	%D%/shm_small.c \
	%D%/shm_socket.c \
	%D%/shm_words.c \
	%D%/soft.h \
	%D%/stand.c \
	%D%/tcp.h \
	%D%/tcp_blame.c \
	%D%/tcp_early.c \
	%D%/tcp_execute.c \
	%D%/tcp_frame.c \
	%D%/tcp_frame.h \
	%D%/tcp_owe.c \
	%D%/tcp_receive.c \
	%D%/tcp_transmit.c \
	%D%/tidy.c \
	%D%/wire_self.c \
	%D%/wire_shm.c \
	%D%/wire_tcp.c
EXTRA_DIST += %D%/README.md
