// SPDX-License-Identifier: Apache-2.0
// Policies beside each other at each load: queues, and pods that come and go.
import { useMemo, useState } from "preact/hooks";
import { DASH, duration } from "../format";
import type { Curve } from "../plot";
import { Meter } from "../ui";
import type { Comparison, Measure, Result } from "./document";
import { Choice, Graph, Origins, type Row, Table, Tag, Value, fixed } from "./parts";

const HOUR_S = 3600;
const figure = (record: Record<string, unknown> | undefined, name: string) => (typeof record?.[name] === "number" ? (record[name] as number) : undefined);
const error_of = (record: Record<string, unknown> | undefined, name: string) => figure(record, `${name}_ci95`);

/** Which of the measures are drawn over the load, and stand first on each policy's card. */
const FIRST = { queue: ["jct_mean_s", "wait_p99_s"], timed: ["allocation_pct", "wait_mean_s"] };
const SHARE = { queue: "utilisation_pct", timed: "allocation_pct" };
const SHARE_NAME = { queue: "GPUs held", timed: "allocated" };

export function ComparisonPage({ it }: { it: Comparison }) {
  const policies = [...new Set(it.results.map((one) => name_of(it, one)))];
  const loads = [...new Set(it.results.map((one) => one.load_pct ?? 0))];
  const [load, set_load] = useState(loads.at(-1)!);
  const now = it.results.filter((one) => (one.load_pct ?? 0) === load);
  const gpus = figure(now[0], "gpus") ?? it.cluster.gpus;
  return (
    <>
      <Choice label="offered load" of={loads} chosen={load} choose={set_load} text={(each) => (each ? `${each} %` : "as it is")} />
      <ul class="cards">
        {now.map((one) => (
          <Card key={name_of(it, one)} it={it} one={one} />
        ))}
      </ul>
      <p class="soft">
        {load ? `${load} % of ${gpus.toLocaleString("en")} GPUs asked for` : `The trace as it is, on ${gpus.toLocaleString("en")} GPUs`}; differences are to{" "}
        {it.baseline}, seed by seed.
      </p>
      {loads.length > 1 && <OverLoads it={it} policies={policies} />}
      {it.protocol === "queue" && <Distributions it={it} now={now} />}
      <h2>All figures{load ? ` at ${load} %` : ""}</h2>
      <Table name="Means over the seeds" columns={columns(it, now)} rows={rows(it, now)} />
      {now.length > 1 && (
        <Table name={`Differences to ${it.baseline} on the same seeds`} columns={columns(it, now)} rows={differences(it, now)} />
      )}
      <Origins {...it} />
    </>
  );
}

const name_of = (it: Comparison, one: Result) => String(one[it.compared]);
const time = (s: number) => duration(s * 1000);

function Card({ it, one }: { it: Comparison; one: Result }) {
  const [first] = FIRST[it.protocol].map((name) => it.measures.find((measure) => measure.name === name)!);
  const share = figure(one, SHARE[it.protocol]);
  const say = (value: number | undefined, measure: Measure) =>
    value === undefined ? DASH : measure.unit === "s" ? time(value) : `${fixed(value, Math.min(2, measure.decimals))} ${measure.unit}`;
  return (
    <li class="card policy">
      <header>
        <h3>{name_of(it, one)}</h3>
        <Tag />
      </header>
      <dl>
        {FIRST[it.protocol].map((name) => {
          const measure = it.measures.find((each) => each.name === name)!;
          return (
            <div key={name}>
              <dt>{measure.title}</dt>
              <dd>{say(figure(one, name), measure)}</dd>
            </div>
          );
        })}
      </dl>
      <Meter label={SHARE_NAME[it.protocol]} value={share} most={100} text={share === undefined ? DASH : `${fixed(share, 1)} %`} />
      <footer>
        <Against it={it} one={one} measure={first} />
      </footer>
    </li>
  );
}

