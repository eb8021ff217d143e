/* SPDX-License-Identifier: Apache-2.0 */

/* The difference of two values: the lines between what is equal at their beginnings and at their ends. */

import { decodeUtf8, hexDump } from "./bytes.js";
import { el, faint, region } from "./dom.js";
import { count } from "./format.js";
import { shown } from "./text.js";

const CONTEXT = 3;
const LINES_MAX = 2000;

/* Return [{ kind: " " | "-" | "+", line }], and { kind: "…", line: their number } for equal lines farther away. */
export function diffLines(a, b) {
  const marked = (kind, lines) => lines.map((line) => ({ kind, line }));
  const folded = (n) => (n > 0 ? [{ kind: "…", line: n }] : []);
  const shorter = Math.min(a.length, b.length);
  let start = 0;
  let end = 0;
  while (start < shorter && a[start] === b[start]) start++;
  while (end < shorter - start && a.at(-1 - end) === b.at(-1 - end)) end++;
  return [
    ...folded(start - CONTEXT), ...marked(" ", a.slice(Math.max(0, start - CONTEXT), start)),
    ...marked("-", a.slice(start, a.length - end)), ...marked("+", b.slice(start, b.length - end)),
    ...marked(" ", a.slice(a.length - end).slice(0, CONTEXT)), ...folded(end - CONTEXT),
  ];
}

function lineElement({ kind, line }) {
  if (kind === "…") return el("div", faint(`… ${count(line)} equal lines`));
  return el({ "-": "del", "+": "ins" }[kind] ?? "div", `${kind} `, shown(line, 500));
}

/* Show how a value changes. Each is a Uint8Array, or null for a key that does not exist. */
export function diffElement(before, after) {
  const isText = [before, after].every((bytes) => bytes === null || decodeUtf8(bytes) !== null);
  const linesOf = (bytes) => (bytes === null ? [] : (isText ? decodeUtf8(bytes) : hexDump(bytes)).split("\n"));
  const lines = diffLines(linesOf(before), linesOf(after));
  const isEqual = lines.every(({ kind }) => kind === "…" || kind === " ");

  return region("diff", "Difference",
    isEqual ? faint("The value stays the same.") : lines.slice(0, LINES_MAX).map(lineElement),
    lines.length > LINES_MAX ? faint(`… and ${count(lines.length - LINES_MAX)} more lines`) : null);
}
