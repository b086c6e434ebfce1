// SPDX-License-Identifier: Apache-2.0
// Jobs that run, that wait in order and why, and that have ended.
import { useState } from "preact/hooks";
import { get } from "../api";
import { DASH, clock_time, duration, energy, from_now, gpu_set } from "../format";
import { useLive } from "../live";
import { amend, go, usePlace } from "../route";
import type { Job, Queue } from "../types";
import { Empty, Problem, State, Waiting, useAsked, useNow } from "../ui";

export const shown_state = (job: Job) => (job.frozen ? "frozen" : job.held ? "held" : job.state);

export function job_name(job: Job): string {
  const name = job.name ?? "(another's)";
  return job.array_id ? `${name}[${job.array_index ?? 0}]` : name;
}

/** How many, and among which where it names some. */
export const asked_gpus = (job: Job) => `${job.gpus}${job.gpu_indices?.length ? ` of GPU ${gpu_set(job.gpu_indices)}` : ""}`;

function fits(job: Job, words: string): boolean {
  const text = `${job.id} ${job.name ?? ""} ${job.user ?? ""} ${job.tags ?? ""} ${job.state} ${job.tenant ?? ""}`.toLowerCase();
  return words
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
}

export function Jobs() {
  const { jobs } = useLive();
  const { query } = usePlace();
  const [more, set_more] = useState(0);
  const words = query.get("find") ?? "";
  const ended = query.get("show") === "ended";
  const past = useAsked(
    (signal) => (ended ? get<Queue>("/v1/jobs?history=1&limit=300", signal) : Promise.resolve(undefined)),
    [ended],
    ended ? 5000 : 0,
  );
  const longer = useAsked(
    (signal) => (more ? get<Queue>(`/v1/jobs?limit=${more}`, signal) : Promise.resolve(undefined)),
    [more],
    5000,
  ).value;
  const queue = ended ? past.value : (longer ?? jobs);
  const rows = (queue?.jobs ?? []).filter((job) => fits(job, words));
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
        <Empty title={words ? `No job fits "${words}"` : ended ? "Nothing has ended yet" : "The queue is empty"}>
          {!words && !ended && (
            <>
              Hand one in with <code>takt submit -- ./train.sh</code> or <a href="#/submit">here</a>.
            </>
          )}
        </Empty>
      )}
      {rows.length > 0 && <Table jobs={rows} ended={ended} />}
      {queue && queue.total > queue.jobs.length && (
        <p class="soft">
          {queue.jobs.length.toLocaleString("en")} of {queue.total.toLocaleString("en")} are shown.{" "}
          {!ended && (
            <button onClick={() => set_more(Math.min(10_000, queue.jobs.length * 5))}>Show more</button>
          )}
        </p>
      )}
    </>
  );
}

function Table({ jobs, ended }: { jobs: Job[]; ended: boolean }) {
  const now = useNow(ended ? 60_000 : 1000);
  return (
    <div class="scroll" tabIndex={0} role="region" aria-label="jobs">
      <table class="jobs">
        <thead>
          <tr>
            <th class="number">Job</th>
            <th>Name</th>
            <th>State</th>
            <th>User</th>
            <th>GPUs</th>
            <th class="number">{ended ? "Ended" : "Time"}</th>
            <th class="number">Energy</th>
            <th>{ended ? "How" : "What is to come"}</th>
          </tr>
        </thead>
        <tbody>
          {jobs.map((job) => (
            <tr key={job.id} onClick={() => go(`#/jobs/${job.id}`)}>
              <td class="number">{job.id}</td>
              <td>
                <a href={`#/jobs/${job.id}`} onClick={(event) => event.stopPropagation()}>
                  {job_name(job)}
                </a>
              </td>
              <td>
                <State of={shown_state(job)} />
              </td>
              <td>{job.user ?? DASH}</td>
              <td>{job.gpu_list.length ? gpu_set(job.gpu_list) : `${asked_gpus(job)} wanted`}</td>
              <td class="number">{ended ? clock_time(job.ended_ms) : job.started_ms ? duration(now - job.started_ms) : DASH}</td>
              <td class="number">{energy(job.report?.energy_mj)}</td>
              <td class="why">
                <span title={ended ? undefined : job.why_text}>{ended ? ending(job) : to_come(job, now)}</span>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** Errors as they are written by hand. */
export const governed_text = (job: Job) => job.governed?.text?.replaceAll("+-", "±");

export function ending(job: Job): string {
  const how = job.exit_signal ? `killed by signal ${job.exit_signal}` : job.exit_code === undefined ? "" : `exit ${job.exit_code}`;
  return [how, job.message || job.cause_text].filter(Boolean).join(", ");
}

function to_come(job: Job, now: number): string {
  if (job.state === "waiting") {
    const start = job.starts_ms ? `starts ${from_now(job.starts_ms, now)}${job.starts_overdue_ms ? ", overdue" : ""}` : "";
    return [start, job.why_text].filter(Boolean).join(" · ");
  }
  const end = job.started_ms && job.run_ms ? `ends ${from_now(job.started_ms + job.run_ms, now)}` : "";
  return [end, governed_text(job) ?? job.why_text].filter(Boolean).join(" · ");
}
