// The editor of scenarios: CodeMirror in a shadow root, where its styles need no exception of the
// security policy.

import { autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, StreamLanguage, bracketMatching, syntaxHighlighting } from "@codemirror/language";
import { toml } from "@codemirror/legacy-modes/mode/toml";
import { type Diagnostic, lintGutter, lintKeymap, setDiagnostics } from "@codemirror/lint";
import { Annotation, EditorState } from "@codemirror/state";
import { EditorView, drawSelection, highlightActiveLine, keymap, lineNumbers } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { useEffect, useRef } from "preact/hooks";

import type { ScenarioError } from "../engine/types.ts";
import { completions } from "./completion.ts";

/** The change came from the page, not from the user. */
const fromPage = Annotation.define<boolean>();

const highlight = HighlightStyle.define([
  { tag: tags.comment, color: "var(--code-comment)" },
  { tag: [tags.string, tags.special(tags.string)], color: "var(--code-string)" },
  { tag: [tags.number, tags.bool, tags.atom], color: "var(--code-number)" },
  { tag: [tags.propertyName, tags.definition(tags.propertyName)], color: "var(--code-key)" },
]);

const look = EditorView.theme({
  "&": { fontSize: "14px", backgroundColor: "var(--field)", color: "var(--text)", height: "100%" },
  "&.cm-focused": { outline: "2px solid var(--accent)" },
  ".cm-scroller": { fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, monospace", overflow: "auto" },
  ".cm-gutters": { backgroundColor: "var(--field)", color: "var(--quiet)", border: "none" },
  ".cm-cursor": { borderLeftColor: "var(--text)" },
  ".cm-activeLine": { backgroundColor: "var(--line)" },
  "&.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground, .cm-selectionBackground": { backgroundColor: "var(--selection)" },
  ".cm-tooltip": { backgroundColor: "var(--field)", color: "var(--text)", border: "1px solid var(--grid)", maxWidth: "36rem" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { backgroundColor: "var(--accent)", color: "var(--on-accent)" },
  ".cm-completionInfo": { maxWidth: "22rem" },
  ".cm-diagnostic": { whiteSpace: "pre-wrap" },
});

interface Props {
  text: string;
  errors: ScenarioError[];
  /** The JSON schema of scenarios, for completion. */
  schema: () => unknown;
  onChange(text: string): void;
  /** Receives a function that puts the cursor at a line and column. */
  onReady(jump: (line: number, column: number) => void): void;
}

/** Offset of a line and a column in characters, both from 1. */
function offset(state: EditorState, line: number, column: number): number {
  const found = state.doc.line(Math.min(Math.max(line, 1), state.doc.lines));
  const before = Array.from(found.text).slice(0, column - 1).join("");
  return Math.min(found.from + before.length, found.to);
}

function diagnostics(state: EditorState, errors: ScenarioError[]): Diagnostic[] {
  return errors.filter((error) => error.file === "scenario").map((error) => {
    const from = offset(state, error.line, error.column);
    const to = Math.max(offset(state, error.line, error.column + Math.max(error.width, 1)), from);
    return { from, to, severity: "error", message: textOf(error) };
  });
}

export function textOf(error: ScenarioError): string {
  const expected = error.expected ? `; expected ${error.expected}` : "";
  const found = error.found ? `, found ${error.found}` : "";
  return `${error.message}${expected}${found}${error.hint ? `; ${error.hint}` : ""}`;
}

export function Editor({ text, errors, schema, onChange, onReady }: Props) {
  const host = useRef<HTMLDivElement>(null);
  const view = useRef<EditorView | undefined>(undefined);
  const change = useRef(onChange);
  /** Texts that were typed and have not come back as `text` yet: the page follows a quick typist with a delay. */
  const typed = useRef<string[]>([]);
  change.current = onChange;

  useEffect(() => {
    const element = host.current;
    if (!element) return;
    const root = element.shadowRoot ?? element.attachShadow({ mode: "open" });
    const extensions = [
      lineNumbers(),
      history(),
      drawSelection(),
      bracketMatching(),
      closeBrackets(),
      highlightActiveLine(),
      lintGutter(),
      StreamLanguage.define(toml),
      syntaxHighlighting(highlight),
      autocompletion({ override: [(context) => completions(context, schema())] }),
      // Without Tab: the keyboard alone must be able to leave the editor.
      keymap.of([...completionKeymap, ...lintKeymap, ...historyKeymap, ...defaultKeymap]),
      EditorView.contentAttributes.of({ "aria-label": "Scenario", tabindex: "0", spellcheck: "false", autocorrect: "off", autocapitalize: "off" }),
      EditorView.updateListener.of((update) => {
        if (update.docChanged && !update.transactions.some((one) => one.annotation(fromPage))) {
          const doc = update.state.doc.toString();
          typed.current.push(doc);
          change.current(doc);
        }
      }),
      look,
    ];
    const made = new EditorView({ state: EditorState.create({ doc: text, extensions }), parent: root, root });
    view.current = made;
    onReady((line, column) => {
      made.dispatch({ selection: { anchor: offset(made.state, line, column) }, scrollIntoView: true });
      made.focus();
    });
    return () => made.destroy();
  }, []);

  useEffect(() => {
    const state = view.current?.state;
    const back = typed.current.lastIndexOf(text);
    typed.current = back >= 0 ? typed.current.slice(back + 1) : [];
    if (!state || back >= 0 || state.doc.toString() === text) return;
    // Only what differs is replaced, so that the view stays where it is.
    const old = state.doc.toString();
    let from = 0;
    while (from < old.length && from < text.length && old[from] === text[from]) from++;
    let tail = 0;
    const most = Math.min(old.length, text.length) - from;
    while (tail < most && old[old.length - 1 - tail] === text[text.length - 1 - tail]) tail++;
    view.current?.dispatch({
      changes: { from, to: old.length - tail, insert: text.slice(from, text.length - tail) },
      annotations: fromPage.of(true),
    });
  }, [text]);

  useEffect(() => {
    const made = view.current;
    if (made) made.dispatch(setDiagnostics(made.state, diagnostics(made.state, errors)));
  }, [errors, text]);

  return <div class="editor" ref={host} />;
}
