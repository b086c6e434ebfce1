// SPDX-License-Identifier: Apache-2.0
// What all reports are made of, besides what they share with the live page.
import { createContext, type ComponentChildren } from "preact";
import { useContext } from "preact/hooks";
import { DASH, plural } from "../format";
import { type Axis, type Curve, Plot } from "../plot";
import { Terms } from "../ui";

/** Whether the figures below are simulated: each chart and table says so itself, for it may be cut out. */
export const Simulated = createContext(false);

export function Tag() {
  return useContext(Simulated) ? <span class="simulated">simulated</span> : null;
}

export function Graph(props: { title: string; x: Axis; y: Axis; curves: Curve[] }) {
  return <Plot {...props} tag={<Tag />} />;
}

/** "12.34 ± 0.05"; a dash where nothing is known. */
export function Value({ of, error, decimals = 2, sign }: { of?: number | null; error?: number | null; decimals?: number; sign?: boolean }) {
  if (of === null || of === undefined) return <>{DASH}</>;
  const text = fixed(of, decimals);
  return (
    <>
      {sign && of > 0 ? `+${text}` : text}
      {!!error && <span class="soft"> ± {fixed(error, decimals)}</span>}
    </>
  );
}

export const fixed = (value: number, decimals: number) =>
  value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals }).replace("-", "−");

export interface Column {
  title: string;
  unit?: string;
  text?: boolean;
}

export interface Row {
  key: string;
  name: ComponentChildren;
  cells: ComponentChildren[];
  chosen?: boolean;
}

/** The first column names the rows. */
export function Table({ name, columns, rows }: { name: string; columns: Column[]; rows: Row[] }) {
  const [first, ...others] = columns;
  return (
    <div class="scroll" role="region" aria-label={name} tabIndex={0}>
      <table>
        <caption>
          {name} <Tag />
        </caption>
        <thead>
          <tr>
            <th scope="col">{first.title}</th>
            {others.map((column) => (
              <th key={column.title} scope="col" class={column.text ? "" : "number"}>
                {column.title} {column.unit}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr key={row.key} class={row.chosen ? "chosen" : ""}>
              <th scope="row">{row.name}</th>
              {row.cells.map((cell, i) => (
                <td key={i} class={others[i]?.text ? "" : "number"}>
                  {cell}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** One of several; nothing where there is no choice. */
export function Choice<T extends string | number>(props: { label: string; of: T[]; chosen: T; choose: (one: T) => void; text: (one: T) => string }) {
  const { label, of, chosen, choose, text } = props;
  if (of.length < 2) return null;
  return (
    <div class="toolbar">
      <span class="soft">{label}</span>
      <div class="tabs" role="group" aria-label={label}>
        {of.map((one) => (
          <button key={one} aria-pressed={one === chosen} onClick={() => choose(one)}>
            {text(one)}
          </button>
        ))}
      </div>
    </div>
  );
}

interface Origin {
  cluster?: { source: string; sha256: string | null; nodes: number; gpus: number };
  trace?: { source: string; sha256: string | null; jobs: number };
  seeds?: { first: number; last: number; count: number };
  options?: Record<string, string>;
}

/** Files by name and hash, and the options, those left to their defaults as well. */
export function Origins({ cluster, trace, seeds, options }: Origin) {
  const hash = (text: string | null) => (text ? <code>sha256 {text.slice(0, 16)}…</code> : null);
  return (
    <>
      <h2>Where it comes from</h2>
      <Terms
        rows={[
          ["cluster", cluster?.source && <>{cluster.source}: {plural(cluster.gpus, "GPU")} on {plural(cluster.nodes, "node")} {hash(cluster.sha256)}</>],
          ["trace", trace?.source && <>{trace.source}{trace.jobs > 0 && `: ${plural(trace.jobs, "job")}`} {hash(trace.sha256)}</>],
          ["seeds", seeds && (seeds.count > 1 ? `${seeds.first} to ${seeds.last}` : String(seeds.first))],
          ...Object.entries(options ?? {})
            .filter(([name]) => name !== "seeds")
            .map(([name, value]): [string, string] => [name.replaceAll("_", " "), value]),
        ]}
      />
    </>
  );
}
