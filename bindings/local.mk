# SPDX-License-Identifier: MIT
# The library for other languages. A module of Fortran belongs to one version of one compiler, so
# the source of it is installed, which any compiles; pkg-config knows where it is.
fortrandir = $(datadir)/sluice
dist_fortran_DATA = %D%/fortran/sluice.f90

nobase_dist_doc_DATA += \
	%D%/fortran/README.md \
	%D%/fortran/examples/mpi_blocks.f90 \
	%D%/fortran/examples/scatter_gather.f90 \
	%D%/python/README.md \
	%D%/python/examples/allreduce.py \
	%D%/python/examples/scatter_gather.py

# One a line, sorted.
EXTRA_DIST += \
	%D%/fortran/tests/calls.f90 \
	%D%/python/MANIFEST.in \
	%D%/python/build-wheel \
	%D%/python/fast.h \
	%D%/python/fast_batch.c \
	%D%/python/fast_engine.c \
	%D%/python/pyproject.toml \
	%D%/python/setup.py \
	%D%/python/src/sluice/__init__.py \
	%D%/python/src/sluice/_agent.py \
	%D%/python/src/sluice/_agent_peer.py \
	%D%/python/src/sluice/_allocator.py \
	%D%/python/src/sluice/_batch.py \
	%D%/python/src/sluice/_buffer.py \
	%D%/python/src/sluice/_cdef.py \
	%D%/python/src/sluice/_channel.py \
	%D%/python/src/sluice/_completion.py \
	%D%/python/src/sluice/_connect.py \
	%D%/python/src/sluice/_connection.py \
	%D%/python/src/sluice/_context.py \
	%D%/python/src/sluice/_engine.py \
	%D%/python/src/sluice/_errors.py \
	%D%/python/src/sluice/_forked.py \
	%D%/python/src/sluice/_info.py \
	%D%/python/src/sluice/_launch.py \
	%D%/python/src/sluice/_library.py \
	%D%/python/src/sluice/_list.py \
	%D%/python/src/sluice/_log.py \
	%D%/python/src/sluice/_memory.py \
	%D%/python/src/sluice/_multichannel.py \
	%D%/python/src/sluice/_node.py \
	%D%/python/src/sluice/_numbers.py \
	%D%/python/src/sluice/_object.py \
	%D%/python/src/sluice/_options.py \
	%D%/python/src/sluice/_plain.py \
	%D%/python/src/sluice/_provider.py \
	%D%/python/src/sluice/_pump.py \
	%D%/python/src/sluice/_request.py \
	%D%/python/src/sluice/_scope.py \
	%D%/python/src/sluice/_shared.py \
	%D%/python/src/sluice/_statistics.py \
	%D%/python/src/sluice/py.typed \
	%D%/python/tests/conftest.py \
	%D%/python/tests/test_agent.py \
	%D%/python/tests/test_aio.py \
	%D%/python/tests/test_batch.py \
	%D%/python/tests/test_buffer_region.py \
	%D%/python/tests/test_channel.py \
	%D%/python/tests/test_connect.py \
	%D%/python/tests/test_fast.py \
	%D%/python/tests/test_layout.py \
	%D%/python/tests/test_library.py \
	%D%/python/tests/test_life.py \
	%D%/python/tests/test_memory.py \
	%D%/python/tests/test_missing.py \
	%D%/python/tests/test_more.py \
	%D%/python/tests/test_multichannel.py \
	%D%/python/tests/test_numbers.py \
	%D%/python/tests/test_plain.py \
	%D%/python/tests/test_reasons.py \
	%D%/update

# A wheel of the Python package, in dist/ of the build folder; WHEEL_FLAGS=--with-verbs is one for
# hosts that have libibverbs.
wheel:
	$(SHELL) $(srcdir)/bindings/python/build-wheel $(WHEEL_FLAGS)

mostlyclean-local: clean-wheel
clean-wheel:
	rm -rf dist wheel

.PHONY: clean-wheel wheel
