# SPDX-License-Identifier: MIT
# Prepared lists. One program a line, sorted.
test_programs += \
	tests/test_list \
	tests/test_list_change

tests_test_list_SOURCES = %D%/test_list.c
tests_test_list_change_SOURCES = %D%/test_list_change.c
