/* SPDX-License-Identifier: Apache-2.0 */

/* The difference of two texts, line by line. */

import { el } from "./dom.js";
import { shown } from "./text.js";
import { decodeUtf8, hexDump } from "./bytes.js";

const CELLS_MAX = 1000000;
const CONTEXT = 3;
const LINES_MAX = 2000;

const marked = (kind, lines) => lines.map((line) => ({ kind, line }));

/* Longest common subsequence by a table of its lengths from each pair of lines to the end. */
function compareMiddle(a, b) {
  const width = b.length + 1;
  if ((a.length + 1) * width > CELLS_MAX) return [...marked("-", a), ...marked("+", b)];

  const lengths = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i--)
    for (let j = b.length - 1; j >= 0; j--)
      lengths[i * width + j] = a[i] === b[j]
        ? lengths[(i + 1) * width + j + 1] + 1
        : Math.max(lengths[(i + 1) * width + j], lengths[i * width + j + 1]);

  const result = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    if (a[i] === b[j]) {
      result.push({ kind: " ", line: a[i++] });
      j++;
    } else if (lengths[(i + 1) * width + j] >= lengths[i * width + j + 1]) {
      result.push({ kind: "-", line: a[i++] });
    } else {
      result.push({ kind: "+", line: b[j++] });
    }
  }
  return [...result, ...marked("-", a.slice(i)), ...marked("+", b.slice(j))];
}

/* Return [{ kind: " " | "-" | "+", line }]. */
export function diffLines(a, b) {
  let start = 0;
  let end = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start++;
  while (end < a.length - start && end < b.length - start &&
         a[a.length - 1 - end] === b[b.length - 1 - end]) end++;
  return [
    ...marked(" ", a.slice(0, start)),
    ...compareMiddle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...marked(" ", a.slice(a.length - end)),
  ];
}

/* Replace long runs of equal lines by { kind: "…", line: the number of lines }. */
export function foldEqualLines(lines) {
  const isNear = new Uint8Array(lines.length);
  lines.forEach(({ kind }, i) => {
    if (kind !== " ") isNear.fill(1, Math.max(0, i - CONTEXT), i + CONTEXT + 1);
  });
  const result = [];
  for (let i = 0; i < lines.length; i++) {
    if (isNear[i]) result.push(lines[i]);
    else if (i > 0 && !isNear[i - 1]) result.at(-1).line++;
    else result.push({ kind: "…", line: 1 });
  }
  return result;
}

/* The lines of a value: of its text, or of its hexadecimal digits. null: the key does not exist. */
function valueLines(bytes, isText) {
  if (bytes === null) return [];
  return (isText ? decodeUtf8(bytes) : hexDump(bytes)).split("\n");
}

function lineElement({ kind, line }) {
  if (kind === "…") return el("div", { class: "faint" }, `  … ${line} equal lines`);
  const words = { "-": "removed", "+": "added" };
  const tag = { "-": "del", "+": "ins" }[kind] ?? "div";
  return el(tag, {}, el("span", { "aria-label": words[kind] ?? "" }, `${kind} `), shown(line, 500));
}

/* Show how a value changes. Each is a Uint8Array, or null for a key that does not exist. */
export function diffElement(before, after) {
  const isText = [before, after].every((bytes) => bytes === null || decodeUtf8(bytes) !== null);
  const lines = foldEqualLines(diffLines(valueLines(before, isText), valueLines(after, isText)));
  const box = el("div", { class: "diff", tabindex: 0, role: "region", "aria-label": "Difference" });

  if (lines.every(({ kind }) => kind === "…" || kind === " "))
    box.append(el("div", { class: "faint" }, "The value stays the same."));
  else box.append(...lines.slice(0, LINES_MAX).map(lineElement));
  if (lines.length > LINES_MAX)
    box.append(el("div", { class: "faint" }, `… and ${lines.length - LINES_MAX} more lines`));
  return box;
}
