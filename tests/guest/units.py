#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt as it is installed for all users of a machine: its units under systemd, with jobs running, while each of
them is stopped, restarted, killed and replaced, and over a reboot.

The guest's first process is this machine's systemd with its journal and nothing else; takt is put there by `meson
install`. Whether a job lived through something is asked of the kernel: the same process, by its number and the
time it began. At its first end the guest sends what a disk would have kept over its second serial line, and is
booted again with it.

Usage: units.py BUILD_FOLDER
"""
import glob
import os
import re
import subprocess
import sys
import tempfile

import guest
import kit

SYSTEMD = "/lib/systemd/systemd"
PROGRAMS = (SYSTEMD, "/lib/systemd/systemd-journald", "/lib/systemd/systemd-shutdown", "/bin/systemctl", "/bin/journalctl")
UNITS = "/lib/systemd/system"
OTHER_UNITS = ("systemd-journald.service", "systemd-journald.socket", "systemd-journald-dev-log.socket",
               "systemd-reboot.service", "systemd-poweroff.service")
BOOT = "init=" + SYSTEMD, "systemd.show_status=0", "systemd.log_level=notice", "systemd.default_standard_output=journal"

TRIAL = """[Unit]
After=multi-user.target
[Service]
Type=oneshot
ExecStart=/bin/sh /script
TimeoutStartSec=infinity
"""
# As docs/install.md has it for settings and the simulated driver.
DROP_IN = """[Service]
Environment=TAKT_TWIN=/run/machine
ReadWritePaths=/run/machine /run/machine.lock
ExecStart=
ExecStart=%s serve --users all --config /etc/takt/takt.conf
"""
ACTUATE_DROP_IN = """[Service]
Environment=TAKT_TWIN=/run/machine
Environment="MORE=--nvml /usr/bin/lib/550/libnvidia-ml.so.1"
"""
CONFIG = """metrics_listen = off
kernel_log = /dev/kmsg
nvml_path = /usr/bin/lib/550/libnvidia-ml.so.1
"""
# Run when everything else has been ended, as a disk's last state.
KEEP = """#!/bin/sh
export PATH=/bin
stty -F /dev/ttyS1 raw
tar -C / -cz -f /dev/ttyS1 var/lib/takt var/lib/takt-clocks var/work
"""

BEGIN = r"""
exec > /dev/ttyS0 2>&1
echo
export PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin HOME=/root TAKT_SOCKET=/run/takt/takt.sock
takt-twin create hgx-h100 --path /run/machine --seed 7 > /dev/null
touch /run/machine.lock
chmod 666 /run/machine*
for n in 0 1 2 3 4 5 6 7; do mknod -m 666 /dev/nvidia$n c 240 $n; done
mknod -m 666 /dev/nvidiactl c 240 255
mkdir -p -m 1777 /var/work
cd /var/work

