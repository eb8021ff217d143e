// SPDX-License-Identifier: Apache-2.0
// How to test a program with the double: the clock moves at once, and faults happen when the test wants them.
import { expect, inject } from 'vitest'
import { test } from './fixtures.js'
import { NoReply, Refused, StateStore } from './statestore.js'

const HOUR = 3600

const takeLease = async (store, owner) =>
  (await store.set('lease', owner, { condition: 'NX', expires: HOUR })) !== null

test('a key is set and read', async ({ store }) => {
  await store.set('greeting', 'hello')
  expect(await store.get('greeting')).toBe('hello')
})

test('each test begins with an empty store', async ({ store }) => {
  expect(await store.get('greeting')).toBe(null)
})

test('a lease is free again after its time', async ({ store, control }) => {
  expect(await takeLease(store, 'me')).toBe(true)
  expect(await takeLease(store, 'you')).toBe(false)

  await control('clock', 'advance', '1h')
  expect(await takeLease(store, 'you')).toBe(true)
})

test('a watcher is notified when a lease ends', async ({ store, control }) => {
  await takeLease(store, 'me')
  const changes = await store.watch('lease')
  expect((await changes.next()).value).toBe('me')

  await control('clock', 'advance', '1h')
  expect((await changes.next()).value).toBe(null)
})

test('a SET of the value DELETE is notified as SET', async ({ store }) => {
  const changes = await store.watch('state')
  expect((await changes.next()).value).toBe(null)
  await store.set('state', 'DELETE')
  expect((await changes.next()).value).toBe('DELETE')
})

test('an error reply is thrown', async ({ store, control }) => {
  await control('fault', 'error', 'no quorum', 'verb', 'GET')
  await expect(store.get('greeting')).rejects.toThrow(new Refused('no quorum'))
})

test('a request without a reply is an error', async ({ control }) => {
  await control('fault', 'no-answer', 'verb', 'GET')
  const store = await StateStore.connect(inject('url'), { timeout: 0.2 })
  await expect(store.get('greeting')).rejects.toBeInstanceOf(NoReply)
  await store.close()
})
