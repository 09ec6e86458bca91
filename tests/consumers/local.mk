# SPDX-License-Identifier: MIT
# Small projects that use what is installed, as their authors would write them.
# tests/check-consumers.sh builds them.
EXTRA_DIST += \
	%D%/autotools/Makefile.am \
	%D%/autotools/configure.ac \
	%D%/autotools/onesided.c \
	%D%/cmake/CMakeLists.txt \
	%D%/cmake/counter.c \
	%D%/cmake/counter.h \
	%D%/cmake/main.c \
	%D%/cxx/Makefile \
	%D%/cxx/main.cc \
	%D%/cxx/peers.hh \
	%D%/fortran/Makefile \
	%D%/fortran/squares.f90 \
	%D%/make/Makefile \
	%D%/make/hello.c \
	%D%/meson/meson.build \
	%D%/meson/meson_options.txt \
	%D%/meson/sums.c
