// What this module cannot do or read, said in one line that names the field, tensor or hook point and what would be right.

export class ModelError extends Error {}

export function refuse(message) {
  throw new ModelError(message);
}

const LONGEST = 60;

// A value from outside as it may stand in a message: short, on one line.
export function shown(value) {
  let text;
  try {
    text = typeof value === "bigint" ? `${value}` : (JSON.stringify(value) ?? String(value));
  } catch {
    text = typeof value;
  }
  text = text.replace(/[\u0000-\u001f\u007f]/g, " ");
  return text.length > LONGEST ? `${text.slice(0, LONGEST)}…` : text;
}
