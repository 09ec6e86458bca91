# SPDX-License-Identifier: MIT
# Scopes of a channel or multichannel. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/name.c \
	%D%/post.c \
	%D%/report.c \
	%D%/scope.c \
	%D%/scope.h
