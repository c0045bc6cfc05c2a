// A link that holds a whole scenario: compressed, in the fragment, which no server receives.

/** Longest text that a link may unpack to. */
const LIMIT = 1 << 20;

async function through(bytes: Uint8Array<ArrayBuffer>, stream: GenericTransformStream): Promise<Uint8Array> {
  const reader = (new Blob([bytes]).stream() as ReadableStream<Uint8Array>).pipeThrough(stream).getReader();
  const parts: Uint8Array[] = [];
  let length = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) break;
    parts.push(value as Uint8Array);
    length += (value as Uint8Array).length;
    if (length > LIMIT) {
      await reader.cancel();
      throw new Error("the scenario of the link is too long");
    }
  }
  const all = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Packs a text for the fragment of an address. */
export async function pack(text: string): Promise<string> {
  const bytes = new Uint8Array(new TextEncoder().encode(text));
  const packed = await through(bytes, new CompressionStream("deflate-raw"));
  const characters = Array.from(packed, (byte) => String.fromCharCode(byte)).join("");
  return btoa(characters).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
}

/** Unpacks what [`pack`] made; throws if it is damaged. */
export async function unpack(packed: string): Promise<string> {
  const characters = atob(packed.replaceAll("-", "+").replaceAll("_", "/"));
  const bytes = Uint8Array.from(characters, (character) => character.charCodeAt(0));
  const text = await through(bytes, new DecompressionStream("deflate-raw"));
  return new TextDecoder("utf-8", { fatal: true }).decode(text);
}

export type View = "verdict" | "scenario" | "clock";

export interface Shared {
  view: View;
  scenario: string | undefined;
  /** Instant of the ACK clock in ns. */
  at: number;
}

const VIEWS: View[] = ["verdict", "scenario", "clock"];

export async function linkOf(view: View, scenario: string, at = 0): Promise<string> {
  const instant = at > 0 ? `&at=${Math.round(at)}` : "";
  return `${location.origin}${location.pathname}#${view}&s=${await pack(scenario)}${instant}`;
}

/** Reads the fragment of an address. */
export async function read(fragment: string): Promise<Shared> {
  const [name, ...rest] = fragment.replace(/^#/, "").split("&");
  const values = new Map(rest.map((part) => part.split("=", 2) as [string, string]));
  const view = VIEWS.find((view) => view === name) ?? "verdict";
  const packed = values.get("s");
  const at = Number(values.get("at") ?? 0);
  const scenario = packed === undefined ? undefined : await unpack(packed);
  return { view, scenario, at: Number.isFinite(at) && at > 0 ? at : 0 };
}
