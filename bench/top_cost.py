#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What looking costs: takt top beside nvtop and nvitop, in one run on one simulated machine.

Each in a terminal of the same size, in turns: the time from its start until it has written a GPU's name (the median of
STARTS, on a pseudoterminal that is read at once), then in one of tmux processor time a second at 1 and at 10 looks a second (all its threads and children), and its resident memory at the
end. takt top reads the driver itself as the others do, and is measured with the daemon, too (whose own cost is not in
it: bench/idle_cost.py has that). nvitop is asked for 4 looks a second, the most that it does, and for 1.

Usage: top_cost.py BUILD_FOLDER [--rounds N] [--seconds S] [--nvtop PATH] [--nvitop PATH] [--record]
       top_cost.py --docs

--nvtop: Debian's package nvtop (or unpacked). --nvitop: of a virtual environment with nvitop. Who is not given is left
out. The simulated driver answers in microseconds: a real one adds the same to all. --record adds rows to
bench/results/top_cost.csv: on a quiet machine only. --docs makes the table of docs/top.md from the rows of the latest
record.
"""
import argparse
import csv
import datetime
import fcntl
import os
import pty
import select
import signal
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(SOURCE, "bench"))
import idle_cost  # noqa: E402

RESULTS = os.path.join(SOURCE, "bench/results/top_cost.csv")
HEAD = ["date", "commit", "command", "machine", "simulated", "program", "looks_per_s", "metric", "value", "unit", "of_nvtop"]
DOCS = os.path.join(SOURCE, "docs/top.md")
BEGIN, END = "<!-- made by bench/top_cost.py --docs -->", "<!-- end of what is made -->"
COLUMNS, LINES = 120, 40
STARTS = 9
START_S = 60


def parse():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("build", nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--nvtop")
    parser.add_argument("--nvitop")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--docs", action="store_true")
    args = parser.parse_args()
    if bool(args.build) == args.docs:
        parser.error("a build folder, or --docs")
    return args


def programs(args, takt):
    """{(name, looks a second): command}"""
    found = {("takt top, driver", 1): [takt, "top", "--driver"],
             ("takt top, driver", 10): [takt, "top", "--driver", "--rate", "10"],
             ("takt top, daemon", 1): [takt, "top"],
             ("takt top, daemon", 10): [takt, "top", "--rate", "10"]}
    if args.nvtop:
        found["nvtop", 1] = [args.nvtop, "-d", "10"]
        found["nvtop", 10] = [args.nvtop, "-d", "1"]
    if args.nvitop:
        found["nvitop", 1] = [args.nvitop, "--monitor", "full", "--interval", "1"]
        found["nvitop", 4] = [args.nvitop, "--monitor", "full", "--interval", "0.25"]
    return found


def family(pid):
    """The process and what it has started."""
    found = [pid]
    for one in found:
        try:
            with open(f"/proc/{one}/task/{one}/children", encoding="ascii") as file:
                found += map(int, file.read().split())
        except OSError:
            pass
    return found


def cpu_s(pids):
    return sum(map(idle_cost.cpu_ns, pids)) / 1e9


def resident_mib(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
    return total / 1024


def first_screen_s(command, env):
    """Seconds from a start until a GPU's name is written."""
    begin, shown = time.monotonic(), b""
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        os.execve(command[0], command, dict(env, TERM="screen"))
    while b"H100" not in shown:
        assert select.select([terminal], [], [], START_S)[0], (command, shown)
        shown += os.read(terminal, 65536)
    seconds = time.monotonic() - begin
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    os.close(terminal)
    return seconds


class Terminal:
    def __init__(self, folder, env):
        self.folder, self.env, self.count = folder, env, 0

    def run(self, *words):
        return subprocess.run(["tmux", "-f", os.devnull, "-S", f"{self.folder}/tmux-{self.count}", *words], env=self.env, capture_output=True, text=True, check=False).stdout

    def measure(self, command, seconds):
        """(seconds to the first screen, processor seconds a second, MiB)"""
        shown = statistics.median(first_screen_s(command, self.env) for _ in range(STARTS))
        self.count += 1  # the server before it may still be about to end
        begin = time.monotonic()
        self.run("new-session", "-d", "-x", str(COLUMNS), "-y", str(LINES), *command)
        while "H100" not in self.run("capture-pane", "-p"):
            assert time.monotonic() - begin < START_S, (command, self.run("capture-pane", "-p"))
            time.sleep(0.05)
        time.sleep(3)  # settled
        pids = family(int(self.run("list-panes", "-F", "#{pane_pid}")))
        before, at = cpu_s(pids), time.monotonic()
        time.sleep(seconds)
        used, memory = (cpu_s(pids) - before) / (time.monotonic() - at), resident_mib(pids)
        self.run("kill-server")
        return shown, used, memory


