# SPDX-License-Identifier: MIT
# What the transports share. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/transport.c \
	%D%/transport.h

include %D%/soft/local.mk
include %D%/verbs/local.mk
