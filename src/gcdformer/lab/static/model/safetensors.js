// Reads a safetensors file: 8 bytes with the length of a JSON header, the header, the tensors' bytes without gaps. What is
// in it has to be exactly what the model needs, so that a wrong file costs no memory. Knows tensors, not models.

import { refuse, shown } from "./errors.js";

const LONGEST_HEADER = 10_000_000;
const ITEM_BYTES = { F32: 4, F16: 2 };

// The tensors by name as Float32Array. `shapes` is a map from the name of every tensor that has to be there to its shape.
// Float32 tensors may share the memory of `buffer`.
export function readTensors(buffer, shapes) {
  if (!(buffer instanceof ArrayBuffer)) refuse("weights: an ArrayBuffer with a safetensors file is needed");
  const { header, dataAt } = readHeader(buffer);
  const dataBytes = buffer.byteLength - dataAt;
  for (const name of header.keys()) if (!shapes.has(name)) refuse(`weights: unknown tensor ${shown(name)}`);
  const ranges = [];
  for (const [name, shape] of shapes) {
    if (!header.has(name)) refuse(`weights: tensor '${name}' is missing`);
    ranges.push({ name, ...readEntry(name, header.get(name), shape, dataBytes) });
  }
  ranges.sort((one, other) => one.begin - other.begin);
  let at = 0;
  for (const { name, begin, end } of ranges) {
    if (begin !== at) refuse(`weights: tensor '${name}' starts at byte ${begin} of the data, not at ${at}`);
    at = end;
  }
  if (at !== dataBytes) refuse(`weights: ${dataBytes} bytes of data, but the tensors have ${at}`);
  return new Map(ranges.map((range) => [range.name, readValues(buffer, dataAt, range)]));
}

function readHeader(buffer) {
  const bytes = buffer.byteLength;
  if (bytes < 8) refuse(`weights: ${bytes} bytes are no safetensors file`);
  const length = Number(new DataView(buffer).getBigUint64(0, true));
  if (length > LONGEST_HEADER || length > bytes - 8)
    refuse(`weights: a header of ${length} bytes does not fit a file of ${bytes} bytes`);
  let tree;
  try {
    tree = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(new Uint8Array(buffer, 8, length)));
  } catch {
    refuse("weights: the header is not JSON");
  }
  if (typeof tree !== "object" || tree === null || Array.isArray(tree))
    refuse("weights: the header is not a JSON object");
  return { header: new Map(Object.entries(tree).filter(([name]) => name !== "__metadata__")), dataAt: 8 + length };
}

function readEntry(name, entry, shape, dataBytes) {
  const { dtype, shape: given, data_offsets: offsets } = entry ?? {};
  if (typeof dtype !== "string" || !Object.hasOwn(ITEM_BYTES, dtype))
    refuse(`weights: tensor '${name}' has dtype ${shown(dtype)}; only F32 and F16 are read here`);
  if (!Array.isArray(given) || given.length !== shape.length || given.some((size, axis) => size !== shape[axis]))
    refuse(`weights: tensor '${name}' needs shape ${shown(shape)}, has ${shown(given)}`);
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(Number.isSafeInteger))
    refuse(`weights: tensor '${name}' has data_offsets ${shown(offsets)}, not two integers`);
  const [begin, end] = offsets;
  const wanted = shape.reduce((product, size) => product * size, ITEM_BYTES[dtype]);
  if (begin < 0 || end > dataBytes || end - begin !== wanted)
    refuse(`weights: tensor '${name}' has ${wanted} bytes, which bytes ${begin}..${end} of ${dataBytes} do not hold`);
  return { dtype, begin, end };
}

function readValues(buffer, dataAt, { name, dtype, begin, end }) {
  const [from, to] = [dataAt + begin, dataAt + end];
  const aligned = from % ITEM_BYTES[dtype] === 0;
  const [source, at] = aligned ? [buffer, from] : [buffer.slice(from, to), 0];
  const count = (to - from) / ITEM_BYTES[dtype];
  const values = dtype === "F32" ? new Float32Array(source, at, count) : widen(new Uint16Array(source, at, count));
  for (let i = 0; i < count; i += 1) if (!Number.isFinite(values[i])) refuse(`weights: tensor '${name}' is not finite`);
  return values;
}

// The value of the last bit of the fraction, by the exponent; the last exponent is that of infinities and NaN.
const UNITS = Float64Array.from({ length: 32 }, (_, exponent) => (exponent === 31 ? NaN : 2 ** (Math.max(exponent, 1) - 25)));

// IEEE half precision to single: 1 bit of sign, 5 of exponent, 10 of fraction, with a 1 before it unless the exponent is 0.
function widen(halves) {
  const values = new Float32Array(halves.length);
  for (let i = 0; i < halves.length; i += 1) {
    const exponent = (halves[i] >> 10) & 31;
    const fraction = halves[i] & 1023;
    const value = (exponent ? 1024 + fraction : fraction) * UNITS[exponent];
    values[i] = halves[i] & 0x8000 ? -value : value;
  }
  return values;
}
