#!/bin/sh
# SPDX-License-Identifier: MIT
# sluice-info says what there is, in text and in JSON; each piece of advice is provoked, on
# devices that a libibverbs of the tests pretends, or in namespaces of its own; and what is
# wrong with its arguments, or hangs, ends in time and with a status that is documented. In a
# guest with a real device (tests/softroce, with the argument guest) that one is looked at alone.
# shellcheck disable=SC2016,SC2086,SC3045 # Perl and other shells see the dollars; commands are words;
# every shell that Linux has as sh has these limits.
. "${srcdir:-.}/tests/tap.sh"

info=tools/sluice-info
[ -x "$info" ] || skip_all "no $info was built"
have perl || skip_all 'no perl'
# In a guest each start of a program takes seconds.
[ "${1:-}" = guest ] || perl -MJSON::PP -e 1 2>/dev/null || skip_all 'perl has no JSON::PP'
page=$srcdir/man/sluice-info.1

# Removes variables of the caller's environment.
for name in $(env | sed -n 's/^\(\(SLUICE\|OMPI\|PMI\|PMIX\|SLURM\|MPI\)_[A-Za-z0-9_]*\)=.*/\1/p'); do
  [ "$name" = SLUICE_TEST_DEVICE ] || unset "$name"
done
unset RANK WORLD_SIZE LOCAL_RANK MASTER_ADDR MASTER_PORT
has_json=yes
grep -q '^#define HAVE_JANSSON 1' config.h || has_json=

# json EXPRESSION FILE: the Perl expression of the document $d is true; and if not, what it is.
cat >"$tmp/json" <<'PERL'
use strict;
use warnings;
use JSON::PP;
my ($expression, $file) = @ARGV;
open my $in, '<', $file or die "$file: $!";
our $d = JSON::PP->new->decode(join '', <$in>);
sub device { my $name = shift; return (grep { $_->{name} eq $name } @{ $d->{devices}{list} })[0] // {} }
sub variable { my $name = shift; return (grep { $_->{name} eq $name } @{ $d->{environment}{variables} })[0] // {} }
sub verdict { my $name = shift; return (grep { $_->{name} eq $name } @{ $d->{choice}{devices} })[0]{verdict} // '' }
sub advice { my $id = shift; return map { $_->{about} // '' } grep { $_->{id} eq $id } @{ $d->{advice}{list} } }
my $result = eval $expression;
die $@ if $@;
exit 0 if $result;
print JSON::PP->new->canonical->pretty->encode($d);
exit 1;
PERL

# tells EXPRESSION COMMAND...: what it prints with --json.
tells() {
  expression=$1
  shift
  timeout 120 "$@" --json >"$tmp/out" 2>"$tmp/err"
  status=$?
  cat "$tmp/err"
  [ $status = 0 ] || { cat "$tmp/out"; return 1; }
  perl "$tmp/json" "$expression" "$tmp/out"
}

ends_with() {
  wanted=$1 words=$2
  shift 2
  timeout 120 "$@" >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  echo "status $status"
  [ "$status" = "$wanted" ] && grep -q -e "$words" "$tmp/out"
}

# advises ID WORDS COMMAND...: exactly one such line, and the status that scripts look at.
advises() {
  id=$1 words=$2
  shift 2
  echo "$id" >>"$tmp/provoked"
  ends_with 1 "^$id: .*$words" "$@" --advice || return 1
  [ "$(grep -c "^$id:" "$tmp/out")" = 1 ] || return 1
  grep -q "^\.It Li $id\$" "$page" || { echo "its page does not have $id"; return 1; }
}
not_advised() {
  id=$1
  shift
  timeout 120 "$@" --advice >"$tmp/out" 2>&1
  status=$?
  cat "$tmp/out"
  [ $status -le 1 ] && ! grep -q "^$id:" "$tmp/out"
}

# check_json, check_fake NAME COMMAND...: where there is what it needs.
check_json() {
  if [ "$has_json" ]; then check "$@"; else skip "$1" 'no jansson'; fi
}
check_fake() {
  if [ "$no_fake" ]; then skip "$1" "$no_fake"; else check "$@"; fi
}
check_fake_json() {
  if [ "$no_fake" ]; then skip "$1" "$no_fake"; else check_json "$@"; fi
}

# Everything, as it is here.
all_sections() {
  ends_with 0 '^Library$' "$info" &&
    for title in Host Devices 'Choice of a device' Environment Launcher Advice; do
      grep -q "^$title\$" "$tmp/out" || { echo "no $title"; return 1; }
    done
}
# A device of the kernel, if there is one; in a guest of tests/softroce that is all.
device=
for folder in /sys/class/infiniband/*; do
  [ ! -d "$folder" ] || { device=${folder##*/}; break; }
done
of_the_kernel="
  my \$device = device('$device');
  \$device->{transport} eq 'verbs' && \$device->{ports}[0]{state}
  && \$d->{choice}{kernel}{uverbs}
  && 1 == (grep { \$_->{name} eq '$device' } @{ \$d->{choice}{kernel}{devices} })"
if [ "${1:-}" = guest ]; then
  check 'all sections in text' all_sections
  check_json 'a device of the kernel is taken, by its address, and can be opened' tells "$of_the_kernel
    && \$d->{choice}{device} eq '$device' && \$device->{active} && \$device->{limits}{channels} > 0
    && \$device->{ports}[0]{gids}[\$device->{ports}[0]{chosen_gid}]{address} eq '192.0.2.1'
    && 1 == (grep { \$_->{chosen} && \$_->{type} eq 'RoCE v2' } @{ \$device->{ports}[0]{gids} })
    && verdict('soft') eq 'last-resort'" $info devices choice
  check 'its advice' not_advised '\(unusable\|provider\|uverbs\|choice\|address\|roce-v1\)' $info
  finish
fi
# Where this process may not do what a test needs, it says so and is left out.
fake=$PWD/tests/verbs/.libs
case ${VERBS:-no}:$(LD_LIBRARY_PATH=$fake ldd lib/.libs/libsluice.so 2>/dev/null) in
  no:*) no_fake='configured without verbs' ;;
  *"$fake/libibverbs.so.1"*) no_fake= ;;
  *) no_fake='no shared libibverbs can be exchanged for that of the tests' ;;
