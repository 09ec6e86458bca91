# SPDX-License-Identifier: MIT
# The site of all that is written: scripts/html says what is in it. Nobody who builds the library
# needs it, nor what makes it: mandoc, cmark-gfm and perl.
html-local:
	$(AM_V_GEN)perl $(srcdir)/scripts/html $(srcdir) html

install-html-local: html-local
	@$(MKDIR_P) '$(DESTDIR)$(htmldir)'
	@set -e; cd html; find . -type d | while read -r folder; do \
	  $(MKDIR_P) '$(DESTDIR)$(htmldir)'/"$$folder"; done; \
	find . -type f | while read -r file; do \
	  $(INSTALL_DATA) "$$file" '$(DESTDIR)$(htmldir)'/"$$file"; done

uninstall-html:
	@test ! -d html || { cd html && find . -type f | while read -r file; do \
	  rm -f '$(DESTDIR)$(htmldir)'/"$$file"; done; \
	find . -depth -type d | while read -r folder; do \
	  rmdir '$(DESTDIR)$(htmldir)'/"$$folder" 2>/dev/null || :; done; }

uninstall-local: uninstall-html

clean-local: clean-html
clean-html:
	test ! -f html/style.css || rm -rf html

.PHONY: clean-html uninstall-html
