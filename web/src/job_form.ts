// SPDX-License-Identifier: Apache-2.0
// What a job may be handed in with: one table of fields, which says how each is asked for and what it becomes in the job's
// description (docs/api.md). Texts are written as for the command line.

import { PATH, environment_of } from "./jobs";

export type Form = Record<string, string>;

export interface Field {
  name: string;
  label: string;
  /** Beside the label: how it is written. */
  hint?: string;
  kind?: "area" | "check" | "when" | "choice";
  /** Of a choice: value and words. */
  options?: [string, string][];
  placeholder?: string;
  wide?: boolean;
  /** Of what was written, which is not empty; throws what would be accepted. */
  read: (text: string, form: Form) => Record<string, unknown>;
}

export interface Group {
  title: string;
  fields: Field[];
}

function wrong(accepted: string): never {
  throw new Error(accepted);
}

function number(text: string, least: number, most: number): number {
  const value = Number(text);
  return Number.isInteger(value) && value >= least && value <= most ? value : wrong(`a whole number from ${least} to ${most.toLocaleString("en")}`);
}

const UNITS_MS: [RegExp, number][] = [
  [/^w(eeks?)?$/, 604_800_000],
  [/^d(ays?)?$/, 86_400_000],
  [/^h(ours?)?$/, 3_600_000],
  [/^m(in(utes?)?)?$/, 60_000],
  [/^s(ec(onds?)?)?$/, 1000],
  [/^ms$/, 1],
];

/** Slurm's: "1:30:00", "1-12", "1-00:30:00". */
function slurm_ms(text: string): number | undefined {
  const [, days, h, m, s] = /^(?:(\d+)-)?(\d+)(?::(\d\d))?(?::(\d\d))?$/.exec(text) ?? [];
  if (h === undefined || (days === undefined && s === undefined)) return undefined;
  return ((Number(days ?? 0) * 24 + Number(h)) * 60 + Number(m ?? 0)) * 60_000 + Number(s ?? 0) * 1000;
}

/** "1h30m", "90s", "1:30:00", "1-00:30:00"; a bare number where a unit goes without saying. */
function duration_ms(text: string, bare_ms?: number): number {
  const slurm = slurm_ms(text);
  if (slurm !== undefined) return slurm;
  if (bare_ms && /^\d+$/.test(text)) return Number(text) * bare_ms;
  const parts = /^(\d+[a-z]+)+$/.test(text) ? [...text.matchAll(/(\d+)([a-z]+)/g)] : [];
  const each = parts.map(([, count, name]) => Number(count) * (UNITS_MS.find(([word]) => word.test(name))?.[1] ?? NaN));
  const sum = each.reduce((all, one) => all + one, 0);
  return each.length && !Number.isNaN(sum) ? sum : wrong(bare_ms ? "such as 1h30m, 1:30:00 or 90 for minutes" : "such as 90s, 10m or 1h30m");
}

const MIB: Record<string, number> = { k: 1 / 1024, m: 1, g: 1024, t: 1024 * 1024 };

function size_mib(text: string): number {
  const [, count, unit] = /^(\d+(?:\.\d+)?) ?([kmgt])(?:i?b)?$/i.exec(text) ?? wrong("such as 512M or 16G");
  return Math.ceil(Number(count) * MIB[unit.toLowerCase()]);
}

function milli(text: string): number {
  return /^\d+(\.\d{1,3})?$/.test(text) ? Math.round(Number(text) * 1000) : wrong("a number such as 2 or 0.5, with at most three decimals");
}

/** "4", "0.5", "2x0.25". */
function gpus(text: string): Record<string, unknown> {
  const [, count = "1", share] = /^(?:(\d+)x)?(0?\.\d{1,3}|1)$/.exec(text) ?? [];
  if (share && (share !== "1" || text.includes("x"))) return { gpus: Number(count), ...(share !== "1" && { gpu_milli: milli(share.replace(/^\./, "0.")) }) };
  return { gpus: /^\d+$/.test(text) ? number(text, 0, 64) : wrong("a whole number from 0 to 64, a share such as 0.5, or shares of several such as 2x0.25") };
}

