#!/bin/sh
# SPDX-License-Identifier: MIT
# Builds and installs sluice for packaging/conda/recipe.yaml.in, in its unpacked archive. The
# environment is that of conda-build and rattler-build: $PREFIX, $CPU_COUNT, and the compiler.
# Examples and programs that measure are not installed.
set -eu
export PKG_CONFIG_PATH="$PREFIX/lib/pkgconfig${PKG_CONFIG_PATH:+:$PKG_CONFIG_PATH}"

./configure --prefix="$PREFIX" --libdir="$PREFIX/lib" --disable-static --with-verbs --with-rdmacm \
  --with-jansson
make -j "${CPU_COUNT:-1}" noinst_PROGRAMS=
make install noinst_PROGRAMS=
rm -f "$PREFIX/lib/libsluice.la"
