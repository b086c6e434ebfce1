// SPDX-License-Identifier: Apache-2.0
// Figures over any number, load or clock or hours, with their errors; the same in words for who cannot see it. A moment
// on the axis is chosen by the pointer, or by the arrow keys, and its values stand in the legend.
import type { ComponentChildren } from "preact";
import { useMemo, useState } from "preact/hooks";
import { DASH, short } from "./format";
import { useWidth } from "./ui";

export interface Point {
  x: number;
  y: number;
  /** Half of the interval that holds it in 95 of 100 cases. */
  error?: number;
  /** What it is the figure of, where x does not say. */
  words?: string;
}

export interface Curve {
  label: string;
  /** Ascending in x. */
  points: Point[];
  /** As a line unless it says otherwise; "bound" is what nothing can be beyond. */
  drawn?: "dots" | "bound" | "choice";
  /** What is between its points is known, too. */
  whole?: boolean;
}

export interface Axis {
  title: string;
  log?: boolean;
  from?: number;
  to?: number;
  text?: (value: number) => string;
}

interface Scale {
  from: number;
  to: number;
  ticks: number[];
  /** Behind the point, of a tick that is not given as text. */
  decimals: number;
  place: (value: number) => number;
}

const COLOURS = 8;
const TOP = 10;
const BOTTOM = 40;
const LEFT = 52;
const RIGHT = 14;

/** 1, 2 or 5 times a power of ten, for about so many steps. */
function round_step(span: number, steps: number): number {
  const raw = span / steps;
  const base = 10 ** Math.floor(Math.log10(raw));
  return base * ([1, 2, 5].find((times) => raw <= times * base * 1.001) ?? 10);
}

function linear(least: number, values: number[], axis: Axis, start: number, end: number, steps: number): Scale {
  let from = axis.from ?? least;
  let to = axis.to ?? Math.max(...values);
  if (to <= from) to = from + (Math.abs(from) / 10 || 1);
  const step = round_step(to - from, steps);
  if (axis.from === undefined) from = Math.floor(from / step + 1e-9) * step;
  if (axis.to === undefined) to = Math.ceil(to / step - 1e-9) * step;
  const ticks = Array.from({ length: Math.floor((to - from) / step + 1.001) }, (_, i) => Number((from + i * step).toPrecision(12)));
  const decimals = Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  return { from, to, ticks, decimals, place: (value) => start + ((value - from) / (to - from)) * (end - start) };
}

function logarithmic(values: number[], start: number, end: number): Scale {
  const known = values.filter((value) => value > 0);
  const low = Math.floor(Math.log10(Math.min(...known)) + 1e-9);
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...known)) - 1e-9));
  const ticks = Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i));
  const place = (value: number) => start + ((Math.log10(value) - low) / (high - low)) * (end - start);
  return { from: 10 ** low, to: 10 ** high, ticks, decimals: Math.max(0, -low), place };
}

/** The curve's point there; a moment between two of a whole curve is on the line between them. */
function at(curve: Curve, x: number): Point | undefined {
  const next = curve.points.findIndex((point) => point.x >= x);
  if (next < 0) return undefined;
  const after = curve.points[next];
  if (after.x === x) return after;
  const before = curve.points[next - 1];
  if (!curve.whole || !before) return undefined;
  return { x, y: before.y + ((after.y - before.y) * (x - before.x)) / (after.x - before.x) };
}

const with_error = (point: Point, text: (value: number) => string) =>
  `${text(point.y)}${point.error ? ` ± ${short(point.error)}` : ""}`;

function in_words(title: string, curves: Curve[], y: Axis): string {
  const text = y.text ?? short;
  const each = curves.map(({ label, points }) => {
    const values = points.map((point) => point.y);
    return `${label}: from ${text(Math.min(...values))} to ${text(Math.max(...values))}`;
  });
  return `${title}; ${y.title}. ${each.join("; ")}. Arrow keys tell the values.`;
}

