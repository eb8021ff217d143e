/* SPDX-License-Identifier: Apache-2.0 */

/* Deeper levels than this are part of the last name. */
const LEVELS_MAX = 24;

/*
 * Return the visible rows of a tree of keys by a separator, if the folders with these paths are open. A row is
 * { name, level, path, isOpen, nKeys } for a folder, { name, level, entry } for a key. "" makes a flat list.
 */
export function treeRows(entries, separator, openPaths) {
  const rows = [];

  function visit(list, start, level) {
    const folders = new Map();
    const keys = [];
    for (const entry of list) {
      const found = separator === "" || level > LEVELS_MAX ? -1 : entry.key.indexOf(separator, start);
      const name = entry.key.slice(start, found + separator.length);
      if (found < 0) keys.push(entry);
      else if (folders.has(name)) folders.get(name).push(entry);
      else folders.set(name, [entry]);
    }
    for (const name of [...folders.keys()].sort()) {
      const inside = folders.get(name);
      const end = start + name.length;
      const path = inside[0].key.slice(0, end);
      const isOpen = openPaths.has(path);
      rows.push({ name, level, path, isOpen, nKeys: inside.length });
      if (isOpen) visit(inside, end, level + 1);
    }
    keys.sort((a, b) => (a.key < b.key ? -1 : 1));
    rows.push(...keys.map((entry) => ({ name: entry.key.slice(start), level, entry })));
  }

  visit(entries, 0, 1);
  return rows;
}
