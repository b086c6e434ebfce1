#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""takt init on a machine that runs, with a systemd: what it starts answers, what it was told about clocks holds, a start
that fails leaves the machine as it was, and what it removes leaves jobs running.

Usage: init_units.py BUILD_FOLDER
"""
import os
import sys
import tempfile

import guest
import kit
import units

SCRIPT = r"""
unset TAKT_SOCKET
# The account is there as units.py has it, without systemd-sysusers: here it is made.
sed -i /^takt:/d /etc/passwd /etc/group
touch /etc/shadow /etc/gshadow
printf 'assume_unlocked = yes\n' >> /etc/takt/takt.conf
cp /etc/takt/takt.conf /run/before.conf
printf '#!/bin/sh\ncut -d" " -f22 /proc/$$/stat\nwhile [ ! -e /var/work/$1.go ]; do sleep 1; done\n' > /bin/hold
chmod 755 /bin/hold

mkdir -p /var/work/build
cp /usr/local/libexec/takt/* /usr/local/bin/takt /var/work/build/
chown -R alice /var/work/build
/var/work/build/takt init --answers users=all,clocks=no,web=off > /run/said 2>&1
same "units of root's start no takt that a user can change" "$?" 77
has "and that is said" "$(cat /run/said)" "install it where only root writes"

mkdir -p /etc/systemd/system/takt.service.d
printf '[Service]\nExecStart=\nExecStart=/bin/false\n' > /etc/systemd/system/takt.service.d/wrong.conf
find /etc/takt /etc/systemd /var/lib/takt-init > /run/before 2> /dev/null
takt init --answers users=all,clocks=no,web=off > /run/said 2>&1
same "where takt does not start it ends with 69" "$?" 69
has "and says what was the matter" "$(cat /run/said)" "was started and does not answer"
find /etc/takt /etc/systemd /var/lib/takt-init > /run/after 2> /dev/null
same "and leaves no file" "$(diff /run/before /run/after)$(diff /run/before.conf /etc/takt/takt.conf)" ""
same "nor a unit that runs" "$(systemctl is-active takt takt-launch.socket takt-jobs | grep -c '^active')" 0
rm /etc/systemd/system/takt.service.d/wrong.conf

takt init --answers users=all,clocks=no,web=off > /run/said 2>&1
same "takt is set up" "$?" 0
has "and says file by file what it did" "$(cat /run/said)" "replaced      /etc/takt/takt.conf"
has "it has made the account" "$(grep ^takt: /etc/passwd)" "takt:x:"
same "units are enabled" "$(systemctl is-enabled takt takt-launch.socket takt-launch takt-jobs | tr '\n' ' ')" "enabled enabled enabled enabled "
takt status > /run/status 2>&1 || die "takt answers at once" "$(cat /run/status /run/said; journalctl -u takt -n 20 --no-pager)"
has "takt answers at once" "$(cat /run/status)" "H100"
same "it serves as that account" "$(stat -c %U /proc/$(main_pid takt))" takt
same "a setting that was there is in force" "$(takt config show | grep ^assume_unlocked)" "assume_unlocked = yes"

job=$(submit -n 1 --clock 1200 -- hold first)
until_true is $job running
until_true sh -c "takt show $job | grep -q 'set_clocks = no'"
has "a job that asks for a clock is told that none is set" "$(takt show $job)" "set_clocks = no"
same "and none is" "$(locks)" 0
touch first.go
until_true is $job done

has "done once more nothing is changed" "$(takt init --yes)" "nothing was changed"
takt init --clocks yes --yes > /run/said 2>&1
same "the answer on clocks can be changed" "$?" 0
has "and takt answers" "$(takt status)" "H100"
job=$(submit -n 1 --clock 1200 -- hold second)
until_true is $job running
until_true sh -c "[ \$(TAKT_TWIN=/run/machine takt-twin state --json | grep -c '\"locked\": *true') = 1 ]"
same "then a clock that is asked for is set" "$(locks)" 1
pid=$(takt show --json $job | grep -o '"pid": *[0-9]*' | grep -o '[0-9]*$')
long=$(identity $pid)

takt init --remove > /run/said 2>&1 < /dev/null
same "with jobs that run it is not removed unless that is said" "$?" 75
has "and how many there are" "$(cat /run/said)" "1 jobs run and 0 wait"
same "takt serves on" "$(systemctl is-active takt)" active
takt init --remove --yes > /run/said 2>&1
same "it is removed" "$?" 0
has "jobs that run are told of" "$(cat /run/said)" "1 jobs run. They go on without takt"
same "and go on" "$(identity $pid)" "$long"
same "units are enabled no more" "$(systemctl is-enabled takt takt-launch.socket takt-jobs | tr '\n' ' ')" "disabled disabled disabled "
same "nor do they run" "$(systemctl is-active takt takt-launch.socket takt-jobs | sort -u)" inactive
same "clocks are put back" "$(locks)" 0
same "the configuration is the one that was there" "$(diff /run/before.conf /etc/takt/takt.conf)" ""
same "no record is left" "$(ls -d /var/lib/takt-init 2> /dev/null)" ""

takt init --answers users=all,clocks=yes,web=off > /run/said 2>&1
same "set up again it finds the job" "$(state $job) $(identity $pid)" "running $long"
touch second.go
until_true is $job done
takt init --remove --purge > /run/said 2>&1
same "with --purge records and history go, too" "$(ls -d /var/lib/takt /var/lib/takt-clocks 2> /dev/null)" ""
has "and it says so" "$(cat /run/said)" "Deleted: /var/lib/takt, /var/lib/takt-clocks"
echo @end
systemctl poweroff --no-block
"""

NAMES = [
    "units of root's start no takt that a user can change", "and that is said",
    "where takt does not start it ends with 69", "and says what was the matter", "and leaves no file",
    "nor a unit that runs", "takt is set up", "and says file by file what it did", "it has made the account",
    "units are enabled", "takt answers at once", "it serves as that account", "a setting that was there is in force",
    "a job that asks for a clock is told that none is set", "and none is", "done once more nothing is changed",
    "the answer on clocks can be changed", "and takt answers", "then a clock that is asked for is set",
    "with jobs that run it is not removed unless that is said", "and how many there are", "takt serves on",
    "it is removed", "jobs that run are told of", "and go on", "units are enabled no more", "nor do they run",
    "clocks are put back", "the configuration is the one that was there", "no record is left",
    "set up again it finds the job", "with --purge records and history go, too", "and it says so",
]


def run():
    if not os.path.exists(units.SYSTEMD):
        raise kit.Skip("systemd is not installed (tools/packages.txt has its package)")
    with tempfile.TemporaryDirectory(prefix="tk-init-") as folder:
        units.install(folder)
        archive = units.image(folder, SCRIPT)
        archive.program("/usr/bin/systemd-sysusers")
        return guest.boot(archive, *units.BOOT)


if __name__ == "__main__":
    sys.exit(kit.main(guest.cases_of(run, NAMES)))