export function Plot(props: { title: string; x: Axis; y: Axis; curves: Curve[]; height?: number; tag?: ComponentChildren }) {
  const { title, x, y, height = 260, tag } = props;
  const [box, width] = useWidth<HTMLDivElement>();
  const [chosen, choose] = useState<number>();
  const curves = useMemo(
    () =>
      props.curves
        .map((curve) => ({ ...curve, points: curve.points.filter((point) => Number.isFinite(point.y) && (!x.log || point.x > 0)) }))
        .filter((curve) => curve.points.length),
    [props.curves, x.log],
  );
  const stops = useMemo(() => [...new Set(curves.flatMap((curve) => curve.points.map((point) => point.x)))].sort((a, b) => a - b), [curves]);
  if (!curves.length) return null;
  const ys = curves.flatMap(({ points }) => points.flatMap((point) => [point.y - (point.error ?? 0), point.y + (point.error ?? 0)]));
  const across = x.log
    ? logarithmic(stops, LEFT, width - RIGHT)
    : linear(stops[0], stops, x, LEFT, width - RIGHT, Math.max(2, Math.min(8, (width - LEFT) / 80)));
  // What cannot be negative is not drawn so because of its error.
  const least = Math.min(...curves.flatMap(({ points }) => points.map((point) => point.y)));
  const up = linear(least >= 0 ? Math.max(0, Math.min(...ys)) : Math.min(...ys), ys, y, height - BOTTOM, TOP, 5);
  const text = y.text ?? short;
  const x_text = x.text ?? short;

  const turn = (event: KeyboardEvent) => {
    const here = chosen === undefined ? -1 : stops.indexOf(chosen);
    const step = Math.ceil(stops.length / 100);
    const to = { ArrowRight: here + step, ArrowLeft: here - step, Home: 0, End: stops.length - 1 }[event.key];
    if (event.key === "Escape") choose(undefined);
    if (to === undefined) return;
    event.preventDefault();
    choose(stops[Math.max(0, Math.min(stops.length - 1, to))]);
  };
  const point_at = (event: PointerEvent) => {
    const from_left = event.clientX - box.current!.getBoundingClientRect().left;
    choose(stops.reduce((best, each) => (Math.abs(across.place(each) - from_left) < Math.abs(across.place(best) - from_left) ? each : best)));
  };
  const words = chosen === undefined ? undefined : curves.map((curve) => at(curve, chosen)?.words).find(Boolean);
  return (
    <figure class="chart">
      <figcaption>
        <span>
          <b>{title}</b> {tag}
        </span>
        <span class="legend" aria-live="polite">
          {chosen !== undefined && <span>{words ?? `${x_text(chosen)} ${x.title}`}: </span>}
          {curves.map((curve, i) => {
            const point = chosen === undefined ? undefined : at(curve, chosen);
            return (
              <span key={curve.label} class={curve.drawn === "bound" ? "key bound" : `key line-${(i % COLOURS) + 1}`}>
                {curve.label} {chosen !== undefined && <b>{point ? with_error(point, text) : DASH}</b>}
              </span>
            );
          })}
        </span>
      </figcaption>
      <div
        ref={box}
        class="plot"
        role="img"
        tabIndex={0}
        aria-label={in_words(title, curves, y)}
        onKeyDown={turn}
        onPointerMove={point_at}
        onPointerLeave={() => choose(undefined)}
        onBlur={() => choose(undefined)}
      >
        {/* As high before its width is known, so that nothing jumps. */}
        <svg width={width || "100%"} height={height} aria-hidden="true">
          {width > LEFT + RIGHT && (
            <>
              <Grid across={across} up={up} x={x} y={y} width={width} height={height} />
              {curves.map((curve, i) => (
                <Drawn key={curve.label} curve={curve} colour={(i % COLOURS) + 1} dashed={i >= COLOURS} across={across} up={up} />
              ))}
              {chosen !== undefined && <line class="here" x1={across.place(chosen)} x2={across.place(chosen)} y1={TOP} y2={height - BOTTOM} />}
            </>
          )}
        </svg>
      </div>
    </figure>
  );
}

const tick = (value: number, { decimals }: Scale) => value.toLocaleString("en", { minimumFractionDigits: decimals, maximumFractionDigits: decimals });

function Grid(props: { across: Scale; up: Scale; x: Axis; y: Axis; width: number; height: number }) {
  const { across, up, x, y, width, height } = props;
  return (
    <>
      {across.ticks.map((value) => (
        <g key={value}>
          <line class="tick" x1={across.place(value)} x2={across.place(value)} y1={TOP} y2={height - BOTTOM} />
          <text x={across.place(value)} y={height - BOTTOM + 15} text-anchor="middle">
            {x.text?.(value) ?? tick(value, across)}
          </text>
        </g>
      ))}
      {up.ticks.map((value) => (
        <g key={value}>
          <line class="tick" x1={LEFT} x2={width - RIGHT} y1={up.place(value)} y2={up.place(value)} />
          <text x={LEFT - 6} y={up.place(value) + 4} text-anchor="end">
            {y.text?.(value) ?? tick(value, up)}
          </text>
        </g>
      ))}
      <text x={(LEFT + width - RIGHT) / 2} y={height - 6} text-anchor="middle">
        {x.title}
      </text>
      <text transform={`translate(11 ${(TOP + height - BOTTOM) / 2}) rotate(-90)`} text-anchor="middle">
        {y.title}
      </text>
    </>
  );
}

function Drawn(props: { curve: Curve; colour: number; dashed: boolean; across: Scale; up: Scale }) {
  const { curve, colour, dashed, across, up } = props;
  const { drawn, points } = curve;
  const path = points.map((point, i) => `${i ? "L" : "M"}${across.place(point.x).toFixed(1)} ${up.place(point.y).toFixed(1)}`).join("");
  const is_line = drawn === undefined || drawn === "bound";
  return (
    <g class={`${drawn === "bound" ? "bound" : `curve-${colour}`} ${dashed ? "dashed" : ""}`}>
      {is_line && <path d={path} />}
      {points.map((point, i) =>
        point.error ? (
          <line key={i} class="error" x1={across.place(point.x)} x2={across.place(point.x)} y1={up.place(Math.max(up.from, point.y - point.error))} y2={up.place(point.y + point.error)} />
        ) : null,
      )}
      {(!curve.whole || points.length === 1) &&
        points.map((point, i) => (
          <circle key={i} class={drawn === "choice" ? "choice" : ""} cx={across.place(point.x)} cy={up.place(point.y)} r={drawn === "choice" ? 8 : drawn === "dots" ? 4 : 2.5} />
        ))}
    </g>
  );
}
