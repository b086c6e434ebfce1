// SPDX-License-Identifier: Apache-2.0
// The plan as a picture: a row a GPU; what ran, what runs until when, and what comes next, where and when. Drawn at
// rows of GPUs is only what takt has said a place for; of who waits without one the start alone is known. A GPU that
// several jobs share has a lane for each; behind the jobs are the times for which it is reserved, set aside or lost.
import { useMemo, useRef, useState } from "preact/hooks";
import { get, past_jobs } from "../api";
import { clock_time, duration, from_now, gpu_set } from "../format";
import { GAP, Ground, GpuRow, LEFT, ROW, fitting } from "../gpu_rows";
import { gpu_amount } from "../jobs";
import { useLive } from "../live";
import { amend, usePlace } from "../route";
import { COLOURS, colours_of, type ColourBy } from "../timeline_colours";
import { zones_of, type Zone } from "../timeline_zones";
import type { Job, Orders } from "../types";
import { Empty, State, Waiting, useAsked, useNow, useWidth } from "../ui";
import { job_name, shown_state } from "./queue";

const HEAD = 24;
const LANE = 18; // of a GPU that several share
const MAX_LANES = 40;
const MINUTE_MS = 60_000;
const STEPS_MS = [1, 2, 5, 10, 15, 30, 60, 120, 240, 360, 720, 1440, 2880, 10080].map((minutes) => minutes * MINUTE_MS);

const KEYS = [
  ["past", "ran"],
  ["now", "runs"],
  ["next", "is to run"],
  ["kept", "reserved"],
  ["out", "lost or set aside"],
];

interface Bar {
  job: Job;
  kind: "past" | "now" | "next";
  row: number;
  /** Within its row, of those that overlap. */
  lane: number;
  from: number;
  until: number;
  /** How long it runs is not known: drawn open. */
  open: boolean;
}

function bars_of_gpus(jobs: Job[], past: Job[], now: number): Bar[] {
  const bars: Bar[] = [];
  for (const job of past)
    if (job.started_ms && job.ended_ms)
      for (const row of job.gpu_list) bars.push({ job, kind: "past", row, lane: 0, from: job.started_ms, until: job.ended_ms, open: false });
  for (const job of jobs)
    if (job.state !== "waiting" && job.started_ms) {
      const end = job.run_ms ? Math.max(job.started_ms + job.run_ms, now) : now;
      for (const row of job.gpu_list) bars.push({ job, kind: "now", row, lane: 0, from: job.started_ms, until: end, open: !job.run_ms });
    } else if (job.starts_ms && job.starts_gpus?.length) {
      for (const row of job.starts_gpus)
        bars.push({ job, kind: "next", row, lane: 0, from: Math.max(job.starts_ms, now), until: until_of(job, now), open: !job.run_ms });
    }
  return bars;
}

interface Row {
  y: number;
  lanes: number;
  height: number;
}

/** Puts those that overlap beneath each other, and says how many lanes each row then has. */
function into_lanes(bars: Bar[]): { bars: Bar[]; lanes: Map<number, number> } {
  const ends = new Map<number, number[]>();
  const placed = [...bars]
    .sort((a, b) => a.from - b.from || a.job.id - b.job.id)
    .map((bar) => {
      const of = ends.get(bar.row) ?? [];
      const free = of.findIndex((end) => end <= bar.from);
      const lane = free < 0 ? of.length : free;
      of[lane] = bar.until;
      ends.set(bar.row, of);
      return { ...bar, lane };
    });
  return { bars: placed, lanes: new Map([...ends].map(([row, of]) => [row, of.length])) };
}

/** Where each GPU's row is. */
function rows_of(gpus: number[], lanes: Map<number, number>): { rows: Map<number, Row>; bottom: number } {
  let y = HEAD;
  const rows = new Map(
    gpus.map((gpu): [number, Row] => {
      const count = lanes.get(gpu) ?? 1;
      const row = { y, lanes: count, height: count > 1 ? count * LANE : ROW };
      y += row.height + GAP;
      return [gpu, row];
    }),
  );
  return { rows, bottom: y };
}

