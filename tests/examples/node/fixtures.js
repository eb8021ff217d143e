// SPDX-License-Identifier: Apache-2.0
import { test as base, inject } from 'vitest'
import { StateStore } from './statestore.js'

/** Clients connect again at once, because the tests lose connections. */
async function client(use, options = {}) {
  const store = await StateStore.connect(inject('url'), { timeout: 30, reconnect: 0.01, ...options })
  await use(store)
  await store.close()
}

// `store` and `other`: clients of an empty state store. `control`: sends the words of `statestorectl test`.
export const test = base.extend({
  control: ({}, use) =>
    client(async (store) => {
      const control = async (...words) => (await store.ask(words, { topic: 'control/invoke' })).value
      await control('reset')
      await use(control)
    }),
  store: ({ control }, use) => client(use),
  other: ({ control }, use) => client(use),
})
