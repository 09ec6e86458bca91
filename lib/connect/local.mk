# SPDX-License-Identifier: MIT
# The door. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/acceptor.c \
	%D%/acceptor.h \
	%D%/greeting.c \
	%D%/greeting.h \
	%D%/identity.c \
	%D%/identity.h \
	%D%/meeting.c \
	%D%/meeting.h \
	%D%/proof.c \
	%D%/proof.h \
	%D%/stream.c \
	%D%/stream.h
EXTRA_DIST += %D%/README.md
