# SPDX-License-Identifier: MIT
# The Debian packages. scripts/package builds them, tests/packages/check tries them.
EXTRA_DIST += \
	%D%/changelog \
	%D%/control \
	%D%/copyright \
	%D%/libsluice-dev.install \
	%D%/libsluice1.install \
	%D%/libsluice1.symbols \
	%D%/not-installed \
	%D%/rules \
	%D%/sluice-doc.doc-base \
	%D%/sluice-doc.docs \
	%D%/sluice-doc.install \
	%D%/sluice-tools.install \
	%D%/source/format \
	%D%/tests/build-systems \
	%D%/tests/control \
	%D%/tests/examples \
	%D%/tests/manual \
	%D%/tests/readme \
	%D%/tests/tools
