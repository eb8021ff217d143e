/* SPDX-License-Identifier: Apache-2.0 */

/* Command lines of statestorectl, quoted for a POSIX shell. */

import { bytesFromText, decodeUtf8, hexFromBytes } from "./bytes.js";
import { escapedParts } from "./text.js";

const ARGUMENT_MAX = 16384;

/* A hostile pattern may contain characters that act when they are pasted: they become octal. */
export function quote(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (escapedParts(text).some((part) => part.isEscape)) {
    const octal = Array.from(bytesFromText(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`);
    return `"$(printf '${octal.join("")}')"`;
  }
  return `'${text.replaceAll("'", "'\\''")}'`;
}

/* Pasted into a terminal, control characters could act: such words are passed as --hex. */
function isPlain(bytes) {
  const text = decodeUtf8(bytes);
  return text !== null && text !== "-" && escapedParts(text).every((part) => !part.isEscape);
}

/*
 * Return `statestorectl NAME OPTIONS WORDS`. options: words that are quoted, but never hexadecimal.
 * words: texts and Uint8Arrays. A long value is read from a file.
 */
export function commandLine(name, words, options = []) {
  const bytes = words.map((word) => typeof word === "string" ? bytesFromText(word) : word);
  const isFile = name === "set" && bytes[1].length > ARGUMENT_MAX;
  const given = isFile ? bytes.slice(0, 1) : bytes;
  const isHex = !given.every(isPlain);
  const texts = given.map((word) => isHex ? hexFromBytes(word) : decodeUtf8(word));

  if (isHex) options = [...options, "--hex"];
  if (texts.some((text) => text.startsWith("-"))) options = [...options, "--"];
  const line = ["statestorectl", name, ...options, ...texts].map(quote).join(" ");
  return isFile ? `${line} - < FILE` : line;
}

/* Split a line into words as a shell does, with '…' and "…". Returns null if a quote is open. */
export function splitWords(line) {
  const words = [];
  let word = null;
  let open = "";
  for (const character of line) {
    if (open !== "") {
      if (character === open) open = "";
      else word += character;
    } else if (character === "'" || character === '"') {
      open = character;
      word ??= "";
    } else if (/\s/.test(character)) {
      if (word !== null) words.push(word);
      word = null;
    } else {
      word = (word ?? "") + character;
    }
  }
  if (open !== "") return null;
  if (word !== null) words.push(word);
  return words;
}
