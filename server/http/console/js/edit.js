/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Setting and deleting a key. Before a write its difference is shown. The write has the version that was
 * read as its condition, so it cannot destroy somebody else's change.
 */

import { readKey, request, VERSION_CHANGED } from "./api.js";
import { bytesFromHex, bytesFromText, decodeUtf8, hexFromBytes } from "./bytes.js";
import { diffElement } from "./diff.js";
import { checkbox, copyButton, el, errorBox, labelled, notify, openDialog, warning } from "./dom.js";
import { byteSize, duration, versionElement } from "./format.js";
import { commandLine } from "./shell.js";
import { shownOnRequest } from "./text.js";

const UNITS = { ms: 1, s: 1000, min: 60000, h: 3600000, d: 86400000 };

const option = (value, label, selected = false) => el("option", { value, selected }, label);

/* The value: as text, as hexadecimal digits, or from a file. */
class ValueField {
  constructor(bytes) {
    const text = decodeUtf8(bytes);
    this.area = el("textarea", { rows: 10, spellcheck: "false", value: text ?? "" });
    /* A text area changes some characters, such as carriage returns: such values are edited as hex. */
    const isText = this.area.value === text && !/[\0-\x08\x0b-\x1f]/.test(text);
    if (!isText) this.area.value = hexFromBytes(bytes);
    this.file = el("input", { type: "file", "aria-label": "File", hidden: true });
    this.mode = el("select", { onchange: () => this.changeMode() },
      option("text", "Text", isText), option("hex", "Hexadecimal", !isText), option("file", "File"));
    this.previous = this.mode.value;
    this.element = el("div", {}, labelled("Value as", this.mode), labelled("Value", this.area), this.file);
  }

  /* Keep what was typed if the new mode can show it. */
  changeMode() {
    const { area, previous } = this;
    const mode = this.mode.value;
    if (mode === "hex" && previous === "text") area.value = hexFromBytes(bytesFromText(area.value));
    if (mode === "text" && previous === "hex") area.value = decodeUtf8(bytesFromHex(area.value) ?? []) ?? "";
    this.file.hidden = mode !== "file";
    area.parentElement.hidden = mode === "file";
    if (mode !== "file") this.previous = mode;
  }

  async read() {
    if (this.mode.value === "text") return bytesFromText(this.area.value);
    if (this.mode.value === "file") {
      if (this.file.files.length === 0) throw new Error("Choose a file.");
      return new Uint8Array(await this.file.files[0].arrayBuffer());
    }
    const bytes = bytesFromHex(this.area.value);
    if (!bytes) throw new Error("The value is not hexadecimal: two digits for each byte were expected.");
    return bytes;
  }
}

/* When the key expires. */
class ExpiryField {
  constructor(deadline) {
    this.deadline = deadline;
    this.kind = el("select", { onchange: () => { this.after.hidden = this.kind.value !== "after"; } },
      deadline ? option("keep", `As now: in ${duration(deadline - Date.now())}`) : null,
      option("never", "Never"), option("after", "After …"));
    this.number = el("input", { type: "number", min: 1, value: 60, class: "short", "aria-label": "Lifetime" });
    this.unit = el("select", { "aria-label": "Unit" },
      ...Object.keys(UNITS).map((unit) => option(unit, unit, unit === "s")));
    this.after = el("span", { class: "inline", hidden: true }, this.number, this.unit);
    this.element = el("div", { class: "inline" }, labelled("Expires", this.kind), this.after);
  }

  /* Return the milliseconds from now until the key expires, or null. */
  read() {
    if (this.kind.value === "never") return null;
    const ms = this.kind.value === "keep"
      ? this.deadline - Date.now() : Math.round(Number(this.number.value) * UNITS[this.unit.value]);
    if (!(ms >= 1)) throw new Error("The key would have expired already. Go back, and choose another lifetime.");
    return ms;
  }
}

/*
 * A change: { bytes, null to delete the key; lifetime() in ms from now, null for ever; isNew: only if the
 * key does not exist }. A state of a key is { bytes, null if it does not exist; version, fence, deadline }.
 */
function words(key, { bytes, lifetime, isNew }) {
  if (bytes === null) return ["DEL", key];
  const expiresMs = lifetime();
  return ["SET", key, bytes, ...(isNew ? ["NX"] : []), ...(expiresMs === null ? [] : ["PX", String(expiresMs)])];
}

function command(key, { bytes, lifetime, isNew }, fence) {
  const options = fence ? ["--fence", fence] : [];
  if (bytes === null) return commandLine("del", [key], options);
  const expiresMs = lifetime();
  if (isNew) options.push("--nx");
  if (expiresMs !== null) options.push("--px", `${expiresMs}ms`);
  return commandLine("set", [key, bytes], options);
}

async function readState(key) {
  const state = await readKey(key, Infinity);
  if (state.reply.type === "error") throw new Error(state.reply.text);
  return { ...state, bytes: state.reply.bytes ?? null };
}

