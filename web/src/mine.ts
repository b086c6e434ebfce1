// SPDX-License-Identifier: Apache-2.0
// One's own live jobs: takt tells the first of all, and where there are more one's own are asked for.
import { get } from "./api";
import { is_mine } from "./jobs";
import { useLive } from "./live";
import type { Queue } from "./types";
import { useAsked } from "./ui";

const EVERY_MS = 5000;

export function useMine(): Queue | undefined {
  const { jobs, account } = useLive();
  const cut = !!account && !!jobs && jobs.total > jobs.jobs.length;
  const asked = useAsked(
    (signal) => (cut ? get<Queue>(`/v1/jobs?uid=${account.uid}&limit=200`, signal) : Promise.resolve(undefined)),
    [cut, account?.uid],
    cut ? EVERY_MS : 0,
  ).value;
  if (!jobs || (cut && !asked)) return undefined;
  if (cut) return asked;
  const mine = jobs.jobs.filter((job) => is_mine(job, account));
  return { jobs: mine, total: mine.length };
}
