# SPDX-License-Identifier: MIT
# Devices, and which one a process takes. One program, source or header a line, sorted.
test_programs += \
	tests/test_choice \
	tests/test_devices \
	tests/test_near

tests_test_choice_SOURCES = %D%/test_choice.c
tests_test_choice_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_choice_LDADD = $(LAUNCH_LIBS)
tests_test_devices_SOURCES = %D%/test_devices.c
tests_test_near_SOURCES = \
	$(made_up_machine) \
	%D%/test_near.c
tests_test_near_CPPFLAGS = $(LAUNCH_CPPFLAGS)
tests_test_near_LDADD = $(LAUNCH_LIBS)

# Which device is taken, of lists and on machines that are made up.
made_up_machine = \
	%D%/near/machine.c \
	%D%/near/machine.h
