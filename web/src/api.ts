// SPDX-License-Identifier: Apache-2.0
// Asks takt. The token, where one is needed, is kept for this tab, or in the browser if its owner says so.

import type { Job, Queue } from "./types";

const KEY = "takt-token";

export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly error_name: string,
    message: string,
  ) {
    super(message);
  }
}

/** "#token=..." is taken over and at once removed from the address, which says `place` instead. */
function token_of_address(place = ""): string | null {
  const match = /^#token=([\w-]+)$/.exec(location.hash);
  if (!match) return null;
  history.replaceState(null, "", location.pathname + place);
  return match[1];
}

const given = token_of_address();
let token = sessionStorage.getItem(KEY) ?? localStorage.getItem(KEY) ?? given;
let offered = given !== token ? given : null;
if (token) sessionStorage.setItem(KEY, token);

export function keep_token(given: string, remember: boolean) {
  token = given;
  sessionStorage.setItem(KEY, given);
  if (remember) localStorage.setItem(KEY, given);
}

/** The token of a link that was opened while somebody is signed in here: to be asked about. */
export const offered_token = () => offered;

export function take_offer(yes: boolean) {
  if (yes && offered) keep_token(offered, false);
  offered = null;
}

/** Calls back when a link with another token has been pasted into the open page, which stays where it was. */
export function on_pasted_token(offer: () => void) {
  addEventListener("hashchange", ({ oldURL }) => {
    const pasted = token_of_address(oldURL.replace(/^[^#]*/, ""));
    if (!pasted || pasted === token) return;
    offered = pasted;
    offer();
  });
}

export function forget_token() {
  token = null;
  sessionStorage.removeItem(KEY);
  localStorage.removeItem(KEY);
}

export const has_token = () => token !== null;

/** The response when it is a good one; Refused with takt's own words when it is not. */
export async function request(path: string, options: RequestInit = {}): Promise<Response> {
  const headers = new Headers(options.headers);
  if (token) headers.set("Authorization", `Bearer ${token}`);
  const response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  if (response.ok) return response;
  const answer = await response.json().catch(() => null);
  throw new Refused(
    response.status,
    answer?.error?.name ?? "",
    answer?.error?.message ?? `takt answered ${response.status}`,
  );
}

export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  return (await request(path, { signal })).json();
}

/** So many ended jobs at most, the newest first; takt may answer in parts. */
export async function past_jobs(limit: number, more: string, signal?: AbortSignal): Promise<Queue> {
  const jobs: Job[] = [];
  let before = 0;
  do {
    const part = await get<Queue>(`/v1/jobs?history=1&limit=${limit - jobs.length}&before=${before}${more}`, signal);
    jobs.push(...part.jobs);
    before = part.next ?? 0;
  } while (before && jobs.length < limit);
  return { jobs, total: jobs.length };
}

export async function post<T>(path: string, body: unknown = {}): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  return (await request(path, { method: "POST", headers, body: JSON.stringify(body) })).json();
}

export const words_of = (problem: unknown) => (problem instanceof Error ? problem.message : String(problem));
