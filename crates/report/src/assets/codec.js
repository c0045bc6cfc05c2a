// Decodes columns of numbers as encoded by `pack.rs`: LEB128 differences, deflated, in base64.

function fromBase64(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let at = 0; at < raw.length; at++) bytes[at] = raw.charCodeAt(at);
  return bytes;
}

async function unpack(text) {
  const deflated = new Blob([fromBase64(text)]).stream();
  const stream = deflated.pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

class Columns {
  constructor(bytes) {
    this.bytes = bytes;
    this.at = 0;
  }

  // The next n values. Sums are exact: they are below 2^53.
  next(n) {
    const bytes = this.bytes;
    const values = new Float64Array(n);
    let at = this.at;
    let last = 0;
    for (let index = 0; index < n; index++) {
      let byte = bytes[at++];
      let value = byte & 0x7f;
      let weight = 128;
      while (byte >= 0x80) {
        byte = bytes[at++];
        value += (byte & 0x7f) * weight;
        weight *= 128;
      }
      last += value % 2 ? -(value + 1) / 2 : value / 2;
      values[index] = last;
    }
    this.at = at;
    return values;
  }
}
