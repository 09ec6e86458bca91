# SPDX-License-Identifier: MIT
# Memory: regions, remote regions, pages. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/mr.c \
	%D%/mr.h \
	%D%/mr_cache.c \
	%D%/pages.c \
	%D%/pages.h \
	%D%/release.c \
	%D%/release.h \
	%D%/remote_mr.c