const until_of = (job: Job, now: number) => Math.max(job.starts_ms!, now) + (job.run_ms || 10 * MINUTE_MS);

/** Who waits with a start and no place: in lanes below, none over another. */
function bars_of_lanes(jobs: Job[], now: number): Bar[] {
  const ends: number[] = [];
  const waiting = jobs.filter((job) => job.state === "waiting" && job.starts_ms && !job.starts_gpus?.length);
  return waiting
    .sort((a, b) => a.starts_ms! - b.starts_ms! || a.id - b.id)
    .flatMap((job) => {
      const from = Math.max(job.starts_ms!, now);
      let row = ends.findIndex((end) => end <= from);
      if (row < 0) row = ends.length;
      if (row >= MAX_LANES) return [];
      ends[row] = until_of(job, now);
      return [{ job, kind: "next" as const, row, lane: 0, from, until: ends[row], open: !job.run_ms }];
    });
}

export function Timeline() {
  const { status, jobs, health } = useLive();
  const { query } = usePlace();
  const now = useNow(5000);
  const [box, width] = useWidth<HTMLDivElement>();
  const [view, set_view] = useState({ from: Date.now() - 15 * MINUTE_MS, span: 90 * MINUTE_MS, follows: true });
  const drag = useRef<{ x: number; from: number } | null>(null);
  const past = useAsked(
    (signal) => past_jobs(500, `&since_ms=${Date.now() - 7 * 1440 * MINUTE_MS}`, signal),
    [],
    10_000,
  ).value;
  const orders = useAsked((signal) => get<Orders>("/v1/gpus", signal), [], 10_000).value;
  const from = view.follows ? now - view.span / 6 : view.from;
  const gpu_bars = useMemo(() => bars_of_gpus(jobs?.jobs ?? [], past?.jobs ?? [], now), [jobs, past, now]);
  const lane_bars = useMemo(() => bars_of_lanes(jobs?.jobs ?? [], now), [jobs, now]);
  const until = from + view.span;
  const laid = useMemo(() => into_lanes(gpu_bars.filter((bar) => bar.from < until && bar.until > from)), [gpu_bars, from, until]);
  const by: ColourBy = COLOURS.find((each) => each === query.get("colour")) ?? "state";
  const seen = [...laid.bars, ...lane_bars].map(({ job }) => job);
  const { hue_of, names } = colours_of(seen, by);
  if (!status || !jobs) return <Waiting what="the plan" rows={9} />;

  const room = Math.max(width - LEFT, 50);
  const x = (at: number) => LEFT + ((at - from) / view.span) * room;
  const { rows, bottom } = rows_of(
    status.gpus.map((gpu) => gpu.index),
    laid.lanes,
  );
  const lanes = lane_bars.reduce((most, bar) => Math.max(most, bar.row + 1), 0);
  const lanes_top = bottom + (lanes ? HEAD + 6 : 0);
  const height = lanes_top + lanes * (ROW + GAP) + 4;
  const chosen = Number(query.get("job")) || undefined;
  const move = (by: number) => set_view({ from: from + by, span: view.span, follows: false });
  const zoom = (by: number, at = from + view.span / 6) => {
    const span = Math.min(Math.max(view.span * by, 2 * MINUTE_MS), 14 * 1440 * MINUTE_MS);
    set_view({ ...view, from: at - ((at - from) / view.span) * span, span });
  };
  const on_key = (event: KeyboardEvent) => {
    const acts: Record<string, () => void> = {
      ArrowLeft: () => move(-view.span / 8),
      ArrowRight: () => move(view.span / 8),
      "+": () => zoom(0.7),
      "-": () => zoom(1.4),
      Home: () => set_view({ ...view, follows: true }),
    };
    if (!acts[event.key]) return;
    event.preventDefault();
    acts[event.key]();
  };
  const without_start = jobs.jobs.filter((job) => job.state === "waiting" && !job.starts_ms).length;
  return (
    <>
      <div class="toolbar">
        <h1>Timeline</h1>
        <div class="tabs" role="group" aria-label="what is shown">
          <button onClick={() => move(-view.span / 4)} aria-label="earlier">
            ←
          </button>
          <button aria-pressed={view.follows} onClick={() => set_view({ ...view, follows: true })}>
            Now
          </button>
          <button onClick={() => move(view.span / 4)} aria-label="later">
            →
          </button>
          <button onClick={() => zoom(1.6)} aria-label="show more time">
            −
          </button>
          <button onClick={() => zoom(0.6)} aria-label="show less time">
            +
          </button>
        </div>
        <label>
          Colour by{" "}
          <select value={by} onChange={(event) => amend({ colour: event.currentTarget.value === "state" ? undefined : event.currentTarget.value })}>
            {COLOURS.map((each) => (
              <option key={each} value={each}>
                {each}
              </option>
            ))}
          </select>
        </label>
        <span class="soft keys">
          {KEYS.map(([kind, words]) => (
            <span key={kind}>
              <span class={`sample ${kind}`} /> {words}
            </span>
          ))}
        </span>
        {names.length > 0 && (
          <span class="legend" aria-label={`colours by ${by}`} role="group">
            {names.map(({ name, hue }) => (
              <span key={name} class={`key line-${hue}`}>
                {name}
              </span>
            ))}
          </span>
        )}
      </div>
      <div
        ref={box}
        class="timeline"
        tabIndex={0}
        role="group"
        aria-label="plan: drag or arrow keys to look around, plus and minus for less or more time, Home for now"
        onKeyDown={on_key}
        onPointerDown={(event) => {
          if (event.button === 0) drag.current = { x: event.clientX, from };
        }}
        onPointerMove={(event) => {
          if (!drag.current || !event.buttons) return void (drag.current = null);
          const by = event.clientX - drag.current.x;
          if (Math.abs(by) < 4) return;
          event.currentTarget.setPointerCapture(event.pointerId);
          set_view({ from: drag.current.from - (by / room) * view.span, span: view.span, follows: false });
        }}
        onPointerUp={() => (drag.current = null)}
        onWheel={(event) => {
          if (!event.ctrlKey && !event.shiftKey) return;
          event.preventDefault();
          zoom(event.deltaY > 0 ? 1.2 : 0.85, from + ((event.offsetX - LEFT) / room) * view.span);
        }}
      >
        {width > 0 && (
          <svg width={width} height={height}>
            <Ground room={room} height={height}>
              <pattern id="kept" width="8" height="8" patternUnits="userSpaceOnUse" patternTransform="rotate(-45)">
                <rect width="8" height="8" class="kept-ground" />
                <rect width="3" height="8" class="kept-line" />
              </pattern>
            </Ground>
            <Ticks from={from} span={view.span} x={x} height={height} width={width} />
            {status.gpus.map((gpu) => (
              <GpuRow key={gpu.index} gpu={gpu.index} y={rows.get(gpu.index)!.y} room={room} height={rows.get(gpu.index)!.height} />
            ))}
            {lanes > 0 && (
              <text class="lanes" x={LEFT} y={lanes_top - 9}>
                waiting: GPUs not settled yet
              </text>
            )}
            <g clip-path="url(#inside)">
              {zones_of(orders, health, now).map((zone) => rows.has(zone.gpu) && <ZoneShape key={`${zone.gpu} ${zone.kind} ${zone.from}`} zone={zone} x={x} row={rows.get(zone.gpu)!} until={until} />)}
              {laid.bars.map((bar) => {
                const row = rows.get(bar.row);
                return (
                  row && (
                    <BarShape
                      key={`${bar.job.id}.${bar.row}.${bar.lane}.${bar.kind}`}
                      bar={bar}
                      x={x}
                      y={row.y + (row.lanes > 1 ? bar.lane * LANE : 0)}
                      height={row.lanes > 1 ? LANE - 2 : ROW}
                      left={LEFT}
                      hue={hue_of(bar.job)}
                      chosen={bar.job.id === chosen}
                    />
                  )
                );
              })}
              {lane_bars.map((bar) => (
                <BarShape key={bar.job.id} bar={bar} x={x} y={lanes_top + bar.row * (ROW + GAP)} height={ROW} left={LEFT} hue={hue_of(bar.job)} chosen={bar.job.id === chosen} />
              ))}
              <line class="now" x1={x(now)} x2={x(now)} y1={HEAD - 6} y2={height} />
            </g>
          </svg>
        )}
      </div>
      {jobs.jobs.length === 0 && <Empty title="Nothing runs and nothing waits">What is handed in appears here with its predicted start.</Empty>}
      {without_start > 0 && <p class="soft">{without_start} waiting without a predicted start: held, waiting for other jobs, or behind one of unknown length.</p>}
      {chosen && <Chosen job={[...jobs.jobs, ...(past?.jobs ?? [])].find((job) => job.id === chosen)} jobs={jobs.jobs} now={now} />}
    </>
  );
}

