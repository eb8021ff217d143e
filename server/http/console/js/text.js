/* SPDX-License-Identifier: Apache-2.0 */

/* Text of clients is hostile: control characters, and those that change the direction or hide text, are escaped. */

import { button, el, faint } from "./dom.js";

const HIDDEN = /([\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}])/gu;
const NAMES = { "\n": "\\n", "\r": "\\r", "\t": "\\t", "\0": "\\0" };

function escapeCharacter(character) {
  const code = character.codePointAt(0);
  const isByte = code < 0x100 || (code >= 0xdc80 && code <= 0xdcff);
  return NAMES[character] ??
    (isByte ? `\\x${(code & 0xff).toString(16).padStart(2, "0")}` : `\\u{${code.toString(16)}}`);
}

export const escaped = (text) => text.replace(HIDDEN, escapeCharacter);

function nodes(text, keepLines) {
  const isText = (part, i) => i % 2 === 0 || (keepLines && (part === "\n" || part === "\t"));
  return text.split(HIDDEN).map((part, i) => (isText(part, i) ? part : el("span.escape", escapeCharacter(part))));
}

/* Return an element with the beginning of the text. */
export function shown(text, maxLength = 80) {
  if (text === "") return faint("(empty)");
  return el("bdi", { dir: "ltr" }, nodes(text.slice(0, maxLength)), text.length > maxLength ? faint("…") : null);
}

/* The same with a button that shows all. keepLines: newlines and tabs are not escaped. */
export function shownOnRequest(text, maxLength, keepLines = false) {
  const box = el("bdi", { dir: keepLines ? "auto" : "ltr", className: keepLines ? "lines" : "" },
    nodes(text.slice(0, maxLength), keepLines));
  if (text.length > maxLength) {
    box.append("… ", button(`Show all ${text.length.toLocaleString("en")} characters`,
      () => box.replaceChildren(...nodes(text, keepLines)), "small"));
  }
  return box;
}

const REMEDIES = {
  "not authorized": "no rule of the policy grants it; see statestored --explain",
  "the quota has been exceeded": "Health shows the limits",
};

/* An error of the store, and what to do about it. */
export const explained = (text) => (text in REMEDIES ? `${text}: ${REMEDIES[text]}` : text);

export const keyName = (name) => el("p.key-name", shownOnRequest(name, 160));
