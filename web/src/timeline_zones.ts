// SPDX-License-Identifier: Apache-2.0
// Times in which a GPU is not for everybody: reserved, set aside by somebody, lost or in quarantine.
import type { Health, HealthGpu, Orders } from "./types";

export interface Zone {
  gpu: number;
  kind: "kept" | "out";
  from: number;
  /** Infinity: nobody knows. */
  until: number;
  text: string;
}

const OUT = ["lost", "quarantined"];

/** Changes are there newest first: each lasts until the one before it in the list. */
function out_of_health({ index, changes }: HealthGpu): Zone[] {
  return changes.flatMap(({ at_ms, to }, i): Zone[] => (OUT.includes(to) ? [{ gpu: index, kind: "out", from: at_ms, until: changes[i - 1]?.at_ms ?? Infinity, text: to }] : []));
}

export function zones_of(orders: Orders | undefined, health: Health | undefined, now: number): Zone[] {
  const reserved = (orders?.reservations ?? []).filter(({ state }) => state === "granted").flatMap(({ gpus, from_ms, until_ms, user, tenant, reason }) =>
    gpus.map((gpu): Zone => ({ gpu, kind: "kept", from: from_ms, until: until_ms, text: `${user || tenant ? `reserved for ${user || tenant}` : "maintenance"}${reason ? `: ${reason}` : ""}` })),
  );
  const aside = (orders?.set_aside ?? []).map(
    ({ index, state, reason, since_ms }): Zone => ({ gpu: index, kind: "out", from: since_ms ?? now, until: Infinity, text: `${state === "fault" ? "set aside by takt" : state}${reason ? `: ${reason}` : ""}` }),
  );
  return [...reserved, ...aside, ...(health?.gpus ?? []).flatMap(out_of_health)];
}
