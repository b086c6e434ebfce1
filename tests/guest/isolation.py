#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What keeps a job to itself where takt runs as root on cgroup v2: devices, MIG
instances, memory, CPU time; and that all of it goes on when takt is killed.

Usage: isolation.py BUILD_FOLDER
"""
import os
import sys

import guest
import kit

SCRIPT = r"""
for n in 0 1 2 3 4 5 6 7; do mknod /dev/nvidia$n c 240 $n; done
mknod /dev/nvidiactl c 240 255
chmod 666 /dev/nvidia*
takt-twin create hgx-h100 --path /run/machine --seed 7 > /dev/null
chmod 666 /run/machine*
export TAKT_TWIN=/run/machine TAKT_SOCKET=/run/takt/takt.sock
mkdir -m 1777 /var/work
cd /var/work

serve() {
	takt-twin exec --machine $TAKT_TWIN "$@" -- takt serve --users all --runtime-dir ${TAKT_SOCKET%/*} --state-dir /var/lib/takt \
		--lock-dir /run/locks --job-processes 100 --metrics-listen off --nvml-path /usr/bin/lib/550/libnvidia-ml.so.1 >> /run/serve.log 2>&1 &
	until_true takt status > /run/status 2>&1 || die "takt answers" "$(cat /run/serve.log)"
}
as() { user=$1; shift; su -s /bin/sh "$user" -c "$*"; }
submit() { as alice "takt submit -q $*"; }
cat > /bin/try <<'END'
#!/bin/sh
# Says which GPUs takt gave it, and tries every one: which have no device behind them (may be opened), which are forbidden.
for n in 0 1 2 3 4 5 6 7; do
	said=$( (: < /dev/nvidia$n) 2>&1)
	case "$said" in
	*"No such device or address"*) open="$open $n" ;;
	*"Operation not permitted"*) closed="$closed $n" ;;
	*) other="$other $n:$said" ;;
	esac
done
echo "mine: $TAKT_GPUS
open:$open closed:$closed other:$other"
END
chmod 755 /bin/try
mine() { echo "$1" | sed -n 's/^mine: //p'; }
# What the log of a job that tried must have: so many GPUs are its own, whichever, and it can open them and no others.
its_own() {
	open= closed=
	for n in 0 1 2 3 4 5 6 7; do
		case ",$(mine "$1")," in *,$n,*) open="$open $n" ;; *) closed="$closed $n" ;; esac
	done
	[ $(echo $open | wc -w) = $2 ] || open=" $2 GPUs"
	echo "mine: $(mine "$1")
open:$open closed:$closed other:"
}

serve
job=$(submit -n 2 -- sh -c "'try; (: < /dev/nvidiactl) 2>&1; head -c 1 /dev/urandom > /dev/null && echo ordinary'")
takt wait $job > /dev/null
log=$(takt logs $job)
has "a job of 2 of 8 GPUs can open its own, and not the other six" "$log" "$(its_own "$log" 2)"
has "and what goes with any GPU, and ordinary devices" "$log" "No such device or address
ordinary"
has "takt show says that devices are closed" "$(takt show $job)" "isolation     devices"

job=$(submit -n 0 -- try)
takt wait $job > /dev/null
has "a job without GPUs opens none" "$(takt logs $job)" "open: closed: 0 1 2 3 4 5 6 7 other:"

job=$(submit -n 0 -m 64M -- sh -c "'tail /dev/zero; echo never'")
takt wait $job > /dev/null
has "a job over its memory is ended and told why" "$(takt show $job)" "ended by the kernel: over its 64 MiB of memory"
same "as a whole" "$(takt logs $job | grep never)" ""

job=$(submit -n 0 -- sh -c "'i=0; while [ \$i -lt 200 ]; do sleep 60 & i=\$((i+1)); done; echo all'")
takt wait $job > /dev/null
has "a job that forks without end can do so up to its limit" "$(takt logs $job)" "fork"

job=$(submit -n 0 -c 0.5 -- sh -c "'timeout 3 sh -c \"while :; do :; done\"; grep nr_throttled /sys/fs/cgroup\$(cut -d: -f3 /proc/self/cgroup)/../cpu.stat; cat /sys/fs/cgroup\$(cut -d: -f3 /proc/self/cgroup)/../cpu.max'")
takt wait $job > /dev/null
log=$(takt logs $job)
has "CPU time is limited" "$log" "50000 100000"
same "and was held back" "$(echo "$log" | grep -c 'nr_throttled [1-9]')" 1

job=$(submit -n 1 -m 64M -- sh -c "'c=/sys/fs/cgroup\$(cut -d: -f3 /proc/self/cgroup); echo max > \$c/memory.max; echo max > \$c/../memory.max; echo 0 > /sys/fs/cgroup/cgroup.procs; mkdir \$c/../mine; echo 0 > \$c/../shim/cgroup.procs; cat \$c/memory.max; try'")
takt wait $job > /dev/null
log=$(takt logs $job)
has "its user cannot lift a limit" "$log" "67108864"
has "nor leave, not even with the shim" "$log" "$(its_own "$log" 1)"

job=$(submit -n 1 -- sh -c "'while [ ! -e /var/work/go ]; do sleep 1; done; try; echo through'")
until_true sh -c "takt show $job | grep -q 'state *running'"
killall -9 takt-serve takt-launch
takt status > /dev/null 2>&1 && no "takt is dead" "it answers"
serve
has "a job lives on when takt and its launcher are killed" "$(takt show $job | grep ^state)" running
has "and takt knows how it is isolated" "$(takt show $job)" "isolation     devices"
second=$(submit -n 1 -- try)
takt wait $second > /dev/null
touch /var/work/go
takt wait $job > /dev/null
log=$(takt logs $job)
has "it opens the same GPU as before" "$log" "$(its_own "$log" 1)"
has "and ends as any" "$log" "through"
next=$(takt logs $second)
has "the next one opens its own" "$next" "$(its_own "$next" 1)"
if [ "$(mine "$next")" != "$(mine "$log")" ]; then ok "which is another GPU"; else no "which is another GPU" "$next"; fi

shim_of() { sed -n 's/.* pid=\([0-9]*\).*/\1/p' /var/lib/takt/jobs/$1.1/shim; }
alive() {
	for one in /proc/[0-9]*; do
		words=$(tr '\0' ' ' < $one/cmdline 2> /dev/null)
		case "$words" in *"$1"*) echo "${one##*/} $words $(cat $one/stat)" ;; esac
	done
}
running() { until_true sh -c "takt show $1 | grep -q 'state *running'"; }
# A podman of the user's own, which goes on when it is to clean up.
mkdir -m 755 /var/work/own
cat > /var/work/own/podman <<'END'
#!/bin/sh
case $1 in
run) exec sleep 600 ;;
*) echo "clean-up in $(cut -d: -f3 /proc/self/cgroup)" >&2; trap '' TERM; while :; do sleep 1; done ;;
esac
END
chmod 755 /var/work/own/podman
contained() { submit -n 1 --grace 1s --container x --container-runtime podman -e PATH=/var/work/own:/usr/bin:/bin -- true; }
job=$(contained)
running $job
takt cancel $job
takt wait $job > /dev/null
log=$(takt logs $job)
has "a clean-up runs in the cgroup of its job" "$log" "-$job.1/job"
has "and is ended in its time" "$log" "was ended after 30 s"
job=$(contained)
running $job
kill -9 $(shim_of $job)
takt wait $job > /dev/null
log=$(takt logs $job)
has "so does that of a job whose shim is gone" "$log" "-$job.1/job"
has "and is ended as well" "$log" "was ended after 30 s"
same "nothing of either is left" "$(alive own/podman)" ""

