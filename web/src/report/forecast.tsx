// SPDX-License-Identifier: Apache-2.0
// Forecasts on time held out: what each missed, and what the one that is believed says of the time to come.
import { useMemo } from "preact/hooks";
import { DASH, duration, short } from "../format";
import { Figure, Terms } from "../ui";
import type { Curve } from "../plot";
import type { Forecast, Forecaster } from "./document";
import { Graph, Table, Value } from "./parts";

function newest(it: Forecast): Curve[] {
  const { steps, was, said } = it.newest;
  const points = (values: (number | null)[]) =>
    values.flatMap((value, i) => (value === null ? [] : { x: (-(steps - 1 - i) * it.step_s) / 3600, y: value }));
  return [
    { label: "as it was", points: points(was), whole: true },
    { label: it.chosen, points: points(said), whole: true },
  ];
}

export function ForecastPage({ it }: { it: Forecast }) {
  const drawn = useMemo(() => newest(it), [it]);
  const { value, within_p90 } = it.forecast;
  const tested = it.forecasters.find((one) => one.tested !== undefined)?.tested;
  return (
    <>
      <dl class="figures">
        <Figure
          label={`In ${duration(it.horizon_s * 1000)}`}
          value={value === null ? "cannot be told" : `${short(value)} ${it.unit}`}
          note={value === null ? "too much is missing" : within_p90 === null ? undefined : `nine of ten were within ± ${short(within_p90)}`}
        />
        <Figure label="Believed" value={it.chosen} note="the plainest that no other beats by more than chance" />
        <Figure label="Held out" value={`${it.held_out.toLocaleString("en")} steps`} note={`of ${it.steps.toLocaleString("en")}${tested === undefined ? "" : `, ${tested.toLocaleString("en")} tested`}`} />
        <Figure label="High" value={it.threshold === null ? DASH : `${short(it.threshold)} ${it.unit}`} note="and more" />
      </dl>
      <div class="charts one">
        <Graph title="The newest of it, and what was said of it before" x={{ title: "hours before its end" }} y={{ title: it.unit || "value" }} curves={drawn} />
      </div>
      <h2>Beside each other</h2>
      <Scores it={it} />
      {it.governed && <Governed it={it} rows={it.governed} />}
      <h2>Where it comes from</h2>
      <Terms rows={[["series", it.series], ["a step", duration(it.step_s * 1000)], ["chosen by", it.chosen_by], ["being ready", it.watts === null ? DASH : `${short(it.watts)} W, an assumption`]]} />
    </>
  );
}

function Scores({ it }: { it: Forecast }) {
  const cells = (one: Forecaster) =>
    one.why_not
      ? [...Array(6).fill(DASH), one.why_not]
      : [
          <Value of={one.mae} decimals={3} />,
          <Value of={one.p90} decimals={3} />,
          one.missed,
          <Value of={one.missed_load_pct} decimals={1} />,
          one.needless,
          <Value of={one.wasted_wh} decimals={1} />,
          "",
        ];
  return (
    <Table
      name="Each forecaster on time that it was not fitted on"
      columns={[
        { title: "forecaster" },
        { title: "mean error" },
        { title: "nine of ten within" },
        { title: "missed" },
        { title: "of high load", unit: "%" },
        { title: "needless" },
        { title: "wasted", unit: "Wh" },
        { title: "", text: true },
      ]}
      rows={it.forecasters.map((one) => ({ key: one.name, name: one.name, chosen: one.name === it.chosen, cells: cells(one) }))}
    />
  );
}

function Governed({ rows }: { it: Forecast; rows: NonNullable<Forecast["governed"]> }) {
  return (
    <>
      <h2>As it drives the governor</h2>
      <Table
        name="On a modelled board"
        columns={[{ title: "driven by" }, { title: "energy", unit: "Wh" }, { title: "load missed", unit: "%" }, { title: "mean clock", unit: "MHz" }]}
        rows={rows.map((one) => ({
          key: one.by,
          name: one.by,
          cells: [<Value of={one.energy_wh} decimals={1} />, <Value of={one.missed_load_pct} />, <Value of={one.mean_mhz} decimals={0} />],
        }))}
      />
    </>
  );
}
