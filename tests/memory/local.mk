# SPDX-License-Identifier: MIT
# Memory: regions, and that requests touch nothing else.
# One program, source or header a line, sorted.
test_programs += \
	tests/test_access \
	tests/test_memory

tests_test_access_SOURCES = %D%/test_access.c
tests_test_memory_SOURCES = %D%/test_memory.c
