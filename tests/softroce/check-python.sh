#!/bin/sh
# SPDX-License-Identifier: MIT
# In a guest: the Python package on the guest's device, what of its tests a device can show.
exec sh "${srcdir:-.}/tests/check-python.sh" guest
