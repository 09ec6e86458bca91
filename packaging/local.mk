# SPDX-License-Identifier: MIT
# Packages and recipes of other systems than Debian. The tests of tests/packages/ use each of them.
EXTRA_DIST += \
	%D%/cmake/sluice.cmake.in \
	%D%/conda/build.sh \
	%D%/conda/recipe.yaml.in \
	%D%/meson/packagefiles/sluice/meson.build.in \
	%D%/meson/sluice.wrap.in \
	%D%/rpm/rpmlint.toml \
	%D%/rpm/sluice.spec \
	%D%/spack/package.py.in
