/* SPDX-License-Identifier: Apache-2.0 */

import { el, newId } from "./dom.js";

const ROW_HEIGHT = 28; /* as --row in console.css */
const MARGIN = 8;

/*
 * A list of many rows, of which only the visible ones are elements. It has one tab stop; the arrow keys
 * move its active row.
 *
 * options: role ("tree" or "listbox"), label, fill(element, row) puts a row into its element,
 * onActivate(row), onKey(event, row, index) for further keys: returns false for a key that it ignores.
 */
export class VirtualList {
  rows = [];
  active = 0;

  constructor(options) {
    this.options = options;
    this.id = newId();
    this.space = el("div", { class: "list-space", role: "presentation" });
    this.element = el("div", {
      class: "list", tabindex: 0, role: options.role, "aria-label": options.label,
      onscroll: () => this.draw(), onkeydown: (event) => this.readKey(event),
    }, this.space);
    new ResizeObserver(() => this.draw()).observe(this.element);
  }

  setRows(rows) {
    this.rows = rows;
    this.active = Math.max(0, Math.min(this.active, rows.length - 1));
    this.space.style.height = `${rows.length * ROW_HEIGHT}px`;
    this.draw();
  }

  setActive(index) {
    this.active = Math.max(0, Math.min(index, this.rows.length - 1));
    const top = this.active * ROW_HEIGHT;
    const { scrollTop, clientHeight } = this.element;
    if (top < scrollTop) this.element.scrollTop = top;
    else if (top + ROW_HEIGHT > scrollTop + clientHeight)
      this.element.scrollTop = top + ROW_HEIGHT - clientHeight;
    this.draw();
  }

  rowElement(index) {
    const role = this.options.role === "tree" ? "treeitem" : "option";
    const row = el("div", {
      class: index === this.active ? "row active" : "row", role, id: `${this.id}-${index}`,
      "aria-setsize": this.rows.length, "aria-posinset": index + 1, "aria-selected": "false",
      onclick: () => {
        this.setActive(index);
        this.options.onActivate(this.rows[index]);
      },
    });
    row.style.transform = `translateY(${index * ROW_HEIGHT}px)`;
    this.options.fill(row, this.rows[index]);
    return row;
  }

  draw() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.max(0, Math.floor(scrollTop / ROW_HEIGHT) - MARGIN);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / ROW_HEIGHT) + MARGIN);
    const elements = [];

    for (let i = first; i < last; i++) elements.push(this.rowElement(i));
    this.space.replaceChildren(...elements);
    if (this.rows.length > 0) this.element.setAttribute("aria-activedescendant", `${this.id}-${this.active}`);
  }

  readKey(event) {
    const page = Math.max(1, Math.floor(this.element.clientHeight / ROW_HEIGHT) - 1);
    const steps = { ArrowUp: -1, ArrowDown: 1, PageUp: -page, PageDown: page, Home: -Infinity, End: Infinity };

    if (this.rows.length === 0 || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key in steps) this.setActive(this.active + steps[event.key]);
    else if (event.key === "Enter" || event.key === " ") this.options.onActivate(this.rows[this.active]);
    else if (!this.options.onKey?.(event, this.rows[this.active], this.active)) return;
    event.preventDefault();
  }
}
