#!/bin/sh
# SPDX-License-Identifier: MIT
# The manual says what the headers say: every function has a page, every
# prototype, struct and constant in a page is the header's, and every reference
# leads somewhere.
#
# Every block that is set apart (.Bd, .Dl) is taken as a reader sees it, from the
# page as mandoc shows it, and tried. What it is can be told from itself: a struct
# or typedef, which the headers must have; commands after a $, which must be a
# shell's; in EXAMPLES a piece of C, which is compiled and, if it is a program, run.
# Others, and commands that can be run here, need a comment on the line before:
#
#   .\" block output              something that a program prints
#   .\" block C
#   .\" block program            C of a file, and ".\" block console" commands with what they
#                                 print: check-tutorial.sh runs both
#   .\" block statements          C of a function's inside; the comments "given TEXT"
#                                 before it have declarations of what it uses
#   .\" block hosts               a host file, which the library reads
#   .\" block bpftrace, gdb       programs for these
#   .\" block shell [PROGRAM]     commands; ./program is that one of the build
#
# With ONLY=PAGES no block is tried and nothing linted or installed; what is left compares these
# pages, and what they all say, with the headers. check-manual-self.sh proves that it finds what
# differs.
. "${srcdir:-.}/tests/tap.sh"

have perl || skip_all 'no perl'
man=$srcdir/man
map=$srcdir/lib/sluice.map
cc=${CC:-cc}

# read-manual COMMAND FILE...: the parser of pages and of preprocessed C.
cat >"$tmp/read-manual" <<'PERL'
use strict;
use warnings;

