#!/bin/sh
# SPDX-License-Identifier: MIT
# What programs that follow the paths of the library and of the tools find, through scripts/lint.
# With SLUICE_TEST_LINT=all, as scripts/test --full has it, also what takes minutes.
. "${srcdir:-.}/tests/tap.sh"

[ -f config.h ] || skip_all 'not in a build tree'
lint cppcheck 'cppcheck finds nothing'
if [ "${SLUICE_TEST_LINT:-}" = all ]; then
  lint analyzer 'gcc -fanalyzer finds nothing'
  lint tidy 'clang-tidy finds nothing'
else
  skip 'gcc -fanalyzer finds nothing' 'it takes a minute: make lint-analyzer, or SLUICE_TEST_LINT=all'
  skip 'clang-tidy finds nothing' 'it takes minutes: make lint-tidy, or SLUICE_TEST_LINT=all'
fi
finish
