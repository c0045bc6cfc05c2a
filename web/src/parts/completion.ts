// Completion of keys and values from the JSON schema of scenarios.

import type { Completion, CompletionContext, CompletionResult } from "@codemirror/autocomplete";

interface Schema {
  description?: string;
  properties?: Record<string, Schema>;
  additionalProperties?: Schema | boolean;
  items?: Schema;
  enum?: unknown[];
  const?: unknown;
  type?: string;
  anyOf?: Schema[];
  oneOf?: Schema[];
  allOf?: { if?: Schema; then?: Schema }[];
}

/** All tables that a value may be. */
function alternatives(schema: Schema): Schema[] {
  return [schema, ...(schema.anyOf ?? []).flatMap(alternatives)];
}

/** The schemas of key `key` in a table, or of an entry of a list. */
function below(schemas: Schema[], key: string | undefined): Schema[] {
  return schemas.flatMap(alternatives).flatMap((schema) => {
    if (key === undefined) return schema.items ? [schema.items] : [];
    const own = schema.properties?.[key];
    if (own) return [own];
    return typeof schema.additionalProperties === "object" ? [schema.additionalProperties] : [];
  });
}

const KEY = /^(?:"([^"]*)"|'([^']*)'|([\w-]+))$/;

function parts(dotted: string): string[] {
  return (dotted.match(/"[^"]*"|'[^']*'|[\w-]+/g) ?? []).map((part) => {
    const found = KEY.exec(part);
    return found?.[1] ?? found?.[2] ?? found?.[3] ?? part;
  });
}

interface Position {
  /** Keys down to the cursor's table; `undefined` for an entry of a list. */
  path: (string | undefined)[];
  /** The key whose value is typed; without one a key is typed. */
  key: string[] | undefined;
}

/** Where in the document a position is, from the text before it. */
export function positionOf(before: string): Position {
  let header: (string | undefined)[] = [];
  let stack: { path: (string | undefined)[] }[] = [];
  let key: string[] | undefined;
  let word = "";
  let at = 0;
  const here = () => (stack.length > 0 ? (stack[stack.length - 1]?.path ?? []) : header);
  const value = () => [...here(), ...(key ?? [])];
  while (at < before.length) {
    const char = before[at] ?? "";
    if (char === "#") {
      while (at < before.length && before[at] !== "\n") at++;
      continue;
    }
    if (char === '"' || char === "'") {
      const end = before.indexOf(char, at + 1);
      if (end < 0) return { path: here(), key };
      word += before.slice(at, end + 1);
      at = end + 1;
      continue;
    }
    if (char === "[" && stack.length === 0 && key === undefined && word.trim() === "") {
      const end = before.indexOf("]", at);
      if (end < 0) return { path: [], key: undefined };
      const isList = before[at + 1] === "[";
      header = parts(before.slice(at, end));
      if (isList) header.push(undefined);
      at = end + (isList ? 2 : 1);
      continue;
    }
    if (char === "=") {
      key = parts(word);
      word = "";
    } else if (char === "{") {
      stack.push({ path: value() });
      [key, word] = [undefined, ""];
    } else if (char === "[") {
      stack.push({ path: [...value(), undefined] });
      [key, word] = [undefined, ""];
    } else if (char === "}" || char === "]") {
      stack = stack.slice(0, -1);
      // The rest of the line belongs to no key.
      [key, word] = [undefined, ""];
    } else if (char === "," || (char === "\n" && stack.length === 0)) {
      [key, word] = [undefined, ""];
    } else {
      word += char;
    }
    at++;
  }
  return { path: here(), key };
}

function values(schemas: Schema[]): Completion[] {
  const all = schemas.flatMap(alternatives);
  const names = all.flatMap((schema) => [...(schema.enum ?? []), ...(schema.const === undefined ? [] : [schema.const])]);
  const flags = all.some((schema) => schema.type === "boolean") ? [true, false] : [];
  return [...new Set([...names, ...flags])].map((name) => ({ label: JSON.stringify(name), type: "constant" }));
}

/** Completions at the cursor. */
export function completions(context: CompletionContext, schema: unknown): CompletionResult | null {
  if (!schema) return null;
  const word = context.matchBefore(/["']?[\w.-]*/);
  if (!word || (word.from === word.to && !context.explicit)) return null;
  const { path, key } = positionOf(context.state.sliceDoc(0, word.from));
  let schemas: Schema[] = [schema as Schema];
  for (const part of [...path, ...(key ?? [])]) schemas = below(schemas, part);
  if (key !== undefined || schemas.some((one) => one.enum)) {
    const options = values(schemas);
    return options.length > 0 ? { from: word.from, options } : null;
  }
  const options = schemas.flatMap(alternatives).flatMap((one) =>
    Object.entries(one.properties ?? {}).map(([name, property]): Completion => ({
      label: name,
      type: "property",
      apply: `${/^[\w-]+$/.test(name) ? name : JSON.stringify(name)} = `,
      ...(property.description && { info: property.description }),
    })),
  );
  return options.length > 0 ? { from: word.from, options } : null;
}