function Ticks(props: { from: number; span: number; x: (at: number) => number; height: number; width: number }) {
  const { from, span, x, height, width } = props;
  const most = Math.max(2, Math.floor((width - LEFT) / 90));
  const step = STEPS_MS.find((each) => span / each <= most) ?? STEPS_MS.at(-1)!;
  const zone = new Date().getTimezoneOffset() * MINUTE_MS;
  const first = Math.ceil((from - zone) / step) * step + zone;
  const ticks = Array.from({ length: most + 2 }, (_, i) => first + i * step).filter((at) => at < from + span);
  return (
    <g>
      {ticks.map((at) => (
        <g key={at}>
          <line class="tick" x1={x(at)} x2={x(at)} y1={HEAD - 6} y2={height} />
          <text class="time" x={x(at)} y={12} text-anchor="middle">
            {step >= 1440 * MINUTE_MS
              ? new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short" })
              : new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit" })}
          </text>
        </g>
      ))}
    </g>
  );
}

/** A time in which a GPU is not for everybody. */
function ZoneShape({ zone, x, row, until }: { zone: Zone; x: (at: number) => number; row: Row; until: number }) {
  const start = Math.max(x(zone.from), LEFT - 20);
  const width = x(Math.min(zone.until, until)) - start;
  if (width < 1) return null;
  const shown = fitting(zone.text, width);
  return (
    <g class={`zone ${zone.kind}`} role="img" aria-label={`GPU ${zone.gpu} ${zone.text}, from ${clock_time(zone.from)}${zone.until === Infinity ? "" : ` to ${clock_time(zone.until)}`}`}>
      <title>{zone.text}</title>
      <rect x={start} y={row.y - GAP / 2} width={width} height={row.height + GAP} />
      {shown && (
        <text x={Math.max(start, LEFT) + 6} y={row.y + 17}>
          {shown}
        </text>
      )}
    </g>
  );
}

function BarShape(props: { bar: Bar; x: (at: number) => number; y: number; height: number; left: number; hue?: number; chosen: boolean }) {
  const { bar, x, y, height, left, hue, chosen } = props;
  const { job, kind } = bar;
  const start = Math.max(x(bar.from), left - 20);
  const width = Math.max(Math.min(x(bar.until), 6000) - start, 2);
  if (start > 6000 || x(bar.until) < left) return null;
  const label = `${job.id} ${job_name(job)}${job.gpu_milli || job.mig ? ` ${gpu_amount(job)}` : ""}`;
  const bad = kind === "past" && ["failed", "lost", "interrupted"].includes(job.state);
  const seen = Math.max(start, left);
  const room = start + width - seen - 10;
  return (
    <a
      href={`#/timeline?job=${job.id}`}
      class={`bar ${kind} ${bad ? "bad" : ""} ${chosen ? "chosen" : ""} ${bar.open ? "open" : ""} ${hue ? `hue hue-${hue}` : ""}`}
      aria-label={`job ${label}, ${shown_state(job)}, from ${clock_time(bar.from)} for ${bar.open ? "an unknown time" : duration(bar.until - bar.from)}`}
      onDragStart={(event) => event.preventDefault()}
      onClick={(event) => {
        event.preventDefault();
        amend({ job: chosen ? undefined : String(job.id) });
      }}
    >
      <rect x={start} y={y} width={width} height={height} rx="3" />
      {room > 16 && (
        <svg x={seen} y={y} width={room + 6} height={height}>
          <text x="6" y={height / 2 + 4}>
            {label}
          </text>
        </svg>
      )}
    </a>
  );
}

/** On each of its GPUs: who is to have it afterwards. */
function next_on(job: Job, jobs: Job[], now: number): string[] {
  const after = job.state === "waiting" ? (job.starts_ms ?? Infinity) : 0;
  const gpus = job.state === "waiting" ? (job.starts_gpus ?? []) : job.gpu_list;
  const found = new Map<Job, number[]>();
  for (const gpu of gpus) {
    const next = jobs
      .filter((each) => each.id !== job.id && each.starts_ms && each.starts_ms > after && each.starts_gpus?.includes(gpu))
      .reduce<Job | undefined>((first, each) => (!first || each.starts_ms! < first.starts_ms! ? each : first), undefined);
    if (next) found.set(next, [...(found.get(next) ?? []), gpu]);
  }
  return [...found].map(([next, list]) => `${next.id} ${job_name(next)} on GPU ${gpu_set(list)} ${from_now(next.starts_ms!, now)}`);
}

/** Why it is where it is, and what comes after it. */
function Chosen({ job, jobs, now }: { job?: Job; jobs: Job[]; now: number }) {
  if (!job) return <p class="soft">That job is not shown here any more.</p>;
  const next = next_on(job, jobs, now);
  const when =
    job.state === "waiting"
      ? job.starts_ms
        ? `Predicted to start ${clock_time(job.starts_ms)} (${from_now(job.starts_ms, now)}${job.starts_low_ms && job.starts_high_ms ? `, between ${clock_time(job.starts_low_ms)} and ${clock_time(job.starts_high_ms)} in 8 of 10 cases` : ""}${job.starts_overdue_ms ? `; overdue, at first ${clock_time(job.starts_overdue_ms)} was predicted` : ""})${job.starts_gpus?.length ? ` on GPU ${gpu_set(job.starts_gpus)}` : ""}.`
        : "When it starts is not known."
      : job.ended_ms
        ? `Ran ${duration(job.ended_ms - (job.started_ms ?? job.ended_ms))} on GPU ${gpu_set(job.gpu_list)}, ended ${clock_time(job.ended_ms)}.`
        : `Runs since ${clock_time(job.started_ms)} on GPU ${gpu_set(job.gpu_list)}${job.run_ms && job.started_ms ? `, expected to end ${from_now(job.started_ms + job.run_ms, now)} (${job.run_from})` : ""}.`;
  return (
    <aside class="panel" aria-live="polite">
      <h2>
        <a href={`#/jobs/${job.id}`}>
          {job.id} {job_name(job)}
        </a>{" "}
        <State of={shown_state(job)} />
      </h2>
      <p>{when}</p>
      {job.why_text && <p>{job.why_text}</p>}
      {!job.ended_ms && next.length > 0 && <p>Next on its GPUs: {next.join("; ")}.</p>}
    </aside>
  );
}
