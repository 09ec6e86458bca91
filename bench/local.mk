# SPDX-License-Identifier: MIT
# Benchmarks, built by make, not installed.
noinst_PROGRAMS += %D%/allocator
%C%_allocator_SOURCES = %D%/allocator.c %D%/numbers.h
%C%_allocator_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/blocks
%C%_blocks_SOURCES = %D%/blocks.c
%C%_blocks_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/exchange
%C%_exchange_SOURCES = %D%/exchange.c %D%/numbers.h
%C%_exchange_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/scale
%C%_scale_SOURCES = %D%/numbers.h %D%/scale.c
%C%_scale_LDADD = lib/libsluice.la

# Brings a transport of its own, so it is linked with the library's objects.
noinst_PROGRAMS += %D%/noop
# One source or header a line, sorted.
%C%_noop_SOURCES = \
	%D%/noop.c \
	%D%/noop.h \
	%D%/noop_transport.c
%C%_noop_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
%C%_noop_LDADD = tests/libobjects.la

EXTRA_DIST += \
	%D%/README.md \
	%D%/compare \
	%D%/instructions \
	%D%/peers/mpi.c \
	%D%/softroce
