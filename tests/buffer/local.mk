# SPDX-License-Identifier: MIT
# Remote buffers by name. One program, source or header a line, sorted.
test_programs += \
	tests/test_buffer \
	tests/test_buffer_batch \
	tests/test_buffer_blocks \
	tests/test_buffer_cancel \
	tests/test_buffer_hold \
	tests/test_buffer_owners \
	tests/test_buffer_quick \
	tests/test_buffer_region

tests_test_buffer_SOURCES = \
	%D%/service.h \
	%D%/test_buffer.c \
	%D%/world.h
tests_test_buffer_batch_SOURCES = \
	%D%/service.h \
	%D%/silent.h \
	%D%/test_buffer_batch.c
tests_test_buffer_blocks_SOURCES = \
	%D%/service.h \
	%D%/test_buffer_blocks.c
tests_test_buffer_cancel_SOURCES = \
	%D%/service.h \
	%D%/test_buffer_cancel.c
tests_test_buffer_hold_SOURCES = \
	%D%/service.h \
	%D%/silent.h \
	%D%/test_buffer_hold.c
tests_test_buffer_owners_SOURCES = \
	%D%/silent.h \
	%D%/test_buffer_owners.c
tests_test_buffer_quick_SOURCES = \
	%D%/service.h \
	%D%/test_buffer_quick.c \
	%D%/world.h
tests_test_buffer_region_SOURCES = \
	%D%/handle.h \
	%D%/service.h \
	%D%/test_buffer_region.c
