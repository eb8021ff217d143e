// SPDX-License-Identifier: Apache-2.0
// The client itself: it loses its connection at each request, and its locks exclude each other.
import { expect } from 'vitest'
import { test } from './fixtures.js'
import { LockLost, NoReply, Refused } from './statestore.js'

const STEPS = {
  SET: [async (store) => (await store.set('key', 'new')) !== null, true],
  GET: [(store) => store.get('key'), 'old'],
  DEL: [(store) => store.delete('key'), true],
  VDEL: [(store) => store.delete('key', { value: 'old' }), true],
  KEYNOTIFY: [async (store) => (await (await store.watch('key')).next()).value, 'old'],
}

test('a request survives a lost connection', async ({ store, other, control }) => {
  for (const [verb, [act, expected]] of Object.entries(STEPS)) {
    await other.set('key', 'old')
    await control('fault', 'kick', 'client', store.id, 'verb', verb, 'count', 1)
    expect(await act(store), verb).toBe(expected)
    expect(await control('wait-for', 'client', store.id, 'verb', verb, 'count', 2), verb).toBe(1)
  }
})

async function loseConnection(store, control) {
  await control('fault', 'kick', 'client', store.id, 'verb', 'GET', 'key', 'nothing', 'count', 1)
  await store.get('nothing')
}

const next = async (changes) => (await changes.next()).value

test('a watcher learns what changed while it was away', async ({ store, other, control }) => {
  const changes = await store.watch('door')
  expect(await next(changes)).toBe(null)
  await control('fault', 'drop-notification', 'key', 'door', 'count', 1)
  await other.set('door', 'open')
  await loseConnection(store, control)
  expect(await next(changes)).toBe('open')

  await control('fault', 'drop-notification', 'key', 'door', 'count', 1)
  await other.delete('door')
  await loseConnection(store, control)
  expect(await next(changes)).toBe(null)

  await other.set('door', 'shut')
  expect(await next(changes)).toBe('shut')
})

test('a watcher gets each change once', async ({ store, other, control }) => {
  await control('fault', 'notify-twice', 'key', 'door')
  const changes = await store.watch('door')
  expect(await next(changes)).toBe(null)
  await other.set('door', 'open')
  await other.delete('door')
  for (const value of ['open', null]) expect(await next(changes)).toBe(value)
  await loseConnection(store, control)
  for (const value of ['shut', 'end']) {
    await other.set('door', value)
    expect(await next(changes)).toBe(value)
  }
})

test('a watch that is not permitted throws', async ({ store, control }) => {
  await control('fault', 'error', 'not authorized', 'verb', 'KEYNOTIFY')
  const changes = await store.watch('door')
  await expect(changes.next()).rejects.toThrow(new Refused('not authorized'))
})

test('a closed watch ends its registration unless another watches', async ({ store }) => {
  const [first, second] = [await store.watch('door'), await store.watch('door')]
  await first.close()
  expect(await next(second)).toBe(null)
  await store.set('door', 'open')
  expect(await next(second)).toBe('open')
  await second.close()
  expect((await store.ask(['KEYNOTIFY', 'door', 'STOP'])).value).toBe(0)
})

test('a lock is released and taken by the next', async ({ store, other }) => {
  const lock = await store.lock('lock')
  expect(await store.get('lock')).toBe(lock.holder)
  await expect(other.lock('lock', { timeout: 0.1 })).rejects.toBeInstanceOf(NoReply)
  expect(await lock.release()).toBe(true)
  const next = await other.lock('lock')
  expect(await other.get('lock')).toBe(next.holder)
  expect(await next.release()).toBe(true)
  expect(await other.get('lock')).toBe(null)
})

test('a waiting client is woken although its connection was lost', async ({ store, other, control }) => {
  const lock = await store.lock('lock', { lease: 60 })
  const waiting = other.lock('lock', { lease: 60 })
  await control('wait-for', 'client', other.id, 'verb', 'GET', 'key', 'lock')
  await loseConnection(other, control)
  expect(await lock.release()).toBe(true)
  expect((await waiting).token).toBeTruthy()
})

test('a lock survives a connection lost while it is taken or released', async ({ store, control }) => {
  for (const verb of ['SET', 'VDEL']) {
    await control('fault', 'kick', 'verb', verb, 'key', 'lock', 'count', 1)
    const lock = await store.lock('lock')
    expect(lock.token).toBeTruthy()
    expect(await lock.release()).toBe(true)
    expect(await store.get('lock')).toBe(null)
  }
})

test('a lock is renewed although the connection is lost', async ({ store, control }) => {
  const lock = await store.lock('lock', { lease: 9 })
  const first = lock.token
  await control('fault', 'kick', 'client', store.id, 'verb', 'SET', 'key', 'lock', 'count', 1)
  await control('wait-for', 'client', store.id, 'verb', 'SET', 'key', 'lock', 'count', 3, 'timeout', '20s')
  while (lock.token === first) await store.get('nothing') // #renew() may not have taken the reply yet
  await lock.release()
})

test('a lock that is not renewed is lost before its lease ends', async ({ store, control }) => {
  const lock = await store.lock('lock', { lease: 5 })
  await control('fault', 'no-answer', 'client', store.id, 'verb', 'SET', 'key', 'lock')
  await lock.lost
  expect(() => lock.token).toThrow(LockLost)
})

test('a lock that another took is lost', async ({ store, other }) => {
  const lock = await store.lock('lock', { lease: 5 })
  await other.set('lock', 'another', { expires: 60 })
  await lock.lost
  expect(await lock.release()).toBe(false)
})

test('the store refuses the writes of a former holder', async ({ store, other }) => {
  const lock = await store.lock('lock', { lease: 60 })
  const old = lock.token
  await store.set('counter', '1', { fence: old })
  await lock.release()

  const next = await other.lock('lock', { lease: 60 })
  await other.set('counter', '2', { fence: next.token })
  await expect(store.set('counter', '3', { fence: old })).rejects.toThrow('lower version')
  await expect(store.set('counter', '3')).rejects.toThrow('required')
  expect(await store.get('counter')).toBe('2')
})

test('a value that is neither text nor number is not stored', async ({ store }) => {
  for (const wrong of [undefined, null, { x: 1 }, Buffer.from('x')]) {
    await expect(store.set('key', wrong)).rejects.toThrow(TypeError)
    await expect(store.get(wrong)).rejects.toThrow(TypeError)
  }
  expect(await store.get('key')).toBe(null)
})

test('a lifetime that is not positive is refused', async ({ store }) => {
  for (const expires of [0, -1]) await expect(store.set('key', 'value', { expires })).rejects.toThrow(Refused)
})

test('a request that is too long is refused and delays no other', async ({ store }) => {
  await expect(store.set('key', 'x'.repeat(17 << 20))).rejects.toThrow('longer than the broker accepts') // when connected
  await expect(store.set('key', 'x'.repeat(17 << 20))).rejects.toThrow('longer than the broker accepts')
  expect(await store.get('key')).toBe(null)
})
