# SPDX-License-Identifier: MIT
# The ground floor, which everything stands on: base.h says in which order. One source
# or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/attr.c \
	%D%/attr.h \
	%D%/awaited.c \
	%D%/awaited.h \
	%D%/base.h \
	%D%/bytes.h \
	%D%/called.c \
	%D%/called.h \
	%D%/clock.c \
	%D%/clock.h \
	%D%/descriptor.c \
	%D%/descriptor.h \
	%D%/environment.c \
	%D%/environment.h \
	%D%/error.c \
	%D%/error.h \
	%D%/fork.c \
	%D%/fork.h \
	%D%/interrupt.c \
	%D%/interrupt.h \
	%D%/library.c \
	%D%/library.h \
	%D%/log.c \
	%D%/log.h \
	%D%/macros.h \
	%D%/misuse.c \
	%D%/misuse.h \
	%D%/object.c \
	%D%/object.h \
	%D%/probe.h \
	%D%/random.c \
	%D%/random.h \
	%D%/spelling.c \
	%D%/spelling.h \
	%D%/uncancelled.h \
	%D%/version.c \
	%D%/words.c \
	%D%/words.h