/** "0,2-3" */
function indices(text: string): number[] {
  const list = text.split(",").flatMap((part) => {
    const [, first, last = first] = /^ *(\d+)(?:-(\d+))? *$/.exec(part) ?? wrong("a list such as 0,2-3, counted from 0");
    return Array.from({ length: Number(last) - Number(first) + 1 }, (_, i) => Number(first) + i);
  });
  return list.length && list.every((index) => index < 64) ? list : wrong("a list such as 0,2-3, counted from 0");
}

function mig(text: string, form: Form): Record<string, unknown> {
  if (form.gpus.trim()) wrong("says how many instances itself: leave the number of GPUs empty");
  const [, profile, count = "1"] = /^(.+?)(?:x(\d+))?$/.exec(text)!;
  return { mig: profile, gpus: number(count, 1, 64) };
}

function array(text: string): Record<string, unknown> {
  const [, first, last, limit] = /^(?:(\d{1,7})-(\d{1,7}))?(?:%(\d{1,7}))?$/.exec(text) ?? wrong("such as 0-9, or 0-9%2 for two at a time");
  return { ...(first !== undefined && { array_first: Number(first), array_last: Number(last) }), ...(limit && { array_limit: Number(limit) }) };
}

function after(text: string): Record<string, unknown> {
  const list = text.split(/[\s,]+/).filter(Boolean);
  return {
    after: list.map((one) => {
      const [, job, how] = /^([1-9]\d*)(:ok|:any)?$/.exec(one) ?? wrong("numbers of jobs, with :any for one that need not have gone well: 12, 13:any");
      return { job: Number(job), any: how === ":any" };
    }),
  };
}

/** By number, from 1. */
const SIGNALS =
  "HUP INT QUIT ILL TRAP ABRT BUS FPE KILL USR1 SEGV USR2 PIPE ALRM TERM STKFLT CHLD CONT STOP TSTP TTIN TTOU URG XCPU XFSZ VTALRM PROF WINCH IO PWR SYS".split(" ");

function signal(text: string): number {
  const name = text.toUpperCase().replace(/^SIG/, "");
  return SIGNALS.indexOf(name) + 1 || (/^\d+$/.test(text) ? number(text, 1, 64) : wrong("a signal such as USR1, or its number"));
}

function slo(text: string): Record<string, unknown> {
  const [, part, time] = /^p(\d\d(?:\.\d)?)=(.+)$/.exec(text) ?? wrong("such as p99=50ms");
  return { slo_permille: Math.round(Number(part) * 10), slo_latency_us: duration_ms(time) * 1000 };
}

const lines = (text: string) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

function environment(text: string): Record<string, unknown> {
  if (lines(text).some((line) => !/^[^=]+=/.test(line))) wrong("NAME=value, one a line");
  return { env: environment_of(text) };
}

const as = (name: string, read: (text: string) => unknown) => (text: string) => ({ [name]: read(text) });
const text_of = (name: string) => as(name, (text) => text);
const yes = (name: string) => as(name, () => true);
const time = (name: string) => as(name, (text) => duration_ms(text));
const moment = (name: string) => as(name, (text) => Date.parse(text) || wrong("a date and a time"));
const mhz = (ask: string) => (text: string) => ({ clock_ask: ask, clock_mhz: number(text.replace(/ ?mhz$/i, ""), 1, 10_000) });

function percent(text: string): number {
  const value = Number(text.replace(/ ?%$/, ""));
  return value > 0 && value <= 50 ? Math.round(value * 10) : wrong("a percentage up to 50, such as 3");
}

