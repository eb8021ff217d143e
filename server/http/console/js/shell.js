/* SPDX-License-Identifier: Apache-2.0 */

import { asBytes, bytesFromText, decodeUtf8, hexFromBytes } from "./bytes.js";
import { escaped } from "./text.js";

const ARGUMENT_MAX = 16384;

/* Characters that could act when they are pasted into a terminal become octal. */
export function quote(text) {
  if (/^[\w@%+=:,./-]+$/.test(text)) return text;
  if (escaped(text) !== text) {
    const octal = Array.from(bytesFromText(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`);
    return `"$(printf '${octal.join("")}')"`;
  }
  return `'${text.replaceAll("'", "'\\''")}'`;
}

export const commandLine = (...words) => ["statestorectl", ...words].map(quote).join(" ");

/*
 * Return `statestorectl NAME OPTIONS WORDS` for a key, and a value if any: texts and Uint8Arrays. They are passed as
 * --hex if the shell or the terminal could change them. A long value is read from a file.
 */
export function keyCommand(name, words, options = []) {
  const bytes = words.map(asBytes);
  const isFile = bytes[1]?.length > ARGUMENT_MAX;
  const given = isFile ? bytes.slice(0, 1) : bytes;
  const texts = given.map(decodeUtf8);
  const isHex = texts.some((text) => text === null || text === "-" || escaped(text) !== text);
  const passed = isHex ? given.map(hexFromBytes) : texts;
  const isOption = passed.some((text) => text.startsWith("-"));

  const line = commandLine(name, ...options, ...(isHex ? ["--hex"] : []), ...(isOption ? ["--"] : []), ...passed);
  return isFile ? `${line} - < FILE` : line;
}

/* Split a line into words, with '…' and "…" as in a shell. */
export const splitWords = (line) =>
  (line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"));
