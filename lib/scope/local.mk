# SPDX-License-Identifier: MIT
# Scopes of a channel or multichannel. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/scope.c
