/* SPDX-License-Identifier: Apache-2.0 */

import { deleteByPattern } from "./bulk_delete.js";
import { button, el, emptyState, errorBox, faint, form, labelled, textInput } from "./dom.js";
import { editKey } from "./edit.js";
import { byteSize, count, countdown, plural, versionElement } from "./format.js";
import { KEYS_MAX, KeySearch, PATTERN_HELP, patternOf } from "./key_search.js";
import { shown } from "./text.js";
import { treeRows } from "./tree.js";
import { showValue } from "./value.js";

const BATCH = 1000;

/* Kept while other views are shown. active: the path or key of the row that the Tab key reaches. */
const kept = { search: "", separator: "/", open: new Set(), selected: null, active: null };

export function openKey(key) {
  kept.selected = { key };
  location.hash = "keys";
}

const nameOf = ({ path, entry }) => path ?? entry.key;

class KeysView {
  rows = [];
  list = el("div.list", { role: "tree", "aria-label": "Keys", onkeydown: (event) => this.readKey(event) });
  status = el("div.list-status", { role: "status" });
  detail = el("section.detail", { "aria-label": "Selected key" });
  searchInput = textInput({ type: "search", value: kept.search, placeholder: "All keys" });
  separator = textInput({
    value: kept.separator, maxLength: 8, className: "short", placeholder: "flat",
    onchange: () => {
      kept.separator = this.separator.value;
      this.draw();
    },
  });

  constructor(container, session) {
    this.session = session;
    this.panes = el("div.panes",
      el("section.master", { "aria-label": "List of keys" },
        el("div.toolbar",
          form(() => this.searchFor(this.searchInput.value),
            labelled("Search keys", this.searchInput), button("Search", null, "primary")),
          el("div.toolbar-row", el("label.check", "Tree by", this.separator),
            button("New key", () => editKey({ onDone: (key) => {
              this.startSearch();
              this.select({ key });
            } })),
            button("Delete by pattern", () => deleteByPattern(this.search.pattern, () => this.startSearch())))),
        el("div.row.head", { "aria-hidden": true }, el("span.name", "Key"), el("span.size", "Size"),
          el("span.size", "Expires in"), el("span.version", "Version")),
        this.list, this.status),
      this.detail);
    container.append(this.panes);
    this.select(kept.selected);
    this.startSearch();
  }

  searchFor(search) {
    kept.search = search;
    this.searchInput.value = search;
    this.startSearch();
  }

  /* Start again from the first page. The old rows stay until it has come. */
  startSearch() {
    this.search?.stop();
    this.search = new KeySearch(patternOf(kept.search));
    this.readMore();
  }

  async readMore() {
    const { search } = this;
    const reading = search.read(BATCH, () => search === this.search && this.draw());
    this.showStatus();
    const error = await reading.then(() => null, errorBox);
    if (search !== this.search) return;
    this.draw();
    if (error) this.status.replaceChildren(error);
  }

  showStatus() {
    const { entries, isReading, isDone, isFull } = this.search;
    const found = plural(entries.size, "key");
    const more = `${found}, and there are more.`;
    this.status.replaceChildren(...(
      isReading ? [`${found}, searching…`, button("Stop", () => this.search.stop(), "small")]
        : isDone ? [`${found} that you may read`]
          : isFull ? [`${more} Refine your search: at most ${count(KEYS_MAX)} are listed.`]
            : [more, button("Load more", () => this.readMore(), "small")]));
  }

  draw() {
    const { entries, isDone } = this.search;
    const hadFocus = this.list.contains(document.activeElement);
    this.rows = treeRows([...entries.values()], kept.separator, kept.open);
    const names = this.rows.map(nameOf);
    if (!names.includes(kept.active)) kept.active = names[0];
    this.list.replaceChildren(...(
      entries.size === 0 && isDone ? [this.emptyText()] : this.rows.map((row) => this.rowElement(row))));
    if (hadFocus) this.list.querySelector("[tabindex='0']")?.focus({ preventScroll: true });
    this.showStatus();
  }

  emptyText() {
    return kept.search === "" ? emptyState("No keys yet", "The store has no key that you may read.")
      : emptyState("No key matches", PATTERN_HELP, button("Show all keys", () => this.searchFor("")));
  }

  rowElement(row) {
    const { name, level, entry, isOpen, nKeys } = row;
    const nameElement = el("span.name", shown(name, 120));
    const element = el("div.row", {
      role: "treeitem", "aria-level": level, tabIndex: nameOf(row) === kept.active ? 0 : -1,
      onclick: () => this.activate(row),
    }, nameElement);
    nameElement.style.paddingInlineStart = `${16 * (Math.min(level, 12) - 1)}px`;
    if (entry) {
      element.ariaSelected = entry.key === kept.selected?.key;
      element.append(el("span.size", byteSize(entry.bytes)), el("span.size", countdown(entry.deadline)),
        el("span.version", versionElement(entry.version)));
    } else {
      element.ariaExpanded = isOpen;
      element.append(faint(this.search.isDone ? plural(nKeys, "key") : `${count(nKeys)}+ keys`));
    }
    return element;
  }

  activate(row) {
    kept.active = nameOf(row);
    if (row.entry) this.select(row.entry);
    else if (row.isOpen) kept.open.delete(row.path);
    else kept.open.add(row.path);
    this.draw();
  }

  /* As a tree: right opens, or goes to the first child; left closes, or goes to the parent. */
  readKey(event) {
    const { rows } = this;
    const index = rows.findIndex((row) => nameOf(row) === kept.active);
    const row = rows[index];
    const parent = rows.findLastIndex((other, i) => i < index && other.level < row.level);
    const target = {
      ArrowUp: index - 1, ArrowDown: index + 1, Home: 0, End: rows.length - 1,
      ArrowRight: row?.isOpen ? index + 1 : index, ArrowLeft: row?.isOpen || parent < 0 ? index : parent,
    }[event.key];
    const toggles = row?.path && event.key === (row.isOpen ? "ArrowLeft" : "ArrowRight");

    if (!row || (target === undefined && event.key !== "Enter" && event.key !== " ")) return;
    event.preventDefault();
    if (target === undefined || toggles) {
      this.activate(row);
      return;
    }
    const to = Math.max(0, Math.min(rows.length - 1, target));
    kept.active = nameOf(rows[to]);
    this.list.children[index].tabIndex = -1;
    this.list.children[to].tabIndex = 0;
    this.list.children[to].focus();
  }

  select(entry) {
    kept.selected = entry;
    this.panes.classList.toggle("has-detail", entry !== null);
    if (!entry) {
      this.detail.replaceChildren(emptyState("No key selected", "Choose a key in the list to see its value."));
      return;
    }
    showValue(this.detail, entry, {
      isOperator: this.session.operator,
      onChanged: () => this.startSearch(),
      onClose: () => this.panes.classList.remove("has-detail"),
    });
  }
}

export function showKeys(container, session, signal) {
  const view = new KeysView(container, session);
  signal.addEventListener("abort", () => view.search.stop());
}
