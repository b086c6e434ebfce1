// SPDX-License-Identifier: Apache-2.0
// Clocks: where each GPU stands in its range, who has said so, and what power was measured at which clock.
import { useMemo, useState } from "preact/hooks";
import { get, past_jobs } from "../api";
import { Decisions, performance_of, useCourse, whose } from "../course";
import { DASH, gpu_set, short, watts } from "../format";
import { useLive } from "../live";
import { amend, usePlace } from "../route";
import type { ClockGpu, Course, History, Job } from "../types";
import { governed_text } from "./queue";
import { Banner, Empty, Meter, Problem, State, Waiting, useAsked, useWidth } from "../ui";

const DAY_MS = 86_400_000;
const PLOT = { left: 58, right: 52, top: 15, bottom: 190, height: 232 };

export function ClocksPage() {
  const { clocks, jobs, status } = useLive();
  const { query } = usePlace();
  if (!clocks || !status) return <Waiting what="the clocks" />;
  const chosen = clocks.gpus.find((gpu) => gpu.index === Number(query.get("gpu") ?? clocks.gpus[0]?.index));
  return (
    <>
      <div class="toolbar">
        <h1>Clocks</h1>
      </div>
      {!status.manages && status.observe_why && <Banner>takt only observes: {status.observe_why}</Banner>}
      {clocks.gpus.length === 0 && <Empty title="No GPU is seen" />}
      <div class="scroll" tabIndex={0} role="region" aria-label="clocks of the GPUs">
        <table>
          <thead>
            <tr>
              <th>GPU</th>
              <th>State</th>
              <th>SM clock</th>
              <th class="number">Ceiling</th>
              <th class="number">Power limit</th>
              <th class="number">Job</th>
              <th>Why</th>
            </tr>
          </thead>
          <tbody>
            {clocks.gpus.map((gpu) => (
              <Row key={gpu.index} gpu={gpu} job={jobs?.jobs.find((job) => job.gpu_list.includes(gpu.index) && job.state === "running")} />
            ))}
          </tbody>
        </table>
      </div>
      {chosen && (
        <>
          <div class="toolbar">
            <h2>Power and performance at each clock</h2>
            <label>
              of{" "}
              <select value={chosen.index} onChange={(event) => amend({ gpu: event.currentTarget.value })}>
                {clocks.gpus.map((gpu) => (
                  <option key={gpu.index} value={gpu.index}>
                    GPU {gpu.index}
                  </option>
                ))}
              </select>
            </label>
          </div>
          <OfGpu key={chosen.index} gpu={chosen} running={jobs?.jobs.find((job) => job.gpu_list.includes(chosen.index) && job.state === "running")} />
        </>
      )}
    </>
  );
}

/** The job that runs on it, else the last one that was governed there. */
function useJobOf(gpu: number, running: Job | undefined): Job | undefined {
  const ask = async (signal: AbortSignal) => (running ? undefined : past_jobs(20, `&gpu=${gpu}`, signal));
  const { value } = useAsked(ask, [gpu, running?.id]);
  return running ?? value?.jobs.find((job) => job.report?.governor);
}

function OfGpu({ gpu, running }: { gpu: ClockGpu; running?: Job }) {
  const job = useJobOf(gpu.index, running);
  const { value, problem } = useCourse(job);
  const course = value?.id === job?.id ? value : undefined;
  return (
    <>
      <Curve gpu={gpu} course={course} />
      {running && <Apart job={running} />}
      <div class="toolbar">
        <h2>What the governor decided</h2>
      </div>
      {problem && <Problem what={problem} />}
      {job && course?.governor ? (
        <>
          <p class="governed-by">
            {course.governor} for job <a href={`#/jobs/${job.id}?tab=clocks`}>{job.id}</a> {job.name ?? ""}
            {running ? "" : ", which is over"}
            {running && governed_text(running) ? `: ${governed_text(running)}` : ""}
          </p>
          <Decisions course={course} />
        </>
      ) : (
        <Empty title={job ? "No governor chooses the clocks of its job" : "No governed job has run here"}>
          One does for jobs with <code>--max-slowdown</code>, <code>--slo</code> or <code>--clock-policy</code>.
        </Empty>
      )}
    </>
  );
}

/** How far the GPUs of one job are apart, which go at the pace of the slowest. */
function Apart({ job }: { job: Job }) {
  const spread = job.report?.sm_spread_mhz;
  if (spread === undefined) return null;
  return (
    <p class="apart">
      Job <a href={`#/jobs/${job.id}`}>{job.id}</a> runs on GPU {gpu_set(job.gpu_list)}: their mean clocks are {spread} MHz apart.
    </p>
  );
}

