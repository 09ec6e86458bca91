# SPDX-License-Identifier: MIT
# Sources of tests/test_soak. One source or header a line, sorted.
tests_test_soak_SOURCES = \
	%D%/assembly.c \
	%D%/atomic.c \
	%D%/broker.c \
	%D%/broker.h \
	%D%/calls.h \
	%D%/check.c \
	%D%/flight.c \
	%D%/mail.c \
	%D%/meet.c \
	%D%/perform.c \
	%D%/random.c \
	%D%/random.h \
	%D%/rank.c \
	%D%/remains.c \
	%D%/soak.h \
	%D%/posted.c \
	%D%/watch.c \
	%D%/window.c \
	tests/fault/test_soak.c
