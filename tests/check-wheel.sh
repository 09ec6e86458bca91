#!/bin/sh
# SPDX-License-Identifier: MIT
# A wheel of the Python package, with the extension in C.
exec sh "${srcdir:-.}/tests/check-python.sh" wheel
