# SPDX-License-Identifier: MIT
# Endpoints, and the versions of what goes over the wire. One source or header a line,
# sorted.
lib_libsluice_la_SOURCES += \
	%D%/endpoint.c \
	%D%/endpoint.h \
	%D%/versions.h
