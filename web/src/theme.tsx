// SPDX-License-Identifier: Apache-2.0
// Light or dark, and the button for it.
import { useEffect, useState } from "preact/hooks";

const KEY = "takt-theme";

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

/** As the system has it, until somebody says otherwise. */
export function Theme() {
  const [theme, set_theme] = useState(kept);
  useEffect(() => {
    document.documentElement.dataset.theme = theme || (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  }, [theme]);
  const dark = theme ? theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
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
