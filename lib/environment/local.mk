# SPDX-License-Identifier: MIT
# The variables of the environment, told to the program. One source or header a line, sorted.
lib_libsluice_la_SOURCES += \
	%D%/variable.c
