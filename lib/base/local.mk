# SPDX-License-Identifier: MIT
# What all parts of the library share; base.h has the order of dependencies. One source or
# header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/async_call.c \
	%D%/async_call.h \
	%D%/attr.c \
	%D%/attr.h \
	%D%/base.h \
	%D%/bytes.h \
	%D%/caller_name.c \
	%D%/caller_name.h \
	%D%/clock.c \
	%D%/clock.h \
	%D%/compat/sys/queue.h \
	%D%/descriptor.c \
	%D%/descriptor.h \
	%D%/duration.c \
	%D%/env_check.c \
	%D%/env_check.h \
	%D%/environment.c \
	%D%/environment.h \
	%D%/error.c \
	%D%/error.h \
	%D%/fork.c \
	%D%/fork.h \
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
	%D%/thread.c \
	%D%/thread.h \
	%D%/thread_text.c \
	%D%/thread_text.h \
	%D%/uncancelled.h \
	%D%/version.c \
	%D%/zeroed.c \
	%D%/zeroed.h
