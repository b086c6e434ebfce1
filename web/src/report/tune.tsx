// SPDX-License-Identifier: Apache-2.0
// A command at several clocks and power limits: what each costs, and which one takt would choose.
import { useMemo } from "preact/hooks";
import { DASH, short } from "../format";
import type { Curve, Point } from "../plot";
import { Figure, Problem, State, Terms } from "../ui";
import type { Setting, Tune, TunePoint } from "./document";
import { Graph, Table, Value, fixed } from "./parts";

const setting_of = (one: Setting) => `${one.sm_mhz} MHz${one.power_limit_w ? `, ${one.power_limit_w} W` : ""}`;
const same = (a: Setting, b?: Setting) => !!b && a.sm_mhz === b.sm_mhz && a.power_limit_w === b.power_limit_w;
const percent = (value?: number, error?: number) => (value === undefined ? DASH : `${fixed(value, 1)}${error ? ` ± ${fixed(error, 1)}` : ""} %`);
const plural_of = (unit: string) => (/^[a-z]/.test(unit) ? `${unit}s` : unit);

/** So many decimals that three digits count. */
const decimals = (value?: number) => (value === undefined || value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 4);

/** The points for which both are known, from left to right. */
function points(of: TunePoint[], x: (one: TunePoint) => number | undefined, y: (one: TunePoint) => number | undefined, error: (one: TunePoint) => number | undefined): Point[] {
  return of
    .flatMap((one): Point | [] => {
      const [at, value] = [x(one), y(one)];
      return at === undefined || value === undefined ? [] : { x: at, y: value, error: error(one), words: setting_of(one) };
    })
    .sort((a, b) => a.x - b.x);
}

/** Settings of the clock are a line; power limits are points beside it. */
function over_clock(it: Tune, y: (one: TunePoint) => number | undefined, error: (one: TunePoint) => number | undefined): Curve[] {
  const clocks = it.points.filter((one) => !one.power_limit_w);
  const limits = it.points.filter((one) => one.power_limit_w);
  const chosen = it.points.filter((one) => same(one, it.recommended));
  const ran_at = (one: TunePoint) => one.measured_sm_mhz ?? one.sm_mhz;
  return [
    { label: "clocks", points: points(clocks, ran_at, y, error) },
    { label: "power limits", points: points(limits, ran_at, y, error), drawn: "dots" },
    { label: "recommended", points: points(chosen, ran_at, y, error), drawn: "choice" },
  ];
}

function front(it: Tune): Curve[] {
  const slower = (one: TunePoint) => one.slowdown_pct;
  const energy = (one: TunePoint) => one.energy_j;
  const error = (one: TunePoint) => one.energy_error_j;
  return [
    { label: "measured", points: points(it.points, slower, energy, error), drawn: "dots" },
    { label: "no other is faster and cheaper", points: points(it.points.filter((one) => one.pareto), slower, energy, () => undefined), drawn: "bound" },
    { label: "recommended", points: points(it.points.filter((one) => same(one, it.recommended)), slower, energy, () => undefined), drawn: "choice" },
  ];
}

export function TunePage({ it }: { it: Tune }) {
  const unit = it.unit;
  const drawn = useMemo(
    () => ({
      front: front(it),
      performance: over_clock(it, (one) => one.performance, (one) => one.performance_error),
      power: over_clock(it, (one) => one.power_w, (one) => one.power_error_w),
      energy: over_clock(it, (one) => one.energy_j, (one) => one.energy_error_j),
    }),
    [it],
  );
  const x = { title: "MHz, as it ran", text: (mhz: number) => String(Math.round(mhz)) };
  return (
    <>
      {it.stopped && <Problem what={`Stopped: ${it.stopped}`} />}
      {it.advice && <p class="banner">Only the clock as it is was measured, because takt may not set another: {it.advice}</p>}
      {it.events_not_watched && <p class="banner">XIDs and ECC errors were not watched: {it.events_not_watched}</p>}
      {it.repeats === 1 && <p class="banner">One run each has no error: <code>--repeat 3</code> and more do.</p>}
      <dl class="figures">
        <Figure label="Recommended" value={it.recommended ? setting_of(it.recommended) : "nothing"} note={it.recommended ? `least energy within ${short(it.max_slowdown_pct)} %` : it.stopped ? "the sweep was stopped" : "no energy is known"} />
        <Figure label="Less energy" value={percent(it.recommended?.saved_pct, it.recommended?.saved_error_pct)} note={`a ${unit}, against the highest clock`} />
        <Figure label="Slower" value={percent(it.recommended?.slowdown_pct, it.recommended?.slowdown_error_pct)} note="than at the highest clock" />
        <Figure label="Measured" value={`${it.points.reduce((sum, one) => sum + one.runs, 0)} runs`} note={`${it.points.length} settings, on ${it.gpus} GPU${it.gpus === 1 ? "" : "s"}`} />
      </dl>
      <div class="charts">
        <Graph title="What slowness buys" x={{ title: "% slower than at the highest clock" }} y={{ title: `J a ${unit}` }} curves={drawn.front} />
        <Graph title="Performance" x={x} y={{ title: `${plural_of(unit)} a second` }} curves={drawn.performance} />
        <Graph title="Power" x={x} y={{ title: "W" }} curves={drawn.power} />
        <Graph title="Energy" x={x} y={{ title: `J a ${unit}` }} curves={drawn.energy} />
      </div>
      <h2>All settings</h2>
      <Settings it={it} />
      <p class="soft">± holds the mean in 95 of 100 cases (Student's t over the runs).</p>
      <h2>Where it comes from</h2>
      <Terms rows={[["GPU", it.gpu], ["GPUs", String(it.gpus)], ["runs of each", String(it.repeats)], ["seed of their order", String(it.seed)]]} />
    </>
  );
}

function Settings({ it }: { it: Tune }) {
  return (
    <Table
      name="What each setting does and costs"
      columns={[
        { title: "setting" },
        { title: "", text: true },
        { title: "ran at", unit: "MHz" },
        { title: `${plural_of(it.unit)} a second` },
        { title: "slower", unit: "%" },
        { title: "power", unit: "W" },
        { title: `J a ${it.unit}` },
        { title: "saved", unit: "%" },
        { title: "runs" },
      ]}
      rows={it.points.map((one) => ({
        key: setting_of(one),
        name: setting_of(one),
        chosen: same(one, it.recommended),
        cells: [
          same(one, it.recommended) ? <State of="recommended" /> : one.pareto ? <State of="on the front" /> : "",
          <Value of={one.measured_sm_mhz} decimals={0} />,
          <Value of={one.performance} error={one.performance_error} decimals={decimals(one.performance)} />,
          <Value of={one.slowdown_pct} error={one.slowdown_error_pct} decimals={1} />,
          <Value of={one.power_w} error={one.power_error_w} decimals={0} />,
          <Value of={one.energy_j} error={one.energy_error_j} decimals={decimals(one.energy_j)} />,
          <Value of={one.saved_pct} error={one.saved_error_pct} decimals={1} />,
          one.runs,
        ],
      }))}
    />
  );
}
