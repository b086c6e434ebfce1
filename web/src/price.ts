// SPDX-License-Identifier: Apache-2.0
// What energy costs is its reader's own to say, and kept in his browser; without a price there is no money on the page.
import { useState } from "preact/hooks";
import { short } from "./format";

const KEY = "takt-price";

const kept_price = () => Number(localStorage.getItem(KEY)) || undefined;

export function usePrice(): [number | undefined, (text: string) => void] {
  const [price, set_price] = useState(kept_price);
  return [
    price,
    (text) => {
      const value = Number(text.replace(",", "."));
      if (value > 0) localStorage.setItem(KEY, String(value));
      else localStorage.removeItem(KEY);
      set_price(kept_price());
    },
  ];
}

const MJ_PER_KWH = 3.6e9;

/** At the price that was typed last; undefined without one. */
export function cost_of(energy_mj: number | undefined): string | undefined {
  const price = kept_price();
  return price === undefined || energy_mj === undefined ? undefined : `costs ${short((energy_mj / MJ_PER_KWH) * price)}`;
}
