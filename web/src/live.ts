// SPDX-License-Identifier: Apache-2.0
// The one seam through which the page learns what changes: takt's stream of events, or, where there is none, asking
// again and again. When the connection is lost what was last known stays, and is marked so.
import { useEffect, useState } from "preact/hooks";
import { Refused, get, request, words_of } from "./api";
import type { Account, Clocks, Gpu, Health, Job, Queue, Status } from "./types";

const TOPICS = { status: "/v1/status", jobs: "/v1/jobs?limit=200", clocks: "/v1/clocks", health: "/v1/health" } as const;
type Topic = keyof typeof TOPICS;
const NAMES = Object.keys(TOPICS) as Topic[];

const POLL_MS = 2000;
/** The first pause before one who is not there is asked again, and the longest. */
export const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 5000;
const SILENT_MS = 40_000; // the stream says something every 15 s
const KEPT_SAMPLES = 150;

export interface Live {
  /** Counts who has signed in here, so that nothing that one has seen is shown to the next. */
  session: number;
  link: "connecting" | "live" | "lost" | "signed-out";
  problem?: string;
  heard_ms?: number;
  status?: Status;
  jobs?: Queue;
  clocks?: Clocks;
  health?: Health;
  account?: Account;
  /** Total power in W, since the page was opened. */
  power: [at_ms: number, watts: number][];
  /** Of each GPU: its last samples since the page was opened. */
  samples: Map<number, Sample[]>;
}

function nothing_yet(session: number): Live {
  return { session, link: "connecting", power: [], samples: new Map() };
}

export interface Sample {
  at_ms: number;
  util?: number;
}

export let live: Live = nothing_yet(0);
const listeners = new Set<() => void>();

function change(what: Partial<Live>) {
  live = { ...live, ...what };
  for (const tell of listeners) tell();
}

export function useLive(): Live {
  const [, again] = useState({});
  useEffect(() => {
    const tell = () => again({});
    listeners.add(tell);
    return () => void listeners.delete(tell);
  }, []);
  return live;
}

/** Only what was measured counts; undefined where no GPU tells its power. */
export function total_watts(gpus: Gpu[]): number | undefined {
  const known = gpus.filter((gpu) => gpu.power_mw !== undefined && !gpu.stale);
  return known.length ? known.reduce((sum, gpu) => sum + gpu.power_mw! / 1000, 0) : undefined;
}

function remember(status: Status) {
  const at_ms = Date.now();
  const watts = total_watts(status.gpus);
  const samples = new Map(live.samples);
  for (const gpu of status.gpus) {
    const sample = { at_ms, util: gpu.gpu_util_pct };
    samples.set(gpu.index, [...(samples.get(gpu.index) ?? []), sample].slice(-KEPT_SAMPLES));
  }
  change({ samples, power: watts === undefined ? live.power : [...live.power.slice(-3600), [at_ms, watts]] });
}

function take(topic: Topic, value: unknown) {
  change({ [topic]: value, link: "live", heard_ms: Date.now(), problem: undefined });
  if (topic === "status") remember(value as Status);
}

/** One event of the stream: lines "event: NAME" and "data: JSON". */
function take_event(text: string) {
  const field = (name: string) =>
    text
      .split("\n")
      .filter((line) => line.startsWith(`${name}:`))
      .map((line) => line.slice(name.length + 1).replace(/^ /, ""))
      .join("\n");
  const topic = field("event") as Topic;
  if (NAMES.includes(topic)) take(topic, JSON.parse(field("data")));
}

async function follow_stream(signal: AbortSignal) {
  const stop = new AbortController();
  signal.addEventListener("abort", () => stop.abort());
  const response = await request(`/v1/stream?of=${NAMES.join(",")}`, { signal: stop.signal });
  const reader = response.body!.pipeThrough(new TextDecoderStream()).getReader();
  let left = "";
  let silent = 0;
  for (;;) {
    clearTimeout(silent);
    silent = window.setTimeout(() => stop.abort(), SILENT_MS);
    const { value, done } = await reader.read();
    if (done) break;
    const events = (left + value).split("\n\n");
    left = events.pop()!;
    events.forEach(take_event);
  }
  clearTimeout(silent);
  throw new Error("takt has ended the stream");
}

async function poll(signal: AbortSignal) {
  for (;;) {
    const values = await Promise.all(NAMES.map((topic) => get(TOPICS[topic], signal)));
    NAMES.forEach((topic, i) => take(topic, values[i]));
    await pause(POLL_MS);
  }
}

/** Ends early when the tab is looked at again or the network is back. */
export function pause(ms: number): Promise<void> {
  return new Promise((go_on) => {
    const end = () => {
      clearTimeout(timer);
      removeEventListener("online", end);
      go_on();
    };
    const timer = setTimeout(end, ms);
    addEventListener("online", end);
  });
}

export const longer = (pause_ms: number) => Math.min(pause_ms * 2, LONGEST_PAUSE_MS);

let following: AbortController | undefined;

/** Follows until takt wants a token; called again when there is another one, or none. */
export async function follow() {
  following?.abort();
  const { signal } = (following = new AbortController());
  live = nothing_yet(live.session + 1);
  change({});
  let wait_ms = FIRST_PAUSE_MS;
  while (!signal.aborted) {
    try {
      await who_am_i(signal);
      wait_ms = FIRST_PAUSE_MS;
      await follow_stream(signal).catch((problem) => {
        const no_stream = problem instanceof Refused && [400, 404].includes(problem.status);
        return no_stream ? poll(signal) : Promise.reject(problem);
      });
    } catch (problem) {
      if (signal.aborted) return;
      if (problem instanceof Refused && problem.status === 401) return change({ link: "signed-out", problem: problem.message });
      change({ link: "lost", problem: problem instanceof Refused ? words_of(problem) : undefined });
    }
    await pause(wait_ms);
    wait_ms = longer(wait_ms);
  }
}

/** Whose token it is; a socket that knows its peer has no such route. */
async function who_am_i(signal: AbortSignal) {
  try {
    change({ account: await get<Account>("/v1/account", signal) });
  } catch (problem) {
    if (!(problem instanceof Refused) || problem.status !== 404) throw problem;
  }
}

/** Its owner and administrators act on a job. */
export const may_act = (job: Job) => may_write() && (job.mine || !!live.account?.admin);
export const may_write = () => live.account?.write ?? true;
export const is_admin = () => live.account?.admin ?? true;
