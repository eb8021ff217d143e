/* SPDX-License-Identifier: Apache-2.0 */

const SVG = "http://www.w3.org/2000/svg";
let lastId = 0;

/* Set listeners (onclick), properties of forms, and attributes. null and false: not set. */
function setProperties(element, properties) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") element[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
}

/* Return a new element. Children are nodes and strings: a string is text, never markup. */
export function el(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  setProperties(element, properties);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
}

export function svg(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  setProperties(element, properties);
  element.append(...children);
  return element;
}

export function newId() {
  return `id-${++lastId}`;
}

/* A label with its input, and an optional hint below. */
export function labelled(label, input, hint = null) {
  const id = newId();
  input.id = id;
  return el("div", { class: "field" }, el("label", { for: id }, label), input,
    hint ? el("p", { class: "hint" }, hint) : null);
}

export function checkbox(label, input) {
  return el("label", { class: "check" }, input, el("span", {}, label));
}

/* A text for a place that has nothing to show, with what to do about it. */
export function emptyState(title, ...text) {
  return el("div", { class: "empty" }, el("h2", {}, title), el("p", {}, ...text));
}

export function errorBox(error) {
  return el("p", { class: "error", role: "alert" }, error.message ?? String(error));
}

/* The title of a view, its status line, and what can be done. */
export function viewHead(title, status = null, ...actions) {
  return el("div", { class: "view-head" }, el("h1", {}, title), status, el("span", { class: "spring" }), ...actions);
}

export function warning(...paragraphs) {
  return el("div", { class: "warning", role: "alert" }, ...paragraphs.map((content) => el("p", {}, content)));
}

/* A table of rows of cells, which can be scrolled. */
export function tableElement(label, headings, rows) {
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label },
    el("table", {},
      el("thead", {}, el("tr", {}, ...headings.map((heading) => el("th", { scope: "col" }, heading)))),
      el("tbody", {}, ...rows.map((cells) => el("tr", {}, ...cells.map((cell) => el("td", {}, cell)))))));
}

/* Open a modal dialog. The browser keeps the focus inside; Escape closes it. */
export function openDialog(title, build, onClose = () => {}) {
  const heading = el("h2", { id: newId() }, title);
  const body = el("div", { class: "dialog-body" });
  const dialog = el("dialog", { "aria-labelledby": heading.id },
    el("header", {}, heading,
      el("button", { class: "plain", "aria-label": "Close", onclick: () => dialog.close() }, "✕")),
    body);

  dialog.addEventListener("close", () => {
    dialog.remove();
    onClose();
  });
  document.body.append(dialog);
  build(body, () => dialog.close());
  dialog.showModal();
  body.querySelector("input")?.focus();
  return dialog;
}

/* Tell a screen reader and the eye what happened. */
export function notify(text) {
  const status = document.getElementById("status");
  status.textContent = text;
  clearTimeout(notify.timer);
  notify.timer = setTimeout(() => { status.textContent = ""; }, 5000);
}

export function download(bytes, name) {
  const url = URL.createObjectURL(new Blob([bytes], { type: "application/octet-stream" }));
  el("a", { href: url, download: name.replace(/[^\w.-]+/g, "_").slice(-80) || "value" }).click();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/* A button that copies a command line, which is its title. */
export function copyButton(command, label = "Copy as statestorectl") {
  return el("button", {
    class: "plain",
    onclick: async () => {
      const text = typeof command === "function" ? command() : command;
      try {
        await navigator.clipboard.writeText(text);
        notify("Copied.");
      } catch {
        openDialog("Copy this command", (body) => {
          const area = el("textarea", { readonly: true, rows: 4, "aria-label": "Command", value: text });
          body.append(area);
          queueMicrotask(() => area.select());
        });
      }
    },
  }, label);
}
