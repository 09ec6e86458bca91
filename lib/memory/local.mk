# SPDX-License-Identifier: MIT
# Memory: regions, remote regions, pages. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/allocator.c \
	%D%/allocator.h \
	%D%/allocator_alone.c \
	%D%/allocator_block.c \
	%D%/allocator_slab.c \
	%D%/allocator_thread.c \
	%D%/kind.c \
	%D%/kind.h \
	%D%/mr.c \
	%D%/mr.h \
	%D%/mr_cache.c \
	%D%/mr_cache.h \
	%D%/pages.c \
	%D%/pages.h \
	%D%/release.c \
	%D%/release.h \
	%D%/remote_mr.c
