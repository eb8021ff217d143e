/* SPDX-License-Identifier: Apache-2.0 */

/* Of a table. */
export const ROWS_MAX = 2000;

/*
 * Return a new element: el("p.hint", { title: "…" }, "text"). Properties may be left out. Children are nodes,
 * strings, and arrays of them: a string is text, never markup. null is ignored.
 */
export function el(tagAndClasses, ...rest) {
  const [tag, ...classes] = tagAndClasses.split(".");
  const element = document.createElement(tag);
  const properties = rest[0]?.constructor === Object ? rest.shift() : {};
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null) continue;
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...rest.flat().filter((child) => child !== null));
  return element;
}

export function button(label, onclick, classes = "") {
  return el("button", { onclick, type: onclick ? "button" : "submit", className: classes }, label);
}

export const textInput = (properties) => el("input", { spellcheck: false, autocomplete: "off", ...properties });

export const labelled = (label, input) => el("label.field", el("span", label), input);

export const checkbox = (label, properties) =>
  el("label.check", el("input", { type: "checkbox", ...properties }), label);

/* A form in one line. It calls onSubmit() instead of sending anything. */
export function form(onSubmit, ...children) {
  const onsubmit = (event) => {
    event.preventDefault();
    onSubmit();
  };
  return el("form.toolbar-row", { onsubmit }, ...children);
}

export const emptyState = (title, ...text) => el("div.empty", el("h2", title), el("p", ...text));

export const faint = (text) => el("span.faint", text);

export const errorBox = (error) => el("p.error", { role: "alert" }, error.message);

export const warning = (...texts) => el("div.warning", { role: "alert" }, texts.map((text) => el("p", text)));

export const viewHead = (title, ...rest) => el("div.view-head", el("h1", title), rest);

export const statusLine = () => el("p.hint", { role: "status" });

/* A part of the page that scrolls. */
export const region = (classes, label, ...children) =>
  el(`div.${classes}`, { tabIndex: 0, role: "region", "aria-label": label }, ...children);

/*
 * Return a function of rows that returns a table of them, always the same element; or `empty` if there are none. A
 * column is [label, cell(row)]. While the focus is in a row the rows stay, so that it is not lost.
 */
export function table(label, columns) {
  const body = el("tbody");
  const rest = el("p.hint");
  const element = region("scroll", label,
    el("table", el("thead", el("tr", columns.map(([name]) => el("th", { scope: "col" }, name)))), body), rest);

  return (rows, empty = element) => {
    if (rows.length === 0) return empty;
    if (body.contains(document.activeElement)) return element;
    body.replaceChildren(...rows.slice(0, ROWS_MAX).map((row) =>
      el("tr", columns.map(([name, cell]) => el("td", { "data-label": name.textContent ?? name }, cell(row))))));
    rest.textContent = rows.length > ROWS_MAX ? `… and ${rows.length - ROWS_MAX} more` : "";
    return element;
  };
}

/* Open a modal dialog. Escape closes it. Returns { body, close() }. */
export function openDialog(title, onclose = () => {}) {
  const body = el("div.dialog-body");
  const close = () => dialog.close();
  const dialog = el("dialog", { "aria-label": title },
    el("header", el("h2", title), el("button.plain", { "aria-label": "Close", onclick: close }, "✕")), body);

  dialog.onclose = () => {
    dialog.remove();
    onclose();
  };
  document.body.append(dialog);
  dialog.showModal();
  return { body, close };
}

export function notify(text) {
  const note = el("p", text);
  document.getElementById("status").replaceChildren(note);
  setTimeout(() => note.remove(), 5000);
}

export function download(bytes, name) {
  const href = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  el("a", { href, download: name.replace(/[^\w.-]+/g, "_").slice(-80) }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

export function copyButton(command) {
  return button("Copy as statestorectl", async () => {
    await navigator.clipboard.writeText(command());
    notify("Copied.");
  }, "plain");
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* Show the promised element, or the error. An element that is shown already keeps the focus. */
export async function showPromised(content, promise, signal) {
  const element = await promise.catch(errorBox);
  if (!signal?.aborted && content.firstChild !== element) content.replaceChildren(element);
}

/* Show what read() promises, again and again until the signal is aborted. */
export async function poll(signal, content, read, pauseMs = 5000) {
  while (!signal.aborted) {
    await showPromised(content, read(), signal);
    await sleep(pauseMs);
  }
}
