# SPDX-License-Identifier: MIT
# Exchanges, by which the ranks of a program find each other. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/exchange.c \
	%D%/exchange.h \
	%D%/host_file.c \
	%D%/launch.c \
	%D%/launch_info.c \
	%D%/missing.c \
	%D%/munge.c \
	%D%/pmi.c \
	%D%/pmi.h \
	%D%/pmi_wire.c \
	%D%/pmix.c \
	%D%/pmix.h \
	%D%/pmix_client.c \
	%D%/tcp.c \
	%D%/tcp.h \
	%D%/tcp_dial.c \
	%D%/tcp_fail.c \
	%D%/tcp_greet.c \
	%D%/tcp_leaf.c \
	%D%/tcp_link.c \
	%D%/tcp_listen.c \
	%D%/tcp_relay.c \
	%D%/tcp_root.c \
	%D%/tcp_wire.c \
	%D%/wrap.c
EXTRA_DIST += %D%/README.md