class ChangeDialog {
  constructor(title, { key, current, onDone }) {
    Object.assign(this, { key, current, onDone });
    openDialog(title, (body, close) => {
      this.body = body;
      this.close = close;
    });
  }

  show(...nodes) {
    this.body.replaceChildren(...nodes.filter(Boolean));
    this.body.querySelector("input:not([hidden]), textarea, [tabindex]")?.focus();
  }

  /* A button that runs the action, and shows its error. */
  button(label, run, cssClass) {
    return el("button", {
      class: cssClass,
      onclick: async (event) => {
        event.target.disabled = true;
        this.body.querySelector(".error")?.remove();
        await run().catch((error) => this.body.append(errorBox(error)));
        event.target.disabled = false;
      },
    }, label);
  }

  showForm() {
    this.isNewKey = this.key === undefined;
    this.value = new ValueField(this.current?.bytes ?? new Uint8Array(0));
    this.expiry = new ExpiryField(this.current?.deadline);
    this.name = el("input", { spellcheck: "false", autocomplete: "off" });
    this.onlyNew = el("input", { type: "checkbox", checked: true });
    this.form = [
      this.isNewKey ? labelled("Key", this.name) : this.keyElement(), this.value.element, this.expiry.element,
      this.isNewKey ? checkbox("Only if the key does not exist (NX)", this.onlyNew) : null,
      el("div", { class: "actions" }, this.button("Show the difference", () => this.review(), "primary"),
        el("button", { onclick: this.close }, "Cancel")),
    ];
    this.show(...this.form);
  }

  keyElement() {
    return el("p", { class: "key-name" }, shownOnRequest(this.key, 160));
  }

  async review() {
    if (this.isNewKey) this.key = this.name.value;
    if (this.key === "") throw new Error("The key is empty.");
    this.change = {
      bytes: await this.value.read(), lifetime: () => this.expiry.read(),
      isNew: this.isNewKey && this.onlyNew.checked,
    };
    if (this.isNewKey) this.current = await readState(this.key);
    if (this.change.isNew && this.current.bytes !== null) this.showConflict(this.current);
    else this.ask(this.current, "Write");
  }

  /* Show what the change does to this state of the key, and ask. */
  ask(state, label, note = null) {
    const { bytes, lifetime } = this.change;
    const expiresMs = bytes === null ? null : lifetime();
    const accepted = el("input", { type: "checkbox", onchange: () => { button.disabled = !accepted.checked; } });
    const button = this.button(label, () => this.send(state), bytes === null ? "danger" : "primary");
    button.disabled = Boolean(state.fence);
    this.show(note, this.keyElement(), diffElement(state.bytes, bytes),
      bytes === null ? null : el("p", { class: "hint" }, `${byteSize(bytes.length)}; `,
        expiresMs === null ? "does not expire." : `expires after ${duration(expiresMs)}.`),
      state.fence ? warning("A fencing token protects this key: probably the holder of a lock writes it, " +
        "and does not expect this change.", checkbox(el("span", {}, "Send the present token ",
        versionElement(state.fence)), accepted)) : null,
      el("div", { class: "actions" }, button,
        this.form ? el("button", { onclick: () => this.show(...this.form) }, "Back") : null,
        el("button", { onclick: this.close }, "Cancel"),
        copyButton(() => command(this.key, this.change, state.fence))));
  }

  async send(state) {
    const ifVersion = this.change.isNew ? undefined : state.version ?? "none";
    const reply = await request(words(this.key, this.change), { fence: state.fence, ifVersion });
    if (reply.text === VERSION_CHANGED || reply.number === -1) {
      this.showConflict(await readState(this.key));
      return;
    }
    if (reply.type === "error") throw new Error(`The store refused the request: ${reply.text}`);
    notify(this.change.bytes === null ? "The key is deleted." : "The key is set.");
    this.close();
    this.onDone(this.key);
  }

  /* Nothing was written. Show what the change would do to the present state, and let the user decide. */
  showConflict(theirs) {
    const wasNew = this.change.isNew;
    this.change.isNew = false;
    this.current = theirs;
    if (theirs.bytes === null && this.change.bytes === null) {
      this.close();
      this.onDone(this.key);
      return;
    }
    const cause = theirs.bytes === null ? "the key was deleted or has expired since you read it."
      : wasNew ? "the key exists already." : "somebody else changed the key since you read it.";
    this.ask(theirs, theirs.bytes === null ? "Write it as a new key"
      : this.change.bytes === null ? "Delete theirs" : "Overwrite theirs",
    warning(`Nothing was changed: ${cause}`, "Below: − is the present value, + is yours."));
  }
}

/* options: key and current state of an existing key, or neither; onDone(key) after the change. */
export function editKey(options) {
  new ChangeDialog(options.key === undefined ? "New key" : "Edit a key", options).showForm();
}

export function deleteKey(options) {
  const dialog = new ChangeDialog("Delete a key", options);
  dialog.change = { bytes: null, isNew: false };
  dialog.ask(options.current, "Delete");
}
