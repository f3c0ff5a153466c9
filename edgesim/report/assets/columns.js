// Columns of numbers, as edgesim/report/columns.py packs them.

async function unpack(column) {
  const bytes = Uint8Array.from(atob(column.data), (one) => one.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const raw = new Uint8Array(await new Response(stream).arrayBuffer());
  if (column.code === "small") return raw;
  if (column.code === "exact") return new Float64Array(raw.buffer);
  const count = raw.length / 4, values = new Int32Array(count);
  let sum = 0;
  for (let i = 0; i < count; i++) {
    const value = raw[i] | raw[count + i] << 8 | raw[2 * count + i] << 16 | raw[3 * count + i] << 24;
    values[i] = column.code === "whole" ? (sum = (sum + value) | 0) : value;
  }
  return values;
}

// The same object, with all columns in it unpacked.
async function unpackAll(value) {
  if (value === null || typeof value !== "object") return value;
  if (typeof value.code === "string" && typeof value.data === "string") return unpack(value);
  if (Array.isArray(value)) return value;
  const parts = await Promise.all(Object.values(value).map(unpackAll));
  return Object.fromEntries(Object.keys(value).map((key, i) => [key, parts[i]]));
}
