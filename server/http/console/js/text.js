/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Text of clients is hostile: it may have markup, control characters, and characters that change the
 * direction or hide text. Such characters are shown as escapes.
 */

import { el } from "./dom.js";

const HIDDEN = new RegExp("[\\0-\\x1f\\x7f-\\x9f\\u00ad\\u061c\\u115f\\u1160\\u180e\\u200b-\\u200f" +
  "\\u2028-\\u202e\\u2060-\\u206f\\u3164\\ufe00-\\ufe0f\\ufeff\\ufff9-\\ufffb\\u{e0000}-\\u{e01ef}]" +
  "|\\p{Surrogate}", "gu");
const NAMES = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

export function escapeCharacter(character) {
  const code = character.codePointAt(0);
  if (NAMES[character]) return NAMES[character];
  if (code >= 0xdc80 && code <= 0xdcff) return `\\x${(code & 0xff).toString(16)}`;
  return code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`;
}

/* Split a text into parts { text, isEscape }. keepLines: newlines and tabs are not escaped. */
export function escapedParts(text, keepLines = false) {
  const parts = [];
  let start = 0;
  for (const match of text.matchAll(HIDDEN)) {
    if (keepLines && (match[0] === "\n" || match[0] === "\t")) continue;
    if (match.index > start) parts.push({ text: text.slice(start, match.index), isEscape: false });
    parts.push({ text: escapeCharacter(match[0]), isEscape: true });
    start = match.index + match[0].length;
  }
  if (start < text.length) parts.push({ text: text.slice(start), isEscape: false });
  return parts;
}

/* As one string, for titles and labels. */
export function escapedString(text, maxLength = 300) {
  const short = text.length > maxLength ? `${text.slice(0, maxLength)}…` : text;
  return escapedParts(short).map((part) => part.text).join("");
}

function nodes(text, keepLines) {
  return escapedParts(text, keepLines).map((part) =>
    part.isEscape ? el("span", { class: "escape" }, part.text) : part.text);
}

/* Return a <bdi> with at most maxLength characters of the text. */
export function shown(text, maxLength = 200) {
  if (text === "") return el("span", { class: "faint" }, "(empty)");
  const bdi = el("bdi", { dir: "ltr" }, ...nodes(text.slice(0, maxLength), false));
  if (text.length > maxLength) bdi.append(el("span", { class: "faint" }, "…"));
  return bdi;
}

/* Return the text with a button that shows all of it if it is longer than maxLength. */
export function shownOnRequest(text, maxLength, keepLines = false) {
  const box = el("bdi", { dir: keepLines ? "auto" : "ltr", class: keepLines ? "lines" : "" });
  box.append(...nodes(text.slice(0, maxLength), keepLines));
  if (text.length > maxLength) {
    const count = text.length.toLocaleString("en");
    box.append("… ", el("button", {
      class: "small",
      onclick: () => box.replaceChildren(...nodes(text, keepLines)),
    }, `Show all ${count} characters`));
  }
  return box;
}