function Against({ it, one, measure }: { it: Comparison; one: Result; measure: Measure }) {
  const less = figure(one.against, measure.name);
  const here = figure(one, measure.name);
  if (less === undefined || here === undefined) return <span class="soft">{name_of(it, one) === it.baseline ? "the others are compared with it" : ""}</span>;
  const base = here - less;
  const error = error_of(one.against, measure.name);
  const part = (value: number) => fixed((100 * value) / base, 1);
  return (
    <span>
      {measure.title} {base ? `${less > 0 ? "+" : ""}${part(less)}${error ? ` ± ${part(error)}` : ""} %` : DASH} <span class="soft">against {it.baseline}</span>
    </span>
  );
}

function OverLoads({ it, policies }: { it: Comparison; policies: string[] }) {
  const graphs = useMemo(
    () =>
      FIRST[it.protocol].map((name) => {
        const measure = it.measures.find((each) => each.name === name)!;
        const unit = measure.unit === "s" ? HOUR_S : 1;
        const drawn = policies.map((label): Curve => ({
          label,
          points: it.results
            .filter((one) => name_of(it, one) === label && figure(one, name) !== undefined)
            .map((one) => ({ x: one.load_pct!, y: figure(one, name)! / unit, error: (error_of(one, name) ?? 0) / unit || undefined })),
        }));
        return { measure, drawn };
      }),
    [it],
  );
  return (
    <div class="charts">
      {graphs.map(({ measure, drawn }) => (
        <Graph
          key={measure.name}
          title={`${measure.title} over the load`}
          x={{ title: "% offered load" }}
          y={{ title: measure.unit === "s" ? "hours" : measure.unit }}
          curves={drawn}
        />
      ))}
    </div>
  );
}

const share_within = (it: Comparison, now: Result[], name: "jct_percentiles_s" | "wait_percentiles_s") =>
  now.map((one): Curve => ({
    label: name_of(it, one),
    whole: true,
    points: (one[name] ?? []).map((s, percent) => ({ x: s / HOUR_S, y: percent })),
  }));

function Distributions({ it, now }: { it: Comparison; now: Result[] }) {
  const done = useMemo(() => share_within(it, now, "jct_percentiles_s"), [it, now[0]]);
  const waited = useMemo(() => share_within(it, now, "wait_percentiles_s"), [it, now[0]]);
  const y = { title: "% of jobs", from: 0, to: 100 };
  const x = { title: "hours", log: true, text: (hours: number) => String(Number(hours.toPrecision(3))) };
  return (
    <div class="charts">
      <Graph title="Jobs done within" x={x} y={y} curves={done} />
      <Graph title="Jobs that waited at most" x={x} y={y} curves={waited} />
    </div>
  );
}

/** Seconds are told in hours where they are many. */
const in_hours = (now: Result[], measure: Measure) =>
  measure.unit === "s" && Math.max(...now.map((one) => figure(one, measure.name) ?? 0)) > 3 * HOUR_S;
const measures_of = (it: Comparison, now: Result[]) =>
  it.measures
    .filter((measure) => now.some((one) => figure(one, measure.name) !== undefined))
    .map((measure) => (in_hours(now, measure) ? { ...measure, unit: "h", decimals: 2, per: HOUR_S } : { ...measure, per: 1 }));

const columns = (it: Comparison, now: Result[]) => [
  { title: it.compared },
  ...measures_of(it, now).map(({ title, unit }) => ({ title, unit })),
];

const row = (it: Comparison, now: Result[], one: Result, from: Record<string, unknown> | undefined, sign: boolean): Row => ({
  key: name_of(it, one),
  name: name_of(it, one),
  cells: measures_of(it, now).map(({ name, per, decimals }) => {
    const value = figure(from, name);
    const error = error_of(from, name);
    return <Value of={value === undefined ? undefined : value / per} error={error && error / per} decimals={decimals} sign={sign} />;
  }),
});

const rows = (it: Comparison, now: Result[]) => now.map((one) => row(it, now, one, one, false));
const differences = (it: Comparison, now: Result[]) => now.filter((one) => one.against).map((one) => row(it, now, one, one.against, true));
