# SPDX-License-Identifier: MIT
# The door. One program, source or header a line, sorted.
test_programs += \
	tests/test_admitted \
	tests/test_admitted_processes \
	tests/test_amid \
	tests/test_connect \
	tests/test_door \
	tests/test_held_up \
	tests/test_identity \
	tests/test_iwarp \
	tests/test_meeting \
	tests/test_negotiation \
	tests/test_rdmacm \
	tests/test_relay \
	tests/test_strangers \
	tests/test_told

tests_test_admitted_SOURCES = %D%/test_admitted.c
tests_test_admitted_processes_SOURCES = %D%/test_admitted_processes.c
tests_test_amid_SOURCES = %D%/test_amid.c
tests_test_connect_SOURCES = \
	%D%/test_connect.c \
	%D%/crowd/client.c \
	%D%/crowd/crowd.c \
	%D%/crowd/crowd.h \
	%D%/crowd/server.c
tests_test_door_SOURCES = %D%/test_door.c
tests_test_held_up_SOURCES = %D%/test_held_up.c
tests_test_identity_SOURCES = %D%/test_identity.c
tests_test_iwarp_SOURCES = %D%/test_iwarp.c
tests_test_meeting_SOURCES = %D%/test_meeting.c
tests_test_negotiation_SOURCES = %D%/test_negotiation.c
tests_test_negotiation_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_negotiation_LDADD = $(LAUNCH_LIBS)
# A program that knows rdma_cm alone is in it, where there is rdma_cm.
tests_test_rdmacm_SOURCES = %D%/test_rdmacm.c %D%/rdmacm.h %D%/rdmacm_calls.c
tests_test_rdmacm_CFLAGS = $(AM_CFLAGS) $(VERBS_CFLAGS)
tests_test_rdmacm_LDADD = $(LDADD)
if RDMACM
tests_test_rdmacm_LDADD += -lrdmacm $(VERBS_LIBS)
endif
tests_test_relay_SOURCES = %D%/test_relay.c
tests_test_strangers_SOURCES = %D%/test_strangers.c
tests_test_told_SOURCES = %D%/test_told.c