function Row({ gpu, job }: { gpu: ClockGpu; job?: Job }) {
  return (
    <tr>
      <th scope="row">
        <button class="plain" onClick={() => amend({ gpu: String(gpu.index) })} aria-label={`power curve of GPU ${gpu.index}`}>
          GPU {gpu.index}
        </button>
      </th>
      <td>
        <State of={gpu.clock_state} title={gpu.note} /> {gpu.severity === "critical" && <State of="critical" title={gpu.note} />}
      </td>
      <td class="wide">
        <Meter
          label=""
          value={gpu.sm_mhz}
          most={gpu.list_max_mhz}
          mark={gpu.lease_max_mhz}
          text={gpu.sm_mhz === undefined ? DASH : `${gpu.sm_mhz} of ${gpu.list_max_mhz ?? DASH} MHz`}
        />
      </td>
      <td class="number">{gpu.lease_max_mhz ? `${gpu.lease_max_mhz} MHz` : DASH}</td>
      <td class="number">{watts(gpu.power_limit_mw === undefined ? undefined : gpu.power_limit_mw / 1000)}</td>
      <td class="number">{job ? <a href={`#/jobs/${job.id}`}>{job.id}</a> : DASH}</td>
      <td class="why">{(job && governed_text(job)) ?? gpu.note ?? gpu.cap_why ?? ""}</td>
    </tr>
  );
}

/** Round clocks of the range, so many at most. */
function round_clocks(least: number, most: number, count: number): number[] {
  const step = [50, 100, 250, 500, 1000].find((each) => (most - least) / each < count) ?? most - least;
  const first = Math.ceil(least / step) * step;
  return Array.from({ length: Math.floor((most - first) / step) + 1 }, (_, i) => first + i * step);
}

function nearest<T extends { mhz: number }>(points: T[], mhz: number): T | undefined {
  return points.reduce<T | undefined>((best, point) => (!best || Math.abs(point.mhz - mhz) < Math.abs(best.mhz - mhz) ? point : best), undefined);
}

interface Measured {
  mhz: number;
  watts: number;
  seconds: number;
}

/** Mean power at each clock, of the moments at which the GPU was busy; of what was never so nothing is said. */
async function measured(gpu: number, signal: AbortSignal): Promise<Measured[]> {
  const since = Date.now() - DAY_MS;
  const ask = (metric: string) => get<History>(`/v1/history?gpu=${gpu}&metric=${metric}&step=10s&since_ms=${since}`, signal);
  const [clock, power, util] = await Promise.all([ask("sm_clock"), ask("power"), ask("utilization")]);
  const power_at = new Map(power.points.map(([at, , mean]) => [at, mean]));
  const util_at = new Map(util.points.map(([at, , mean]) => [at, mean]));
  const sums = new Map<number, { watts: number; count: number }>();
  for (const [at, , mean] of clock.points) {
    const drawn = power_at.get(at);
    if (drawn === undefined || (util_at.get(at) ?? 0) < 50) continue;
    const mhz = Math.round(mean / 15) * 15;
    const sum = sums.get(mhz) ?? { watts: 0, count: 0 };
    sums.set(mhz, { watts: sum.watts + drawn, count: sum.count + 1 });
  }
  return [...sums].map(([mhz, sum]) => ({ mhz, watts: sum.watts / sum.count, seconds: sum.count * 10 })).sort((a, b) => a.mhz - b.mhz);
}

