/* SPDX-License-Identifier: Apache-2.0 */

import { asBytes, decodeUtf8, hexFromBytes } from "./bytes.js";
import { escaped } from "./text.js";

const ARGUMENT_MAX = 16384;

const quote = (text) => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);

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

  const line = ["statestorectl", name, ...options, isHex ? ["--hex"] : [], isOption ? ["--"] : [], ...passed].flat()
    .map(quote).join(" ");
  return isFile ? `${line} - < FILE` : line;
}

/* Split a line into words, with '…' and "…" as in a shell. */
export const splitWords = (line) =>
  (line.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? []).map((word) => word.replace(/'([^']*)'|"([^"]*)"/g, "$1$2"));
