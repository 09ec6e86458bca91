# SPDX-License-Identifier: MIT
# Benchmarks, built by make, not installed.
noinst_PROGRAMS += %D%/pingpong
%C%_pingpong_LDADD = lib/libsluice.la

noinst_PROGRAMS += %D%/scale
%C%_scale_LDADD = lib/libsluice.la
