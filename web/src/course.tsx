// SPDX-License-Identifier: Apache-2.0
// How a job went: what it said of its steps, and what its governor decided.
import { useMemo } from "preact/hooks";
import { get } from "./api";
import { Chart, type Line } from "./chart";
import { clock_time, duration, short, watts } from "./format";
import type { Course, Decision, Job, Said } from "./types";
import { Empty, useAsked } from "./ui";

const SHOWN = 60;

export function useCourse(job: Job | undefined, every_ms = 5000) {
  const ask = async (signal: AbortSignal) => (job ? get<Course>(`/v1/jobs/${job.id}/course`, signal) : undefined);
  return useAsked(ask, [job?.id, job?.attempt, job?.ended_ms], job && !job.ended_ms ? every_ms : 0);
}

const UNITS = ["steps", "tokens", "queries"] as const;
export type Unit = (typeof UNITS)[number];
export type Told = { unit: Unit; at: [at_ms: number, count: number][] };

/** The counter that its work is measured by, since it last went back; undefined where it says too little. */
export function told(said: Said[] | undefined): Told | undefined {
  const unit = UNITS.find((each) => said?.some((one) => one[each] !== undefined));
  if (!unit) return undefined;
  const at = said!.flatMap((one): Told["at"] => (one[unit] === undefined ? [] : [[one.at_ms, one[unit]]]));
  const from = at.reduce((found, [, count], i) => (i > 0 && count < at[i - 1][1] ? i : found), 0);
  return at.length - from > 1 ? { unit, at: at.slice(from) } : undefined;
}

/** How many a second between one word of the job and the next. */
export const rates = ({ at }: Told): Line["points"] =>
  at.slice(1).map(([now, count], i) => [now, (1000 * (count - at[i][1])) / (now - at[i][0])]);

/** How far the job was at that moment; undefined before its first word and after its last. */
export function count_at({ at }: Told, at_ms: number): number | undefined {
  const next = at.findIndex(([told_ms]) => told_ms >= at_ms);
  if (next < 0) return undefined;
  const [then_ms, then] = at[next];
  if (next === 0) return then_ms === at_ms ? then : undefined;
  const [before_ms, before] = at[next - 1];
  return before + ((then - before) * (at_ms - before_ms)) / (then_ms - before_ms);
}

export interface Measured {
  mhz: number;
  work: number; // a second, of the most that was measured
  seconds: number;
}

/** How fast the job was under each ceiling, at the clocks that were seen then. */
export function performance_of(course: Course | undefined): Measured[] {
  const sums = new Map<number, { mhz: number; work: number; epochs: number; seconds: number }>();
  for (const each of course?.decisions ?? []) {
    if (each.work_milli_s === undefined || each.sm_mhz === undefined || !each.max_mhz || !each.epochs) continue;
    const sum = sums.get(each.max_mhz) ?? { mhz: 0, work: 0, epochs: 0, seconds: 0 };
    sums.set(each.max_mhz, {
      mhz: sum.mhz + each.sm_mhz * each.epochs,
      work: sum.work + each.work_milli_s * each.epochs,
      epochs: sum.epochs + each.epochs,
      seconds: sum.seconds + (each.until_ms - each.at_ms) / 1000,
    });
  }
  const means = [...sums.values()].map(({ mhz, work, epochs, seconds }) => ({ mhz: mhz / epochs, work: work / epochs, seconds }));
  const most = Math.max(...means.map(({ work }) => work));
  return most > 0 ? means.map((mean) => ({ ...mean, work: mean.work / most })).sort((a, b) => a.mhz - b.mhz) : [];
}

/** A line that stands still for as long as its decision is in force. */
export const ceilings = (decisions: Decision[]): Line["points"] =>
  decisions.flatMap(({ at_ms, until_ms, max_mhz }): Line["points"] => [
    [at_ms, max_mhz ?? null],
    [Math.max(at_ms + 1, until_ms - 1), max_mhz ?? null],
  ]);

/** What was decided for a job, when, why, and what was seen of it. */
export function Decisions({ course }: { course: Course }) {
  const { decisions } = course;
  const lines = useMemo<Line[]>(
    () => [
      { label: "ceiling", points: ceilings(decisions) },
      { label: "clock", points: decisions.flatMap(({ at_ms, until_ms, sm_mhz }): Line["points"] => (sm_mhz === undefined ? [] : [[(at_ms + until_ms) / 2, sm_mhz]])) },
    ],
    [decisions],
  );
  if (!decisions.length) return <Empty title="Nothing was decided for it" />;
  const from_ms = decisions[0].at_ms;
  const best = Math.max(...decisions.map((each) => each.work_milli_s ?? 0));
  const newest = decisions.slice(-SHOWN).reverse();
  return (
    <div class="decisions">
      <div class="charts">
        <Chart title="Ceiling and clock" unit="MHz" lines={lines} span={{ name: `course ${course.id}`, from_ms, until_ms: decisions.at(-1)!.until_ms }} />
      </div>
      <div class="scroll" tabIndex={0} role="region" aria-label="what the governor decided">
        <table>
          <thead>
            <tr>
              <th>From</th>
              <th>Why</th>
              <th class="number">Ceiling</th>
              <th class="number">For</th>
              <th class="number">Clock</th>
              <th class="number">Power</th>
              <th class="number">Work</th>
            </tr>
          </thead>
          <tbody>
            {newest.map((each) => (
              <tr key={each.at_ms}>
                <td>{clock_time(each.at_ms)}</td>
                <td>{each.text}</td>
                <td class="number">{each.max_mhz ? `${each.max_mhz} MHz` : "none"}</td>
                <td class="number">{duration(each.until_ms - each.at_ms)}</td>
                <td class="number">{each.sm_mhz === undefined ? "–" : `${each.sm_mhz} MHz`}</td>
                <td class="number">{watts(each.power_mw === undefined ? undefined : each.power_mw / 1000)}</td>
                <td class="number">{each.work_milli_s === undefined || !best ? "–" : `${short((100 * each.work_milli_s) / best)} %`}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="soft">
        Clock, power and work are means while a decision was in force
        {best > 0 && `; work a second against the most that was measured, ${whose(course)}`}.
        {decisions.length > SHOWN && ` The newest ${SHOWN} of ${decisions.length}.`}
      </p>
    </div>
  );
}

const WORDS: Record<string, string> = {
  job: "by the job's own count",
  counters: "by activity counters of its GPUs, which stand in for progress",
  utilisation: "by utilisation and clock, which takes for granted that it slows down as its clock does",
};

export const whose = (course: Course) => WORDS[course.signal ?? ""] ?? "";
