# SPDX-License-Identifier: MIT
# Connecting by address. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/accept.c \
	%D%/admission.c \
	%D%/admission.h \
	%D%/admitted.c \
	%D%/connect.c \
	%D%/door.h \
	%D%/incoming.c \
	%D%/joint.c \
	%D%/joint.h \
	%D%/listen.c \
	%D%/listener.c \
	%D%/listener.h \
	%D%/passage.c \
	%D%/passage.h \
	%D%/queue.c \
	%D%/rdmacm.h \
	%D%/resolve.c
EXTRA_DIST += %D%/README.md
# Over rdma_cm.
if RDMACM
lib_libsluice_la_SOURCES += \
	%D%/rdmacm_admit.c \
	%D%/rdmacm_dial.c \
	%D%/rdmacm_gate.c \
	%D%/rdmacm_gate.h \
	%D%/rdmacm_listen.c
endif