sub slurp { local (@ARGV, $/) = @_; return scalar <> }
sub flat { my $t = shift; $t =~ s/\s+/ /g; $t =~ s/ ?([][(){},;*]) ?/$1/g; $t =~ s/^ | $//g; return $t }

my $parens;
$parens = qr/\((?:[^()"]|"(?:[^"\\]|\\.)*"|(??{$parens}))*\)/;
my $braces;
$braces = qr/\{(?:[^{}]|(??{$braces}))*\}/;

# Preprocessed C: attributes stand as SLU_ATTRIBUTE (...). "name kind prototype".
sub functions {
    my $text = slurp(@_);
    $text =~ s/^#.*$//mg;
    $text =~ s/SLU_ATTRIBUTE\s*\(visibility\("default"\)\)/SLU_EXPORTED /g;
    $text =~ s/SLU_ATTRIBUTE\s*$parens//g;
    $text =~ s/$braces/{};/g;
    for my $statement (split /;/, $text) {
        next if $statement =~ /^\s*typedef\b/;
        next unless $statement =~ /^\s*(.*?)\b(sluice_\w+)\s*($parens)/s;
        my ($type, $name, $parameters) = ($1, $2, $3);
        my $exported = $type =~ s/SLU_EXPORTED//g;
        my $inline = $type =~ s/\bstatic\b(?:\s+(?:__)?inline(?:__)?\b)?//g;
        my $kind = $exported ? 'exported' : $inline ? 'inline' : 'declared';
        print "$name\t$kind\t", flat("$type $name $parameters"), "\n";
    }
}

# Preprocessed C: "struct name { fields }", and "typedef ..." of the library.
sub types {
    my $text = slurp(@_);
    $text =~ s/^#.*$//mg;
    $text =~ s/SLU_ATTRIBUTE\s*$parens//g;
    print flat($_), "\n" for $text =~ /\b(struct\s+sluice_\w+\s*$braces)/g;
    print flat($_), "\n" for $text =~ /\b(typedef\s[^;{}]*\bsluice_\w+\b[^;{}]*);/g;
}

sub section { my ($text, $name) = @_; return $text =~ /^\.Sh $name\n(.*?)(?=^\.Sh |\z)/ms ? $1 : '' }
sub words { return map { s/^"|"$//gr } $_[0] =~ /"[^"]*"|\S+/g }

# The functions of the SYNOPSIS as C, with the names of macros left out.
sub synopsis {
    my ($type, $name, @parameters) = ('');
    for (split /\n/, section(slurp(@_), 'SYNOPSIS')) {
        my ($macro, @arguments) = words($_);
        next unless defined $macro;
        if ($macro eq '.Ft') { $type = join ' ', @arguments }
        elsif ($macro eq '.Fo') { ($name, @parameters) = @arguments }
        elsif ($macro eq '.Fa') { push @parameters, @arguments }
        elsif ($macro eq '.Fn') { ($name, @parameters) = @arguments }
        if ($macro eq '.Fn' || $macro eq '.Fc') {
            print "$type $name(", join(', ', @parameters), ");\n" if $name =~ /^sluice_/;
        }
    }
}

sub names { print "$_\n" for section(slurp(@_), 'NAME') =~ /^\.Nm (\S+)/mg }

# Fields of the structs of a page that its text does not name.
sub undescribed {
    my $text = slurp(@_);
    my $prose = $text =~ s/^\.Bd -literal.*?^\.Ed//msgr;
    for my $struct ($text =~ /^(struct sluice_\w+ \{.*?^\};)/msg) {
        for my $field ($struct =~ /(\w+)(?:\[\w+\])?;/g) {
            print "$_[0]: $field is not described\n" unless $prose =~ /\bFa (?:\w+->)?$field\b/;
        }
    }
}

# A piece of a page as mandoc shows it on a terminal, without what makes it bold.
sub rendered {
    my ($piece, $scratch) = @_;
    open my $out, '>', $scratch or die "$scratch: $!";
    print $out ".Dd January 1, 2000\n.Dt A 7\n.Os\n.Sh NAME\n.Nm a\n.Nd a\n.Sh B\n$piece";
    close $out or die "$scratch: $!";
    my $text = `mandoc -T utf8 -O width=1000 $scratch`;
    $? == 0 or die "mandoc cannot show: $piece";
    $text =~ s/.\x08//g;
    $text =~ s/\A.*?^B\n//ms and $text =~ s/\n[^\n]+\n\z//;
    $text =~ s/\A\s*\n|\n\s*\z//g;
    my ($indent) = sort { length $a <=> length $b } $text =~ /^( *)\S/mg;
    $text =~ s/^$indent//mg;
    return "$text\n";
}

# The kind of a block and its argument, by its comment, or by the block and its section.
sub kind {
    my ($mark, $section, $macro, $text) = @_;
    return ($1, $2) if defined $mark && $mark =~ /^(\S+)\s*(.*)$/;
    return ('types', '') if $text =~ /\A(?:struct sluice_\w+ \{|typedef )/;
    return ('shell', '') if $text =~ /\A\$ /;
    return ('C', '') if $macro eq 'Bd' && $section eq 'EXAMPLES';
    return ('unknown', '');
}

# Writes each block of the page to PREFIX-1, PREFIX-2, ... "kind file line argument"
sub blocks {
    my ($page, $prefix) = @_;
    my ($count, $line, $section, $given, $mark) = (0, 1, '', '');
    for (slurp($page) =~ /^(\.Bd\b(?s:.*?)^\.Ed\n|(?:\.D[1l] .*\n)+|.*\n)/mg) {
        if (/^\.(Bd|D[1l])\b/) {
            my $file = $prefix . '-' . ++$count;
            my $text = rendered($_, "$prefix.page");
            my ($kind, $argument) = kind($mark, $section, $1, $text);
            $text =~ s/^\$ //mg if $kind eq 'shell';
            $text = "#include <sluice.h>\n${given}void f(void);\nvoid f(void)\n{\n$text}\n"
                if $kind eq 'statements';
            $file .= '.h' if $kind eq 'types';
            $file .= '.c' if $kind =~ /^(C|program|statements)$/;
            open my $out, '>', $file or die "$file: $!";
            print $out $text;
            print "$kind $file $line $argument\n";
        }
        $section = $1 if /^\.Sh (.*)$/;
        $mark = /^\.\\" block (.*)$/ ? $1 : undef;
        $given = /^\.\\" given (.*\n)/ ? $given . $1 : '' unless defined $mark;
        $line += tr/\n//;
    }
}

# Sections that every page of section 3 has.
sub missing {
    my $text = slurp(@_);
    my @all = ('Sh SYNOPSIS', 'Sh DESCRIPTION', 'Sh EXAMPLES', 'Sh SEE ALSO');
    push @all, 'Ss Threads and blocking', 'Sh RETURN VALUES' if $text =~ /^\.F[on] "?sluice_/m;
    for (@all) { print "$_[0]: no .$_\n" unless $text =~ /^\.$_$/m }
}

# Fields whose comment in the headers has a range and a default: a page says the same. Structs of
# several pages may have a field of that name.
sub ranges {
    my $headers = slurp(shift);
    my $pages = join '', map { slurp($_) } @_;
    my $count = 0;
    while ($headers =~ m{^\s+\w+ (\w+);\s*/\*((?:(?!\*/).)*)\*/}msg) {
        my ($field, $comment) = ($1, $2);
        my ($low, $high, $default) = $comment =~ /(\d+)\.\.(\d+(?:e\d+)?),\s+default (\d+)/ or next;
        $high += 0;
        $count++;
        my @items = map { flat($_) } $pages =~ /^\.It Fa $field\n(.*?)(?=^\.It|^\.El)/msg;
        print "$field: no page says $low to $high, default $default\n"
            unless grep { /\b$low to $high\b/ && /\bdefault(?: is)? $default\b/ } @items;
    }
    print "no range was found in the headers\n" unless $count;
}

# Errors by name: what a contract in the headers promises stands in its page; what ERRORS of
# there is named by a header: in the contract of a function of the page, or of one that this refers
# to, or elsewhere in the header that declares it. The errors of requests go by their classes.
sub errno_of { return $_[0] =~ /(?<![\w.])-?(E[A-Z0-9]{2,})\b/g }

# The errno values in the lines of a page that have the macro.
sub values_of { return map { /\b(E[A-Z0-9]{2,})\b/g } grep { /\bEr \\?-?E/ } split /\n/, $_[0] }

sub errors {
    my ($list, @files) = @_;
    my (%contract, %refers, %header);
    my @classes = slurp((grep { m{/error\.h$} } @files)[0]) =~ m{SLUICE_CLASS_\w+ = \d+,? +/\* .* (E[A-Z]+) \*/}g;
    @classes or print "no errno values of classes were found\n";
    for my $file (grep { /\.h$/ } @files) {
        my $text = slurp($file);
        my $said = join ' ', $text =~ m{/\*(.*?)\*/}sg;
        my @said = (errno_of($said), $said =~ /\bclass\b/ ? @classes : ());
        while ($text =~ m{/\*((?:(?!\*/).)*)\*/\s*((?:SLUICE_\w+\s+)*[^;{}/#]*?\b(sluice_\w+)\s*\([^;{}]*?\)[^;{}]*;)}sg) {
            my ($comment, $name) = ($1, $3);
            $contract{$name} = { map { $_ => 1 } errno_of($comment) };
            $refers{$name} = [ $comment =~ /\b(sluice_\w+)\(/g ];
        }
        $header{$_}{$file} = \@said for $text =~ /\b(sluice_\w+)\s*\(/g;
    }
    %contract or print "no contract was found in the headers\n";
    my (%named, %listed);
    for my $page (grep { /\.3$/ } @files) {
        my $text = slurp($page);
        my $errors = section($text, 'ERRORS');
        my $name = $page =~ s{.*/}{}r;
        my @functions = section($text, 'NAME') =~ /^\.Nm (sluice_\w+)/mg;
        my %has = map { $_ => 1 } values_of($errors);
        my (%known, %seen);
        for my $function (@functions) {
            for my $code (sort keys %{ $contract{$function} || {} }) {
                print "$name lacks $code, which the contract of $function() names\n" unless grep { $_ eq $code } values_of($text);
            }
        }
        my @open = @functions;
        while (defined(my $function = shift @open)) {
            next if $seen{$function}++;
            $known{$_} = 1 for keys %{ $contract{$function} || {} };
            push @open, @{ $refers{$function} || [] };
        }
        for my $function (@functions) {
            $known{$_} = 1 for map { @$_ } values %{ $header{$function} || {} };
        }
        for (sort keys %has) {
            print "$name: ERRORS names $_, and no header does for its functions\n" unless $known{$_};
            $named{$_} = $name;
        }
    }
    my $values = slurp($list) =~ /^\.Ss Values of errno\n(.*?)(?=^\.S[sh])/ms ? $1 : '';
    $listed{$_} = 1 for values_of($values);
    for (sort keys %named) { print "$named{$_}: $_ is not in sluice_errors(7)\n" unless $listed{$_} }
    for (sort keys %listed) { print "sluice_errors(7): $_ is in ERRORS of no page\n" unless $named{$_} }
}

my $command = shift;
{ no strict 'refs'; &{"main::$command"}(@ARGV) }
PERL

parse() {
  perl "$tmp/read-manual" "$@"
}

# Preprocesses the headers and the text behind them in a translation unit.
preprocess() {
  {
    echo '#include <sluice.h>'
    echo '#include <sluice/verbs.h>'
    echo '#include <sluice/mpi.h>'
    [ "${1:-}" ] && printf 'SLU_HEADERS_END\n' && cat "$1"
  } >"$tmp/unit.c"
  # shellcheck disable=SC2086 # a compiler may come with options
  $cc -E -P -I"$tmp/no-mpi" -I"$srcdir/include" ${VERBS_CFLAGS:-} \
    '-D__attribute__(x)=SLU_ATTRIBUTE x' \
    '-D__extension__=' "$tmp/unit.c" >"$tmp/unit.i" || return 1
  if [ "${1:-}" ]; then sed '1,/SLU_HEADERS_END/d' "$tmp/unit.i"; else cat "$tmp/unit.i"; fi
}

# Only names of MPI are needed here. sluice_mpi_* of sluice/mpi.h are internal.
mkdir "$tmp/no-mpi" && : >"$tmp/no-mpi/mpi.h"

# Declarations of the headers.
preprocess >"$tmp/headers.i" || { check 'the headers are preprocessed' false; finish; }
parse functions "$tmp/headers.i" | grep -v '^sluice_mpi_' | sort -u >"$tmp/functions"
parse types "$tmp/headers.i" | grep -v '^struct sluice_mpi_' | sort >"$tmp/types"
cut -f1 "$tmp/functions" >"$tmp/function-names"
cat "$srcdir"/include/*.h "$srcdir"/include/sluice/*.h >"$tmp/headers"
awk '/^#define SLUICE_/ { sub(/\(.*/, "", $2); print $2 }
     /^ +SLUICE_[A-Z0-9_]+ = / { print $1 }' "$tmp/headers" |
  grep -v -e '_H$' -e '^SLUICE_EXPORT$' -e '^SLUICE_NODISCARD$' -e '^SLUICE_CONSUMED_[AB][SY]$' \
    -e '^SLUICE_SIZED_BY$' -e '^SLUICE_MAYBE_UNUSED$' -e '^SLUICE_REDECLARE_' \
    -e '^SLUICE_EXPERIMENTAL$' -e '^SLUICE_DEPRECATED$' |
  sort -u >"$tmp/constants"

# Names in the pages: "name section page", one line each.
for page in "$man"/*.[137]; do
  base=${page##*/}
  parse names "$page" | sed "s/\$/ ${base##*.} $base/"
done | sort >"$tmp/names"

names_of() {
  awk -v page="$1" '$3 == page { print $1 }' "$tmp/names"
}

# Each of these prints what is wrong.
lint() {
  mandoc -T lint -W style "$1" 2>&1 |
    grep -v -e 'referenced manual not found' -e 'outdated mandoc.db' || true
  # Brackets go on to the end of the line, and a second pair would stand in them.
  grep -n '^\..*\<Bq\>.*\<Bq\>' "$1" | sed 's/$/: brackets in brackets/' || true
}

# A table is not wider than a terminal of 80 columns; prototypes of the SYNOPSIS may be.
too_wide() {
  from=$(grep -n -m 1 '^\.Sh DESCRIPTION' "$1" | cut -d: -f1)
  groff -mdoc -Tutf8 -rLL=78n "$1" 2>&1 >"$tmp/page.out" | awk -F : -v from="${from:-0}" '$3 > from'
}

own_name() {
  base=${1##*/}
  names_of "$base" | grep -qx "${base%.*}" || echo "its NAME lacks ${base%.*}"
  grep -q "^\.Dt $(echo "${base%.*}" | tr '[:lower:]' '[:upper:]') ${base##*.}\$" "$1" ||
    echo "its .Dt is not that of its file"
}

wrong_prototypes() {
  parse synopsis "$1" >"$tmp/synopsis.h"
  preprocess "$tmp/synopsis.h" >"$tmp/synopsis.i" || return 1
  parse functions "$tmp/synopsis.i" | sort >"$tmp/page-functions"
  awk -F '\t' '
    NR == FNR { header[$1] = $3; next }
    !($1 in header) { print $1 " is in no header"; next }
    $3 != header[$1] { print "page:   " $3; print "header: " header[$1] }
  ' "$tmp/functions" "$tmp/page-functions"
  names_of "${1##*/}" | grep '^sluice_' >"$tmp/left"
  cut -f1 "$tmp/page-functions" | sort >"$tmp/right"
  diff "$tmp/left" "$tmp/right" | sed -n 's/^< /only in NAME: /p; s/^> /only in SYNOPSIS: /p'
}

undocumented() {
  awk '$2 == 3 { print $1 }' "$tmp/names" | comm -23 "$tmp/function-names" -
  awk '$2 == 3 { print $1 }' "$tmp/names" | uniq -d | sed 's/$/ is in two pages/'
  awk '$2 == 3 { print $1 }' "$tmp/names" | sort -u |
    comm -23 - "$tmp/function-names" | comm -23 - "$tmp/constants" | sed 's/$/ is in no header/'
}

not_exported() {
  awk -F '\t' '$2 == "declared" { print $1 " is not exported" }' "$tmp/functions"
  awk -F '\t' '$2 == "exported" { print $1 }' "$tmp/functions" >"$tmp/left"
  sed -n 's/^ *\(sluice_[a-z0-9_]*\);$/\1/p' "$map" | sort >"$tmp/right"
  diff "$tmp/left" "$tmp/right" | sed -n 's/^</only in a header:/p; s/^>/only in the map:/p'
}

wrong_types() {
  find "$tmp/blocks" -name '*.h' -exec cat {} + >"$tmp/types.h"
  preprocess "$tmp/types.h" >"$tmp/types.i" || return 1
  parse types "$tmp/types.i" | sort >"$tmp/page-types"
  uniq -d "$tmp/page-types" | sed 's/^/twice: /'
  for page in "$man"/*.[137]; do parse undescribed "$page"; done
  diff "$tmp/types" "$tmp/page-types" | sed -n 's/^</only in a header:/p; s/^>/only in a page:/p'
}

# fortran PREFIX: what programs of Fortran see, and those of C do not.
fortran() {
  sed -n 's/^ .*\bpublic[^:]* :: //p' "$srcdir/bindings/fortran/sluice.f90" |
    grep -o "\b$1_[A-Za-z0-9_]*"
}

# Words in the pages, the names of environment variables aside.
wrong_words() {
  sed -n 's/^\.It Ev \([A-Z0-9_]*\).*/\1/p' "$man/sluice_environment.7" | sort -u >"$tmp/environment"
  grep -hv '^\.Dt ' "$man"/*.[137] >"$tmp/text"
  grep -o '\bSLUICE_[A-Z0-9_]*[A-Z0-9]\b' "$tmp/text" | sort -u >"$tmp/words"
  fortran SLUICE | cat - "$tmp/constants" "$tmp/environment" | sort -u | comm -13 - "$tmp/words" |
    sed 's/$/ is in no header/'
  comm -23 "$tmp/constants" "$tmp/words" | sed 's/$/ is in no page/'
  {
    grep -o '\bsluice_[a-z0-9_]*[a-z0-9]\b' "$tmp/headers.i" "$srcdir/include/sluice/mpi.h" |
      cut -d: -f2
    cut -d' ' -f1 "$tmp/names"
    fortran sluice
  } | sort -u >"$tmp/known"
  grep -o '\bsluice_[a-z0-9_]*[a-z0-9]\b' "$tmp/text" | sort -u | comm -13 "$tmp/known" - |
    sed 's/$/ is in no header/'
}

# "status number" and "class errno" in sluice_errors(7) are those of the headers.
wrong_values() {
  {
    sed -n 's/^ *\(SLUICE_STATUS_[A-Z_]*\) = \([0-9]*\).*/\1 \2/p' "$tmp/headers"
    sed -n 's,^ *\(SLUICE_CLASS_[A-Z_]*\) = .* \([A-Z0-9]*\) \*/$,\1 \2,p' "$tmp/headers"
  } | sort >"$tmp/left"
  sed -n 's/^\.It Dv \(SLUICE_[A-Z_]*\) , [EN][or] \([A-Z0-9]*\)$/\1 \2/p' \
    "$man/sluice_errors.7" | sort >"$tmp/right"
  diff "$tmp/left" "$tmp/right" | sed -n 's/^</only in a header:/p; s/^>/only in the page:/p'
  parse ranges "$tmp/headers" "$man"/*.3
}

wrong_errors() {
  parse errors "$man/sluice_errors.7" "$srcdir"/include/sluice/*.h "$man"/*.3
}

unread_environment() {
  {
    grep -rhoE 'getenv\("[A-Za-z0-9_]+"\)' "$srcdir/lib"
    # The tables of our own variables and of those of launchers.
    grep -hoE '= "[A-Z][A-Z0-9_]+"' "$srcdir/lib/base/environment.c" "$srcdir/lib/exchange/launch.c" \
      "$srcdir/lib/device/local_rank.c"
  } | cut -d'"' -f2 | sort -u >"$tmp/read"
  sed -n 's/^\.It Ev \([A-Z0-9_]*\).*/\1/p' "$man/sluice_environment.7" | sort -u |
    comm -13 - "$tmp/read"
}

dead_references() {
  grep -ohE '\bXr (sluice|SLUICE)[A-Za-z0-9_-]* [0-9]' "$man"/*.[137] | sort -u |
    while read -r _ name section; do
      grep -q "^$name $section " "$tmp/names" || echo "$name($section) does not exist"
    done
}

# The aliases are made of the names of the pages that are listed.
unlisted() {
  sed -n 's,^.%D%/\([^ ]*\).*,\1,p' "$man/local.mk" | sort >"$tmp/left"
  find "$man"/*.[137] | sed 's,.*/,,' | sort >"$tmp/right"
  diff "$tmp/left" "$tmp/right" | sed -n 's/^< /only in man\/local.mk: /p; s/^> /not in man\/local.mk: /p'
}

# Every name of a page can be asked for once it is installed.
uninstalled() {
  root=$tmp/root
  unset MAKEFLAGS MFLAGS MAKELEVEL
  "${MAKE:-make}" install-man install-man-aliases DESTDIR="$root" mandir=/man >"$tmp/make.out" 2>&1 ||
    { cat "$tmp/make.out"; return 1; }
  while read -r name section page; do
    file=$root/man/man$section/$name.$section
    if [ ! -f "$file" ]; then
      echo "$name($section) is not installed"
    elif [ "$name.$section" != "$page" ]; then
      [ "$(cat "$file")" = ".so man$section/$page" ] || echo "$name($section) does not lead to $page"
    fi
  done <"$tmp/names"
  "${MAKE:-make}" uninstall-man uninstall-man-aliases DESTDIR="$root" mandir=/man >/dev/null 2>&1
  find "$root" -type f | sed 's/^/left behind: /'
}

compiles() {
  # shellcheck disable=SC2086 # a compiler may come with options
  silent $cc -std=c11 -O1 -Wall -Wextra -Werror -I"$srcdir/include" -I"$tmp/included" ${VERBS_CFLAGS:-} ${MPI_CFLAGS:-} \
    -c -o "$tmp/example.o" "$1"
}

links() {
  # shellcheck disable=SC2086 # flags are words
  silent $cc ${SANITIZE:-} -pthread -o "$tmp/example" "$tmp/example.o" -Llib/.libs -lsluice
}

runs() {
  LD_LIBRARY_PATH=lib/.libs SLUICE_DEVICE=soft timeout 60 "$tmp/example"
}

# Examples that use libibverbs need its headers, which a build without verbs lacks.
needs_verbs() {
  # shellcheck disable=SC2086 # a compiler may come with options
  grep -q '<infiniband/' "$1" &&
    ! echo '#include <infiniband/verbs.h>' | silent $cc ${VERBS_CFLAGS:-} -E -o /dev/null -
}

needs_mpi() {
  # shellcheck disable=SC2086 # a compiler may come with options
  grep -q '<sluice/mpi.h>' "$1" &&
    ! echo '#include <mpi.h>' | silent $cc ${MPI_CFLAGS:-} -E -o /dev/null -
}

check_c() {
  if needs_verbs "$1"; then
    skip "$2 compiles" 'no headers of libibverbs'
    return
  fi
  if needs_mpi "$1"; then
    skip "$2 compiles" 'no headers of MPI'
    return
  fi
  rm -f "$tmp/example.o" "$tmp/example"
  check "$2 compiles" compiles "$1"
  grep -q '^main(\|^int main(' "$1" || return
  if [ ! -f lib/.libs/libsluice.so ]; then
    skip "$2 runs" 'no shared library was built'
  elif [ ! -f "$tmp/example.o" ]; then
    skip "$2 runs" 'it was not compiled'
  else
    check "$2 is linked" links
    check "$2 runs" runs
  fi
}

# Commands run in a folder that has what they name.
mkdir "$tmp/blocks" "$tmp/fixture" "$tmp/included"
mkdir "$tmp/fixture/bin"
ln -s "$(pwd)/tools/sluice-info" "$(pwd)/tools/sluice-launch" "$(pwd)/tools/sluice-perf" \
  "$tmp/fixture/bin/"

run_commands() {
  ln -sf "$(pwd)/$2" "$tmp/fixture/program"
  (cd "$tmp/fixture" && PATH=$tmp/fixture/bin:$PATH SLUICE_DEVICE=soft timeout 60 sh -e "$1")
}

check_shell() {
  check "$3 are commands" silent sh -n "$1"
  [ "$2" ] || return
  if [ -x "$2" ]; then
    check "$3 run" run_commands "$1" "$2"
  else
    skip "$3 run" "$2 was not built"
  fi
}

# As many ranks as the file has open an exchange with it, and say their devices.
cat >"$tmp/rank.c" <<'EOF'
#include <stdio.h>
#include <sluice.h>
int main(void)
{
    struct sluice_exchange_info info = {.size = sizeof(info)};
    struct sluice_exchange *exchange = sluice_exchange_open(NULL, SLUICE_S(30));
    if (exchange == NULL || sluice_exchange_query(exchange, &info) < 0) {
        fprintf(stderr, "%s\n", sluice_last_error());
        return 1;
    }
    printf("device %s\n", info.device);
    sluice_exchange_close(exchange);
    return 0;
}
EOF

read_by_library() {
  ranks=$(grep -c rankid "$1")
  compiles "$tmp/rank.c" && links || return 1
  LD_LIBRARY_PATH=lib/.libs SLUICE_HOST_FILE=$1 timeout 60 tools/sluice-launch -q \
    -n "$ranks" "$tmp/example" >"$tmp/devices" || return 1
  cat "$tmp/devices"
  [ "$(grep -c 'device .' "$tmp/devices")" = "$(grep -c ibdev "$1")" ]
}

check_hosts() {
  if [ ! -f lib/.libs/libsluice.so ]; then
    skip "$2 is a host file" 'no shared library was built'
  elif ! grep -q '^#define HAVE_JANSSON 1' config.h; then
    skip "$2 is a host file" 'built without jansson'
  else
    check "$2 is a host file" read_by_library "$1"
  fi
}

# check_block KIND FILE TITLE ARGUMENT; wrong_types looks at types.
check_block() {
  case $1 in
    C | statements) check_c "$2" "$3" ;;
    program)
      # The programs behind a header that has its name on top include it.
      header=$(sed -n '1s,^/\* \([a-z]*\.h\): .*,\1,p' "$2")
      [ -z "$header" ] || cp "$2" "$tmp/included/$header"
      check "$3 compiles" compiles "$2"
      ;;
    shell) check_shell "$2" "$4" "$3" ;;
    hosts) check_hosts "$2" "$3" ;;
    # check-probes.sh tries those.
    bpftrace | gdb) ;;
    console | output | types) ;;
    *) check "$3 says what it is" false ;;
  esac
}

check_blocks() {
  parse blocks "$1" "$tmp/blocks/${1##*/}" >"$tmp/list" || check "${1##*/} has blocks" false
  while read -r kind file line argument; do
    check_block "$kind" "$file" "${1##*/}, line $line," "$argument"
  done <"$tmp/list"
}

# broken WHAT FAILURE: of a page with the block on standard input one check fails, so named.
broken() {
  {
    printf '.Dd January 1, 2000\n.Dt BROKEN 7\n.Os\n.Sh NAME\n.Nm broken\n.Nd a page\n.Sh EXAMPLES\n'
    cat
  } >"$tmp/broken.7"
  (check_blocks "$tmp/broken.7") >"$tmp/found"
  check "$1 is found" found "$2"
}

found() {
  cat "$tmp/found"
  [ "$(grep -c '^not ok' "$tmp/found")" = 1 ] && grep -q "^not ok .*broken.7, line [0-9]*, $1\$" "$tmp/found"
}

check_broken() {
  broken 'a piece of C without its end' compiles <<'EOF'
.Bd -literal
#include <sluice.h>
int one(void) { return 1;
.Ed
EOF
  broken 'a string that mdoc ends' compiles <<'EOF'
.Dl $ true
.\" block C
.Dl const char *text = "text";
EOF
  broken 'a statement of too little' compiles <<'EOF'
.\" given extern int two(int, int);
.\" block statements
.Bd -literal
two(1);
.Ed
EOF
  broken 'a quote that is left open' 'are commands' <<'EOF'
.Dl $ echo 'one
.Dl $ echo two
EOF
  broken 'a block of which nobody knows what it is' 'says what it is' <<'EOF'
.Bd -literal
int one(void);
.Ed
.Dl make it
EOF
  if [ -x examples/01-loopback ]; then
    broken 'a command that fails' run <<'EOF'
.\" block shell examples/01-loopback
.Dl $ ./program
.Dl $ SLUICE_DEVICE=nosuch0 ./program
EOF
  fi
  if [ -f lib/.libs/libsluice.so ] && grep -q '^#define HAVE_JANSSON 1' config.h; then
    broken 'a host file that mdoc took the quotes of' 'is a host file' <<'EOF'
.\" block hosts
.Dl {"hosts": [{"hostname": "node7", "port": 7471, "rankid": 0}]}
EOF
  fi
}

for page in "$man"/*.[137]; do
  base=${page##*/}
  case " ${ONLY:-$base} " in *" $base "*) ;; *) continue ;; esac
  if [ "${ONLY:-}" ]; then
    :
  elif have mandoc; then
    check "$base lints" silent lint "$page"
  else
    skip "$base lints" 'no mandoc'
  fi
  if [ "${ONLY:-}" ]; then
    :
  elif have groff; then
    check "$base fits in 80 columns" silent too_wide "$page"
  else
    skip "$base fits in 80 columns" 'no groff'
  fi
  check "$base has its own name" silent own_name "$page"
  case $base in *.3)
    check "$base has its sections" silent parse missing "$page"
    check "$base has the prototypes of the headers" silent wrong_prototypes "$page" ;;
  esac
  if [ "${ONLY:-}" ]; then :; elif have mandoc; then check_blocks "$page"; else skip "$base, its blocks" 'no mandoc'; fi
done

check 'every function has one page, and every page a function' silent undocumented
check 'headers and map name the same functions' silent not_exported
if [ "${ONLY:-}" ]; then
  :
elif have mandoc; then
  check_broken
  check 'structs and typedefs in the pages are those of the headers' silent wrong_types
else
  skip 'structs and typedefs in the pages are those of the headers' 'no mandoc'
fi
check 'every constant is in a page, and no name is made up' silent wrong_words
check 'numbers, errno values, ranges and defaults are those of the headers' silent wrong_values
check 'errors in the pages, the headers and sluice_errors(7) are the same' silent wrong_errors
check 'every variable that the library reads is in sluice_environment(7)' silent unread_environment
check 'every reference leads to a page' silent dead_references
check 'man/local.mk has every page' silent unlisted
if [ "${ONLY:-}" ]; then
  :
elif [ -f Makefile ]; then
  check 'every name is installed, and removed again' silent uninstalled
else
  skip 'every name is installed' 'not in a build tree'
fi
finish
