# SPDX-License-Identifier: MIT
# The library for other languages. A module of Fortran belongs to one version of one compiler, so
# the source of it is installed, which any compiles; pkg-config knows where it is.
fortrandir = $(datadir)/sluice
dist_fortran_DATA = %D%/fortran/sluice.f90

EXTRA_DIST += \
	%D%/fortran/README.md \
	%D%/fortran/examples/scatter_gather.f90 \
	%D%/fortran/tests/calls.f90 \
	%D%/python/src/sluice/_cdef.py \
	%D%/update
