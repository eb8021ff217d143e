/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Setting and deleting a key. Before a write its difference is shown. The write has the version that was read as its
 * condition, so it cannot destroy another client's change.
 */

import { readKey, request, VERSION_CHANGED } from "./api.js";
import { bytesFromText, decodeUtf8 } from "./bytes.js";
import { diffElement } from "./diff.js";
import {
  button, checkbox, copyButton, el, errorBox, labelled, notify, openDialog, textInput, warning,
} from "./dom.js";
import { byteSize, duration, UNITS_MS, versionElement } from "./format.js";
import { keyCommand } from "./shell.js";
import { explained, keyName } from "./text.js";

const LIFETIMES = { ms: 1, ...UNITS_MS };

/* Returns { element, read() }. A value that is not text can only be replaced by a file. */
function valueField(bytes) {
  const text = decodeUtf8(bytes);
  const area = el("textarea", { rows: 10, spellcheck: false, value: text ?? "" });
  const file = el("input", { type: "file" });
  /* A text area changes carriage returns, and hides other control characters. */
  const isText = area.value === text && !/[\0-\x08\x0b-\x1f]/.test(text);
  return {
    element: el("div.fields", isText ? labelled("Value", area) : el("p", "The value is not text."),
      labelled("Value from a file", file)),
    async read() {
      if (file.files.length > 0) return new Uint8Array(await file.files[0].arrayBuffer());
      return isText ? bytesFromText(area.value) : bytes;
    },
  };
}

/* When the key expires. Returns { element, read() }: milliseconds from now, or null. */
function expiryField(deadline) {
  const option = (value, label) => el("option", { value }, label);
  const kind = el("select", { onchange: () => { number.hidden = !(kind.value in LIFETIMES); } },
    deadline ? option("keep", `As now: in ${duration(deadline - Date.now())}`) : null, option("never", "Never"),
    Object.keys(LIFETIMES).map((unit) => option(unit, `After … ${unit}`)));
  const number = el("input.short", { type: "number", min: 1, value: 60, hidden: true, "aria-label": "Lifetime" });
  return {
    element: el("div.toolbar-row", labelled("Expires", kind), number),
    read() {
      if (kind.value === "never") return null;
      const ms = kind.value === "keep" ? deadline - Date.now() : Math.round(number.value * LIFETIMES[kind.value]);
      if (ms < 1) throw new Error("The key would have expired already: choose another lifetime.");
      return ms;
    },
  };
}

/* A change is { bytes, null to delete; lifetime(): ms from now, null for ever; isNew: only if there is no key }. */
class ChangeDialog {
  constructor(title, { key, current, onDone }) {
    Object.assign(this, { key, current, onDone }, openDialog(title));
  }

  show(...nodes) {
    this.body.replaceChildren(...nodes);
    this.body.querySelector("input, textarea, [tabindex]")?.focus();
  }

  button(label, run, classes) {
    return button(label, async (event) => {
      event.target.disabled = true;
      this.body.querySelector(".error")?.remove();
      await run().catch((error) => this.body.append(errorBox(error)));
      event.target.disabled = false;
    }, classes);
  }

  actions(...buttons) {
    return el("div.actions", buttons, button("Cancel", this.close));
  }

  showForm() {
    const isNewKey = this.key === undefined;
    const value = valueField(this.current?.bytes ?? new Uint8Array(0));
    const expiry = expiryField(this.current?.deadline);
    const name = textInput();
    const onlyNew = checkbox("Only if the key does not exist (NX)", { checked: true });

    const review = async () => {
      if (isNewKey) this.key = name.value;
      if (this.key === "") throw new Error("The key is empty.");
      this.change = { bytes: await value.read(), lifetime: expiry.read, isNew: isNewKey && onlyNew.control.checked };
      if (isNewKey) this.current = await readKey(this.key, Infinity);
      if (this.change.isNew && this.current.bytes !== null) this.showConflict(this.current);
      else this.ask(this.current, "Write");
    };

    this.form = [
      isNewKey ? labelled("Key", name) : keyName(this.key), value.element, expiry.element, isNewKey ? onlyNew : "",
      this.actions(this.button("Show the difference", review, "primary")),
    ];
    this.show(...this.form);
  }

  /* Show what the change does to this state of the key, as of readKey(), and ask. */
  ask(state, label, ...notes) {
    const { key } = this;
    const { bytes, lifetime, isNew } = this.change;
    const isDelete = bytes === null;
    const ms = isDelete ? null : lifetime();
    const words = isDelete ? ["DEL", key] : ["SET", key, bytes];
    const options = state.fence ? ["--fence", state.fence] : [];
    const send = this.button(label, () => this.send(state, words), isDelete ? "danger" : "primary");
    const token = el("span", "Send the present token ", versionElement(state.fence));

    if (isNew) {
      words.push("NX");
      options.push("--nx");
    }
    if (ms !== null) {
      words.push("PX", String(ms));
      options.push("--px", `${ms}ms`);
    }
    send.disabled = state.fence !== undefined;
    this.show(...notes, keyName(key), diffElement(state.bytes, bytes),
      isDelete ? "" : el("p.hint", `${byteSize(bytes.length)}; ${ms === null ? "for ever" : `for ${duration(ms)}`}.`),
      state.fence ? warning("A fencing token protects this key: the holder of a lock does not expect this change.",
        checkbox(token, { onchange: (event) => { send.disabled = !event.target.checked; } })) : "",
      this.actions(send, this.form ? button("Back", () => this.show(...this.form)) : null,
        copyButton(() => keyCommand(words[0].toLowerCase(), words.slice(1, 3), options))));
  }

  async send(state, words) {
    const ifVersion = this.change.isNew ? undefined : state.version ?? "none";
    const reply = await request(words, { fence: state.fence, ifVersion });
    if (reply.text === VERSION_CHANGED || reply.number === -1) {
      this.showConflict(await readKey(this.key, Infinity));
      return;
    }
    if (reply.type === "error") throw new Error(`The store refused the request: ${explained(reply.text)}`);
    notify(this.change.bytes === null ? "The key is deleted." : "The key is set.");
    this.finish();
  }

  finish() {
    this.close();
    this.onDone(this.key);
  }

  /* Nothing was written: ask again, with the present state. */
  showConflict(theirs) {
    const wasNew = this.change.isNew;
    this.change.isNew = false;
    this.current = theirs;
    if (theirs.bytes === null && this.change.bytes === null) {
      this.finish();
      return;
    }
    const [cause, label] = theirs.bytes === null
      ? ["the key was deleted or has expired.", "Write it as a new key"]
      : [wasNew ? "the key exists already." : "somebody else changed the key since you read it.",
        this.change.bytes === null ? "Delete theirs" : "Overwrite theirs"];
    this.ask(theirs, label, warning(`Nothing was changed: ${cause}`, "Below: − is the present value, + is yours."));
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
