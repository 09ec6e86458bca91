# SPDX-License-Identifier: MIT
# The verbs objects of what a program holds. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/verbs.c
