# SPDX-License-Identifier: MIT
# Queue pairs that are connected when they are first used. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/deferred.c \
	%D%/deferred.h \
	%D%/idle.c \
	%D%/inside.h \
	%D%/meet.c \
	%D%/table.c

EXTRA_DIST += %D%/README.md
