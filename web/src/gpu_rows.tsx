// SPDX-License-Identifier: Apache-2.0
// What the pictures of GPUs over time have in common: a row a GPU with its name to the left, and what lies in the rows.
import type { ComponentChildren } from "preact";

export const ROW = 26;
export const GAP = 4;
export const LEFT = 62;
const LETTER = 6.6;

/** The patterns, and the part that is not the names: `clip-path="url(#inside)"`. */
export function Ground({ room, height, children }: { room: number; height: number; children?: ComponentChildren }) {
  return (
    <defs>
      {children}
      <pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)">
        <rect width="6" height="6" class="hatch-ground" />
        <rect width="2" height="6" class="hatch-line" />
      </pattern>
      <clipPath id="inside">
        <rect x={LEFT} y="0" width={room} height={height} />
      </clipPath>
    </defs>
  );
}

export function GpuRow({ gpu, y, room, height = ROW }: { gpu: number; y: number; room: number; height?: number }) {
  return (
    <g>
      <rect class="row" x={LEFT} y={y} width={room} height={height} />
      <text class="name" x={LEFT - 8} y={y + 17} text-anchor="end">
        GPU {gpu}
      </text>
    </g>
  );
}

/** As much of it as a bar has room for; nothing where that says nothing. */
export function fitting(label: string, width: number): string {
  const letters = Math.floor((width - 10) / LETTER);
  if (letters < 3) return "";
  return label.length > letters ? `${label.slice(0, letters - 1)}…` : label;
}
