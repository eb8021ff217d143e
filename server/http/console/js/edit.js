/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Setting and deleting a key. Before a write its difference is shown. The write has the version that was
 * read as its condition, so it cannot destroy somebody else's change.
 */

import { readKey, request } from "./api.js";
import { bytesFromHex, bytesFromText, decodeUtf8, equalBytes, hexFromBytes } from "./bytes.js";
import { diffElement } from "./diff.js";
import { checkbox, copyButton, el, errorBox, labelled, notify, openDialog } from "./dom.js";
import { byteSize, duration, versionElement } from "./format.js";
import { commandLine } from "./shell.js";
import { shownOnRequest } from "./text.js";

const VERSION_CHANGED = "the version has changed";
const UNITS = { ms: 1, s: 1000, min: 60000, h: 3600000, d: 86400000 };

/* Return the present state of a key: { bytes (null: does not exist), version, fence, deadline }. */
async function readState(key) {
  const state = await readKey(key, Infinity);
  if (state.reply.type === "error") throw new Error(state.reply.text);
  return { ...state, bytes: state.reply.type === "blob" ? state.reply.bytes : null };
}

function option(value, label, selected) {
  return el("option", { value, selected }, label);
}

/* The value: as text, as hexadecimal digits, or from a file. */
class ValueField {
  constructor(bytes) {
    const text = decodeUtf8(bytes);
    this.area = el("textarea", { rows: 10, spellcheck: "false", value: text ?? "" });
    /* A text area changes some characters, such as carriage returns: such values are edited as hex. */
    const isText = text !== null && this.area.value === text && !/[\0-\x08\x0b-\x1f]/.test(text);
    if (!isText) this.area.value = hexFromBytes(bytes);
    this.file = el("input", { type: "file", "aria-label": "File", hidden: true });
    this.mode = el("select", { onchange: () => this.changeMode() },
      option("text", "Text", isText), option("hex", "Hexadecimal", !isText), option("file", "File", false));
    this.previous = this.mode.value;
    this.element = el("div", {}, labelled("Value as", this.mode), labelled("Value", this.area), this.file);
  }

  /* Keep what was typed if it can be shown in the new mode. */
  changeMode() {
    const { area, mode, previous } = this;
    const bytes = previous === "hex" ? bytesFromHex(area.value) : bytesFromText(area.value);
    if (mode.value === "hex" && previous !== "hex") area.value = hexFromBytes(bytes);
    if (mode.value === "text" && previous === "hex") area.value = (bytes && decodeUtf8(bytes)) ?? "";
    this.file.hidden = mode.value !== "file";
    area.parentElement.hidden = mode.value === "file";
    if (mode.value !== "file") this.previous = mode.value;
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
      deadline === undefined ? null : option("keep", `As now: in ${duration(deadline - Date.now())}`, true),
      option("never", "Never", deadline === undefined), option("after", "After …", false));
    this.number = el("input", { type: "number", min: 1, value: 60, class: "short", "aria-label": "Lifetime" });
    this.unit = el("select", { "aria-label": "Unit" },
      ...Object.keys(UNITS).map((unit) => option(unit, unit, unit === "s")));
    this.after = el("span", { class: "inline", hidden: true }, this.number, this.unit);
    this.element = el("div", { class: "inline" }, labelled("Expires", this.kind), this.after);
  }

  /* Return milliseconds, or null for a key that does not expire. */
  read() {
    if (this.kind.value === "never") return null;
    if (this.kind.value === "keep") {
      const ms = this.deadline - Date.now();
      if (ms <= 0) throw new Error("The key has expired in the meantime. Choose another lifetime.");
      return ms;
    }
    const ms = Math.round(Number(this.number.value) * UNITS[this.unit.value]);
    if (!(ms >= 1)) throw new Error("The lifetime must be at least 1 ms.");
    return ms;
  }
}

function setWords(key, write) {
  const words = ["SET", key, write.bytes];
  if (write.isNew) words.push("NX");
  if (write.expiresMs !== null) words.push("PX", String(Math.round(write.expiresMs)));
  return words;
}

function setCommand(key, write, fence) {
  const options = [];
  if (write.isNew) options.push("--nx");
  if (write.expiresMs !== null) options.push("--px", `${Math.round(write.expiresMs)}ms`);
  if (fence) options.push("--fence", fence);
  return commandLine("set", [key, write.bytes], options);
}

/* Ask before a change of a key with a fencing token. Returns the element and whether it may go on. */
function fenceQuestion(fence, onChange) {
  if (!fence) return { element: null, isAccepted: () => true };
  const box = el("input", { type: "checkbox", onchange: onChange });
  return {
    isAccepted: () => box.checked,
    element: el("div", { class: "warning" },
      el("p", {}, "A fencing token protects this key: probably the holder of a lock writes it. The change " +
        "needs the token, and the holder does not expect it."),
      checkbox(el("span", {}, "Send the present token ", versionElement(fence)), box)),
  };
}