cat > /bin/stray <<'END'
#!/bin/sh
trap '' TERM
echo $$ > /var/work/stray
while :; do sleep 1; done
END
chmod 755 /bin/stray
job=$(submit -n 1 --grace 1s -- sh -c "'stray & sleep 600'")
until_true test -s /var/work/stray
cat /var/work/stray > /sys/fs/cgroup/cgroup.procs
takt cancel $job
takt wait $job > /dev/null
has "a job ends of which a process has left its cgroup" "$(takt show $job | grep ^state)" cancelled
same "and so does that process" "$(alive stray)" ""

job=$(submit -n 0 -- sleep 600)
running $job
same "the kernel ends a shim last of all" "$(cat /proc/$(shim_of $job)/oom_score_adj)" -1000
first=$(sed -n 's/.* pid=\([0-9]*\).*/\1/p' /var/lib/takt/jobs/$job.1/started)
same "and its job like any program" "$(cat /proc/$first/oom_score_adj)" 0
takt cancel $job
job=$(submit -n 0 -m 64M -- sh -c "'echo -1 > /proc/self/oom_score_adj; dd if=/dev/zero of=/tmp/fill bs=1M count=100; echo never'")
takt wait $job > /dev/null
has "which cannot change that" "$(takt logs $job)" "ermission denied"
has "what a job has written into memory keeps its shim from nothing" "$(takt show $job)" "ended by the kernel: over its 64 MiB of memory"
same "and is ended as a whole" "$(takt logs $job | grep never)" ""
rm -f /tmp/fill

