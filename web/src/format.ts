// SPDX-License-Identifier: Apache-2.0
// Figures as people read them. What is not known is a dash.

export const DASH = "–";

/** Three digits that count, at most one behind the point where there are two before it. */
export function short(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en", { maximumFractionDigits: digits, minimumFractionDigits: digits });
}

export function with_unit(value: number | undefined, unit: string): string {
  return value === undefined ? DASH : `${short(value)} ${unit}`;
}

export function watts(value: number | undefined): string {
  if (value === undefined) return DASH;
  return value >= 10_000 ? `${short(value / 1000)} kW` : `${Math.round(value).toLocaleString("en")} W`;
}

export function energy(mj: number | undefined): string {
  if (mj === undefined) return DASH;
  const wh = mj / 3.6e6;
  return wh >= 1000 ? `${short(wh / 1000)} kWh` : `${short(wh)} Wh`;
}

export function bytes(value: number | undefined): string {
  if (value === undefined) return DASH;
  const gib = value / 2 ** 30;
  return gib >= 1 ? `${short(gib)} GiB` : `${Math.round(value / 2 ** 20)} MiB`;
}

/** As links are sold: in powers of ten. */
export function byte_rate(value: number | undefined): string {
  if (value === undefined) return DASH;
  const [size, unit] = value >= 1e9 ? [1e9, "GB/s"] : value >= 1e6 ? [1e6, "MB/s"] : [1e3, "kB/s"];
  return `${short(value / size)} ${unit}`;
}

export function duration(ms: number | undefined): string {
  if (ms === undefined) return DASH;
  const s = Math.round(ms / 1000);
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 60) return `${s} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min${s % 60 ? ` ${s % 60} s` : ""}`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function clock_time(at_ms: number | undefined): string {
  if (!at_ms) return DASH;
  const at = new Date(at_ms);
  const time = at.toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  const today = new Date().toDateString() === at.toDateString();
  return today ? time : `${at.toLocaleDateString("en-GB", { day: "numeric", month: "short" })} ${time}`;
}

export function from_now(at_ms: number, now_ms: number): string {
  const ms = at_ms - now_ms;
  if (Math.abs(ms) < 1500) return "now";
  return ms > 0 ? `in ${duration(ms)}` : `${duration(-ms)} ago`;
}

/** "0-3, 6" of [0,1,2,3,6]. */
export function gpu_set(list: number[]): string {
  const runs: string[] = [];
  for (let i = 0; i < list.length; ) {
    let last = i;
    while (list[last + 1] === list[last] + 1) last++;
    runs.push(last > i ? `${list[i]}-${list[last]}` : `${list[i]}`);
    i = last + 1;
  }
  return runs.join(", ");
}

export function plural(count: number, one: string): string {
  return `${count.toLocaleString("en")} ${one}${count === 1 ? "" : "s"}`;
}