def rows_of(samples):
    """(program, looks, metric, value, unit, share of nvtop's) with medians over the rounds."""
    metrics = (("first_screen", "ms", 1000), ("cpu", "ms_per_s", 1000), ("memory", "MiB", 1))
    value = {(who, metric): statistics.median(sample[i] for sample in taken) * scale
             for who, taken in samples.items() for i, (metric, _, scale) in enumerate(metrics)}
    for (name, looks), _ in samples.items():
        for metric, unit, _ in metrics:
            base = value.get((("nvtop", looks), metric))
            yield (name, looks, metric, round(value[(name, looks), metric], 2), unit,
                   round(value[(name, looks), metric] / base, 3) if base else "")


def started(build, folder, env):
    """A daemon on a simulated machine whose GPUs are busy."""
    takt = os.path.join(build, "src/daemon/takt")
    twin = os.path.join(build, "twin/takt-twin")
    subprocess.run([twin, "create", "hgx-h100", "--path", env["TAKT_TWIN"]], check=True, stdout=subprocess.DEVNULL)
    serve = subprocess.Popen(
        [twin, "exec", "--", takt, "serve", "--users", "own", "--runtime-dir", folder + "/run", "--state-dir",
         folder + "/state", "--lock-dir", folder + "/locks", "--metrics-listen", "off"], env=env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while subprocess.run([takt, "status"], env=env, capture_output=True, check=False).returncode:
        assert serve.poll() is None, "takt ended"
        time.sleep(0.1)
    subprocess.run([takt, "submit", "-n", "8", "--", twin, "load", "--profile", "gemm", "--quiet"], env=env, check=True,
                   stdout=subprocess.DEVNULL)
    return serve, twin, takt


def record(rows):
    commit = subprocess.run(["git", "-C", SOURCE, "describe", "--always", "--dirty=+", "--abbrev=12", "--exclude=*"],
                            capture_output=True, text=True, check=True).stdout.strip()
    new = not os.path.exists(RESULTS)
    with open(RESULTS, "a", encoding="utf-8", newline="") as file:
        out = csv.writer(file, lineterminator="\n")
        if new:
            out.writerow(HEAD)
        command = " ".join(["bench/top_cost.py", "BUILD", *(os.path.basename(word) for word in sys.argv[2:])])
        for row in rows:
            out.writerow([datetime.date.today(), commit, command, idle_cost.machine_name(), "yes", *row])


def latest():
    """The rows of the record that was made last: {(program, looks a second, metric): row}"""
    with open(RESULTS, encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    made = [rows[-1][name] for name in ("date", "commit", "command")]
    return {(row["program"], int(row["looks_per_s"]), row["metric"]): row for row in rows
            if [row[name] for name in ("date", "commit", "command")] == made}


def table():
    rows = latest()
    columns = ((1, "first_screen", "ms", 0), (1, "cpu", "ms", 1), (10, "cpu", "ms", 1), (1, "memory", "MiB", 1))
    lines = ["| | first screen | processor time a second | with ten looks a second | memory |", "|---|---|---|---|---|"]
    for name in dict.fromkeys(program for program, _, _ in rows):
        cells = [(rows.get((name, looks, metric)), unit, digits) for looks, metric, unit, digits in columns]
        lines.append(" | ".join([f"| {name}", *(f"{float(row['value']):.{digits}f} {unit}" if row else "" for row, unit, digits in cells)]) + " |")
    one = next(iter(rows.values()))
    return [*lines, "", f"{one['date']}, commit {one['commit']}, {one['machine']}."]


def write_docs():
    with open(DOCS, encoding="utf-8") as file:
        before, rest = file.read().split(BEGIN)
    with open(DOCS, "w", encoding="utf-8") as file:
        file.write("\n".join([before + BEGIN, "", *table(), "", END + rest.split(END)[1]]))


def main():
    args = parse()
    if args.docs:
        write_docs()
        return
    samples = {}
    with tempfile.TemporaryDirectory() as folder:
        env = dict(os.environ, TAKT_TWIN=folder + "/machine", TAKT_SOCKET=folder + "/run/takt.sock", LC_ALL="C.UTF-8",
                   HOME=folder)
        serve, twin, takt = started(os.path.abspath(args.build), folder, env)
        terminal = Terminal(folder, env)
        try:
            for _ in range(args.rounds):
                for who, command in programs(args, takt).items():
                    samples.setdefault(who, []).append(terminal.measure([twin, "exec", "--", *command], args.seconds))
        finally:
            subprocess.run([takt, "cancel", "1"], env=env, capture_output=True, check=False)
            subprocess.run([takt, "wait", "1"], env=env, capture_output=True, check=False)
            serve.terminate()
            serve.wait()
    rows = list(rows_of(samples))
    for row in rows:
        print("{:18} {:3} looks/s  {:13} {:9.2f} {:9} {}".format(*row[:5], f"{row[5]} of nvtop" if row[5] != "" else ""))
    if args.record:
        record(rows)


if __name__ == "__main__":
    main()
