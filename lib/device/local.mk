# SPDX-License-Identifier: MIT
# Devices: which there are, which one a process takes, and what it opens of it: context
# and protection domain. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/candidates.h \
	%D%/choice.c \
	%D%/choice.h \
	%D%/context.c \
	%D%/context.h \
	%D%/device.c \
	%D%/device.h \
	%D%/explain.c \
	%D%/local_rank.c \
	%D%/near.c \
	%D%/near.h \
	%D%/pd.c \
	%D%/pd.h
