/* SPDX-License-Identifier: Apache-2.0 */

/* The view of keys: search, tree or list, and the selected key beside it. */

import { checkbox, el, emptyState, errorBox, labelled } from "./dom.js";
import { deleteByPattern } from "./bulk_delete.js";
import { editKey } from "./edit.js";
import { byteSize, count, countdown, keyCount, versionElement } from "./format.js";
import { escapePattern, KEYS_MAX, KeySearch, patternOf } from "./key_search.js";
import { VirtualList } from "./list.js";
import { escapedString, shown } from "./text.js";
import { KeyTree } from "./tree.js";
import { showValue } from "./value.js";

const BATCH = 2000;

/* Kept while other views are shown. */
const kept = { search: "", separator: "/", isTree: true, open: new Set(), selected: null };

/* Select a key for the next time that the view is shown. */
export function selectKey(key) {
  kept.selected = { key };
}

class KeysView {
  constructor(container, session) {
    this.session = session;
    this.list = new VirtualList({
      role: "tree", label: "Keys",
      fill: (element, row) => this.fillRow(element, row),
      onActivate: (row) => this.activate(row),
      onKey: (event, row, index) => this.readKey(event, row, index),
    });
    this.status = el("div", { class: "list-status", role: "status" });
    this.note = el("div");
    this.detail = el("section", { class: "detail", "aria-label": "Selected key" });
    this.panes = el("div", { class: "panes" },
      el("section", { class: "master", "aria-label": "List of keys" },
        this.toolbar(), this.note,
        el("div", { class: "row head", "aria-hidden": "true" },
          el("span", { class: "name" }, "Key"), el("span", { class: "size" }, "Size"),
          el("span", { class: "expiry" }, "Expires in"), el("span", { class: "version" }, "Version")),
        this.list.element, this.status),
      this.detail);
    container.append(this.panes);
    this.select(kept.selected);
    this.startSearch();
  }

  toolbar() {
    const search = el("input", {
      type: "search", value: kept.search, placeholder: "All keys", spellcheck: "false", autocomplete: "off",
    });
    const separator = el("input", {
      value: kept.separator, maxlength: 8, class: "short", "aria-label": "Separator of the tree",
      onchange: () => {
        kept.separator = separator.value;
        kept.open.clear();
        this.rebuild();
      },
    });
    const tree = el("input", {
      type: "checkbox", checked: kept.isTree,
      onchange: () => {
        kept.isTree = tree.checked;
        this.rebuild();
      },
    });
    this.searchInput = search;
    return el("form", {
      class: "toolbar", role: "search",
      onsubmit: (event) => {
        event.preventDefault();
        kept.search = search.value;
        this.startSearch();
      },
    },
    el("div", { class: "toolbar-row" },
      labelled("Search keys", search), el("button", { class: "primary" }, "Search")),
    el("div", { class: "toolbar-row" },
      checkbox("Tree by", tree), separator,
      el("span", { class: "spring" }),
      el("button", { type: "button", onclick: () => this.create() }, "New key"),
      el("button", { type: "button", onclick: () => this.deleteMany() }, "Delete by pattern")));
  }

  /* Start again from the first page. The old rows stay until it has come. */
  startSearch() {
    this.search?.stop();
    this.search = new KeySearch(patternOf(kept.search));
    this.tree = this.newTree();
    this.readMore();
  }

  newTree() {
    return new KeyTree(kept.isTree ? kept.separator : "");
  }

  searchFor(search) {
    kept.search = search;
    this.searchInput.value = search;
    this.startSearch();
  }

  async readMore() {
    const search = this.search;
    this.note.replaceChildren();
    const reading = search.read(BATCH, (entries) => {
      if (search !== this.search) return;
      entries.forEach((entry) => this.tree.add(entry));
      this.redraw();
    });
    this.showStatus();
    try {
      await reading;
    } catch (error) {
      if (search === this.search) this.note.replaceChildren(errorBox(error));
    }
    if (search === this.search) this.redraw();
  }

  rebuild() {
    this.tree = this.newTree();
    for (const entry of this.search.entries.values()) this.tree.add(entry);
    this.redraw();
  }

  redraw() {
    this.list.setRows(this.tree.rows(kept.open));
    this.showStatus();
  }