/** What is always seen; the rest is in groups that open. */
export const FIRST: Field[] = [
  { name: "command", label: "Command", hint: "as for a shell", kind: "area", wide: true, placeholder: "python train.py --lr 3e-4", read: as("argv", (text) => ["/bin/sh", "-c", text]) },
  { name: "cwd", label: "Directory", wide: true, placeholder: "/home/you/project", read: as("cwd", (text) => (text.startsWith("/") ? text : wrong("an absolute path"))) },
  { name: "gpus", label: "GPUs", hint: "4, 0.5, 2x0.25", placeholder: "1", read: gpus },
  { name: "name", label: "Name", placeholder: "train", read: text_of("name") },
  { name: "time_limit", label: "Time limit", hint: "1h30m; 90 is minutes", placeholder: "none", read: as("time_limit_ms", (text) => duration_ms(text, 60_000)) },
  { name: "tags", label: "Tags", placeholder: "night,big", read: text_of("tags") },
];

export const GROUPS: Group[] = [
  {
    title: "Which GPUs, memory, CPUs",
    fields: [
      { name: "indices", label: "Only these, by number", hint: "0,2-3", placeholder: "any", read: as("gpu_indices", indices) },
      { name: "mig", label: "MIG instances instead", hint: "1g.10gb, 1g.10gbx2", placeholder: "none", read: mig },
      { name: "gpu_mem", label: "Memory of each GPU", hint: "at least: 40G", placeholder: "any", read: as("gpu_mem_mib", size_mib) },
      { name: "mem", label: "Memory of the machine", hint: "16G", placeholder: "not counted", read: as("mem_mib", size_mib) },
      { name: "cpus", label: "CPUs", hint: "2, 0.5", placeholder: "not counted", read: as("cpu_milli", milli) },
      {
        name: "outside", label: "Where others' processes are", kind: "choice",
        options: [["", "wait for them"], ["use_outside", "share with them"], ["wait_outside", "wait, and say so"]],
        read: (text) => ({ [text]: true }),
      },
      { name: "visible", label: "CUDA_VISIBLE_DEVICES holds", kind: "choice", options: [["", "numbers"], ["uuid", "UUIDs"]], read: text_of("visible") },
    ],
  },
  {
    title: "When, and after what",
    fields: [
      { name: "begin", label: "Not before", kind: "when", read: moment("begin_ms") },
      { name: "deadline", label: "Wanted done by", kind: "when", read: moment("deadline_ms") },
      { name: "estimate", label: "Will run for about", hint: "2h", placeholder: "not known", read: time("estimate_ms") },
      { name: "after", label: "After jobs", hint: "12, 13:any", placeholder: "none", read: after },
      { name: "priority", label: "Priority", hint: "-1000 to 1000; above 0: administrators", placeholder: "0", read: as("priority", (text) => number(text, -1000, 1000)) },
      { name: "tenant", label: "Counts for tenant", placeholder: "yours", read: text_of("tenant") },
      { name: "idle_release", label: "End it when idle for", hint: "30m", placeholder: "never", read: time("idle_release_ms") },
      { name: "held", label: "hold it until I release it", kind: "check", read: yes("held") },
    ],
  },
  {
    title: "Many at once",
    fields: [
      { name: "array", label: "Array", hint: "0-9, 0-9%2: two at a time", placeholder: "one job", read: array },
      { name: "grid", label: "Grid", hint: "NAME=LIST, one a line; {NAME} in the command becomes the value", kind: "area", wide: true, placeholder: "lr=0.1,0.01\nseed=0-4", read: as("grid", lines) },
    ],
  },
  {
    title: "Retries, and making way",
    fields: [
      { name: "retries", label: "Retries", hint: "when it fails", placeholder: "0", read: as("retries", (text) => number(text, 0, 100)) },
      { name: "retry_backoff", label: "Pause before a retry", hint: "then doubled", placeholder: "1s", read: time("retry_backoff_ms") },
      { name: "requeue", label: "run it again when it is lost or interrupted", kind: "check", read: yes("requeue") },
      { name: "preemptible", label: "may be ended for a job that goes first, and runs again", kind: "check", read: yes("preemptible") },
      { name: "freezable", label: "may be frozen for it instead (needs the memory of each GPU)", kind: "check", read: yes("freezable") },
      { name: "checkpoint_signal", label: "Checkpoint signal", hint: "sent first: USR1", placeholder: "none", read: as("checkpoint_signal", signal) },
      { name: "checkpoint_grace", label: "Time for the checkpoint", placeholder: "1m", read: time("checkpoint_grace_ms") },
      { name: "checkpoint_dir", label: "Checkpoints are in", hint: "a path, kept over restarts", placeholder: "none", read: text_of("checkpoint_dir") },
      { name: "grace", label: "From SIGTERM to SIGKILL", placeholder: "30s", read: time("grace_ms") },
    ],
  },
  {
    title: "Clocks and power",
    fields: [
      { name: "slowdown", label: "Slower by, %", hint: "for the sake of energy", placeholder: "not", read: as("max_slowdown_permille", percent) },
      { name: "slo", label: "Latency to hold", hint: "p99=50ms", placeholder: "none", read: slo },
      { name: "policy", label: "Governor", hint: "ladder, fixed:sm_mhz=1200", placeholder: "as usual", read: text_of("clock_policy") },
      { name: "clock", label: "SM clock at most, MHz", placeholder: "as it is", read: mhz("ceiling") },
      { name: "clock_lock", label: "SM clock exactly, MHz", placeholder: "as it is", read: mhz("lock") },
      { name: "power", label: "Power limit, W", hint: "of each GPU; it only lowers", placeholder: "as it is", read: as("power_limit_mw", (text) => number(text.replace(/ ?w$/i, ""), 1, 10_000) * 1000) },
    ],
  },
  {
    title: "Environment, output, ranks, container",
    fields: [
      { name: "env", label: "Environment", hint: `NAME=value, one a line; ${PATH} if you set none`, kind: "area", wide: true, read: environment },
      { name: "output", label: "Output into a file", hint: "from the directory; %j: its number", wide: true, placeholder: "none: takt keeps it", read: text_of("output") },
      { name: "ranks", label: "Ranks", hint: "processes, with RANK and WORLD_SIZE", placeholder: "one process", read: as("ranks", (text) => number(text, 1, 1024)) },
      { name: "rank_prefix", label: "each line of their output begins with [rank]", kind: "check", read: yes("rank_prefix") },
      { name: "container", label: "Image of a container", placeholder: "none", read: text_of("container") },
      { name: "container_args", label: "Arguments for its runtime", hint: "one a line", kind: "area", wide: true, read: as("container_args", lines) },
      { name: "runtime", label: "Runtime", kind: "choice", options: [["", "the first that there is"], ["podman", "podman"], ["docker", "docker"], ["apptainer", "apptainer"]], read: text_of("container_runtime") },
      { name: "stage", label: "make it ready while the job before it still runs", kind: "check", read: yes("stage") },
      { name: "prefetch", label: "Run before its turn", hint: "a shell command, may run twice", wide: true, read: as("prefetch", (text) => ["/bin/sh", "-c", text]) },
      { name: "hook", label: "Run at its events", hint: "a shell command; TAKT_EVENT says which", wide: true, read: text_of("hook") },
    ],
  },
];

const ALL = [...FIRST, ...GROUPS.flatMap((group) => group.fields)];

export const emptied = (): Form => Object.fromEntries(ALL.map(({ name }) => [name, ""]));

/** What of these was filled in. */
export const filled = (fields: Field[], form: Form) => fields.filter(({ name }) => form[name].trim() !== "").length;

/** The job's description, or what is wrong with it: the field's label and what would be accepted. */
export function description(form: Form): { body: Record<string, unknown> } | { problem: string } {
  const body: Record<string, unknown> = { env: [PATH] };
  for (const field of ALL) {
    const text = form[field.name].trim();
    if (!text) continue;
    try {
      Object.assign(body, field.read(text, form));
    } catch (problem) {
      return { problem: `${field.label}: ${problem instanceof Error ? problem.message : problem}, not '${text.slice(0, 40)}'` };
    }
  }
  if (form.clock.trim() && form.clock_lock.trim()) return { problem: "SM clock at most and SM clock exactly exclude each other" };
  if (body.gpu_indices && body.gpus === undefined) body.gpus = (body.gpu_indices as number[]).length;
  return { body };
}
