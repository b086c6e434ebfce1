// SPDX-License-Identifier: Apache-2.0
// What the colours of the timeline tell: how a job stands, or whose it is, or its first tag.
import type { Job } from "./types";

export const COLOURS = ["state", "user", "tag"] as const;
export type ColourBy = (typeof COLOURS)[number];

const HUES = 8; // as many as can be told apart

const first_tag = (job: Job) => job.tags?.split(",")[0].trim() || undefined;

/** Names in the order of the alphabet, so that a colour stays while jobs come and go. */
export function colours_of(jobs: Job[], by: ColourBy) {
  const name_of = (job: Job) => (by === "user" ? job.user : by === "tag" ? first_tag(job) : undefined);
  const found = [...new Set(jobs.flatMap((job) => name_of(job) ?? []))].sort();
  const names = found.map((name, i) => ({ name, hue: (i % HUES) + 1 }));
  return { names, hue_of: (job: Job) => names.find(({ name }) => name === name_of(job))?.hue };
}
