# SPDX-License-Identifier: MIT
# Prepared lists, as a program has them. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/list.c