for n in 1 2 3; do takt wait $(submit -n 0 -- true) > /dev/null; done
left=$(ls -d /sys/fs/cgroup/takt-*/ | wc -l)
if [ $left -le 2 ]; then ok "cgroups of jobs go with them"; else no "cgroups of jobs go with them" "$left are left"; fi

whole=$(submit -n 8 -- sh -c "'while [ ! -e /var/work/over ]; do sleep 1; done'")
until_true sh -c "takt show $whole | grep -q 'state *running'"
staged=$(submit -n 2 --stage --prefetch "'try > /var/work/before'" -- sh -c "'try; cut -d: -f3 /proc/self/cgroup'")
until_true test -s /var/work/before
has "what is run before its turn opens no GPU" "$(cat /var/work/before)" "open: closed: 0 1 2 3 4 5 6 7 other:"
early=$(submit -n 2 --stage -- try)
until_true test -e /var/lib/takt/jobs/$early.1/staged
# As takt does when a job's turn has come, with SIGRTMIN + 1.
as alice "cd /var/lib/takt/jobs/$early.1 && cp spec go" 2> /dev/null
as alice "kill -35 $(sed -n 's/.* pid=\([0-9]*\).*/\1/p' /var/lib/takt/jobs/$early.1/shim)" 2> /dev/null
sleep 2
same "a job that its user would start before its turn waits as before" "$(ls /var/lib/takt/jobs/$early.1 | grep -x -e staged -e started -e go -e exit)" staged
same "and its process waits" "$(ls /var/lib/takt/jobs/$staged.1 | grep -c -x -e staged -e started)" 1
cat > /bin/bomb <<'END'
#!/bin/sh
trap '' TERM HUP
: > /var/work/bombs
while :; do (while :; do (:) & done) & done 2> /dev/null
END
chmod 755 /bin/bomb
bombed=$(submit -n 1 --stage --prefetch bomb -- echo after)
until_true test -e /var/work/bombs
touch /var/work/over
takt wait $bombed > /dev/null
has "a prefetch that forks all the time is ended when it is its job's turn" "$(takt logs $bombed)" after
same "with all that it forked" "$(alive bomb)" ""
takt wait $whole $staged $early > /dev/null
log=$(takt logs $staged)
has "a job that was made ready opens its GPUs when it is its turn" "$log" "$(its_own "$log" 2)"
has "in a cgroup of its own" "$log" "-$staged.1/job"
has "as takt show says" "$(takt show $staged)" "isolation     devices"
log=$(takt logs $early)
has "and opens its GPUs when it is its turn" "$log" "$(its_own "$log" 2)"