  showStatus() {
    const { search } = this;
    const n = search.entries.size;
    const parts = [];

    this.list.element.hidden = n === 0 && !search.isReading;
    this.empty?.remove();
    if (n === 0 && search.isDone && !search.isReading) this.showEmpty();
    if (search.isReading) {
      parts.push(`${count(n)} keys, searching… (page ${count(search.nPages + 1)})`,
        el("button", { class: "small", onclick: () => search.stop() }, "Stop"));
    } else if (search.isFull && !search.isDone) {
      parts.push(`${count(n)} keys are shown, and there are more. Refine your search: at most ` +
        `${count(KEYS_MAX)} keys are listed.`);
    } else if (!search.isDone && search.nPages > 0) {
      parts.push(`${count(n)} keys are shown, and there are more.`,
        el("button", { class: "small", onclick: () => this.readMore() }, "Load more"));
    } else if (search.isDone) {
      parts.push(keyCount(n));
    }
    this.status.replaceChildren(...parts);
  }

  showEmpty() {
    this.empty = kept.search === ""
      ? emptyState("No keys yet", "The store has no key that you may read. ",
        el("button", { onclick: () => this.create() }, "Create one"),
        " here, or with a client: statestorectl set greeting hello")
      : emptyState("No key matches", "Nothing matches ", shown(this.search.pattern),
        ". * is any text, ? is one character, [ab] is one of these. Upper and lower case differ. ",
        el("button", { onclick: () => this.searchFor("") }, "Show all keys"));
    this.status.before(this.empty);
  }

  fillRow(element, row) {
    element.setAttribute("aria-level", row.level);
    const name = el("span", { class: `name level-${Math.min(row.level, 12)}` });
    element.append(name);
    if (row.path !== undefined) {
      element.setAttribute("aria-expanded", row.isOpen);
      const more = this.search.isDone ? "" : "+";
      name.append(el("span", { class: row.isOpen ? "arrow open" : "arrow", "aria-hidden": "true" }),
        shown(row.name, 120));
      element.append(el("span", { class: "faint folder-count" }, keyCount(row.nKeys, more)));
      if (!this.search.isDone) element.append(this.searchHereButton(row));
      return;
    }
    const { entry } = row;
    if (entry.key === kept.selected?.key) {
      element.classList.add("selected");
      element.setAttribute("aria-selected", "true");
    }
    name.append(shown(row.name, 120));
    name.title = escapedString(entry.key);
    if (entry.fence) name.append(el("span", { class: "badge", title: `Fencing token ${entry.fence}` }, "fenced"));
    element.append(
      el("span", { class: "size number" }, byteSize(entry.bytes)),
      el("span", { class: "expiry" }, countdown(entry.deadline)),
      el("span", { class: "version" }, versionElement(entry.version)));
  }

  /* Not all keys are loaded: look for those of this folder only. */
  searchHereButton(row) {
    return el("button", {
      class: "small", tabindex: -1,
      onclick: (event) => {
        event.stopPropagation();
        this.searchFor(`${escapePattern(row.path)}*`);
      },
    }, "Only this");
  }

  activate(row) {
    if (row.path === undefined) {
      this.select(row.entry);
      this.panes.classList.add("has-detail");
      return;
    }
    this.setOpen(row, !row.isOpen);
  }

  setOpen(row, isOpen) {
    if (isOpen) kept.open.add(row.path);
    else kept.open.delete(row.path);
    this.redraw();
  }

  /* As a tree: right opens, or goes to the first child; left closes, or goes to the parent. */
  readKey(event, row, index) {
    const isFolder = row.path !== undefined;
    if (event.key === "ArrowRight" && isFolder) {
      if (row.isOpen) this.list.setActive(index + 1);
      else this.setOpen(row, true);
    } else if (event.key === "ArrowLeft" && isFolder && row.isOpen) {
      this.setOpen(row, false);
    } else if (event.key === "ArrowLeft") {
      const parent = this.list.rows.findLastIndex((other, i) => i < index && other.level < row.level);
      if (parent >= 0) this.list.setActive(parent);
    } else {
      return false;
    }
    return true;
  }

  select(entry) {
    kept.selected = entry;
    if (!entry) {
      this.detail.replaceChildren(emptyState("No key selected",
        "Choose a key in the list to see its value, version, lifetime and fencing token."));
      return;
    }
    this.list.draw();
    this.panes.classList.add("has-detail");
    showValue(this.detail, entry, {
      session: this.session,
      onChanged: () => this.startSearch(),
      onClose: () => {
        this.panes.classList.remove("has-detail");
        this.list.element.focus();
      },
    });
  }

  create() {
    editKey({ onDone: (key) => {
      this.startSearch();
      this.select({ key });
    } });
  }

  deleteMany() {
    deleteByPattern(this.search.pattern, () => this.startSearch());
  }
}

export function showKeys(container, session) {
  const view = new KeysView(container, session);
  return { close: () => view.search.stop() };
}
