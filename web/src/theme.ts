// Dark and light: the system's, unless the user chose one.

import { useEffect, useState } from "preact/hooks";

export type Theme = "system" | "light" | "dark";
const KEY = "ackclock-theme";
const NAMES: Theme[] = ["system", "light", "dark"];
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme {
  try {
    return NAMES.find((name) => name === localStorage.getItem(KEY)) ?? "system";
  } catch {
    return "system";
  }
}

const isDark = (theme: Theme) => (theme === "system" ? dark.matches : theme === "dark");

/** The theme, whether it is dark, and a function that goes to the next one. */
export function useTheme(): [Theme, boolean, () => void] {
  const [theme, setTheme] = useState(stored);
  const [, redraw] = useState(0);
  useEffect(() => {
    document.documentElement.dataset["theme"] = isDark(theme) ? "dark" : "light";
    const changed = () => {
      document.documentElement.dataset["theme"] = isDark(theme) ? "dark" : "light";
      redraw((count) => count + 1);
    };
    dark.addEventListener("change", changed);
    return () => dark.removeEventListener("change", changed);
  }, [theme]);
  const next = () => {
    const name = NAMES[(NAMES.indexOf(theme) + 1) % NAMES.length] ?? "system";
    try {
      localStorage.setItem(KEY, name);
    } catch {
      // Without storage the choice lasts as long as the page.
    }
    setTheme(name);
  };
  return [theme, isDark(theme), next];
}

/** A colour of the style sheet. */
export function colour(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
}