killall takt-serve
until_true sh -c '! pidof takt-serve takt-launch takt-actuate > /dev/null'
rm -rf /var/lib/takt
takt-twin create hgx-h100 --path /run/cut --seed 7 > /dev/null
chmod 666 /run/cut*
export TAKT_TWIN=/run/cut TAKT_SOCKET=/run/cut-takt/takt.sock
takt-twin exec --machine /run/cut -- mig_cut /usr/bin/lib/550/libnvidia-ml.so.1 0 9 19 19 > /run/instances || no "a GPU is cut" "$(cat /run/instances)"
cat > /bin/try-caps <<'END'
#!/bin/sh
# The capabilities that may be opened, those of its instance, how many are closed; whole GPUs.
gi=$(sed -n "s/^$CUDA_VISIBLE_DEVICES //p" /run/instances)
folder=/proc/driver/nvidia/capabilities/gpu0/mig/gi$gi
own=$(sed -n 's/^DeviceFileMinor: //p' $folder/access $folder/ci0/access | tr '\n' ' ')
for node in /dev/nvidia-caps/nvidia-cap*; do
	case "$( (: < $node) 2>&1)" in
	*"No such device or address"*) open="$open${node#/dev/nvidia-caps/nvidia-cap} " ;;
	*"Operation not permitted"*) closed=$((closed + 1)) ;;
	esac
done
echo $open > /var/work/caps.$1
if [ "$open" = "$own" ]; then echo "its own, not $closed others"; else echo "'$open', not '$own'"; fi
try
END
chmod 755 /bin/try-caps
serve --faces
for turn in 1 2; do
	job=$(submit --mig 1g.10gb -- sh -c "'try-caps $turn; while [ ! -e /var/work/both ]; do sleep 1; done'")
	until_true test -s /var/work/caps.$turn
	[ $turn = 1 ] && first=$job
done
touch /var/work/both
takt wait $first $job > /dev/null
has "a job on a MIG instance opens its capabilities" "$(takt logs $first)" "its own, not 6 others"
has "and so does the next on the same GPU" "$(takt logs $job)" "its own, not 6 others"
if [ "$(cat /var/work/caps.1)" != "$(cat /var/work/caps.2)" ]; then ok "which are others"; else no "which are others" "$(cat /var/work/caps.*)"; fi
has "and no other GPU" "$(takt logs $job)" "open: 0 closed: 1 2 3 4 5 6 7 other:"
has "that is told" "$(takt show $job)" "isolation     devices"
job=$(submit -n 1 -- sh -c "'try-caps 3'")
takt wait $job > /dev/null
same "a job on a whole GPU opens no capability" "$(cat /var/work/caps.3)" ""
cat /run/serve.log
"""

NAMES = [
    "a job of 2 of 8 GPUs can open its own, and not the other six",
    "and what goes with any GPU, and ordinary devices", "takt show says that devices are closed",
    "a job without GPUs opens none", "a job over its memory is ended and told why", "as a whole",
    "a job that forks without end can do so up to its limit",
    "CPU time is limited", "and was held back", "its user cannot lift a limit",
    "nor leave, not even with the shim", "a job lives on when takt and its launcher are killed",
    "and takt knows how it is isolated",
    "a clean-up runs in the cgroup of its job", "and is ended in its time", "so does that of a job whose shim is gone", "and is ended as well",
    "the kernel ends a shim last of all", "and its job like any program", "which cannot change that",
    "what a job has written into memory keeps its shim from nothing", "and is ended as a whole", "nothing of either is left", "a job ends of which a process has left its cgroup", "and so does that process",
    "it opens the same GPU as before", "and ends as any", "the next one opens its own", "which is another GPU", "cgroups of jobs go with them",
    "what is run before its turn opens no GPU", "a job that its user would start before its turn waits as before",
    "a prefetch that forks all the time is ended when it is its job's turn", "with all that it forked",
    "and opens its GPUs when it is its turn", "and its process waits",
    "a job that was made ready opens its GPUs when it is its turn", "in a cgroup of its own", "as takt show says",
    "a job on a MIG instance opens its capabilities", "and so does the next on the same GPU", "which are others",
    "and no other GPU", "that is told", "a job on a whole GPU opens no capability",
]


def run():
    archive = guest.with_takt(guest.base())
    archive.program(os.path.join(kit.BUILD, "tests/guest/mig_cut"), "bin/mig_cut")
    archive.text("init", guest.INIT, 0o755)
    archive.text("script", guest.TESTING + SCRIPT)
    return guest.boot(archive)


if __name__ == "__main__":
    sys.exit(kit.main(guest.cases_of(run, NAMES)))
