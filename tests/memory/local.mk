# SPDX-License-Identifier: MIT
# Memory: regions, and that requests touch nothing else.
# One program, source or header a line, sorted.
wrap_exporters = \
	-Wl,--wrap=ioctl,--wrap=fstatfs,--wrap=lseek,--wrap=mmap,--wrap=munmap
OBJECTS_LIBS = \
	tests/libtestsupport.la \
	tests/libobjects.la \
	$(VERBS_LIBS) $(SODIUM_LIBS) $(JANSSON_LIBS) \
	$(CHECK_LIBS)
test_programs += \
	tests/test_access \
	tests/test_allocator \
	tests/test_allocator_threads \
	tests/test_dmabuf \
	tests/test_dmabuf_refused \
	tests/test_files \
	tests/test_mappings \
	tests/test_memory \
	tests/test_mr_cache \
	tests/test_release \
	tests/test_room

tests_test_access_SOURCES = %D%/test_access.c
# The exporter of some is pretended.
tests_test_dmabuf_SOURCES = \
	%D%/test_dmabuf.c \
	%D%/dmabuf/exporters.c \
	%D%/dmabuf/exporters.h
tests_test_dmabuf_LDFLAGS = $(AM_LDFLAGS) $(wrap_exporters)
tests_test_dmabuf_LDADD = $(OBJECTS_LIBS)
tests_test_dmabuf_refused_SOURCES = \
	%D%/test_dmabuf_refused.c \
	%D%/dmabuf/exporters.c \
	%D%/dmabuf/exporters.h
tests_test_dmabuf_refused_LDFLAGS = $(AM_LDFLAGS) $(wrap_exporters)
tests_test_dmabuf_refused_LDADD = $(OBJECTS_LIBS)
tests_test_allocator_SOURCES = %D%/allocator.h %D%/test_allocator.c
tests_test_allocator_threads_SOURCES = \
	%D%/allocator.h \
	%D%/driver.h \
	%D%/test_allocator_threads.c
tests_test_files_SOURCES = %D%/test_files.c
tests_test_mappings_SOURCES = %D%/test_mappings.c
tests_test_memory_SOURCES = %D%/test_memory.c
tests_test_mr_cache_SOURCES = \
	%D%/plain_ends.c \
	%D%/plain_forms.c \
	%D%/plain_memory.c \
	%D%/plain_memory.h \
	%D%/test_mr_cache.c
tests_test_release_SOURCES = %D%/driver.h %D%/test_release.c
tests_test_room_SOURCES = %D%/test_room.c
