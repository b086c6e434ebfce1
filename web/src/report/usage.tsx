// SPDX-License-Identifier: Apache-2.0
// What GPUs were used for and by whom: hours held, hours in use, hours idle, energy, and what it cost.
import { useMemo } from "preact/hooks";
import { DASH, clock_time, short, plural } from "../format";
import type { Curve, Point } from "../plot";
import { Empty, Figure } from "../ui";
import type { Group, Usage } from "./document";
import { Graph, Table, Tag, Value, fixed } from "./parts";

const MOST_BARS = 20;

/** "of 5 of 7 jobs": sums leave out what was not measured. */
const part = (known: number, all: number) => (known < all ? `known of ${known.toLocaleString("en")} of ${plural(all, "job")}` : undefined);
/** Two digits that count of what is less than one. */
const amount = (value: number) => (Math.abs(value) >= 1 ? short(value) : String(Number(value.toPrecision(2))));
const sum = (value: number | undefined, unit: string) => (value === undefined ? DASH : `${amount(value)}${unit}`);

export function UsagePage({ it }: { it: Usage }) {
  const { total } = it;
  if (!total.jobs) return <Empty title="No job has ended in this time" />;
  return (
    <>
      <dl class="figures">
        <Figure label="GPU hours held" value={amount(total.gpu_hours)} note={`${plural(total.jobs, "job")}, ${total.not_done.toLocaleString("en")} not done`} />
        <Figure label="In use" value={sum(total.used_pct, " %")} note={part(total.util_jobs, total.gpu_jobs) ?? "of the hours held"} />
        <Figure label="Idle while held" value={sum(total.idle_gpu_hours, " GPU h")} note={wasted(total) ?? part(total.util_jobs, total.gpu_jobs)} />
        <Figure label="Energy" value={sum(total.energy_kwh, " kWh")} note={part(total.energy_jobs, total.gpu_jobs) ?? "of the GPUs"} />
        {it.price !== undefined && <Figure label="Cost" value={sum(total.cost, "")} note={`at ${it.price} a kWh`} />}
        {total.saved_kwh !== undefined && (
          <Figure
            label="Saved by governors"
            value={`${amount(total.saved_kwh)} ± ${amount(total.saved_error_kwh ?? 0)} kWh`}
            note={part(total.saved_jobs, total.governed_jobs) ?? "against the modelled highest clock"}
          />
        )}
      </dl>
      {it.by === "day" && it.groups.length > 1 ? <Days groups={it.groups} /> : <Bars groups={it.groups} by={it.by} />}
      <h2>Each {it.by}</h2>
      <Groups it={it} />
      <p class="soft">
        What was not measured of a job is left out of the sums, never counted as nothing; "5/7" stands where it is known of five of seven jobs. Saved is what
        jobs with a governor took less than the same work is modelled to take at the highest clock, ± the sum of the model's errors.
      </p>
    </>
  );
}

function wasted({ idle_gpu_hours, gpu_hours }: Group): string | undefined {
  return idle_gpu_hours === undefined || !gpu_hours ? undefined : `${fixed((100 * idle_gpu_hours) / gpu_hours, 1)} % of all hours held`;
}

const DAY_MS = 24 * 3600 * 1000;
const MOST_DAYS = 36600;
const date_of = (day: number) => (Number.isInteger(day) ? new Date(day * DAY_MS).toISOString().slice(0, 10) : "");

/** How the days went. Those between them had no job: no hours, and nothing else is known of them. */
function Days({ groups }: { groups: Group[] }) {
  const { x, held, ...known } = useMemo(() => {
    const by_day = new Map(groups.map((group) => [Date.parse(group.key) / DAY_MS, group]));
    const stops = [...by_day.keys()].filter(Number.isInteger);
    const first = Math.min(...stops);
    const days = Array.from({ length: Math.max(0, Math.min(MOST_DAYS, Math.max(...stops) - first + 1)) }, (_, i) => first + i);
    /** A line over days of which it is not known would say more than is. */
    const curve = (label: string, of: (group: Group) => number | undefined): Curve => {
      const points = days.flatMap((day) => {
        const group = by_day.get(day);
        const y = group ? of(group) : undefined;
        return y === undefined ? [] : [{ x: day, y }];
      });
      return { label, points, drawn: points.length < days.length ? "dots" : undefined };
    };
    return {
      x: { title: "", from: first, to: first + days.length - 1 + days.length / 24, text: (day: number) => date_of(day).slice("2026-".length) },
      held: days.map((day): Point => ({ x: day, y: by_day.get(day)?.gpu_hours ?? 0, words: date_of(day) })),
      idle: curve("of them idle", (group) => group.idle_gpu_hours),
      used: curve("in use", (group) => group.used_pct),
      energy: curve("of the GPUs", (group) => group.energy_kwh),
    };
  }, [groups]);
  return (
    <div class="charts">
      <Graph title="GPU hours" x={x} y={{ title: "h a day" }} curves={[{ label: "held", points: held }, known.idle]} />
      <Graph title="In use" x={x} y={{ title: "% of the hours held", from: 0, to: 100 }} curves={[known.used]} />
      <Graph title="Energy" x={x} y={{ title: "kWh a day" }} curves={[known.energy]} />
    </div>
  );
}

