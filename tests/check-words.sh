#!/bin/sh
# SPDX-License-Identifier: MIT
# Sentences of comments, documents and manual pages open with a subject that the reader can see.
# A sentence that opens with "Who", "What", "One that" or "Its" is a riddle: its subject is found
# later, or never. Each group of files has a ceiling, which may only be lowered. Names of files that
# were given up come back neither as files nor in words.
#
#   tests/check-words.sh                # as make check runs it
#   tests/check-words.sh --list GROUP   # prints all riddles of a group, with file and line
. "${srcdir:-.}/tests/tap.sh"

# Riddles that a group may have.
ceiling_lib=48
ceiling_tests=39
ceiling_programs=9
ceiling_docs=0
ceiling_man=3

# Files that were renamed or removed because their names were riddles, one a line.
retired='
asked.c
awaited.c
called.c
drive.c
hand.c
heard.c
held.c
lead.c
linger.c
offer.c
reading.c
spelling.c
stand.c
tcp_door.c
tcp_owe.c
tidy.c
told.c
where.c
'

# riddles KIND FILE...: prints "file:line: sentence" for each riddle. KIND is c (comments alone),
# md (without blocks of code) or man (mdoc, without displays).
riddles() {
  kind=$1
  shift
  awk -v kind="$kind" '
    BEGIN {
      opening = "^(Who|Whoever|What|Whatever|One (that|who|of)|Those (that|who)|That which" \
        "|Of (a|the|it|these|those|all|several|one)|Nobody|Does so|Held|Somebody|Neither of|It has" \
        "|Its|They|Them)([^A-Za-z0-9_-]|$)"
    }

    # Ends the sentence at hand. A question may open with a question word.
    function end() {
      bare = sentence
      sub(/^[^A-Za-z0-9]+/, "", bare)
      if (bare ~ opening && bare !~ /\?[^A-Za-z]*$/)
        print name ":" begun ": " substr(sentence, 1, 100)
      sentence = ""
      stopped = 0
    }

    function word(text) {
      if (stopped && text ~ /^[^A-Za-z0-9]*[A-Z]/)
        end()
      if (sentence == "")
        begun = FNR
      sentence = sentence (sentence == "" ? "" : " ") text
      stopped = text ~ /[.;:!?][)"*_]*$/
    }

    function words(text, count, i) {
      count = split(text, list, /[ \t]+/)
      for (i = 1; i <= count; i++)
        if (list[i] != "")
          word(list[i])
    }

    # A blank line, and an item of a list, begin a sentence.
    function line(text) {
      if (text ~ /^[ \t]*$/ || text ~ /^[ \t]*([*-]|[0-9]+\.)[ \t]/)
        end()
      sub(/^[ \t]*([*-]|[0-9]+\.)[ \t]/, "", text)
      words(text)
    }

    function comments(text, at) {
      while (text != "") {
        if (!inside) {
          at = index(text, "/*")
          if (at == 0)
            return
          inside = 1
          text = substr(text, at + 2)
        } else if (FNR > opened && text ~ /^[ \t]*\*([^\/]|$)/) {
          sub(/^[ \t]*\*[ \t]?/, "", text)
        }
        opened = FNR
        at = index(text, "*/")
        line(at == 0 ? text : substr(text, 1, at - 1))
        if (at == 0)
          return
        end()
        inside = 0
        text = substr(text, at + 2)
      }
    }

    function markdown(text, count, i) {
      if (text ~ /^[ \t]*```/) {
        end()
        fenced = !fenced
      } else if (!fenced && text ~ /^\|/) {
        count = split(text, cells, "|")
        for (i = 1; i <= count; i++) {
          end()
          words(cells[i])
        }
        end()
      } else if (!fenced && text ~ /^(#|    )/) {
        end()
      } else if (!fenced) {
        line(text)
      }
    }

    # What a macro names is a word; a mark behind it ends the sentence as it does in text.
    function page(text) {
      if (text ~ /^\.Bd/)
        shown = 1
      if (text ~ /^\.Ed/)
        shown = 0
      if (shown || text ~ /^\.(Pp|It|Sh|Ss|B[dl]|E[dl]|D[1l]|Nd|In|Ft|F[odc]|Dd|Dt|Os|")/)
        end()
      else if (text ~ /^\./)
        word(text ~ / [.;:!?]( \))?$/ ? "macro." : "macro")
      else
        line(text)
    }

    FNR == 1 {
      end()
      name = FILENAME
      inside = fenced = shown = 0
    }
    kind == "c" { comments($0) }
    kind == "md" { markdown($0) }
    kind == "man" { page($0) }
    END { end() }' "$@"
}

# group NAME: its riddles. Folders of builds are no sources.
group() (
  cd "$srcdir" || exit 99
  case $1 in
    lib) find lib include -name '*.[ch]' ;;
    tests) find tests -name '*.[ch]' ;;
    programs) find bench bindings examples tools -name '*.[ch]' ;;
    docs) find ./*.md docs lib tests bench bindings -name '*.md' ;;
    man) find man -name '*.[1-9]' ;;
  esac | sort >"$tmp/files"
  case $1 in docs) kind='md' ;; man) kind='man' ;; *) kind='c' ;; esac
  # shellcheck disable=SC2046 # no name has a blank
  riddles $kind $(sed 's,^\./,,' "$tmp/files")
)

# below CEILING GROUP
below() {
  group "$2" >"$tmp/$2.riddles"
  count=$(wc -l <"$tmp/$2.riddles")
  if [ "$count" -gt "$1" ]; then
    cat "$tmp/$2.riddles"
    echo "$count sentences of $2 open as riddles, $1 may: name the subject first"
    return 1
  fi
}

# Where a name of the list is that of a file, or is named in words.
come_back() (
  cd "$srcdir" || exit 99
  for name in $1; do
    find lib include tests tools man docs -name "$name"
    find lib include tests tools man docs ./*.md -type f \( -name '*.[ch]' -o -name '*.md' -o -name '*.[1-9]' \) \
      -exec grep -nE "(^|[^A-Za-z0-9_])$(echo "$name" | sed 's/\./\\./')([^A-Za-z0-9_]|\$)" {} + || :
  done
)

# A riddle is found in each kind of file, at its line; a plain sentence is not, nor is a question.
finds_riddles() {
  cat >"$tmp/some.c" <<'END'
/* The peer waits. Who waits, stalls. */
int plain; /* One that is in. */
/*
 * The queue is full. The request, of
 * which there is one, is cut.
 * Its end
 * comes late.
 */
const char *text = "What is no comment.";
END
  cat >"$tmp/some.md" <<'END'
# What is no sentence

You may ask: What is a ring? Requests are a ring
of entries. **What is late** is lost.

```c
/* Who is in a block of code. */
```

* Nobody posts a receive.
| a cell | They are found |
END
  cat >"$tmp/some.3" <<'END'
.Nd What is the name
The call
.Fn post .
Those that wait return.
.Bd -literal
Who knows.
.Ed
END
  for kind in c md 3; do
    riddles "$(echo "$kind" | sed 's/^3$/man/')" "$tmp/some.$kind"
  done | sed "s,^$tmp/,," >"$tmp/found"
  cat >"$tmp/wanted" <<'END'
some.c:1: Who waits, stalls.
some.c:2: One that is in.
some.c:6: Its end comes late.
some.md:4: **What is late** is lost.
some.md:10: Nobody posts a receive.
some.md:11: They are found
some.3:4: Those that wait return.
END
  diff "$tmp/wanted" "$tmp/found"
}

finds_names() {
  mkdir -p "$tmp/tree/lib" "$tmp/tree/docs" && (
    for folder in include tests tools man; do mkdir "$tmp/tree/$folder"; done
    : >"$tmp/tree/lib/gone.c"
    printf 'See untold.c.\nSee lib/gone.c, told.c.\n' >"$tmp/tree/docs/page.md"
    : >"$tmp/tree/README.md"
  )
  (srcdir=$tmp/tree && come_back 'gone.c told.c') | sort >"$tmp/found"
  printf '%s\n' 'docs/page.md:2:See lib/gone.c, told.c.' 'docs/page.md:2:See lib/gone.c, told.c.' lib/gone.c |
    diff - "$tmp/found"
}

if [ "${1:-}" = --list ]; then
  group "$2"
  exit
fi
check 'a sentence that opens as a riddle is found, and a plain one is not' finds_riddles
check 'a name that was given up is found' finds_names
check "comments of lib/ have at most $ceiling_lib riddles" below "$ceiling_lib" lib
check "comments of tests/ have at most $ceiling_tests" below "$ceiling_tests" tests
check "comments of programs have at most $ceiling_programs" below "$ceiling_programs" programs
check "documents have at most $ceiling_docs" below "$ceiling_docs" docs
check "manual pages have at most $ceiling_man" below "$ceiling_man" man
check 'no name that was given up is used' silent come_back "$retired"
finish