esac
with_fake() {
  words=$1
  shift
  SLUICE_FAKE_VERBS="$words" LD_LIBRARY_PATH=$fake${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH} "$@"
}
no_namespace=
unshare -rm sh -c 'mount -t tmpfs none /sys/class' 2>/dev/null ||
  no_namespace='no namespace of mounts may be made here'

if [ "$device" ] && [ "${VERBS:-yes}" != no ]; then
  check_json 'a device of the kernel' tells "$of_the_kernel" $info devices choice
  check_json 'soft is taken by name' tells "
    \$d->{choice}{device} eq 'soft' && verdict('$device') eq 'not-named'
    " env SLUICE_DEVICE=soft $info choice
fi

check 'all sections in text' all_sections
check_json 'all sections in JSON' tells '
  $d->{program} eq "sluice-info" && $d->{format} == 1
  && 7 == grep { ref $d->{$_} eq "HASH" } qw(build host devices choice environment launcher advice)
  ' $info
check_json 'soft is there, with its limits' tells '
  device("soft")->{transport} eq "soft" && device("soft")->{active}
  && device("soft")->{limits}{send_depth} == 16384 && device("soft")->{ports}[0]{state} eq "active"
  ' $info
check_json 'the versions' tells "
  \$d->{build}{tool_version} eq '${VERSION:-}' && \$d->{build}{library_version} eq '${VERSION:-}'
  && \$d->{build}{options}{jansson}" $info build
right_host() {
  tells "\$d->{host}{nofile}{soft} == $(ulimit -n) && \$d->{host}{kernel} =~ /\\Q$(uname -r)\\E/" \
    "$info" host
}
case $(ulimit -n) in
  *[!0-9]*) skip 'limits of the host' 'open files are not limited' ;;
  *) check_json 'limits of the host' right_host ;;
