# SPDX-License-Identifier: MIT
# The library. One source or header a line, sorted.
lib_LTLIBRARIES += %D%/libsluice.la
%C%_libsluice_la_SOURCES = \
	%D%/attr.c \
	%D%/bytes.h \
	%D%/called.c \
	%D%/context.c \
	%D%/descriptor.c \
	%D%/descriptor.h \
	%D%/endpoint.c \
	%D%/endpoint.h \
	%D%/environment.c \
	%D%/environment.h \
	%D%/error.c \
	%D%/fork.c \
	%D%/internal.h \
	%D%/log.c \
	%D%/mr.c \
	%D%/pd.c \
	%D%/random.c \
	%D%/remote_mr.c \
	%D%/time.c \
	%D%/verbs.c \
	%D%/version.c \
	%D%/versions.h

# -version-info CURRENT:REVISION:AGE, changed once per release, from the top:
#   any source changed:         REVISION + 1
#   a function or field added:  CURRENT + 1, REVISION = 0, AGE + 1
#   a function or field gone,
#   or its meaning changed:     CURRENT + 1, REVISION = 0, AGE = 0

%C%_libsluice_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/%D%
%C%_libsluice_la_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(VERBS_CFLAGS) \
	$(SODIUM_CFLAGS) $(JANSSON_CFLAGS) $(PMIX_CFLAGS) -fvisibility=hidden
%C%_libsluice_la_LDFLAGS = $(AM_LDFLAGS) \
	-version-info 0:0:0 \
	-Wl,--version-script=$(top_srcdir)/%D%/sluice.map
%C%_libsluice_la_LIBADD = $(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS)
EXTRA_%C%_libsluice_la_DEPENDENCIES = $(top_srcdir)/%D%/sluice.map

EXTRA_DIST += %D%/sluice.map
pkgconfig_DATA = %D%/sluice.pc

include %D%/channel/local.mk
include %D%/device/local.mk
include %D%/engine/local.mk
include %D%/exchange/local.mk
include %D%/multichannel/local.mk
include %D%/node/local.mk
include %D%/scope/local.mk
include %D%/transport/local.mk