as() { user=$1; shift; su -s /bin/sh "$user" -c "$*"; }
submit() { as alice "takt submit -q $*"; }
state() { takt show $1 | sed -n 's/^state *\([a-z]*\).*/\1/p'; }
is() { case "$(state $1)" in $2*) ;; *) return 1 ;; esac; }
locks() { TAKT_TWIN=/run/machine takt-twin state --json | grep -o '"locked": *true' | wc -l; }
stands() { test $(locks) = 8; }
main_pid() { systemctl show -P MainPID $1; }
identity() { echo "$1 $(cut -d' ' -f22 /proc/$1/stat)"; }
answers() { until_true takt status > /run/status 2>&1 || die "$1" "$(cat /run/status; journalctl -n 40 --no-pager)"; }
# What a job of ours does: say who it is, wait until it may end.
cat > /bin/wait-for <<'END'
#!/bin/sh
cut -d: -f3 /proc/$$/cgroup > /var/work/$1.cgroup
echo "$$ $(cut -d' ' -f22 /proc/$$/stat)" >> /var/work/$1.ran
while [ ! -e /var/work/$1.go ]; do sleep 1; done
echo through
exit $2
END
chmod 755 /bin/wait-for
# What a job is held to: the leaf it is in, whether it is ended as a whole, its memory.
cat > /bin/held <<'END'
#!/bin/sh
own=/sys/fs/cgroup$(cut -d: -f3 /proc/self/cgroup)
echo ${own##*/} $(cat $own/memory.oom.group $own/memory.max)
END
chmod 755 /bin/held
kill_keeper() { pid=$(main_pid takt-jobs); [ $pid -gt 0 ] && kill -9 $pid; }
LIMITED="job 1 67108864"
ended() { timeout 300 takt wait $1 > /dev/null || { takt show $1; journalctl -n 30 --no-pager; }; }
# Its process beside the cgroups of jobs, as when it is put there before memory was limited. The last job's may be in the way for a moment,
# and the process may be started anew meanwhile: what a try has left is taken back by the next.
mix() {
	rmdir $jobs/takt-*/*/ $jobs/takt-*/
	echo "-memory -cpu" > $jobs/cgroup.subtree_control
	keeper=$(main_pid takt-jobs)
	[ $keeper -gt 0 ] && echo $keeper > $jobs/cgroup.procs && echo +cpu > $jobs/cgroup.subtree_control
	mixed=$(cat $jobs/cgroup.type)
	[ "$mixed" = "domain threaded" ]
}
# It is back within seconds. A job that came between its end and its start anew may have hidden from systemd that the cgroup is empty:
# then it is back behind the next one. What is the matter where it is not.
comes_back() {
	for try in 1 2 3 4; do
		n=20
		until keeps; do
			n=$((n - 1))
			[ $n = 0 ] && break
			sleep 1
		done
		keeps && return 0
		tell_keeper
		limited > /dev/null
	done
	return 1
}
tell_keeper() {
	systemctl status takt-jobs --no-pager
	journalctl -u takt-jobs -u takt-launch -n 40 --no-pager
	for file in cgroup.type cgroup.subtree_control cgroup.events cgroup.procs; do echo $file $(cat $jobs/$file); done
	for folder in $(find $jobs -mindepth 1 -type d); do echo $folder: $(cat $folder/cgroup.procs) $(cat $folder/cgroup.events); done
}
keeps() { now=$(main_pid takt-jobs); [ $now -gt 0 ] && [ $now != "$pid" ]; }
limited() { last=$(submit -n 1 -m 64M -- held); ended $last; takt logs $last; }
running() { until_true test -s $1.ran || die "$1 runs" "$(takt queue; journalctl -n 60 --no-pager)"; }
the_same() {
	if [ "$(identity $long_pid)" = "$long" ] && [ $(wc -l < long.ran) = 1 ] && is $long_job running; then ok "$1"
	else no "$1" "$(identity $long_pid), not $long; $(state $long_job)"; fi
}
"""

SCRIPT = r"""
systemctl daemon-reload
systemctl enable --now takt-jobs takt-launch takt || journalctl -n 40 --no-pager
answers "takt answers"
has "units are enabled as the page says" "$(systemctl is-enabled takt takt-launch.socket takt-jobs | tr '\n' ' ')" "enabled enabled enabled"

# Its standard input and the one that it reads: their numbers. (Only the kernel can write what takt listens to there.)
log_fds() { ls -l /proc/$(main_pid takt)/fd | sed -n 's/.* \([0-9]*\) -> .dev.kmsg$/\1/p' | sort -n | tr '\n' ' '; }
reads_log() { set -- $(log_fds); [ $# = 2 ]; }
until_true reads_log || die "it opens the kernel's log" "$(ls -l /proc/$(main_pid takt)/fd; takt health)"
rights() { sed -n "s/^\(Uid\|Gid\|CapPrm\|CapBnd\|NoNewPrivs\):[[:space:]]*\([0-9a-f]*\).*/\2/p" /proc/$1/status | tr "\n" " "; }
same "takt is an account of its own, without any right" "$(rights $(main_pid takt))" "977 977 0000000000000000 0000000000000000 1 "
same "it reads the kernel's log all the same, opened once" "$(for look in $(seq 20); do log_fds; echo; done | sort | uniq -c | wc -l)" 1
until_true pidof takt-actuate > /dev/null
same "launcher and actuator are root" "$(stat -c %u /proc/$(main_pid takt-launch) /proc/$(main_pid takt-actuate) | tr '\n' ' ')" "0 0 "
same "it can put nothing where they keep what is theirs" "$(find /run/takt-helpers /var/lib/takt-clocks -user takt -o -perm -2 -type d)" ""
long_job=$(submit -n 1 -- wait-for long 7)
running long
read long < long.ran
long_pid=${long%% *}
has "a job lies below the unit that keeps cgroups" "$(cat long.cgroup)" "/takt.slice/takt-jobs.service/takt-"
has "it can open only its GPU" "$(takt show $long_job)" "isolation     devices"
same "every unit is in the slice" "$(systemctl show -P Slice takt takt-launch.socket takt-launch takt-jobs | sort -u | grep .)" takt.slice

launcher=$(main_pid takt-launch) serve=$(main_pid takt)
systemctl restart takt
answers "takt answers after a restart"
the_same "a restart of takt ends no job"
same "and leaves the launcher alone" "$(main_pid takt-launch)" $launcher
if [ $(main_pid takt) != $serve ]; then ok "but takt is another"; else no "but takt is another" "$serve"; fi

systemctl restart takt-launch
the_same "a restart of the launcher ends no job"
job=$(submit -n 1 -- wait-for after-launch 0)
running after-launch
has "the next job is started by the new one" "$(cat after-launch.cgroup)" "/takt.slice/takt-jobs.service/takt-"
same "of which there is one" "$(pidof takt-launch)" "$(main_pid takt-launch)"

systemctl reload takt && ok "its settings are read anew" || no "its settings are read anew" "$(journalctl -u takt -n 9 --no-pager)"

systemctl stop takt
touch after-launch.go
until_true sh -c 'test -z "$(cat /sys/fs/cgroup$(cat after-launch.cgroup)/cgroup.procs 2>/dev/null)"'
if [ "$(identity $long_pid)" = "$long" ]; then ok "a job goes on without takt"; else no "a job goes on without takt" gone; fi
systemctl start takt
answers "takt answers after a stop"
the_same "and is found again"
until_true is $job done
same "what ended meanwhile is on record" "$(state $job)" "done"

systemctl stop takt-launch.socket takt-launch
the_same "a stop of the launcher ends no job"
job=$(submit -n 1 -- wait-for queued 0)
systemctl start takt-launch.socket takt-launch
touch queued.go
until_true is $job done
same "a job that came meanwhile is run when it is back" "$(state $job)" "done"

for name in takt-actuate takt-guard; do
	until_true pidof $name > /dev/null
	old=$(pidof $name)
	kill -9 $old
	until_true sh -c "new=\$(pidof $name) && [ \"\$new\" != \"$old\" ]"
	the_same "a job outlives $name"
	if [ "$(pidof $name)" -a "$(pidof $name)" != "$old" ]; then ok "and $name comes back"; else no "and $name comes back" "$(pidof $name)"; fi
done

systemctl kill --kill-whom=all -s KILL takt takt-actuate
until_true sh -c "[ \$(systemctl show -P MainPID takt) -gt 0 ]"
answers "takt answers after all of it was killed"
the_same "a job outlives all of takt"

# Asked for again and again while jobs start: none may miss what was set on its cgroup.
jobs=/sys/fs/cgroup/takt.slice/takt-jobs.service
while [ ! -e /run/enough ]; do
	for verb in restart stop start; do systemctl $verb takt-jobs 2>&1 || echo "no $verb"; done
done > /run/asked &
asking=$!
said=
for n in 1 2 3 4 5; do said="$said$(limited);"; done
touch /run/enough
wait $asking
has "a restart of the unit that keeps cgroups is refused" "$(cat /run/asked)" "no restart"
has "and so is a stop" "$(cat /run/asked)" "no stop"
has "by systemd, which says why" "$(cat /run/asked)" "may be requested by dependency only"
same "it is active all the same" "$(systemctl is-active takt-jobs)" active
same "jobs that start meanwhile keep what is set on their cgroups" "$said" "$LIMITED;$LIMITED;$LIMITED;$LIMITED;$LIMITED;"
the_same "and those that run are not ended"

kill_keeper
until_true sh -c '[ $(systemctl show -P MainPID takt-jobs) = 0 ]'
same "without the process that keeps them it is active as long as there are jobs" "$(systemctl is-active takt-jobs)" active
the_same "which go on"
same "and more can start" "$(limited)" "$LIMITED"

whole=$(submit -n 7 -- wait-for whole 0)
running whole
staged=$(submit -n 2 -m 64M --stage -- held)
until_true test -e /var/lib/takt/jobs/$staged.1/staged
systemctl stop takt.slice
same "with the slice all of takt is stopped" "$(systemctl is-active takt takt-launch.socket takt-launch takt-jobs | sort -u)" inactive
if [ "$(identity $long_pid)" = "$long" ]; then ok "and jobs go on"; else no "and jobs go on" gone; fi
systemctl start takt
answers "takt answers after a stop of the slice"
same "with takt all of it comes back" "$(systemctl is-active takt takt-launch.socket takt-launch takt-jobs | sort -u)" active
the_same "finds its jobs"
touch whole.go
ended $staged
same "and what waited for its turn starts in a cgroup of its own" "$(takt logs $staged)" "$LIMITED"

for name in /usr/local/libexec/takt/takt-* /usr/local/bin/takt; do cp $name /tmp/new; mv /tmp/new $name; done
systemctl restart takt-launch takt-actuate takt
answers "takt answers after an upgrade"
the_same "an upgrade ends no job"
same "one launcher serves it" "$(pidof takt-launch)" "$(main_pid takt-launch)"

before="$(main_pid takt) $(main_pid takt-launch)"
job=$(submit -n 0 -m 64M -- sh -c "'cat /sys/fs/cgroup\$(cut -d: -f3 /proc/self/cgroup)/memory.oom.group; tail /dev/zero; echo never'")
ended $job
has "a job over its memory is ended" "$(takt show $job; takt logs $job)" "ended by the kernel: over its 64 MiB of memory"
same "and nothing of takt is" "$(main_pid takt) $(main_pid takt-launch)" "$before"
the_same "nor another job"

as bob "takt cancel $long_job" > /dev/null 2>&1
the_same "nor is another user's cancel"
touch long.go
ended $long_job
has "its end is recorded once it comes" "$(takt show $long_job)" "status 7"
same "it ran once" "$(wc -l < long.ran)" 1

comes_back
same "behind the last job the unit that keeps cgroups is started anew" "$(systemctl is-active takt-jobs)" active
same "and the next job is held to its limits" "$(limited)" "$LIMITED"
kill_keeper
comes_back
same "so it is when its process was killed before" "$(limited)" "$LIMITED"
kill_keeper
same "and in the moment after it was" "$(limited)" "$LIMITED"
comes_back
n=90
until mix 2> /dev/null || [ $n = 0 ]; do n=$((n - 1)); sleep 1; done
[ $n = 0 ] && tell_keeper
same "where its process was put beside the cgroups of jobs, before memory was limited" "$mixed" "domain threaded"
same "the next job is held to its limits all the same" "$(limited)" "$LIMITED"
systemctl daemon-reload
systemctl daemon-reexec
same "and when systemd was upgraded" "$(limited)" "$LIMITED"
systemctl stop takt.slice
same "when no job runs a stop of the slice leaves nothing" "$(ls -d $jobs 2>/dev/null)" ""
systemctl start takt
answers "takt answers in a slice made anew"
same "and a start makes all of it anew" "$(limited)" "$LIMITED"

printf '[[gpu]]\nsm_mhz = [345, 1200]\n' > /etc/takt/clocks.toml
systemctl enable --now takt-clocks
until_true stands
same "a unit declares the clocks" "$(locks)" 8
systemctl restart takt
answers "takt answers with clocks declared"
same "a restart of takt leaves them so" "$(locks)" 8
systemctl stop takt-clocks
same "its stop takes them back" "$(locks)" 0
printf '[[gpu]]\nmhz = 5\n' > /etc/takt/clocks.toml
systemctl start takt-clocks 2> /dev/null && no "a wrong policy fails the unit" started || ok "a wrong policy fails the unit"
has "and the journal has the line" "$(journalctl -u takt-clocks --no-pager)" "line 2: there is no key 'mhz'"
systemctl reset-failed takt-clocks

takt gpu drain 5 --reason "loud fan" > /dev/null
until_true sh -c 'journalctl -u takt -p notice -o export --no-pager | grep -q "loud fan"'
said=$(journalctl -u takt -p notice -o export --no-pager | grep -B 40 -A 40 "MESSAGE=.*loud fan")
has "the journal has what an administrator changed, at its priority" "$said" "PRIORITY=5"
has "under takt's unit" "$said" "_SYSTEMD_UNIT=takt.service"
same "without the prefix" "$(echo "$said" | grep -c 'MESSAGE=<')" 0
has "what takt begins with is for information" "$(journalctl -u takt -p info..info --no-pager)" "gives them out"
systemctl stop takt-launch.socket takt-launch
mkdir -p /run/systemd/system/takt-launch.service.d
printf '[Service]\nExecStart=\nExecStart=/usr/local/libexec/takt/takt-launch --listen-fd 3 --jobs /nowhere --shim /bin/true\n' > /run/systemd/system/takt-launch.service.d/broken.conf
systemctl daemon-reload
systemctl start takt-launch.socket takt-launch
until_true sh -c 'journalctl -u takt-launch -p err --no-pager | grep -q nowhere'
has "a launcher that cannot start says so as an error" "$(journalctl -u takt-launch -p err --no-pager)" "/nowhere"
rm -r /run/systemd/system/takt-launch.service.d
systemctl daemon-reload
systemctl reset-failed takt-launch.socket takt-launch
systemctl restart takt-launch.socket takt-launch

mkdir -p /run/www/cgi-bin
printf '#!/bin/sh\nhead -c "$CONTENT_LENGTH" >> /run/heard\nprintf "Status: 204 No Content\\r\\n\\r\\n"\n' > /run/www/cgi-bin/hook
chmod 755 /run/www/cgi-bin/hook
httpd -p 127.0.0.1:8099 -h /run/www
(umask 077; echo http://127.0.0.1:8099/cgi-bin/hook > /etc/takt/webhook)
systemctl enable --now takt-alerts
TAKT_TWIN=/run/machine takt-twin fault 6 lost
until_true grep -q GpuLost /run/heard
has "a unit tells a webhook of a GPU that is lost" "$(cat /run/heard; journalctl -u takt-alerts -n 20 --no-pager)" '"alert":"GpuLost","state":"firing"'
teller=$(main_pid takt-alerts)
case $(stat -c %u /proc/$teller) in 0|4242|4343|"") no "as a user of its own" "$(stat -c %u /proc/$teller)" ;; *) ok "as a user of its own" ;; esac
same "on whose command line no URL is" "$(tr '\0' ' ' < /proc/$teller/cmdline | grep -c 8099)" 0
systemctl stop takt-alerts

echo $(submit -n 1 -- wait-for reboot 0) > /var/work/plain
echo $(submit -n 1 --requeue -- wait-for again 0) > /var/work/requeue
running reboot
running again
sync
systemctl reboot --no-block
"""

AGAIN = r"""
tar -xzpf /kept -C /
systemctl enable --now takt-jobs takt-launch takt
answers "takt answers after a reboot"
printf '[[gpu]]\nsm_mhz = [345, 1200]\n' > /etc/takt/clocks.toml
systemctl enable --now takt-clocks
until_true stands
same "clocks are declared again" "$(locks)" 8
until_true is $(cat plain) interrupted
same "a job that a reboot ended is interrupted" "$(state $(cat plain))" interrupted
touch again.go
until_true is $(cat requeue) done
same "and run again if it was to be" "$(state $(cat requeue)) $(wc -l < again.ran)" "done 2"
same "only then" "$(wc -l < reboot.ran)" 1
echo @end
systemctl poweroff --no-block
"""

NAMES = [
    "units are enabled as the page says", "takt is an account of its own, without any right",
    "it reads the kernel's log all the same, opened once", "launcher and actuator are root",
    "it can put nothing where they keep what is theirs", "a job lies below the unit that keeps cgroups",
    "it can open only its GPU", "every unit is in the slice",
    "a restart of takt ends no job", "and leaves the launcher alone", "but takt is another",
    "a restart of the launcher ends no job", "the next job is started by the new one", "of which there is one",
    "its settings are read anew",
    "a job goes on without takt", "and is found again", "what ended meanwhile is on record",
    "a stop of the launcher ends no job", "a job that came meanwhile is run when it is back",
    "a job outlives takt-actuate", "and takt-actuate comes back",
    "a job outlives takt-guard", "and takt-guard comes back", "a job outlives all of takt",
    "a restart of the unit that keeps cgroups is refused", "and so is a stop", "by systemd, which says why",
    "it is active all the same", "jobs that start meanwhile keep what is set on their cgroups",
    "and those that run are not ended",
    "without the process that keeps them it is active as long as there are jobs", "which go on", "and more can start",
    "with the slice all of takt is stopped", "and jobs go on", "with takt all of it comes back", "finds its jobs",
    "and what waited for its turn starts in a cgroup of its own",
    "an upgrade ends no job", "one launcher serves it",
    "a job over its memory is ended", "and nothing of takt is", "nor another job", "nor is another user's cancel",
    "its end is recorded once it comes", "it ran once",
    "behind the last job the unit that keeps cgroups is started anew", "and the next job is held to its limits",
    "so it is when its process was killed before", "and in the moment after it was",
    "where its process was put beside the cgroups of jobs, before memory was limited",
    "the next job is held to its limits all the same", "and when systemd was upgraded",
    "when no job runs a stop of the slice leaves nothing", "and a start makes all of it anew",
    "a unit declares the clocks", "a restart of takt leaves them so", "its stop takes them back",
    "a wrong policy fails the unit", "and the journal has the line", "clocks are declared again",
    "the journal has what an administrator changed, at its priority", "under takt's unit", "without the prefix",
    "what takt begins with is for information", "a launcher that cannot start says so as an error",
    "a unit tells a webhook of a GPU that is lost", "as a user of its own", "on whose command line no URL is",
    "a job that a reboot ended is interrupted", "and run again if it was to be", "only then",
]


def install(folder):
    done = subprocess.run(["meson", "install", "-C", kit.BUILD, "--no-rebuild", "--quiet", "--destdir", folder],
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def http_client():
    """The library that takt opens for webhooks."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=False).stdout
    found = [re.search(rf"\b{re.escape(name)} .*x86-64.*=> (/\S+)", said) for name in ("libcurl-gnutls.so.4", "libcurl.so.4")]
    return [match[1] for match in found if match][:1]


def image(takt, script):
    archive = guest.base()
    for program in PROGRAMS:
        archive.program(program)
    for unit in (*glob.glob(UNITS + "/*.target"), *(os.path.join(UNITS, name) for name in OTHER_UNITS)):
        if not os.path.islink(unit):
            archive.file(unit)
    for library in http_client():
        archive.program(library)
    archive.tree(takt)
    (command,) = glob.glob(takt + "/**/bin/takt", recursive=True)
    archive.link("init", SYSTEMD)
    archive.link("etc/systemd/system/default.target", UNITS + "/multi-user.target")
    archive.link("etc/systemd/system/sysinit.target.wants/systemd-journald.service", UNITS + "/systemd-journald.service")
    archive.link("etc/systemd/system/multi-user.target.wants/trial.service", "../trial.service")
    archive.text("etc/systemd/system/trial.service", TRIAL)
    archive.text("etc/systemd/system/takt.service.d/simulated.conf", DROP_IN % ("/" + os.path.relpath(command, takt)))
    archive.text("etc/systemd/system/takt-actuate.service.d/simulated.conf", ACTUATE_DROP_IN)
    archive.text("etc/takt/takt.conf", CONFIG)
    archive.text("etc/machine-id", "0" * 31 + "1\n")
    archive.text("lib/systemd/system-shutdown/keep", KEEP, 0o755)
    archive.text("script", guest.TESTING + BEGIN + script)
    return archive


def run():
    if not os.path.exists(SYSTEMD):
        raise kit.Skip("systemd is not installed (tools/packages.txt has its package)")
    with tempfile.TemporaryDirectory(prefix="tk-units-") as folder:
        takt, kept = os.path.join(folder, "takt"), os.path.join(folder, "kept")
        install(takt)
        said = guest.boot(image(takt, SCRIPT), *BOOT, second=kept)
        if os.path.getsize(kept):
            second = image(takt, AGAIN)
            second.file(kept, "kept")
            said += guest.boot(second, *BOOT)
        return said


if __name__ == "__main__":
    sys.exit(kit.main(guest.cases_of(run, NAMES)))