esac
one_section() {
  ends_with 0 '^Choice of a device$' "$info" choice && ! grep -q '^Host' "$tmp/out"
}
check 'one section' one_section
# Each key of the document is described in the page.
described() {
  "$info" --json >"$tmp/out" || return 1
  perl -MJSON::PP -e '
    sub keys_of { my $v = shift; ref $v eq "HASH" ? (keys %$v, map { keys_of($_) } values %$v)
                  : ref $v eq "ARRAY" ? map { keys_of($_) } @$v : () }
    open my $page, "<", $ARGV[0] or die; my $text = join "", <$page>;
    open my $in, "<", $ARGV[1] or die;
    my %seen = map { $_ => 1 } keys_of(decode_json(join "", <$in>));
    for (sort keys %seen) { next if $text =~ /^\.(Ql|It Cm) \Q$_\E\b/m; print "$_\n"; $bad = 1 }
    exit($bad // 0)' "$page" "$tmp/out"
}
check_fake_json 'the page has all keys of the document' with_fake mlx5 described

# Two adapters: what is chosen, and why not the others.
mkdir -p "$tmp/sysfs/mlx5_0/device" "$tmp/sysfs/mlx5_1/device"
echo 0 >"$tmp/sysfs/mlx5_0/device/numa_node"
echo 1 >"$tmp/sysfs/mlx5_1/device/numa_node"
two="tidy mlx5 sysfs=$tmp/sysfs"
check_fake_json 'two devices' with_fake "$two" tells '
  my $p = device("mlx5_0")->{ports};
  device("mlx5_0")->{numa_node} == 0 && device("mlx5_1")->{numa_node} == 1
  && $p->[0]{state} eq "active" && $p->[1]{state} eq "down" && $p->[0]{speed} == 100000
  && $p->[0]{width} == 4 && $p->[0]{mtu} == 4096 && $p->[0]{link_layer} eq "Ethernet"
  && $p->[0]{chosen_gid} == 3 && @{ $p->[0]{gids} } == 6
  && "@{[map { $_->{type} } @{ $p->[0]{gids} }]}" eq "RoCE v1 RoCE v2 RoCE v1 RoCE v2 RoCE v1 RoCE v2"
  && $p->[0]{gids}[3]{address} eq "192.0.2.1" && $p->[0]{gids}[5]{address} eq "2001:db8::1"
  && $p->[0]{gids}[3]{chosen} && !$p->[0]{gids}[1]{chosen}
  && device("mlx5_0")->{limits}{channels} == 131072
  && device("mlx5_0")->{vendor_id} == 0x2c9' $info devices
check_fake 'two devices, in text' with_fake "$two" \
  ends_with 0 '^ *\* GID 3 *RoCE v2 *192.0.2.1' $info devices
check_fake_json 'InfiniBand' with_fake 'tidy infiniband' tells '
  device("fake0")->{ports}[0]{lid} == 7 && device("fake0")->{ports}[0]{link_layer} eq "InfiniBand"
  && $d->{choice}{device} eq "fake0"' $info devices choice
check_fake_json 'SLUICE_DEVICE names another one' with_fake "$two" tells '
  $d->{choice}{device} eq "mlx5_1" && verdict("mlx5_0") eq "not-named"
  && verdict("soft") eq "not-named"' env SLUICE_DEVICE=mlx5_1 $info choice
check_fake_json 'soft stays behind RDMA devices' with_fake "$two" tells '
  verdict("soft") eq "last-resort" && !defined $d->{choice}{no_rdma}' $info choice
check_fake_json 'ports that are down' with_fake "$two down=0:1 down=1:1" tells '
  $d->{choice}{device} eq "soft" && verdict("mlx5_0") eq "not-active"
  && verdict("mlx5_1") eq "not-active"' $info choice
# As the library opens it, rank by rank.
by_rank() {
  for rank in 0 1 2; do
    SLUICE_LOCAL_RANK=$rank tells "
      \$d->{choice}{device} eq \$d->{choice}{by_local_rank}[$rank]
      && \$d->{choice}{local_rank_source} eq 'SLUICE_LOCAL_RANK'
      && \$d->{choice}{local_rank} == $rank" "$info" choice || return 1
  done
}
check_fake_json 'local ranks go round' with_fake 'tidy mlx5' by_rank
other_rank() {
  SLUICE_LOCAL_RANK=1 tells '$d->{choice}{device} eq "mlx5_1" && verdict("mlx5_0") eq "other-rank"' \
    "$info" choice
}
check_fake_json 'the device of another rank' with_fake 'tidy mlx5' other_rank
check_fake_json 'one device and no other' with_fake "$two" tells '
  @{ $d->{devices}{list} } == 1 && device("mlx5_1")->{active} && $d->{choice}{device} eq "mlx5_1"
  ' $info --device mlx5_1
check_fake_json 'a device that cannot be opened' with_fake "$two denied=0" tells '
  !defined device("mlx5_0")->{limits} && $d->{choice}{device} eq "mlx5_1"
  && verdict("mlx5_0") eq "not-active"' $info devices choice

# The environment.
environment() {
  SLUICE_LOG=loud SLUICE_JOB=j SLUICE_SECRET=xyzzy SLUICE_SECRET_FILE=xyzzy SLUICE_DEVCIE=soft \
    tells '
    variable("SLUICE_LOG")->{state} eq "wrong" && variable("SLUICE_LOG")->{value} eq "loud"
    && variable("SLUICE_LOG")->{default} eq "warn"
    && variable("SLUICE_JOB")->{state} eq "set" && variable("SLUICE_WIRE")->{state} eq "unset"
    && variable("SLUICE_DEVCIE")->{nearest} eq "SLUICE_DEVICE"
    && variable("SLUICE_SECRET_FILE")->{hidden} && variable("SLUICE_SECRET")->{hidden}
    ' "$info" && ! grep xyzzy "$tmp/out"
}
check_json 'the environment, without secrets' environment
no_secret() {
  SLUICE_SECRET=xyzzy SLUICE_SECRET_FILE=xyzzy timeout 120 "$info" >"$tmp/out" 2>&1
  grep 'SLUICE_SECRET' "$tmp/out" && ! grep xyzzy "$tmp/out"
}
check 'no secret in text' no_secret
secret_path() {
  rm -f "$tmp/secret"
  SLUICE_SECRET_FILE=$tmp/secret ends_with 0 \
    "SLUICE_SECRET_FILE  *$tmp/secret (cannot open the secret $tmp/secret: No such file" \
    "$info" environment || return 1
  head -c 32 /dev/zero >"$tmp/secret" && chmod 644 "$tmp/secret"
  SLUICE_SECRET_FILE=$tmp/secret ends_with 0 "SLUICE_SECRET_FILE  *$tmp/secret (.*mode 0644" \
    "$info" environment || return 1
  chmod 600 "$tmp/secret"
  SLUICE_SECRET_FILE=$tmp/secret ends_with 0 "SLUICE_SECRET_FILE  *$tmp/secret\$" \
    "$info" environment
}
check 'the file of the secret, and why it cannot be used' secret_path

# The launcher.
launcher() {
  check_json "launcher: $1" tells "\$d->{launcher}{launcher} eq '$1' && \$d->{launcher}{rank} == 1
    && \$d->{launcher}{ranks} == 2 && !defined \$d->{launcher}{error}" env "$2" "$3" $info launcher
}
launcher Slurm SLURM_PROCID=1 SLURM_NTASKS=2
launcher 'Open MPI' OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2
launcher 'MPICH or another one of PMI' PMI_RANK=1 PMI_SIZE=2
launcher 'by hand' SLUICE_RANK=1 SLUICE_RANKS=2
check_json 'launcher: PMIx' tells '$d->{launcher}{launcher} eq "PMIx" && !defined $d->{launcher}{rank}' \
  env PMIX_RANK=1 $info launcher
check_json 'no launcher' tells '!defined $d->{launcher}{launcher}' $info launcher
launched() {
  timeout 120 tools/sluice-launch -q -n 2 "$info" launcher >"$tmp/out" 2>&1
  cat "$tmp/out"
  grep -q 'launcher *sluice-launch$' "$tmp/out" && grep -q 'rank *1 of 2' "$tmp/out" &&
    grep -q 'local rank *1, by SLUICE_LOCAL_RANK' "$tmp/out"
}
if [ -x tools/sluice-launch ]; then
  check 'launcher: sluice-launch' launched
else
  skip 'launcher: sluice-launch' 'no tools/sluice-launch was built'
fi

# Advice: each word of the page is provoked.
check 'advice: a variable that is misspelt' advises variable-unknown 'perhaps SLUICE_DEVICE was meant' \
  env SLUICE_DEVCIE=soft $info
check 'advice: a value that is not understood' advises variable-wrong 'SLUICE_WIRE.*auto, tcp or shm' \
  env SLUICE_WIRE=pigeon $info
check 'advice: an address of another host' advises variable-wrong \
  'SLUICE_TCP_ADDRESS is 192.0.2.77, no address of this host; it has .*127.0.0.1' \
  env SLUICE_TCP_ADDRESS=192.0.2.77 $info
check 'no advice of an address of this host' not_advised variable-wrong \
  env SLUICE_TCP_ADDRESS=127.0.0.1 $info
by_hand="env SLUICE_RANK=0 SLUICE_RANKS=2 SLUICE_ROOT=127.0.0.1:7000 SLUICE_MUNGE=no"
check 'advice: ranks without a secret' advises secret 'by SLUICE_SECRET_FILE' $by_hand $info
check 'no advice of a secret that is there' not_advised secret \
  $by_hand SLUICE_SECRET_FILE="$tmp/secret" $info
check 'no advice of a secret for one rank' not_advised secret \
  env SLUICE_RANK=0 SLUICE_RANKS=1 SLUICE_MUNGE=no $info
check 'advice: devices that are not there' advises choice "no device 'nope'" \
  env SLUICE_DEVICE=nope $info
check 'advice: half a launcher' advises launcher 'PMI_SIZE is not' env PMI_RANK=0 $info
check 'advice: two launchers' advises launcher-doubt 'which is used' \
  env OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2 PMI_RANK=1 PMI_SIZE=2 $info
few_files() {
  advises nofile 'only 100 files' sh -c 'ulimit -n 100 && exec "$@"' sh "$info"
}
check 'advice: few files' few_files
many_ranks() {
  advises nofile 'other ranks' sh -c 'ulimit -Sn 1024 && exec "$@"' sh env SLUICE_RANK=0 \
    SLUICE_RANKS=65536 "$info"
}
if [ "$(ulimit -Hn)" = unlimited ] || [ "$(ulimit -Hn)" -ge 1024 ]; then
  check 'advice: fewer files than ranks' many_ranks
else
  skip 'advice: fewer files than ranks' 'fewer than 1024 are allowed'
fi
check_fake 'advice: a port that is down' with_fake "$two" advises port-down 'mlx5_0:2 is down' $info
check_fake 'advice: a cable of InfiniBand' with_fake 'tidy infiniband down=0:1' \
  advises port-down 'fake0:1 is down.*cable and the switch' $info
check_fake 'advice: link-local addresses' with_fake "$two link_local=1:1" \
  advises link-local 'mlx5_1:1 has only link-local' $info
check_fake 'advice: RoCE v1 alone' with_fake "$two v1=1:1" advises roce-v1 'mlx5_1:1' $info
check_fake 'advice: another namespace' with_fake "$two foreign=1:1" advises namespace 'mlx5_1:1 has only GIDs of other network namespaces' $info
check_fake 'advice: no address' with_fake "$two no_gid=1:1" advises address 'mlx5_1:1 has no address' $info
check_fake 'advice: a device that may not be opened' with_fake "$two denied=1" \
  advises unusable 'mlx5_1 cannot be used.*Permission denied' $info

# in-machine PREPARATION COMMAND...: on a machine whose files are made up, in a namespace.
cat >"$tmp/in-machine" <<'SH'
preparation=$1
shift
exec unshare -rm sh -c "set -e; $preparation; exec \"\$@\"" sh "$@"
SH
machine="sh $tmp/in-machine"
# check_machine NAME COMMAND...: with what it provokes where that cannot be.
check_machine() {
  if [ "$no_namespace" ]; then
    skip "$1" "$no_namespace"
    echo "$3" >>"$tmp/provoked"
  elif [ "${VERBS:-no}" = no ] && [ "$3" != shm ] && [ "$3" != loopback ] &&
    [ "$3" != no-verbs ]; then
    skip "$1" 'configured without verbs'
    echo "$3" >>"$tmp/provoked"
  else
    check "$@"
  fi
}
class='mount -t tmpfs none /sys/class; mkdir -p /sys/class/infiniband/mlx5_9/device'
# The program itself, for a script of libtool's would not get along with so few.
program=tools/.libs/sluice-info
[ -x $program ] || program=$info
check_machine 'advice: no descriptors for devices' advises devices 'descriptors' \
  $machine "$class; LD_LIBRARY_PATH=$PWD/lib/.libs; export LD_LIBRARY_PATH; ulimit -n 8" $program
check_machine 'advice: no provider' advises provider 'mlx5_9 of driver mlx5_core' \
  $machine "$class; mkdir /sys/class/infiniband_verbs
    ln -s ../../../../bus/drivers/mlx5_core /sys/class/infiniband/mlx5_9/device/driver" $info
check_machine 'advice: no ib_uverbs' advises uverbs 'modprobe ib_uverbs' $machine "$class" $info
if [ "${VERBS:-no}" = no ]; then
  check_machine 'advice: no verbs' advises no-verbs 'mlx5_9' $machine "$class" $info
else
  # A build of its own has that: scripts/test makes one.
  echo no-verbs >>"$tmp/provoked"
fi
check_machine 'advice: no loopback' advises loopback 'interface .* is down' unshare -rn $info
if ! [ "$no_namespace" ]; then
  check 'the port of soft without a network' ends_with 0 'port 1: active, not over TCP' \
    unshare -rn $info devices
fi
check_machine 'advice: a small /dev/shm' advises shm 'has .* free of 1 MiB' \
  $machine 'mount -t tmpfs -o size=1m none /dev/shm' $info
no_shm() {
  $machine 'mount -t tmpfs none /dev; mknod /dev/null c 1 3 || : >/dev/null' \
    sh -c '"$@" --advice >"$0" 2>&1' "$tmp/no-shm" "$info"
  grep '^shm: /dev/shm does not exist' "$tmp/no-shm"
}
check_machine 'advice: no /dev/shm' no_shm shm
# All CPUs are of node 0, and the devices of node 1.
far() {
  echo 1 >"$tmp/sysfs/mlx5_0/device/numa_node"
  with_fake "$two" advises numa 'mlx5_0, which is opened, is at NUMA node 1, at distance 21' \
    $machine '
      mount -t tmpfs none /sys/devices/system/node; cd /sys/devices/system/node; mkdir node0 node1
      echo 0-8191 >node0/cpulist; echo "10 21" >node0/distance
      echo >node1/cpulist; echo "21 10" >node1/distance; cd "$OLDPWD"' "$info"
  result=$?
  echo 0 >"$tmp/sysfs/mlx5_0/device/numa_node"
  return $result
}
if [ "$no_fake" ]; then
  skip 'advice: no device is near' "$no_fake"
  echo numa >>"$tmp/provoked"
else
  check_machine 'advice: no device is near' far numa
fi

# deprived WHAT COMMAND...: without CAP_IPC_LOCK, or without process_vm_readv(2).
cat >"$tmp/deprived" <<'PERL'
use strict;
use warnings;
my %numbers = (x86_64 => [157, 310], aarch64 => [167, 270]);
chomp(my $machine = `uname -m`);
my ($prctl, $read) = @{ $numbers{$machine} // exit 77 };
my $what = shift;
if ($what eq 'memlock') {
    # For a privileged caller: PR_CAPBSET_DROP removes the capability at exec.
    syscall($prctl, 24, 14, 0, 0, 0);
} else {
    my $filter = pack 'SCCL' x 4, 0x20, 0, 0, 0, 0x15, 0, 1, $read, 6, 0, 0, 0x50001, 6, 0, 0, 0x7fff0000;
    my $program = pack 'Sx6P', 4, $filter;
    syscall($prctl, 38, 1, 0, 0, 0) == 0 or exit 77;
    syscall($prctl, 22, 2, $program) == 0 or exit 77;
}
exec @ARGV or die "$ARGV[0]: $!";
PERL
deprived="perl $tmp/deprived"
$deprived process-vm true
if [ $? = 77 ]; then
  skip 'advice: reading is refused' 'no filter of system calls may be set here'
  echo process-vm >>"$tmp/provoked"
else
  check 'advice: reading is refused' advises process-vm 'copied twice' $deprived process-vm $info
  check_json 'reading is refused' tells '
    defined $d->{host}{process_vm_readv}{allowed} && !$d->{host}{process_vm_readv}{allowed}
    && $d->{host}{process_vm_readv}{error} eq "EPERM"' $deprived process-vm $info host
fi
little_locked() {
  with_fake "$two" advises memlock 'only 64 KiB of memory may be locked' \
    sh -c 'ulimit -l 64 && exec "$@"' sh $deprived memlock "$info"
}
$deprived memlock true
if [ $? = 77 ] || [ "$no_fake" ]; then
  skip 'advice: little memory may be locked' "${no_fake:-not on this processor}"
  echo memlock >>"$tmp/provoked"
else
  check 'advice: little memory may be locked' little_locked
  [ "$device" ] || check 'no advice of locked memory without RDMA' not_advised memlock \
    sh -c 'ulimit -l 64 && exec "$@"' sh $deprived memlock $info
fi

# A library of another version stands before ours.
printf 'const char *sluice_version(void);\nconst char *sluice_version(void)\n{\n    return "9.8.7 (soft)";\n}\n' \
  >"$tmp/other.c"
# shellcheck disable=SC2086 # a compiler may come with options
if [ -z "${SANITIZE:-}" ] && [ -f lib/.libs/libsluice.so ] &&
  ${CC:-cc} -shared -fPIC -o "$tmp/other.so" "$tmp/other.c" 2>"$tmp/err"; then
  check 'advice: another version' advises version 'loaded library is 9.8.7' env LD_PRELOAD="$tmp/other.so" $info
else
  skip 'advice: another version' 'no shared library was built, or it has a sanitizer'
  echo version >>"$tmp/provoked"
fi
# Advice that cannot be provoked without the pretend devices.
[ -z "$no_fake" ] || printf '%s\n' port-down link-local roce-v1 namespace address unusable >>"$tmp/provoked"
all_provoked() {
  sed -n '/^\.Ss Advice/,/^\.Ss JSON/s/^\.It Li //p' "$page" | sort >"$tmp/left"
  sort -u "$tmp/provoked" >"$tmp/right"
  diff "$tmp/left" "$tmp/right"
}
check 'all words of advice of the page (<) were provoked (>)' all_provoked
if [ "$device" ]; then
  skip 'no advice where nothing is wrong' 'the kernel has a device that the tests hide'
else
  check_fake 'no advice where nothing is wrong' with_fake 'tidy' not_advised '[a-z0-9-]*' $info
fi

# Wrong arguments, what hangs, and an output that nobody reads.
check 'an option that is none' ends_with 2 'bogus: no such option' $info --bogus
check 'an option without its value' ends_with 2 'device: it needs a value' $info --device
check 'a section that is none' ends_with 2 'weather: no such section' $info weather
check 'advice and a section' ends_with 2 'takes no sections' $info --advice host
for seconds in 0 x -1 86401 1s ''; do
  check "a time that is none, '$seconds'" ends_with 2 'must be seconds, 1 to 86400' \
    $info --timeout "$seconds"
done
check 'a device that is none' ends_with 2 "no device 'nope'" $info --device nope
check 'a list that is none' ends_with 2 'element 2' $info --device soft,,soft
check 'help' ends_with 0 '^  choice ' $info --help
check 'version' ends_with 0 "^sluice-info ${VERSION:-}" $info --version
[ "$has_json" ] || check 'no JSON' ends_with 2 'has no jansson' $info --json
# The text names the step; on a machine that stalls it may be an earlier one.
hangs() {
  with_fake "$two stuck=1" ends_with 3 ' took longer than 2 s and was given up' \
    "$info" choice --timeout 2 || return 1
  have pgrep || return 0
  # And leaves nobody behind.
  tries=0
  while pgrep -f 'sluice-info choice --timeout 2$'; do
    tries=$((tries + 1))
    [ "$tries" -lt 600 ] || return 1
    sleep 0.1
  done
}
check_fake 'a driver that hangs' hangs
check_fake 'what needs no device does not wait for one' with_fake "$two stuck=1" \
  ends_with 0 '^Host' $info host environment launcher
if [ -c /dev/full ]; then
  nowhere() {
    "$info" >/dev/full 2>"$tmp/err"
    status=$?
    cat "$tmp/err"
    [ $status = 3 ] && grep -q 'cannot write to' "$tmp/err"
  }
  check 'an output that takes nothing' nowhere
else
  skip 'an output that takes nothing' 'no /dev/full'
fi
silent_pipe() {
  for _ in 1 2 3; do "$info" 2>"$tmp/err" | head -n 1; done
  silent cat "$tmp/err"
}
check 'an output that is closed' silent_pipe
if have script && script -qec true /dev/null >"$tmp/out" 2>&1 </dev/null; then
  narrow() {
    script -qec "stty cols 70; $info choice --device soft; env SLUICE_DEVCIE=1 $info --advice" \
      /dev/null >"$tmp/out" </dev/null
    cat "$tmp/out"
    grep -q 'variable-unknown' "$tmp/out" && ! tr -d '\r' <"$tmp/out" | grep -q '.\{71\}'
  }
  check 'lines fit a terminal' narrow
else
  skip 'lines fit a terminal' 'no script'
fi

finish
