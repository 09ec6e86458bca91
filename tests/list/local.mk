# SPDX-License-Identifier: MIT
# Prepared lists. One program a line, sorted.
test_programs += tests/test_list

tests_test_list_SOURCES = %D%/test_list.c
