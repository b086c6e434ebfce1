// SPDX-License-Identifier: Apache-2.0
// Places of the page as the address's fragment: "#/jobs/7?tab=log". Whoever has the address sees the same.
import { useEffect, useState } from "preact/hooks";

export interface Place {
  page: string;
  id?: number;
  query: URLSearchParams;
}

export function place_of(hash: string): Place {
  const [path, query = ""] = hash.replace(/^#\/?/, "").split("?");
  const [page = "", id] = path.split("/");
  return { page: page || "overview", id: /^\d+$/.test(id ?? "") ? Number(id) : undefined, query: new URLSearchParams(query) };
}

export function usePlace(): Place {
  const [place, set_place] = useState(() => place_of(location.hash));
  useEffect(() => {
    const look = () => set_place(place_of(location.hash));
    addEventListener("hashchange", look);
    return () => removeEventListener("hashchange", look);
  }, []);
  return place;
}

/** Changes what the address says without a new entry in the history. */
export function amend(query: Record<string, string | undefined>) {
  const [path, old = ""] = location.hash.split("?");
  const words = new URLSearchParams(old);
  for (const [name, value] of Object.entries(query)) value ? words.set(name, value) : words.delete(name);
  const text = words.toString();
  history.replaceState(null, "", `${path || "#/overview"}${text ? `?${text}` : ""}`);
  dispatchEvent(new HashChangeEvent("hashchange"));
}

export const go = (hash: string) => (location.hash = hash);
