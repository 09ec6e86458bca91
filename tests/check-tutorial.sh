#!/bin/sh
# SPDX-License-Identifier: MIT
# What README.md and docs/tutorial.md tell a reader to do works, word for word: each block of C
# that begins with its name is saved by it, the commands of each block of "console" run, and what
# they print is what the page says. They find the library of this build, as if it were installed.
# The ports of the pages are replaced by some that nobody else has. And sluice_tutorial(7) is what
# scripts/update-tutorial makes of the tutorial, whose programs have at most 60 lines, a printed page
# each.
. "${srcdir:-.}/tests/tap.sh"

build=$(pwd)
top=$(cd "$srcdir" && pwd)
# Below those that the kernel gives away, and of this process alone.
port=$((20000 + $$ % 12000))

# Files that an installation would have.
mkdir "$tmp/bin"
cat >"$tmp/bin/pkg-config" <<EOS
#!/bin/sh
[ "\$*" = '--cflags --libs sluice' ] || { echo "pkg-config: unexpected: \$*" >&2; exit 1; }
echo '-I$top/include -L$build/lib/.libs -Wl,-rpath,$build/lib/.libs -lsluice'
EOS
cat >"$tmp/bin/cc" <<EOS
#!/bin/sh
exec ${CC:-cc} -Wall -Wextra -Werror ${SANITIZE:-} "\$@"
EOS
chmod +x "$tmp/bin/pkg-config" "$tmp/bin/cc"
ln -s "$build/tools/sluice-launch" "$tmp/bin/sluice-launch"

# steps PAGE FOLDER: its programs, and N.sh and N.out for each block of commands.
steps() {
  mkdir -p "$2"
  awk -v folder="$2" -v port="$port" '
    /^```/ {
      kind = kind == "" ? substr($0, 4) : ""
      if (kind == "console") { n++; printf "" >folder "/" n ".sh"; printf "" >folder "/" n ".out" }
      file = ""
      next
    }
    kind == "c" && file == "" {
      if (match($0, /^\/\* [a-z]+\.[ch]: /)) file = folder "/" substr($2, 1, length($2) - 1)
      else kind = "text"
    }
    kind == "c" { print >file }
    kind == "console" {
      gsub(/:7471/, ":" port)
      gsub(/:7472/, ":" port + 1)
      if (sub(/^\$ /, "")) print >folder "/" n ".sh"
      else print >folder "/" n ".out"
    }
    END { print n + 0 >folder "/count" }' "$1"
}

# Whatever happens, nothing that it started stays.
as_the_page_says() {
  {
    echo "trap 'kill \$(jobs -p) 2>/dev/null || :' EXIT"
    echo 'set -e'
    cat "$1.sh"
  } >"$1.run"
  (cd "$(dirname "$1")" && PATH=$tmp/bin:$PATH SLUICE_DEVICE=soft timeout 60 sh "$1.run") \
    >"$1.printed" || { cat "$1.printed"; return 1; }
  diff "$1.out" "$1.printed"
}

# follow PAGE NAME
follow() {
  folder=$tmp/$2
  steps "$1" "$folder"
  count=$(cat "$folder/count")
  for n in $(seq "$count"); do
    check "$2: $(sed -n 2p "$folder/$n.sh")" as_the_page_says "$folder/$n"
  done
}

# A page that says something else than what comes is found.
is_found() {
  sed 's/^4 ranks: 7998000$/4 ranks: 7998001/' "$srcdir/docs/tutorial.md" >"$tmp/wrong.md"
  steps "$tmp/wrong.md" "$tmp/wrong"
  { ! as_the_page_says "$tmp/wrong/1" >"$tmp/wrong/found"; } || return 1
  cat "$tmp/wrong/found"
  grep -q '^< 4 ranks: 7998001$' "$tmp/wrong/found"
}

# short_programs PAGE FOLDER: its programs have at most 60 lines.
short_programs() {
  steps "$1" "$2"
  awk 'FNR == 61 { print FILENAME " has more than 60 lines"; long = 1 } END { exit long }' "$2"/*.c
}

# A program that is a line too long is found.
long_is_found() {
  sed 's/^    return 0;$/&\n/' "$srcdir/docs/tutorial.md" >"$tmp/long.md"
  { ! short_programs "$tmp/long.md" "$tmp/long" >"$tmp/too.long"; } || return 1
  cat "$tmp/too.long"
  grep -q 'shout.c has more than 60 lines' "$tmp/too.long"
}

same_page() {
  perl "$srcdir/scripts/update-tutorial" --print | diff "$srcdir/man/sluice_tutorial.7" -
}

if have perl; then
  check 'sluice_tutorial(7) is made of docs/tutorial.md' same_page
else
  skip 'sluice_tutorial(7) is made of docs/tutorial.md' 'no perl'
fi
check 'programs of the tutorial have at most 60 lines' short_programs "$srcdir/docs/tutorial.md" \
  "$tmp/short"
check 'a program that is a line too long is found' long_is_found
if [ ! -f lib/.libs/libsluice.so ]; then
  skip 'the programs run' 'no shared library was built'
elif [ ! -x tools/sluice-launch ]; then
  skip 'the programs run' 'no tools/sluice-launch was built'
else
  follow "$srcdir/README.md" readme
  follow "$srcdir/docs/tutorial.md" tutorial
  four_programs() { [ "$(cat "$tmp/readme/count") $(cat "$tmp/tutorial/count")" = '1 4' ]; }
  check 'one program of README.md and four of the tutorial were run' four_programs
  check 'a page that says something else is found' is_found
fi
finish
