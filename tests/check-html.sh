#!/bin/sh
# SPDX-License-Identifier: MIT
# The site that `make html` makes: each link leads to a file and an anchor that exist, each page
# can be reached from the first one, each name of the manual has a page, elements are closed, and
# nothing asks another host for anything. Installed, it is the same, and goes again.
. "${srcdir:-.}/tests/tap.sh"

for tool in perl mandoc cmark-gfm; do
  have $tool || skip_all "no $tool"
done

site=$tmp/site

cat >"$tmp/look" <<'PERL'
use strict;
use warnings;
use File::Find;

my ($what, $site) = @ARGV;
my %text;
find({ no_chdir => 1, wanted => sub {
    return unless -f;
    (my $path = $_) =~ s{^\Q$site\E/}{};
    if (/\.(html|svg)$/) {
        open my $in, '<', $_ or die "$_: $!";
        local $/;
        $text{$path} = <$in>;
    } else {
        $text{$path} = '';
    }
} }, $site);
my @pages = sort grep { /\.html$/ } keys %text;
my %ids;
for my $page (@pages) {
    $ids{$page}{$_}++ for $text{$page} =~ /<[^>]* id="([^"]*)"/g;
}

# "man/../x.html" => "x.html"; undef: out of the site.
sub resolve {
    my @parts;
    for (split m{/}, shift) {
        next if $_ eq '.' || $_ eq '';
        if ($_ eq '..') { return undef unless @parts; pop @parts } else { push @parts, $_ }
    }
    return join '/', @parts;
}

sub links_of {
    my ($page) = @_;
    my @links = $text{$page} =~ /<[^>]* (?:href|src)="([^"]*)"/g;
    push @links, $text{$page} =~ /<meta http-equiv="refresh" content="0; url=([^"]*)"/g;
    return @links;
}

