# SPDX-License-Identifier: MIT
# Benchmarks, built by make, not installed.
noinst_PROGRAMS += %D%/agents
%C%_agents_SOURCES = %D%/agents.c %D%/numbers.h
%C%_agents_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/allocator
%C%_allocator_SOURCES = %D%/allocator.c %D%/numbers.h
%C%_allocator_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/blocks
%C%_blocks_SOURCES = %D%/blocks.c
%C%_blocks_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/exchange
%C%_exchange_SOURCES = %D%/exchange.c %D%/numbers.h
%C%_exchange_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/many
%C%_many_SOURCES = %D%/many.c %D%/many_record.c %D%/many_record.h
%C%_many_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/messages
%C%_messages_SOURCES = %D%/messages.c
%C%_messages_LDADD = lib/libsluice.la

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

noinst_PROGRAMS += %D%/ways/ways
# One source or header a line, sorted.
%C%_ways_ways_SOURCES = \
	%D%/ways/agent.c \
	%D%/ways/block.c \
	%D%/ways/buffer.c \
	%D%/ways/connect.c \
	%D%/ways/echo.c \
	%D%/ways/exchange.c \
	%D%/ways/group.c \
	%D%/ways/main.c \
	%D%/ways/memory.c \
	%D%/ways/object.c \
	%D%/ways/plain.c \
	%D%/ways/scope.c \
	%D%/ways/solo.c \
	%D%/ways/stream.c \
	%D%/ways/team.c \
	%D%/ways/ways.h
%C%_ways_ways_LDADD = lib/libsluice.la

EXTRA_DIST += \
	%D%/README.md \
	%D%/compare \
	%D%/instructions \
	%D%/jobs \
	%D%/peers/many.c \
	%D%/peers/mpi.c \
	%D%/softroce \
	%D%/table.py \
	%D%/usage \
	%D%/ways/ways.f90 \
	%D%/ways/ways.py
