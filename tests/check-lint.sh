#!/bin/sh
# SPDX-License-Identifier: MIT
# Runs static analyzers on the library and the tools, through scripts/lint.
# With SLUICE_TEST_LINT=all, as scripts/test --full sets it, also those that take minutes.
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
