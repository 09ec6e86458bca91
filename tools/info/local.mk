# SPDX-License-Identifier: MIT
# sluice-info. One source or header a line, sorted.
bin_PROGRAMS += tools/sluice-info
tools_sluice_info_SOURCES = \
	%D%/advice.c \
	%D%/advice_device.c \
	%D%/advice_environment.c \
	%D%/build.c \
	%D%/devices.c \
	%D%/facts.c \
	%D%/files.c \
	%D%/host.c \
	%D%/info.h \
	%D%/kernel.c \
	%D%/main.c \
	%D%/options.c \
	%D%/out.c \
	%D%/out.h \
	%D%/print_choice.c \
	%D%/print_devices.c \
	%D%/print_environment.c \
	%D%/print_host.c \
	%D%/process_vm.c \
	%D%/sections.c \
	%D%/watch.c \
	%D%/words.c
tools_sluice_info_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/lib
tools_sluice_info_CFLAGS = $(AM_CFLAGS) $(JANSSON_CFLAGS)
tools_sluice_info_LDADD = lib/libsluice.la $(JANSSON_LIBS)
