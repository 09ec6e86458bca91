# SPDX-License-Identifier: MIT
# What the transports share. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/cut.h \
	%D%/transport.c \
	%D%/transport.h

include %D%/deferred/local.mk
include %D%/soft/local.mk
include %D%/stripes/local.mk
include %D%/verbs/local.mk
