// SPDX-License-Identifier: Apache-2.0
// Jobs that run, that wait in order and why, and that have ended; one's own before all others.
import { Fragment, type ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { get, past_jobs } from "../api";
import { DASH, clock_time, duration, energy, from_now, gpu_set, plural } from "../format";
import { array_label, asked_gpus, folded, given_gpus, is_mine } from "../jobs";
import { useLive } from "../live";
import { useMine } from "../mine";
import { amend, go, usePlace } from "../route";
import type { Job, Queue } from "../types";
import { Empty, Problem, State, Waiting, useAsked, useNow } from "../ui";

export const shown_state = (job: Job) => (job.frozen ? "frozen" : job.held ? "held" : job.state);

export function job_name(job: Job): string {
  const name = job.name ?? "(another's)";
  return job.array_id ? `${name}[${job.array_index ?? 0}]` : name;
}

function fits(job: Job, words: string): boolean {
  const text = `${job.id} ${job.name ?? ""} ${job.user ?? ""} ${job.tags ?? ""} ${job.state} ${job.tenant ?? ""}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

export function Jobs() {
  const { jobs, account } = useLive();
  const mine = useMine();
  const { query } = usePlace();
  const [more, set_more] = useState(0);
  const words = query.get("find") ?? "";
  const ended = query.get("show") === "ended";
  const mine_only = query.get("whose") === "mine";
  const whose = mine_only && account ? `&uid=${account.uid}` : "";
  const past = useAsked(
    (signal) => (ended ? past_jobs(300, whose, signal) : Promise.resolve(undefined)),
    [ended, whose],
    ended ? 5000 : 0,
  );
  const longer = useAsked(
    (signal) => (more ? get<Queue>(`/v1/jobs?limit=${more}`, signal) : Promise.resolve(undefined)),
    [more],
    5000,
  ).value;
  const queue = ended ? past.value : (longer ?? jobs);
  const shown = ended ? (queue?.jobs ?? []) : with_mine(queue?.jobs ?? [], mine?.jobs ?? []);
  const rows = shown.filter((job) => fits(job, words) && (!mine_only || is_mine(job, account)));
  return (
    <>
      <div class="toolbar">
        <h1>Jobs</h1>
        <div class="tabs" role="group" aria-label="which jobs">
          <button aria-pressed={!ended} onClick={() => amend({ show: undefined })}>
            Live
          </button>
          <button aria-pressed={ended} onClick={() => amend({ show: "ended" })}>
            Ended
          </button>
        </div>
        <div class="tabs" role="group" aria-label="whose jobs">
          <button aria-pressed={!mine_only} onClick={() => amend({ whose: undefined })}>
            Everybody's
          </button>
          <button aria-pressed={mine_only} onClick={() => amend({ whose: "mine" })}>
            Mine
          </button>
        </div>
        <input
          type="search"
          id="find"
          aria-label="find jobs by number, name, user, tag or state"
          placeholder="find: name, user, tag, state"
          value={words}
          onInput={(event) => amend({ find: event.currentTarget.value || undefined })}
        />
        <a class="button main" href="#/submit">
          Submit a job
        </a>
      </div>
      {past.problem && <Problem what={past.problem} />}
      {!queue && !past.problem && <Waiting what="the jobs" />}
      {queue && rows.length === 0 && (
        <Empty title={nothing(words, ended, mine_only)}>
          {!words && !ended && (
            <>
              Hand one in with <code>takt submit -- ./train.sh</code> or <a href="#/submit">here</a>.
            </>
          )}
        </Empty>
      )}
      {rows.length > 0 && (ended ? <Table kind="ended" jobs={rows} queue={queue!.jobs} /> : <Sections jobs={rows} queue={queue!.jobs} />)}
      {queue && queue.total > queue.jobs.length && (
        <p class="soft">
          {queue.jobs.length.toLocaleString("en")} of {queue.total.toLocaleString("en")} are shown.{" "}
          {!ended && <button onClick={() => set_more(Math.min(10_000, queue.jobs.length * 5))}>Show more</button>}
        </p>
      )}
    </>
  );
}

/** One's own also where the list of all was cut before them. */
function with_mine(jobs: Job[], mine: Job[]): Job[] {
  const known = new Set(jobs.map((job) => job.id));
  return [...jobs, ...mine.filter((job) => !known.has(job.id))];
}

function nothing(words: string, ended: boolean, mine_only: boolean): string {
  if (words) return `No job fits "${words}"`;
  if (mine_only) return ended ? "None of your jobs has ended yet" : "None of your jobs runs or waits";
  return ended ? "Nothing has ended yet" : "The queue is empty";
}

/** What runs apart from what waits. */
function Sections({ jobs, queue }: { jobs: Job[]; queue: Job[] }) {
  const waiting = jobs.filter((job) => job.state === "waiting");
  const running = jobs.filter((job) => job.state !== "waiting");
  return (
    <>
      <h2>Running {running.length > 0 && <span class="soft">{plural(running.length, "job")}</span>}</h2>
      {running.length > 0 ? <Table kind="running" jobs={running} queue={queue} /> : <p class="soft">Nothing runs.</p>}
      <h2>Waiting {waiting.length > 0 && <span class="soft">{plural(waiting.length, "job")}</span>}</h2>
      {waiting.length > 0 ? <Table kind="waiting" jobs={waiting} queue={queue} /> : <p class="soft">Nothing waits.</p>}
    </>
  );
}

const COLUMNS = 8; // of each kind

type Kind = "running" | "waiting" | "ended";

const TIME: Record<Kind, string> = { running: "Runs for", waiting: "Waits for", ended: "Ended" };

/** One's own first, as a group of its own where there are others. */
function Table({ kind, jobs, queue }: { kind: Kind; jobs: Job[]; queue: Job[] }) {
  const { account } = useLive();
  const now = useNow(kind === "ended" ? 60_000 : 1000);
  const lines = folded(jobs, shown_state);
  const mine = lines.filter(([job]) => is_mine(job, account));
  const others = lines.filter(([job]) => !is_mine(job, account));
  const order = kind === "waiting" ? queue.filter((job) => job.state === "waiting").map((job) => job.id) : [];
  const group = (title: string, of: Job[][]) =>
    of.length > 0 && (
      <tbody>
        {title && mine.length > 0 && others.length > 0 && (
          <tr class="group">
            <th colSpan={COLUMNS} scope="rowgroup">
              {title}
            </th>
          </tr>
        )}
        {of.map((line) => (
          <Line key={`${line[0].id}`} line={line} kind={kind} now={now} place={order.indexOf(line[0].id) + 1} />
        ))}
      </tbody>
    );
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label={`jobs: ${kind}`}>
      <table class="jobs">
        <thead>
          <tr>
            {kind === "waiting" && <th class="number">Place</th>}
            <th class="number">Job</th>
            <th>Name</th>
            <th>State</th>
            <th>User</th>
            <th>GPUs</th>
            <th class="number">{TIME[kind]}</th>
            {kind !== "waiting" && <th class="number">Energy</th>}
            <th>{kind === "ended" ? "How" : "What is to come"}</th>
          </tr>
        </thead>
        {kind === "ended" ? group("", lines) : [group("Yours", mine), group("Others'", others)]}
      </table>
    </div>
  );
}

/** A job, or the jobs of an array in one state, which open when they are asked for. */
function Line({ line, kind, now, place }: { line: Job[]; kind: Kind; now: number; place: number }) {
  const [open, set_open] = useState(false);
  const array = line.length > 1;
  const shown = array && open ? line : [];
  return (
    <Fragment>
      {array ? <ArrayRow line={line} kind={kind} now={now} place={place} open={open} turn={() => set_open(!open)} /> : <Row job={line[0]} kind={kind} now={now} place={place} />}
      {shown.map((job) => (
        <Row key={job.id} job={job} kind={kind} now={now} place={0} within />
      ))}
    </Fragment>
  );
}

function Cell({ of, children, number }: { of: string; children: ComponentChildren; number?: boolean }) {
  return (
    <td class={number ? "number" : undefined} data-label={of}>
      {children}
    </td>
  );
}

function Row({ job, kind, now, place, within }: { job: Job; kind: Kind; now: number; place: number; within?: boolean }) {
  return (
    <tr class={within ? "within" : undefined} onClick={() => go(`#/jobs/${job.id}`)}>
      {kind === "waiting" && (
        <Cell of="Place" number>
          {place || ""}
        </Cell>
      )}
      <Cell of="Job" number>
        {job.id}
      </Cell>
      <td class="name">
        <a href={`#/jobs/${job.id}`} onClick={(event) => event.stopPropagation()}>
          {job_name(job)}
        </a>
      </td>
      <td>
        <State of={shown_state(job)} />
      </td>
      <Cell of="User">{job.user ?? DASH}</Cell>
      <Cell of="GPUs">{given_gpus(job)?.replace(/^GPU /, "") ?? `${asked_gpus(job)} wanted`}</Cell>
      <Cell of={TIME[kind]} number>
        {time_of(job, kind, now)}
      </Cell>
      {kind !== "waiting" && (
        <Cell of="Energy" number>
          {energy(job.report?.energy_mj)}
        </Cell>
      )}
      <td class="why">
        <span title={kind === "ended" ? undefined : job.why_text}>{kind === "ended" ? ending(job) : to_come(job, now)}</span>
      </td>
    </tr>
  );
}

