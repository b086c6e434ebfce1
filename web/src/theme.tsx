// SPDX-License-Identifier: Apache-2.0
// Light or dark, and the button for it.
import { useEffect, useLayoutEffect, useState } from "preact/hooks";

const KEY = "takt-theme";

const system = matchMedia("(prefers-color-scheme: dark)");

/** Some places where a page can be opened keep nothing for it, and say so by throwing. */
function kept(): string {
  try {
    return localStorage.getItem(KEY) ?? "";
  } catch {
    return "";
  }
}

function keep(theme: string) {
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // until the page is closed, then
  }
}

/** As it is now, for what is painted and not styled. */
export const shown_theme = () => document.documentElement.dataset.theme ?? (system.matches ? "dark" : "light");

/** As the system has it, until somebody says otherwise. */
export function Theme() {
  const [theme, set_theme] = useState(kept);
  const [system_dark, set_system_dark] = useState(system.matches);
  const dark = theme ? theme === "dark" : system_dark;
  useEffect(() => {
    const look = () => set_system_dark(system.matches);
    system.addEventListener("change", look);
    return () => system.removeEventListener("change", look);
  }, []);
  useLayoutEffect(() => {
    if (theme) document.documentElement.dataset.theme = theme; // without it the styles follow the system
  }, [theme]);
  const turn = () => {
    const next = dark ? "light" : "dark";
    keep(next);
    set_theme(next);
  };
  return (
    <button class="plain" onClick={turn} aria-label={dark ? "light colours" : "dark colours"}>
      {dark ? "☀" : "☾"}
    </button>
  );
}
