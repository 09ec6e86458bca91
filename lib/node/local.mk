# SPDX-License-Identifier: MIT
# Nodes: connections between all ranks, barriers and gathers. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/abort.c \
	%D%/agree.c \
	%D%/barrier.c \
	%D%/block.c \
	%D%/card.c \
	%D%/card.h \
	%D%/cards.c \
	%D%/connect.c \
	%D%/connector.c \
	%D%/connector.h \
	%D%/create.c \
	%D%/endpoint.c \
	%D%/files.c \
	%D%/flow.c \
	%D%/flow.h \
	%D%/gather.c \
	%D%/gather.h \
	%D%/gather_call.c \
	%D%/gather_steps.c \
	%D%/gather_tree.c \
	%D%/group.c \
	%D%/grow.c \
	%D%/knock.c \
	%D%/lazy.c \
	%D%/link.c \
	%D%/missing_rank.c \
	%D%/node.c \
	%D%/node.h \
	%D%/notify.c \
	%D%/open.c \
	%D%/poll.c \
	%D%/prepared.c \
	%D%/rejoin.c \
	%D%/room.c \
	%D%/shutdown.c \
	%D%/steps.c \
	%D%/tree.c \
	%D%/tree.h \
	%D%/wait.c

EXTRA_DIST += %D%/README.md
