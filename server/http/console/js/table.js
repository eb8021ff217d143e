/* SPDX-License-Identifier: Apache-2.0 */

import { el } from "./dom.js";

/*
 * A table whose columns sort when their heading is pressed. columns: { label, cell(row), value(row) to
 * sort by, class }. Returns { element, setRows(rows) }.
 */
export function sortableTable(label, columns) {
  let rows = [];
  let sortBy = null;
  let direction = 1;
  const body = el("tbody");
  const headings = columns.map((column) => el("th", { scope: "col", class: column.class },
    column.value ? el("button", { class: "sort", onclick: () => sort(column) }, column.label) : column.label));

  function sort(column) {
    direction = sortBy === column ? -direction : 1;
    sortBy = column;
    draw();
  }

  function draw() {
    const key = sortBy?.value;
    const shownRows = key
      ? [...rows].sort((a, b) => (key(a) < key(b) ? -direction : key(a) > key(b) ? direction : 0))
      : rows;
    headings.forEach((heading, i) => {
      if (columns[i] === sortBy) heading.setAttribute("aria-sort", direction > 0 ? "ascending" : "descending");
      else heading.removeAttribute("aria-sort");
    });
    body.replaceChildren(...shownRows.map((row) =>
      el("tr", {}, ...columns.map((column) => el("td", { class: column.class }, column.cell(row))))));
  }

  return {
    element: el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
      el("table", {}, el("thead", {}, el("tr", {}, ...headings)), body)),
    setRows(newRows) {
      rows = newRows;
      draw();
    },
  };
}
