// SPDX-License-Identifier: Apache-2.0
// A chart over time, in the colours of the page; the same figures in words for who cannot see it.
import { useEffect, useRef, useState } from "preact/hooks";
import uPlot from "uplot";
import "uplot/dist/uPlot.min.css";
import { DASH, duration, short } from "./format";
import { shown_theme } from "./theme";
import { useWidth } from "./ui";

export interface Line {
  label: string;
  /** null where nothing was measured: the line is cut there. */
  points: [at_ms: number, value: number | null][];
}

/** Charts with the same one have the same axis, time since it began, and a cursor in one is in all. */
export interface Span {
  name: string;
  from_ms: number;
  until_ms: number;
  /** The axis counts these and not time: a thousand "ms" are one of them. */
  counts?: string;
}

/** Told apart by people who see colours differently, too; in light and in dark. */
const LINE_COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6", "--line-7", "--line-8"];

/** A canvas does not know light-dark(): the page is asked what it makes of the name. */
function colour(name: string): string {
  const probe = document.body.appendChild(document.createElement("i"));
  probe.style.color = `var(${name})`;
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

/** Lines on one axis of time; null where one has no point. */
function columns(lines: Line[], from_ms: number): uPlot.AlignedData {
  const tables = lines.map(
    ({ points }): uPlot.AlignedData => [points.map(([at]) => (at - from_ms) / 1000), points.map(([, value]) => value)],
  );
  return tables.length ? uPlot.join(tables) : [[]];
}

function options(width: number, height: number, unit: string, lines: Line[], span: () => Span | undefined, window_ms?: number): uPlot.Options {
  const spanned = span();
  const window_s = (window_ms ?? 0) / 1000;
  const until_now = window_s > 0 ? { range: (): [number, number] => [Date.now() / 1000 - window_s, Date.now() / 1000] } : {};
  const axis = { stroke: colour("--soft"), grid: { stroke: colour("--rule"), width: 1 }, ticks: { stroke: colour("--rule"), width: 1, size: 4 }, font: "11px system-ui" };
  return {
    width,
    height,
    legend: { show: false },
    cursor: { y: false, points: { size: 5 }, drag: { x: false, y: false }, sync: spanned && { key: spanned.name } },
    scales: {
      x: spanned ? { time: false, range: () => [0, Math.max(1, (span()!.until_ms - span()!.from_ms) / 1000)] } : until_now,
      y: { range: (_, least, most) => [Math.min(0, least ?? 0), unit === "%" ? 100 : Math.max((most ?? 0) * 1.08, 1)] },
    },
    axes: [
      { ...axis, size: 26, space: 84, ...(!spanned ? { values: time_labels } : spanned.counts ? { values: count_labels } : { incrs: ROUND_S, values: since_labels }) },
      { ...axis, size: 70, space: 28, values: (_, splits) => splits.map((value) => `${short(value)} ${unit}`) },
    ],
    series: [
      {},
      ...lines.map((line, i) => ({
        label: line.label,
        stroke: colour(LINE_COLOURS[i % LINE_COLOURS.length]),
        width: 1.5,
        points: { show: line.points.length === 1 },
        fill: lines.length === 1 ? colour("--accent-wash") : undefined,
      })),
    ],
  };
}

const time_labels = (_: uPlot, splits: number[], _axis: number, _space: number, step: number) =>
  splits.map((at) =>
    new Date(at * 1000).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: step < 60 ? "2-digit" : undefined }),
  );

const ROUND_S = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 21600, 43200, 86400, 172800, 432000, 864000];
const count_labels = (_: uPlot, splits: number[]) => splits.map(short);
const since_labels = (_: uPlot, splits: number[]) => splits.map((s) => (s ? duration(s * 1000) : "0"));

export function Chart(props: { title: string; unit: string; lines: Line[]; height?: number; span?: Span; window_ms?: number; nothing?: string }) {
  const { title, unit, lines, height = 140, span, window_ms, nothing = "nothing measured yet" } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const plot = useRef<uPlot | null>(null);
  const latest = useRef(span);
  latest.current = span;
  const [at, set_at] = useState<number | null>(null);
  const names = lines.map((line) => line.label).join();
  const theme = shown_theme();
  const from_ms = span?.from_ms ?? 0;
  useEffect(() => {
    if (!box.current || width < 50) return;
    const hooks = span && { setCursor: [(it: uPlot) => set_at(it.cursor.idx ?? null)] };
    plot.current = new uPlot({ ...options(width, height, unit, lines, () => latest.current, window_ms), hooks }, columns(lines, from_ms), box.current);
    return () => plot.current?.destroy();
  }, [width, height, unit, names, theme, span?.name, span?.counts]);
  useEffect(() => plot.current?.setData(columns(lines, from_ms)), [lines, span?.until_ms]);
  const data = at === null ? undefined : plot.current?.data;
  const at_s = data?.[0][at!];
  const value_of = (i: number) => short_or_dash(data?.[i + 1]?.[at!]);
  return (
    <figure class="chart">
      <figcaption>
        <span>
          {title}
          {at_s !== undefined && ` at ${span?.counts ? `${short(Math.round(at_s))} ${span.counts}` : duration(at_s * 1000)}${lines.length === 1 ? `: ${value_of(0)} ${unit}` : `, ${unit}`}`}
        </span>
        {lines.length > 1 && (
          <span class="legend">
            {lines.map((line, i) => (
              <span key={line.label} class={`key line-${(i % LINE_COLOURS.length) + 1}`}>
                {line.label} {span && <b>{at_s !== undefined && value_of(i)}</b>}
              </span>
            ))}
          </span>
        )}
      </figcaption>
      <div ref={box} class={`plot h${height}`} role="img" aria-label={in_words(title, unit, lines, nothing)}>
        {lines.every((line) => line.points.length === 0) && <p class="nothing">{nothing}</p>}
      </div>
    </figure>
  );
}

const short_or_dash = (value: number | null | undefined) => (value === null || value === undefined ? DASH : short(value));

function in_words(title: string, unit: string, lines: Line[], nothing: string): string {
  const each = lines
    .map(({ label, points }) => ({ label, values: points.map(([, value]) => value).filter((value) => value !== null) }))
    .filter(({ values }) => values.length)
    .map(({ label, values }) => `${label}: last ${short(values.at(-1)!)} ${unit}, from ${short(Math.min(...values))} to ${short(Math.max(...values))}`);
  return `${title}. ${each.join("; ") || nothing}`;
}
