// SPDX-License-Identifier: Apache-2.0
// What pages say of jobs alike: whose they are, how much of a GPU they have, which are one array.
import { gpu_set } from "./format";
import type { Account, Job } from "./types";

/** Root may read everybody's: then it is the user that tells. */
export const is_mine = (job: Job, account: Account | undefined) => (account ? job.uid === account.uid : job.mine);

/** As one asks for it: "2", "0.25", "2 × 0.25", "1g.10gb". */
export function gpu_amount(job: Job): string {
  const part = job.mig ?? (job.gpu_milli ? String(job.gpu_milli / 1000) : undefined);
  if (!part) return String(job.gpus);
  return job.gpus > 1 ? `${job.gpus} × ${part}` : part;
}

export const has_part = (job: Job) => !!job.mig || !!job.gpu_milli;

/** What it asks for, and among which GPUs where it names some. */
export function asked_gpus(job: Job): string {
  const among = job.gpu_indices?.length ? ` of GPU ${gpu_set(job.gpu_indices)}` : "";
  return `${gpu_amount(job)}${job.gpu_milli && !job.mig && !among ? " GPU" : ""}${among}`;
}

/** What it has, or had. */
export function given_gpus(job: Job): string | undefined {
  if (!job.gpu_list.length) return undefined;
  return has_part(job) ? `${gpu_amount(job)} of GPU ${gpu_set(job.gpu_list)}` : `GPU ${gpu_set(job.gpu_list)}`;
}

/** Jobs of one array in one state are one line, in the place of the first of them. */
export function folded(jobs: Job[], state_of: (job: Job) => string): Job[][] {
  const lines = new Map<string, Job[]>();
  for (const job of jobs) {
    const key = job.array_id ? `${job.array_id} ${state_of(job)}` : `${job.id}`;
    const line = lines.get(key);
    if (line) line.push(job);
    else lines.set(key, [job]);
  }
  return [...lines.values()];
}

/** "30[0-19,22%2]": the array, its indices, and how many of them at a time. */
export function array_label(jobs: Job[]): string {
  const indices = jobs.map((job) => job.array_index ?? 0).sort((a, b) => a - b);
  const [{ array_id, array_limit }] = jobs;
  return `${array_id}[${gpu_set(indices).replaceAll(", ", ",")}${array_limit ? `%${array_limit}` : ""}]`;
}

const WORDS_OF_EXIT: Record<number, string> = {
  126: "the shell found the command and could not execute it",
  127: "the shell did not find the command",
  137: "something in it was killed (SIGKILL), perhaps for lack of memory",
  139: "something in it crashed (SIGSEGV)",
};

/** What an exit code usually means, where it means something. */
export const words_of_exit = (code: number | undefined) => (code === undefined ? undefined : WORDS_OF_EXIT[code]);

export const PATH = "PATH=/usr/local/bin:/usr/bin:/bin";

/** The environment as it was typed, a line each; with a PATH in any case. */
export function environment_of(text: string): string[] {
  const lines = text.split("\n").map((line) => line.trim()).filter(Boolean);
  return lines.some((line) => line.startsWith("PATH=")) ? lines : [PATH, ...lines];
}
