/* SPDX-License-Identifier: Apache-2.0 */

import { getJson } from "./api.js";
import { field } from "./bytes.js";

/* At most this many keys, and characters of keys, are in memory. */
export const KEYS_MAX = 20000;
const CHARACTERS_MAX = 16e6;

/* Return a pattern that matches exactly this text. */
export function escapePattern(text) {
  return text.replace(/[*?[]/g, "[$&]");
}

/* What to search for: a text without wildcards is searched anywhere in the key. */
export function patternOf(search) {
  if (search === "") return "*";
  return /[*?[]/.test(search) ? search : `*${search}*`;
}

/* A key of a page of /api/keys or /api/locks. */
export function readEntry(object) {
  return {
    key: field(object, "key"),
    version: object.version,
    bytes: object.bytes,
    fence: object.fence,
    deadline: object.expires_in_ms === undefined ? undefined : Date.now() + object.expires_in_ms,
  };
}

/* The keys that match a pattern, read page by page as SCAN lists them. */
export class KeySearch {
  entries = new Map();
  nCharacters = 0;
  nPages = 0;
  isDone = false;
  isReading = false;
  #token = undefined;
  #abort = new AbortController();

  constructor(pattern) {
    this.pattern = pattern;
  }

  get isFull() {
    return this.entries.size >= KEYS_MAX || this.nCharacters >= CHARACTERS_MAX;
  }

  stop() {
    this.#abort.abort();
    this.#abort = new AbortController();
  }

  /* Read pages until there are n more keys, all are read, or stop(). Calls onPage(new entries). */
  async read(n, onPage = () => {}) {
    const end = this.entries.size + n;
    const signal = this.#abort.signal;

    if (this.isReading) return;
    this.isReading = true;
    try {
      while (!this.isDone && !this.isFull && this.entries.size < end && !signal.aborted) {
        const page = await getJson("/api/keys", { pattern: this.pattern, token: this.#token }, signal);
        this.nPages++;
        this.#token = page.token;
        this.isDone = page.token === undefined;
        onPage(this.#add(page.keys.map(readEntry)));
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.isReading = false;
    }
  }

  /* A page may list keys of an earlier page again. */
  #add(entries) {
    const added = [];
    for (const entry of entries) {
      if (this.entries.has(entry.key)) continue;
      this.entries.set(entry.key, entry);
      this.nCharacters += entry.key.length;
      added.push(entry);
    }
    return added;
  }
}
