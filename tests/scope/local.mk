# SPDX-License-Identifier: MIT
# Scopes. One program, source or header a line, sorted.
test_programs += \
	tests/test_scope \
	tests/test_scope_block \
	tests/test_scope_killed \
	tests/test_scope_posts \
	tests/test_scope_stale

tests_test_scope_SOURCES = %D%/test_scope.c
tests_test_scope_block_SOURCES = %D%/test_scope_block.c
tests_test_scope_killed_SOURCES = %D%/test_scope_killed.c
tests_test_scope_posts_SOURCES = %D%/test_scope_posts.c
tests_test_scope_stale_SOURCES = %D%/test_scope_stale.c
