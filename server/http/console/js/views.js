/* SPDX-License-Identifier: Apache-2.0 */

/* Going from one view to another. The address has only the name of the view. */

import { selectKey } from "./keys.js";

/* Dispatched with the name of the view, also if it is shown already. */
export const navigation = new EventTarget();

/* Show a key in the view of keys. */
export function openKey(key) {
  selectKey(key);
  navigation.dispatchEvent(new CustomEvent("open", { detail: "keys" }));
}
