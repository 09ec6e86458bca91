# SPDX-License-Identifier: MIT
# Connecting. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/absence.c \
	%D%/acceptor.c \
	%D%/acceptor.h \
	%D%/address.c \
	%D%/address.h \
	%D%/dial.c \
	%D%/dial.h \
	%D%/duty.c \
	%D%/duty.h \
	%D%/greeting.c \
	%D%/greeting.h \
	%D%/identity.c \
	%D%/identity.h \
	%D%/meeting.c \
	%D%/meeting.h \
	%D%/negotiation.c \
	%D%/negotiation.h \
	%D%/proof.c \
	%D%/proof.h \
	%D%/secret.c \
	%D%/secret.h \
	%D%/session.c \
	%D%/session.h \
	%D%/stream.c \
	%D%/stream.h \
	%D%/target.c \
	%D%/target.h
EXTRA_DIST += %D%/README.md
# Connections over rdma_cm.
if RDMACM
lib_libsluice_la_SOURCES += \
	%D%/cm.c \
	%D%/cm.h \
	%D%/cm_library.c \
	%D%/cm_library.h
endif
