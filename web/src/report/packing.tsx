// SPDX-License-Identifier: Apache-2.0
// How full each placement policy packs a cluster, beside what nobody can exceed.
import { useMemo, useState } from "preact/hooks";
import { with_unit } from "../format";
import type { Curve } from "../plot";
import { Figure } from "../ui";
import type { Packed, Packing } from "./document";
import { Choice, Graph, Origins, Table, Value, fixed } from "./parts";

type Figures = "allocation_pct" | "fragment_pct" | "fragment_ratio_pct";

const known = (value: number | null): value is number => value !== null;

function curves(results: Packed[], policies: string[], figure: Figures): Curve[] {
  return policies.map((label) => ({
    label,
    points: results.flatMap((one) =>
      one.placement === label && known(one.arrived_pct) && known(one[figure])
        ? { x: one.arrived_pct, y: one[figure]!, error: figure === "allocation_pct" ? (one.ci95 ?? undefined) : undefined }
        : [],
    ),
  }));
}

/** The same for all policies: it stands in the records of each. */
function bound(results: Packed[], policies: string[]): Curve {
  const points = results.flatMap((one) =>
    one.placement === policies[0] && known(one.arrived_pct) && known(one.bound_pct) ? { x: one.arrived_pct, y: one.bound_pct } : [],
  );
  return { label: "bound: nobody can do better", points, drawn: "bound" };
}

export function PackingPage({ it }: { it: Packing }) {
  const policies = [...new Set(it.results.map((one) => one.placement))];
  const loads = [...new Set(it.results.map((one) => one.load_pct))];
  const [load, set_load] = useState(loads.includes(100) ? 100 : loads.at(-1)!);
  const drawn = useMemo(() => {
    const late = it.results.filter((one) => one.load_pct >= 60);
    return {
      near: [...curves(late.length ? late : it.results, policies, "allocation_pct"), bound(late.length ? late : it.results, policies)],
      whole: [...curves(it.results, policies, "allocation_pct"), bound(it.results, policies)],
      fragments: curves(it.results, policies, "fragment_pct"),
      of_idle: curves(it.results, policies, "fragment_ratio_pct"),
    };
  }, [it]);
  const x = { title: "% of all GPUs asked for" };
  const now = it.results.filter((one) => one.load_pct === load).sort((a, b) => (b.allocation_pct ?? 0) - (a.allocation_pct ?? 0));
  const best = now[0];
  return (
    <>
      <dl class="figures">
        <Figure label="Policies" value={String(policies.length)} note={`${it.seeds.count} seeds each`} />
        <Figure label={`Fullest at ${load} %`} value={best.placement} note={`${with_unit(best.allocation_pct ?? undefined, "%")} allocated`} />
        <Figure
          label="Left to win"
          value={known(best.bound_pct) && known(best.allocation_pct) ? `${fixed(best.bound_pct - best.allocation_pct, 2)} points` : "not known"}
          note={known(best.bound_pct) ? `the bound is ${fixed(best.bound_pct, 2)} %` : it.bound}
        />
      </dl>
      <div class="charts">
        <Graph title="Allocated, where it is decided" x={x} y={{ title: "% of all GPUs" }} curves={drawn.near} />
        <Graph title="Allocated, from the beginning" x={x} y={{ title: "% of all GPUs" }} curves={drawn.whole} />
        <Graph title="Fragments" x={x} y={{ title: "% of all GPUs" }} curves={drawn.fragments} />
        <Graph title="Fragments in what is idle" x={x} y={{ title: "% of idle GPUs" }} curves={drawn.of_idle} />
      </div>
      <p class="soft">Bound {it.bound}.</p>
      <h2>Beside each other</h2>
      <Choice label="when of all GPUs were asked for" of={loads} chosen={load} choose={set_load} text={(each) => `${each} %`} />
      <Allocated rows={now} baseline={it.results.find((one) => one.against)?.against?.placement} load={load} />
      <Classes rows={now} load={load} seeds={it.seeds.count} />
      <Origins {...it} />
    </>
  );
}

function Allocated({ rows, baseline, load }: { rows: Packed[]; baseline?: string; load: number }) {
  return (
    <Table
      name={`Allocated at ${load} % of arrivals`}
      columns={[
        { title: "placement" },
        { title: "allocated", unit: "%" },
        { title: "bound", unit: "%" },
        { title: `against ${baseline ?? "itself"}`, unit: "points" },
        { title: "fragments", unit: "%" },
        { title: "of what is idle", unit: "%" },
      ]}
      rows={rows.map((one) => ({
        key: one.placement,
        name: one.placement,
        cells: [
          <Value of={one.allocation_pct} error={one.ci95} />,
          <Value of={one.bound_pct} />,
          <Value of={one.against?.difference_pct} error={one.against?.ci95} decimals={3} sign />,
          <Value of={one.fragment_pct} />,
          <Value of={one.fragment_ratio_pct} decimals={1} />,
        ],
      }))}
    />
  );
}

function Classes({ rows, load, seeds }: { rows: Packed[]; load: number; seeds: number }) {
  const classes = rows[0].classes;
  if (!classes.length) return null;
  return (
    <Table
      name={`Who was placed by ${load} % of arrivals, % of each class`}
      columns={[{ title: "GPUs a pod" }, { title: "arrived" }, ...rows.map((one) => ({ title: one.placement }))]}
      rows={classes.map(({ class: name, arrived }) => ({
        key: name,
        name,
        cells: [
          <Value of={arrived / seeds} decimals={1} />,
          ...rows.map((one) => <Value of={one.classes.find((each) => each.class === name)?.accepted_pct} />),
        ],
      }))}
    />
  );
}
