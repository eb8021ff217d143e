/* SPDX-License-Identifier: Apache-2.0 */

import { getJson } from "./api.js";

/* At most this many keys, and characters of keys, are in memory. */
export const KEYS_MAX = 5000;
const CHARACTERS_MAX = 16e6;

export const PATTERN_HELP = "* is any text, ? one character, [ab] one of these. ";

/* What to search for: a text without wildcards is searched anywhere in the key. */
export function patternOf(search) {
  if (search === "") return "*";
  return /[*?[]/.test(search) ? search : `*${search}*`;
}

/* A key of a page of /api/keys or /api/locks. */
export function readEntry(entry) {
  const deadline = Date.now() + entry.expires_in_ms;
  return { ...entry, deadline: Number.isNaN(deadline) ? undefined : deadline };
}

/* The keys that match a pattern, read page by page as SCAN lists them. */
export class KeySearch {
  entries = new Map();
  nCharacters = 0;
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

  /* Read pages until there are n more keys, all are read, or stop(). Calls onPage() after each. */
  async read(n, onPage) {
    const end = this.entries.size + n;
    const { signal } = this.#abort;

    this.isReading = true;
    try {
      while (!this.isDone && !this.isFull && this.entries.size < end) {
        const page = await getJson("/api/keys", { pattern: this.pattern, token: this.#token }, signal);
        this.#token = page.token;
        this.isDone = page.token === undefined;
        for (const entry of page.keys.map(readEntry)) {
          this.entries.set(entry.key, entry);
          this.nCharacters += entry.key.length;
        }
        onPage();
      }
    } catch (error) {
      if (error.name !== "AbortError") throw error;
    } finally {
      this.isReading = false;
    }
  }
}
