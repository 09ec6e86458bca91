# SPDX-License-Identifier: MIT
# Devices: which there are, and which one a process takes. One source or header a
# line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/choice.c \
	%D%/choice.h \
	%D%/device.c \
	%D%/device.h \
	%D%/local_rank.c \
	%D%/near.c \
	%D%/near.h
