# SPDX-License-Identifier: MIT
# Endpoints and handshakes. One program, source or header a line, sorted.
test_programs += \
	tests/test_endpoints

tests_test_endpoints_SOURCES = %D%/test_endpoints.c
