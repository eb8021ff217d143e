// SPDX-License-Identifier: Apache-2.0
import { test as base, expect, inject } from 'vitest'
import { StateStore } from './statestore.js'

const HOUR = 3600

// `store`: a client of an empty state store
const test = base.extend({
  store: async ({}, use) => {
    const store = await StateStore.connect(inject('url'))
    await store.control('reset')
    await use(store)
    await store.close()
  },
})

test('a key is set and read', async ({ store }) => {
  await store.set('greeting', 'hello')
  expect(await store.get('greeting')).toBe('hello')
})

test('each test begins with an empty store', async ({ store }) => {
  expect(await store.get('greeting')).toBe(null)
})

test('a lease is free again after its time', async ({ store }) => {
  expect(await store.takeLease('lease', 'me', HOUR)).toBe(true)
  expect(await store.takeLease('lease', 'you', HOUR)).toBe(false)

  await store.control('clock', 'advance', '1h')
  expect(await store.takeLease('lease', 'you', HOUR)).toBe(true)
})

test('a watcher is notified when a lease ends', async ({ store }) => {
  await store.takeLease('lease', 'me', HOUR)
  await store.watch('lease')

  await store.control('clock', 'advance', '1h')
  expect(await store.nextNotification()).toEqual({ key: 'lease', event: 'DELETE' })
})

test('a SET of the value DELETE is notified as SET', async ({ store }) => {
  await store.watch('state')
  await store.set('state', 'DELETE')
  expect(await store.nextNotification()).toEqual({ key: 'state', event: 'SET' })
})
