import { useEffect, useState } from "preact/hooks";

import { ClockPage } from "./pages/clock.tsx";
import { ScenarioPage } from "./pages/scenario.tsx";
import { VerdictPage } from "./pages/verdict.tsx";
import { type View, read } from "./share.ts";
import { STORIES } from "./stories.ts";
import { useTheme } from "./theme.ts";

const TABS: [View, string][] = [
  ["verdict", "Why is it slow?"],
  ["scenario", "Try a scenario"],
  ["clock", "The ACK clock"],
];

/** Where the ACK clock begins: `count` differs for each request. */
export interface Seek {
  at: number;
  /** The finding whose moment is sought: in a simulation it may come earlier or later than in the capture. */
  code?: string | undefined;
  count: number;
}

export function App() {
  const [view, setView] = useState<View>("verdict");
  const [text, setText] = useState(STORIES[0]?.text ?? "");
  const [seek, setSeek] = useState<Seek>({ at: 0, count: 0 });
  const [fault, setFault] = useState("");
  const [theme, isDark, nextTheme] = useTheme();

  useEffect(() => {
    const follow = async () => {
      try {
        const shared = await read(location.hash);
        setFault("");
        setView(shared.view);
        if (shared.scenario !== undefined) {
          setText(shared.scenario);
          setSeek((old) => ({ at: shared.at, count: old.count + 1 }));
        }
      } catch {
        setFault("The link is damaged: its scenario cannot be read.");
      }
    };
    void follow();
    addEventListener("hashchange", follow);
    return () => removeEventListener("hashchange", follow);
  }, []);

  const show = (view: View) => {
    setView(view);
    // The scenario of a link is that of the page only until it is edited.
    history.replaceState(null, "", `#${view}`);
  };
  const openClock = (scenario: string, at: number, code?: string) => {
    setText(scenario);
    setSeek((old) => ({ at, code, count: old.count + 1 }));
    show("clock");
  };
  const openScenario = (scenario: string) => {
    setText(scenario);
    show("scenario");
  };

  return (
    <>
      <a class="skip" href="#content" onClick={(event) => { event.preventDefault(); document.getElementById("content")?.focus(); }}>
        Skip to the content
      </a>
      <header class="top">
        <div class="brand">
          <img src="./icon.svg" alt="" width="28" height="28" />
          <span class="name">Ackclock <span class="quiet">playground</span></span>
        </div>
        <nav aria-label="Pages">
          {TABS.map(([id, name]) => (
            <a key={id} href={`#${id}`} aria-current={view === id ? "page" : undefined}
              onClick={(event) => { event.preventDefault(); show(id); }}>
              {name}
            </a>
          ))}
        </nav>
        <button type="button" class="theme" onClick={nextTheme}>Theme: {theme}</button>
      </header>
      {fault && <p class="failure" role="alert">{fault}</p>}
      <main id="content" tabIndex={-1}>
        {/* All three keep their state; only one is shown. */}
        <div hidden={view !== "verdict"}><VerdictPage onScenario={openScenario} onClock={openClock} /></div>
        <div hidden={view !== "scenario"}>
          <ScenarioPage text={text} setText={setText} isDark={isDark} isShown={view === "scenario"} onClock={openClock} />
        </div>
        <div hidden={view !== "clock"}>
          <ClockPage text={text} setText={setText} seek={seek} isDark={isDark} isShown={view === "clock"} onScenario={openScenario} />
        </div>
      </main>
      <footer>
        Everything runs in this browser: no packet leaves the machine. The engine is that of the command{" "}
        <code>ackclock</code>, and gives the same results. Licences of the libraries{" "}
        <a href="./licences.txt">in this page</a> and <a href="./licences-engine.txt">in the engine</a>
      </footer>
    </>
  );
}