sub target {
    my ($page, $link) = @_;
    my ($path, $anchor) = $link =~ /^([^#]*)(?:#(.*))?$/;
    return ($page, $anchor) if $path eq '';
    (my $folder = $page) =~ s{[^/]*$}{};
    return (resolve("$folder$path"), $anchor);
}

my %look = (
    dead => sub {
        my $count = 0;
        for my $page (@pages) {
            for my $link (links_of($page)) {
                next if $link =~ m{^https?://};
                $count++;
                my ($to, $anchor) = target($page, $link);
                if (!defined $to || !exists $text{$to}) { print "$page: $link leads to no file\n" }
                elsif (defined $anchor && !$ids{$to}{$anchor}) { print "$page: $link: no such anchor\n" }
            }
        }
        print "only $count links\n" if $count < 1000;
    },
    twice => sub {
        for my $page (@pages) {
            $ids{$page}{$_} > 1 and print "$page: the id $_ is there twice\n" for sort keys %{ $ids{$page} };
        }
    },
    # Aliases are reached by name, and lead on.
    lost => sub {
        my %seen;
        my @next = ('index.html');
        while (defined(my $page = shift @next)) {
            next if $seen{$page}++ || !exists $text{$page} || $page !~ /\.html$/;
            for (links_of($page)) {
                next if m{^https?://};
                my ($to) = target($page, $_);
                push @next, $to if defined $to;
            }
        }
        for (@pages) {
            print "$_ cannot be reached\n" unless $seen{$_} || $text{$_} =~ /http-equiv="refresh"/;
        }
    },
    open => sub {
        my %void = map { $_ => 1 } qw(br hr img input link meta);
        for my $page (@pages) {
            my @open;
            while ($text{$page} =~ m{<(/?)([a-z][a-z0-9]*)[^>]*?(/?)>}g) {
                my ($end, $tag, $empty) = ($1, $2, $3);
                next if $empty || $void{$tag};
                if (!$end) { push @open, $tag; next }
                my $was = pop @open // 'nothing';
                print("$page: </$tag> ends $was\n"), last if $was ne $tag;
            }
            print "$page: @open not closed\n" if @open;
        }
    },
    foreign => sub {
        for my $page (sort keys %text) {
            print "$page: a script\n" if $text{$page} =~ /<script|\bon[a-z]+="|javascript:/i;
            print "$page: $1\n" while $text{$page} =~ m{(<(?!a )[a-z]+ [^>]*(?:href|src)="(?:[a-z]+:)?//[^"]*")}g;
        }
        open my $in, '<', "$site/style.css" or die "no style.css: $!";
        my $style = do { local $/; <$in> };
        print "style.css: $1\n" while $style =~ /(\@import[^;]*|url\([^)]*\))/g;
    },
    pages => sub { print map { "$_\n" } @pages },
);
$look{$what}->();
PERL

look() {
  perl "$tmp/look" "$1" "${2:-$site}"
}

# Names of the manual, documents, headers and examples that have no page.
missing() {
  look pages >"$tmp/pages"
  {
    for page in "$srcdir"/man/*.[137]; do
      section=${page##*.}
      sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([A-Za-z0-9_-]*\).*/\1/p' "$page" |
        sed "s|.*|man/&.$section.html|"
    done
    cd "$srcdir" || exit 99
    for file in *.md docs/*.md; do echo "${file%.md}.html"; done
    for file in include/*.h include/sluice/*.h examples/*.[ch]; do echo "$file.html"; done
  } | sort -u >"$tmp/wanted"
  LC_ALL=C sort "$tmp/pages" | comm -23 "$tmp/wanted" -
  [ "$(wc -l <"$tmp/wanted")" -gt 300 ] || echo 'the list of what is wanted is too short'
}

makes() {
  perl "$srcdir/scripts/html" "$srcdir" "$site"
}

# spoiled WHAT PATTERN REPLACEMENT FILE TEXT: with that page changed so, that is found.
spoiled() {
  rm -rf "$tmp/spoiled" && cp -r "$site" "$tmp/spoiled" || return
  sed "s|$2|$3|" "$site/$4" >"$tmp/spoiled/$4"
  ! cmp -s "$site/$4" "$tmp/spoiled/$4" || { echo "nothing was spoiled"; return 1; }
  look "$1" "$tmp/spoiled" >"$tmp/found"
  cat "$tmp/found"
  grep -q "$5" "$tmp/found"
}

keeps_others() {
  mkdir "$tmp/others" && echo precious >"$tmp/others/file" || return
  ! perl "$srcdir/scripts/html" "$srcdir" "$tmp/others" && [ -f "$tmp/others/file" ]
}

not_sources() {
  ! perl "$srcdir/scripts/html" "$tmp" "$tmp/never" && [ ! -e "$tmp/never" ]
}

installs() {
  unset MAKEFLAGS MFLAGS MAKELEVEL
  "${MAKE:-make}" install-html DESTDIR="$tmp/root" htmldir=/html >"$tmp/make.out" 2>&1 ||
    { cat "$tmp/make.out"; return 1; }
  diff -r "$site" "$tmp/root/html" || return
  "${MAKE:-make}" uninstall-html DESTDIR="$tmp/root" htmldir=/html >"$tmp/make.out" 2>&1 ||
    { cat "$tmp/make.out"; return 1; }
  find "$tmp/root" -type f | sed 's/^/left behind: /'
}

check 'the site is made' silent makes
check 'it is made again in its place' silent makes
check 'every link leads to a page and an anchor' silent look dead
check 'no anchor is there twice in a page' silent look twice
check 'every page can be reached from the first' silent look lost
check 'every element is closed' silent look open
check 'no script, and nothing of other hosts' silent look foreign
check 'every name, document, header and example has a page' silent missing
check 'a link to no file is found' spoiled dead 'href="examples/index.html"' 'href="nowhere.html"' \
  index.html 'leads to no file'
check 'a link to no anchor is found' spoiled dead 'index.html#memory"' 'index.html#nothing"' \
  index.html 'no such anchor'
check 'an element that is left open is found' spoiled open '</main>' '' index.html 'ends main'
check 'an image of another host is found' spoiled foreign '<main>' \
  '<main><img src="https://example.org/x.png"/>' index.html 'example.org'
check 'a folder of something else is left alone' keeps_others
check 'what has no manual is refused' not_sources
if [ -f Makefile ]; then
  check 'it is installed, and removed again' silent installs
else
  skip 'it is installed' 'not in a build tree'
fi
finish