/** Hours held, and the part of them in which nothing ran. */
function Bars({ groups, by }: { groups: Group[]; by: string }) {
  const shown = by === "day" ? groups.slice(-MOST_BARS) : groups.slice(0, MOST_BARS);
  const most = Math.max(...shown.map((group) => group.gpu_hours));
  if (!most) return null;
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <b>GPU hours held</b> <Tag />
        </span>
        <span class="legend">
          <span class="key held">held</span>
          <span class="key idle">of them idle</span>
        </span>
      </figcaption>
      <dl class="bars">
        {shown.map((group) => (
          <div key={group.key}>
            <dt title={group.key}>{group.key}</dt>
            <dd>
              <svg viewBox="0 0 100 12" preserveAspectRatio="none" aria-hidden="true">
                <rect class="held" width={(100 * group.gpu_hours) / most} height="12" rx="0.4" />
                {group.idle_gpu_hours !== undefined && <rect class="idle" width={(100 * group.idle_gpu_hours) / most} height="12" rx="0.4" />}
              </svg>
              <span>
                {amount(group.gpu_hours)} h{group.idle_gpu_hours !== undefined && <span class="soft">, {amount(group.idle_gpu_hours)} idle</span>}
              </span>
            </dd>
          </div>
        ))}
      </dl>
      {groups.length > shown.length && <p class="soft">The others are in the table.</p>}
    </figure>
  );
}

/** A figure, and of how many jobs it is known where that is not all. */
function Of({ value, error, known, all }: { value?: number; error?: number; known: number; all: number }) {
  return (
    <>
      {value === undefined && all > 0 ? "unknown" : <Value of={value} error={error} decimals={3} />}
      {known > 0 && known < all && (
        <span class="soft">
          {" "}
          ({known}/{all})
        </span>
      )}
    </>
  );
}

function Groups({ it }: { it: Usage }) {
  const row = (group: Group) => ({
    key: group.key,
    name: group.key,
    cells: [
      group.jobs.toLocaleString("en"),
      group.not_done.toLocaleString("en"),
      <Value of={group.gpu_hours} decimals={3} />,
      <Of value={group.used_pct} known={group.util_jobs} all={group.gpu_jobs} />,
      <Of value={group.idle_gpu_hours} known={group.util_jobs} all={group.gpu_jobs} />,
      <Of value={group.energy_kwh} known={group.energy_jobs} all={group.gpu_jobs} />,
      ...(it.price === undefined ? [] : [<Of value={group.cost} known={group.energy_jobs} all={group.gpu_jobs} />]),
      <Of value={group.saved_kwh} error={group.saved_error_kwh} known={group.saved_jobs} all={group.governed_jobs} />,
    ],
  });
  return (
    <Table
      name={`From ${it.since_ms ? clock_time(it.since_ms) : "the beginning"} to ${clock_time(it.until_ms || it.made_ms)}`}
      columns={[
        { title: it.by },
        { title: "jobs" },
        { title: "not done" },
        { title: "GPU hours" },
        { title: "in use", unit: "%" },
        { title: "idle GPU hours" },
        { title: "energy", unit: "kWh" },
        ...(it.price === undefined ? [] : [{ title: "cost" }]),
        { title: "saved", unit: "kWh" },
      ]}
      rows={[...it.groups.map(row), { ...row(it.total), key: "\0total", name: "total", chosen: true }]}
    />
  );
}
