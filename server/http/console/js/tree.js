/* SPDX-License-Identifier: Apache-2.0 */

/* A tree of keys by a separator. Deeper levels than this are part of the last name. */
const LEVELS_MAX = 24;

const compare = (a, b) => (a.name < b.name ? -1 : Number(a.name > b.name));

class Folder {
  folders = new Map();
  keys = [];
  nKeys = 0;
  sorted = null;

  constructor(name, path) {
    this.name = name;
    this.path = path;
  }

  children() {
    this.sorted ??= [...[...this.folders.values()].sort(compare), ...this.keys.sort(compare)];
    return this.sorted;
  }
}

export class KeyTree {
  /* An empty separator makes a flat list. */
  constructor(separator) {
    this.separator = separator;
    this.root = new Folder("", "");
  }

  add(entry) {
    let folder = this.root;
    let start = 0;
    for (let level = 0; ; level++) {
      folder.nKeys++;
      folder.sorted = null;
      const end = this.separator === "" || level >= LEVELS_MAX
        ? -1 : entry.key.indexOf(this.separator, start);
      if (end < 0) break;
      const name = entry.key.slice(start, end + this.separator.length);
      start = end + this.separator.length;
      if (!folder.folders.has(name)) folder.folders.set(name, new Folder(name, entry.key.slice(0, start)));
      folder = folder.folders.get(name);
    }
    folder.keys.push({ name: entry.key.slice(start), entry });
  }

  /*
   * Return the rows that are visible if the folders with these paths are open:
   * { name, level, path, isOpen, nKeys } for a folder, { name, level, entry } for a key.
   */
  rows(openPaths) {
    const rows = [];
    const visit = (folder, level) => {
      for (const child of folder.children()) {
        if (child.entry) {
          rows.push({ name: child.name, level, entry: child.entry });
          continue;
        }
        const isOpen = openPaths.has(child.path);
        rows.push({ name: child.name, level, path: child.path, isOpen, nKeys: child.nKeys });
        if (isOpen) visit(child, level + 1);
      }
    };
    visit(this.root, 1);
    return rows;
  }
}
