/* SPDX-License-Identifier: Apache-2.0 */

let nIds = 0;
export const newId = () => `id-${++nIds}`;

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

/* An input for text as it is. */
export const textInput = (properties) => el("input", { spellcheck: false, autocomplete: "off", ...properties });

export function labelled(label, input) {
  input.id = newId();
  return el("div.field", el("label", { for: input.id }, label), input);
}

/* A label whose control is a checkbox. */
export function checkbox(label, properties) {
  return el("label.check", el("input", { type: "checkbox", ...properties }), label);
}

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

/*
 * A table that scrolls. A column is [label, cell(row)]. Returns { element, setRows(rows) }; while the focus is in a
 * row the rows stay, so that it is not lost.
 */
export function table(label, columns, firstRows = []) {
  const body = el("tbody");
  const element = el("div.scroll", { tabIndex: 0, role: "region", "aria-label": label },
    el("table", el("thead", el("tr", columns.map(([name]) => el("th", { scope: "col" }, name)))), body));

  function setRows(rows) {
    if (body.contains(document.activeElement)) return;
    body.replaceChildren(...rows.map((row) => el("tr", columns.map(([, cell]) => el("td", cell(row))))));
  }

  setRows(firstRows);
  return { element, setRows };
}

/* Open a modal dialog. Escape closes it. Returns { body, close() }. */
export function openDialog(title, onclose = () => {}) {
  const heading = el("h2", { id: newId() }, title);
  const body = el("div.dialog-body");
  const close = () => dialog.close();
  const dialog = el("dialog", { "aria-labelledby": heading.id },
    el("header", heading, el("button.plain", { "aria-label": "Close", onclick: close }, "✕")), body);

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
  el("a", { href, download: name.replace(/[^\w.-]+/g, "_").slice(-80) || "value" }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10000);
}

export function copyButton(command) {
  return button("Copy as statestorectl", async () => {
    await navigator.clipboard.writeText(command());
    notify("Copied.");
  }, "plain");
}

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/* Call read() now and again after each pause, until the signal is aborted. Its errors replace the content. */
export async function poll(signal, pauseMs, content, read) {
  while (!signal.aborted) {
    try {
      await read();
    } catch (error) {
      if (!signal.aborted) content.replaceChildren(errorBox(error));
    }
    await sleep(pauseMs);
  }
}