function ArrayRow(props: { line: Job[]; kind: Kind; now: number; place: number; open: boolean; turn: () => void }) {
  const { line, kind, now, place, open, turn } = props;
  const [first] = line;
  const gpus = [...new Set(line.flatMap((job) => job.gpu_list))].sort((a, b) => a - b);
  const mj = line.reduce((sum, job) => sum + (job.report?.energy_mj ?? 0), 0);
  return (
    <tr class="array" onClick={turn}>
      {kind === "waiting" && (
        <Cell of="Place" number>
          {place || ""}
        </Cell>
      )}
      <Cell of="Job" number>
        {array_label(line)}
      </Cell>
      <td class="name">
        <button class="plain" aria-expanded={open} onClick={(event) => (event.stopPropagation(), turn())}>
          <span aria-hidden="true">{open ? "▾" : "▸"}</span> {first.name ?? "(another's)"}
        </button>
      </td>
      <td>
        <State of={shown_state(first)} text={`${line.length} ${shown_state(first)}`} />
      </td>
      <Cell of="User">{first.user ?? DASH}</Cell>
      <Cell of="GPUs">{gpus.length ? gpu_set(gpus) : `${asked_gpus(first)} each wanted`}</Cell>
      <Cell of={TIME[kind]} number>
        {time_of(first, kind, now)}
      </Cell>
      {kind !== "waiting" && (
        <Cell of="Energy" number>
          {mj ? energy(mj) : DASH}
        </Cell>
      )}
      <td class="why">
        <span title={kind === "ended" ? undefined : first.why_text}>{kind === "ended" ? ending(first) : `the first ${to_come(first, now) || "is not foretold"}`}</span>
      </td>
    </tr>
  );
}

function time_of(job: Job, kind: Kind, now: number): string {
  if (kind === "ended") return clock_time(job.ended_ms);
  const since = kind === "running" ? job.started_ms : job.submitted_ms;
  return since ? duration(Math.max(0, now - since)) : DASH;
}

/** Errors as they are written by hand. */
export const governed_text = (job: Job) => job.governed?.text?.replaceAll("+-", "±");

export function ending(job: Job): string {
  const how = job.exit_signal ? `killed by signal ${job.exit_signal}` : job.exit_code === undefined ? "" : `exit ${job.exit_code}`;
  return [how, job.message || job.cause_text].filter(Boolean).join(", ");
}

export function to_come(job: Job, now: number): string {
  if (job.state === "waiting") {
    const start = job.starts_ms ? `starts ${from_now(job.starts_ms, now)}${job.starts_overdue_ms ? ", overdue" : ""}` : "";
    return [start, job.why_text].filter(Boolean).join(" · ");
  }
  const end = job.started_ms && job.run_ms ? `ends ${from_now(job.started_ms + job.run_ms, now)}` : "";
  return [end, governed_text(job) ?? job.why_text].filter(Boolean).join(" · ");
}