/* One change of a key, from the question to its end. Subclasses: EditDialog, DeleteDialog. */
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
    this.body.querySelector("input:not([hidden]), textarea, button")?.focus();
  }

  /* Run the action with its button disabled; show its error. */
  action(label, run, cssClass = "primary") {
    const button = el("button", {
      class: cssClass,
      onclick: async () => {
        button.disabled = true;
        this.body.querySelector(".error")?.remove();
        try {
          await run();
        } catch (error) {
          this.body.append(errorBox(error));
        }
        button.disabled = false;
      },
    }, label);
    return button;
  }

  cancelButton(label = "Cancel") {
    return el("button", { onclick: this.close }, label);
  }

  finish(text) {
    notify(text);
    this.close();
    this.onDone(this.key);
  }

  /* The reply to a change: go on, let the user decide about a conflict, or show the error. */
  async handleReply(reply, doneText) {
    const isConflict = (reply.type === "error" && reply.text === VERSION_CHANGED) ||
      (reply.type === "number" && reply.number === -1);
    if (isConflict) {
      const theirs = await readState(this.key);
      this.showConflict(theirs);
    } else if (reply.type === "error") {
      throw new Error(`The store refused the request: ${reply.text}`);
    } else {
      this.finish(doneText);
    }
  }

  keyElement() {
    return el("p", { class: "key-name" }, shownOnRequest(this.key, 160));
  }
}

class EditDialog extends ChangeDialog {
  constructor(options) {
    super(options.key === undefined ? "New key" : "Edit a key", options);
    this.isNewKey = options.key === undefined;
    this.valueField = new ValueField(this.current?.bytes ?? new Uint8Array(0));
    this.expiryField = new ExpiryField(this.current?.deadline);
    this.keyInput = el("input", { spellcheck: "false", autocomplete: "off", required: true });
    this.onlyNew = el("input", { type: "checkbox", checked: true });
    this.form = el("div", {},
      this.isNewKey ? labelled("Key", this.keyInput) : this.keyElement(),
      this.valueField.element, this.expiryField.element,
      this.isNewKey ? checkbox("Only if the key does not exist (NX)", this.onlyNew) : null);
    this.showForm();
  }

  showForm() {
    this.show(this.form, el("div", { class: "actions" },
      this.action("Show the difference", () => this.review()), this.cancelButton()));
  }

  async review() {
    if (this.isNewKey) this.key = this.keyInput.value;
    if (this.key === "") throw new Error("The key is empty.");
    this.write = {
      bytes: await this.valueField.read(),
      expiresMs: this.expiryField.read(),
      isNew: this.isNewKey && this.onlyNew.checked,
    };
    if (this.isNewKey) this.current = await readState(this.key);
    if (this.write.isNew && this.current.bytes !== null) this.showConflict(this.current);
    else this.showReview(this.current);
  }

  /* What the write does to this state of the key, and the buttons to do it. */
  showReview(state, note = null, label = "Write") {
    const question = fenceQuestion(state.fence, () => { button.disabled = !question.isAccepted(); });
    const button = this.action(label, () => this.send(state));
    const { expiresMs, bytes } = this.write;
    button.disabled = !question.isAccepted();
    this.show(note, this.keyElement(), diffElement(state.bytes, bytes),
      el("p", { class: "hint" }, `${byteSize(bytes.length)}; ` +
        (expiresMs === null ? "does not expire." : `expires after ${duration(expiresMs)}.`)),
      question.element,
      el("div", { class: "actions" }, button,
        el("button", { onclick: () => this.showForm() }, "Back"), this.cancelButton(),
        copyButton(() => setCommand(this.key, this.write, state.fence))));
  }

  async send(state) {
    const ifVersion = this.write.isNew ? undefined : state.version ?? "none";
    const reply = await request(setWords(this.key, this.write), { fence: state.fence, ifVersion });
    await this.handleReply(reply, "The key is set.");
  }

  showConflict(theirs) {
    if (this.write.isNew && this.isNewKey) this.write.isNew = false;
    const isEqual = theirs.bytes !== null && equalBytes(theirs.bytes, this.write.bytes);
    const text = theirs.bytes === null
      ? "Nothing was written: the key was deleted or has expired since you read it."
      : this.isNewKey ? "Nothing was written: the key exists already."
        : "Nothing was written: somebody else changed the key since you read it.";
    this.showReview(theirs, el("div", { class: "warning", role: "alert" },
      el("p", {}, text), el("p", {}, isEqual
        ? "Its value is now the same as yours."
        : "Below is what your change would do to the present value: - is theirs, + is yours.")),
    theirs.bytes === null ? "Write it as a new key" : "Overwrite theirs");
  }
}

class DeleteDialog extends ChangeDialog {
  constructor(options) {
    super("Delete a key", options);
    this.showQuestion(this.current);
  }

  showQuestion(state, note = null) {
    const question = fenceQuestion(state.fence, () => { button.disabled = !question.isAccepted(); });
    const button = this.action("Delete", () => this.send(state), "danger");
    button.disabled = !question.isAccepted();
    this.show(note, this.keyElement(), diffElement(state.bytes, null), question.element,
      el("div", { class: "actions" }, button, this.cancelButton(),
        copyButton(commandLine("del", [this.key], state.fence ? ["--fence", state.fence] : []))));
  }

  async send(state) {
    const reply = await request(["DEL", this.key], { fence: state.fence, ifVersion: state.version });
    await this.handleReply(reply, "The key is deleted.");
  }

  showConflict(theirs) {
    if (theirs.bytes === null) {
      this.finish("The key is gone already.");
      return;
    }
    this.showQuestion(theirs, el("div", { class: "warning", role: "alert" },
      el("p", {}, "Nothing was deleted: somebody else changed the key since you read it. This is its value now:")));
  }
}

/* options: key and current state of an existing key, or neither; onDone(key) after the change. */
export function editKey(options) {
  return new EditDialog(options);
}

export function deleteKey(options) {
  return new DeleteDialog(options);
}
