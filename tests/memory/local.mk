# SPDX-License-Identifier: MIT
# Memory: regions, and that requests touch nothing else.
# One program, source or header a line, sorted.
test_programs += \
	tests/test_access \
	tests/test_memory \
	tests/test_mr_cache \
	tests/test_release

tests_test_access_SOURCES = %D%/test_access.c
tests_test_memory_SOURCES = %D%/test_memory.c
tests_test_mr_cache_SOURCES = %D%/test_mr_cache.c
tests_test_release_SOURCES = %D%/test_release.c
