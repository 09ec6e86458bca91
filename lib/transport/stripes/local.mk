# SPDX-License-Identifier: MIT
# Several queue pairs of a transport as one. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/create.c \
	%D%/fail.c \
	%D%/inside.h \
	%D%/meet.c \
	%D%/poll.c \
	%D%/post.c \
	%D%/stripes.c \
	%D%/stripes.h

EXTRA_DIST += %D%/README.md