function Curve({ gpu, course }: { gpu: ClockGpu; course?: Course }) {
  const answer = useAsked((signal) => measured(gpu.index, signal), [gpu.index], 20_000);
  const { status } = useLive();
  const now = status?.gpus.find((each) => each.index === gpu.index);
  const [box, room] = useWidth<HTMLDivElement>();
  const [what_if, set_what_if] = useState<number>();
  const points = answer.value ?? [];
  const fast = useMemo(() => performance_of(course), [course]);
  const most = gpu.list_max_mhz ?? now?.sm_max_mhz;
  const top = useMemo(() => Math.max(1, (gpu.power_limit_mw ?? 0) / 1000, ...points.map((point) => point.watts)) * 1.05, [points, gpu.power_limit_mw]);
  if (answer.problem) return <Problem what={answer.problem} />;
  if (!most) return <Empty title="The driver does not say this GPU's clocks" />;
  const least = gpu.list_min_mhz ?? 0;
  const width = Math.max(room, 280); // in pixels as they are, so that words stay legible on a phone
  const end = width - PLOT.right;
  const x = (mhz: number) => PLOT.left + (Math.max(0, mhz - least) / (most - least || 1)) * (end - PLOT.left);
  const y = (drawn: number) => PLOT.bottom - (drawn / top) * (PLOT.bottom - PLOT.top);
  const y_work = (part: number) => y((top / 1.05) * part);
  const marks = round_clocks(least, most, width < 480 ? 4 : 8);
  const chosen = what_if ?? gpu.lease_max_mhz ?? most;
  const near = nearest(points, chosen);
  const highest = points.at(-1);
  const is_near = near && Math.abs(near.mhz - chosen) <= 30;
  const words = !points.length
    ? "It was not busy in the last day, so nothing is known."
    : !is_near
      ? `Nothing was measured near ${chosen} MHz in the last day.`
      : `At ${near.mhz} MHz it drew ${watts(near.watts)} (${short(near.seconds)} s measured)` +
        (highest && highest !== near ? `: ${short(100 * (near.watts / highest.watts - 1))} % of power against ${highest.mhz} MHz.` : ".");
  const at_work = nearest(fast, chosen);
  const work_words =
    at_work && Math.abs(at_work.mhz - chosen) <= 30
      ? ` Its job then did ${short(100 * at_work.work)} % of the most work a second that was measured, ${whose(course!)}.`
      : fast.length
        ? ` Its job was not measured near ${chosen} MHz.`
        : "";
  return (
    <div class="curve" ref={box}>
      <svg width={width} height={PLOT.height} viewBox={`0 0 ${width} ${PLOT.height}`} role="img" aria-label={`power and work over clock of GPU ${gpu.index}: ${words}${work_words}`}>
        {[0, 0.5, 1].map((part) => (
          <g key={part}>
            <line class="tick" x1={PLOT.left} x2={end} y1={y_work(part)} y2={y_work(part)} />
            <text class="time" x={PLOT.left - 6} y={y_work(part) + 4} text-anchor="end">
              {watts((top / 1.05) * part)}
            </text>
            {fast.length > 0 && (
              <text class="time" x={end + 6} y={y_work(part) + 4}>
                {100 * part} %
              </text>
            )}
          </g>
        ))}
        {marks.map((mhz) => (
          <g key={mhz} class="mhz">
            <line class="tick" x1={x(mhz)} x2={x(mhz)} y1={PLOT.bottom} y2={PLOT.bottom + 5} />
            <text class="time" x={x(mhz)} y={PLOT.bottom + 18} text-anchor="middle">
              {mhz} MHz
            </text>
          </g>
        ))}
        <text class="time" x={(PLOT.left + end) / 2} y={PLOT.height - 6} text-anchor="middle">
          SM clock
        </text>
        <line class="what-if" x1={x(chosen)} x2={x(chosen)} y1={PLOT.top - 3} y2={PLOT.bottom} />
        <path class="line" d={points.map((point, i) => `${i ? "L" : "M"}${x(point.mhz).toFixed(1)} ${y(point.watts).toFixed(1)}`).join("")} />
        {points.map((point) => (
          <circle key={point.mhz} class="dot" cx={x(point.mhz)} cy={y(point.watts)} r={Math.min(6, 2 + Math.log10(point.seconds))} />
        ))}
        <path class="work" d={fast.map((point, i) => `${i ? "L" : "M"}${x(point.mhz).toFixed(1)} ${y_work(point.work).toFixed(1)}`).join("")} />
        {fast.map((point) => (
          <rect key={point.mhz} class="work-dot" x={x(point.mhz) - 3.5} y={y_work(point.work) - 3.5} width="7" height="7">
            <title>
              {Math.round(point.mhz)} MHz: {short(100 * point.work)} % of the most work a second, {short(point.seconds)} s
            </title>
          </rect>
        ))}
        {now?.sm_mhz !== undefined && now.power_mw !== undefined && (
          <g>
            <circle class="here" cx={x(now.sm_mhz)} cy={y(now.power_mw / 1000)} r="6" />
            <text class="label" x={x(now.sm_mhz) - 10} y={Math.max(14, y(now.power_mw / 1000) - 10)} text-anchor="end">
              now
            </text>
          </g>
        )}
      </svg>
      <label class="slider">
        What if it ran at{" "}
        <input
          type="range"
          min={gpu.list_min_mhz ?? 0}
          max={most}
          step={15}
          value={chosen}
          onInput={(event) => set_what_if(Number(event.currentTarget.value))}
        />{" "}
        <output>{chosen} MHz</output>
      </label>
      <p aria-live="polite">
        {words}
        {work_words}
      </p>
      <p class="soft">
        <span class="key line-1">power, W (left)</span> {fast.length > 0 && <span class="key line-2">work a second of job {course!.id}, in % of the most that was measured (right)</span>}
      </p>
      <p class="soft">Points are what was measured of jobs that ran here, in the last day and busy for at least half of the time: other work draws other power.</p>
    </div>
  );
}
