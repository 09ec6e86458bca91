# SPDX-License-Identifier: MIT
# The library: each folder adds what is in it.
lib_LTLIBRARIES += %D%/libsluice.la
%C%_libsluice_la_SOURCES =

# -version-info CURRENT:REVISION:AGE, changed once per release, from the top:
#   any source changed:         REVISION + 1
#   a function or field added:  CURRENT + 1, REVISION = 0, AGE + 1
#   a function or field gone,
#   or its meaning changed:     CURRENT + 1, REVISION = 0, AGE = 0

%C%_libsluice_la_CPPFLAGS = $(AM_CPPFLAGS) -I$(top_srcdir)/%D%
%C%_libsluice_la_CFLAGS = $(AM_CFLAGS) $(LIBRARY_CFLAGS) $(VERBS_CFLAGS) \
	$(SODIUM_CFLAGS) $(JANSSON_CFLAGS) $(PMIX_CFLAGS) -fvisibility=hidden
# Its threads, its handlers of fork(2) and its keys run to the end of the process, whatever calls
# dlclose(3).
%C%_libsluice_la_LDFLAGS = $(AM_LDFLAGS) \
	-version-info 1:0:0 -Wl,-z,nodelete \
	-Wl,--version-script=$(top_srcdir)/%D%/sluice.map
%C%_libsluice_la_LIBADD = $(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS)
EXTRA_%C%_libsluice_la_DEPENDENCIES = $(top_srcdir)/%D%/sluice.map

EXTRA_DIST += %D%/layers %D%/sluice.map
pkgconfig_DATA = %D%/sluice.pc
valgrinddir = $(datadir)/sluice
dist_valgrind_DATA = %D%/sluice.supp
cmakedir = $(libdir)/cmake/sluice
cmake_DATA = %D%/sluiceConfig.cmake %D%/sluiceConfigVersion.cmake

include %D%/agent/local.mk
include %D%/base/local.mk
include %D%/buffer/local.mk
include %D%/channel/local.mk
include %D%/connect/local.mk
include %D%/device/local.mk
include %D%/endpoint/local.mk
include %D%/engine/local.mk
include %D%/environment/local.mk
include %D%/exchange/local.mk
include %D%/list/local.mk
include %D%/listener/local.mk
include %D%/memory/local.mk
include %D%/multichannel/local.mk
include %D%/node/local.mk
include %D%/scope/local.mk
include %D%/transport/local.mk
include %D%/verbs/local.mk
