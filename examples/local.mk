# SPDX-License-Identifier: MIT
# Example programs, built by make. Their sources are installed as documentation, with a Makefile for
# the installed library; the programs are not. The canonical name of
# examples/01-loopback is examples_01_loopback. An example with one source,
# NAME.c, needs two lines, and its source a line in the list below:
#
#   noinst_PROGRAMS += %D%/01-loopback
#   %C%_01_loopback_LDADD = $(EXAMPLE_LIBS)
EXAMPLE_LIBS = lib/libsluice.la

nobase_dist_doc_DATA += \
	%D%/01-loopback.c \
	%D%/02-two-peers.c \
	%D%/03-scatter-gather.c \
	%D%/04-gather-read.c \
	%D%/05-mpi-scatter.c \
	%D%/06-scope.c \
	%D%/07-event-loop.c \
	%D%/08-many-peers.c \
	%D%/09-reconnect.c \
	%D%/10-node.c \
	%D%/11-barriers.c \
	%D%/12-kmeans.c \
	%D%/13-remote-alloc.c \
	%D%/14-parameter-server.c \
	%D%/15-kv-blocks.c \
	%D%/16-server.c \
	%D%/17-survivors.c \
	%D%/18-get.c \
	%D%/19-allreduce.c \
	%D%/kmeans.c \
	%D%/kmeans.h \
	%D%/workers.c \
	%D%/workers.h \
	%D%/Makefile \
	%D%/data/README \
	%D%/data/digits.csv

noinst_PROGRAMS += %D%/01-loopback
%C%_01_loopback_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/02-two-peers
%C%_02_two_peers_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/04-gather-read
%C%_04_gather_read_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/06-scope
%C%_06_scope_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/07-event-loop
%C%_07_event_loop_SOURCES = \
	%D%/07-event-loop.c \
	%D%/workers.c \
	%D%/workers.h
%C%_07_event_loop_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/08-many-peers
%C%_08_many_peers_SOURCES = \
	%D%/08-many-peers.c \
	%D%/workers.c \
	%D%/workers.h
%C%_08_many_peers_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/09-reconnect
%C%_09_reconnect_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/10-node
%C%_10_node_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/11-barriers
%C%_11_barriers_SOURCES = \
	%D%/11-barriers.c \
	%D%/workers.c \
	%D%/workers.h
%C%_11_barriers_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/12-kmeans
%C%_12_kmeans_SOURCES = \
	%D%/12-kmeans.c \
	%D%/kmeans.c \
	%D%/kmeans.h
%C%_12_kmeans_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/13-remote-alloc
%C%_13_remote_alloc_SOURCES = \
	%D%/13-remote-alloc.c \
	%D%/workers.c \
	%D%/workers.h
%C%_13_remote_alloc_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/14-parameter-server
%C%_14_parameter_server_SOURCES = \
	%D%/14-parameter-server.c \
	%D%/workers.c \
	%D%/workers.h
%C%_14_parameter_server_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/15-kv-blocks
%C%_15_kv_blocks_SOURCES = \
	%D%/15-kv-blocks.c \
	%D%/workers.c \
	%D%/workers.h
%C%_15_kv_blocks_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/16-server
%C%_16_server_SOURCES = \
	%D%/16-server.c \
	%D%/workers.c \
	%D%/workers.h
%C%_16_server_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/17-survivors
%C%_17_survivors_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/18-get
%C%_18_get_LDADD = $(EXAMPLE_LIBS)

noinst_PROGRAMS += %D%/19-allreduce
%C%_19_allreduce_LDADD = $(EXAMPLE_LIBS)

# Those that need libsodium: _CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS),
# _LDADD = $(EXAMPLE_LIBS) $(SODIUM_LIBS).
noinst_PROGRAMS += %D%/03-scatter-gather
%C%_03_scatter_gather_SOURCES = \
	%D%/03-scatter-gather.c \
	%D%/workers.c \
	%D%/workers.h
%C%_03_scatter_gather_CFLAGS = $(AM_CFLAGS) $(SODIUM_CFLAGS)
%C%_03_scatter_gather_LDADD = $(EXAMPLE_LIBS) $(SODIUM_LIBS)

# Those that need MPI: _CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS),
# _LDADD = $(EXAMPLE_LIBS) $(MPI_LIBS).
if MPI
noinst_PROGRAMS += %D%/05-mpi-scatter
%C%_05_mpi_scatter_CFLAGS = $(AM_CFLAGS) $(MPI_CFLAGS)
%C%_05_mpi_scatter_LDADD = $(EXAMPLE_LIBS) $(MPI_LIBS)
endif
