// SPDX-License-Identifier: Apache-2.0
/**
 * A client of the state store in one file. Copy it. It needs Node 18 and MQTT.js 5, or newer.
 *
 *     const store = await StateStore.connect('mqtt://127.0.0.1:1883')
 *     await store.set('greeting', 'hello', { expires: 60 })
 *     const lock = await store.lock('lock')
 *     await store.set('counter', '1', { fence: lock.token })
 *     await lock.release()
 *     for await (const { value } of await store.watch('door')) console.log(value) // null: the key does not exist
 *
 * When the connection is lost, the client connects again, subscribes, repeats the requests that have no reply, registers for
 * the watched keys again, and reads them. The store executes a repeated request once. Values are strings.
 */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import mqtt from 'mqtt'

/** @typedef {{ value: string | number | null, version?: string }} Value null: the key does not exist */
/** @typedef {{ condition?: 'NX' | 'NEX', expires?: number, fence?: string, timeout?: number }} SetOptions seconds */

const SERVICE = 'statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8'
const NOTIFY_SET = '*4\r\n$6\r\nNOTIFY\r\n$3\r\nSET\r\n$5\r\nVALUE\r\n' // the value follows

/** Base of the errors below. Thrown itself if the client is closed or cannot connect. */
export class StateStoreError extends Error {}
/** The store refused the request. The message is its text, such as "not authorized". */
export class Refused extends StateStoreError {}
/** Nothing arrived in time. The store may have executed the request. */
export class NoReply extends StateStoreError {}
/** The lock is not held: it was released, or its lease could not be renewed. */
export class LockLost extends StateStoreError {}

function encode(words) {
  if (words.some((word) => !/string|number/.test(typeof word))) throw new TypeError('a string or a number was expected')
  return [`*${words.length}\r\n`, ...words.map((word) => `$${Buffer.byteLength(`${word}`)}\r\n${word}\r\n`)].join('')
}

/** Return a string, a number, or null for an absent value. Throw an error reply. @param {string} payload */
function decode(payload) {
  const [line, rest] = payload.split(/\r\n(.*)/s)
  if (line.startsWith('-ERR ')) throw new Refused(line.slice(5))
  if (line.startsWith('$')) return line === '$-1' ? null : rest.slice(0, -2)
  return line.startsWith('+') ? line.slice(1) : line === '-1' ? -1 : Number(line.slice(1)) // "-1": the document dialect
}

const hex = (text) => Buffer.from(text).toString('hex').toUpperCase()
const now = () => performance.now() / 1000

/** Return whether a version is older than another. @param {string} [one] absent: of a key that does not exist now */
function isOlder(one, other) {
  const [[wall, counter], [otherWall, otherCounter]] = [one ?? 'Infinity:0:', other].map((each) => each.split(':').map(Number))
  return wall < otherWall || (wall === otherWall && counter < otherCounter)
}

/** The changes of a key, the present value first. While the connection is lost, all but the last can be missed. Close it. */
export class Watch {
  #store
  #queue = []
  #wake = () => {}
  #last = { value: '', version: '0:0:' }
  #read

  /** Use StateStore.watch(). @param {StateStore} store @param {string} key */
  constructor(store, key) {
    this.#store = store
    this.key = key
  }

  /** Wait for the next change. Return null after `timeout` seconds. Throw Refused if the client may not watch the key. */
  async next(timeout = Infinity) {
    const over = timeout === Infinity ? [] : [sleep(Math.max(0, timeout) * 1000, undefined, { ref: false })]
    if (this.#queue.length === 0) await Promise.race([new Promise((resolve) => (this.#wake = resolve)), ...over])
    const change = this.#queue.shift() ?? null
    if (change instanceof Error) throw change
    return /** @type {Value | null} */ (change)
  }

  async *[Symbol.asyncIterator]() {
    for (;;) yield /** @type {Value} */ (await this.next())
  }

  async close() {
    if (this.#store._forget(this)) await this.#store.ask(['KEYNOTIFY', this.key, 'STOP']).catch(() => {})
  }

  async _register() {
    const read = (this.#read = {})
    try {
      await this.#store.ask(['KEYNOTIFY', this.key])
      this._offer(await this.#store.ask(['GET', this.key]), read)
    } catch (error) {
      this.#put(error)
    }
  }

  /** Queue a change unless it is known or outdated. A notification, or a later registration, outdates what a GET read. */
  _offer(/** @type {Value} */ change, /** @type {object} */ read = this.#read) {
    const { value, version } = this.#last
    if (read !== this.#read || isOlder(change.version, version)) return
    this.#read = undefined
    this.#last = { value: change.value, version: change.version ?? version }
    if (change.value === null ? value !== null : change.version !== version || value === null) this.#put(change)
  }

  #put(change) {
    this.#queue.push(change)
    this.#wake()
  }
}

/** A lock, renewed until release(). With `fence: lock.token` in a write, the store refuses the writes of former holders. */
export class Lock {
  #store
  #token = ''
  #until = 0
  #released = new AbortController()
  #renewing = Promise.resolve()
  #lose = () => {}

  /** Use StateStore.lock(). @param {StateStore} store @param {string} key @param {number} lease */
  constructor(store, key, lease) {
    this.#store = store
    Object.assign(this, { key, lease, holder: `${store.id}/${randomUUID()}` })
    /** Resolves when the lease could not be renewed: stop what needs the lock. */
    this.lost = new Promise((resolve) => (this.#lose = resolve))
  }

  /** The fencing token. Read it for each write: a renewal changes it. Throws LockLost. */
  get token() {
    if (this.#released.signal.aborted || now() >= this.#until) throw new LockLost(`the lock ${this.key} is not held`)
    return this.#token
  }

  /** Return whether the lock was still held. */
  async release() {
    this.#released.abort()
    await this.#renewing
    return this.#store.delete(this.key, { value: this.holder })
  }

  async _acquire(timeout) {
    const giveUp = now() + timeout
    if (!(await this.#take(giveUp))) {
      const changes = await this.#store.watch(this.key)
      try {
        while (!(await this.#take(giveUp))) { // until the key does not exist, and after a lease in any case
          const until = Math.min(giveUp, now() + this.lease)
          while (((await changes.next(until - now()))?.value ?? null) !== null);
        }
      } finally {
        await changes.close()
      }
    }
    this.#renewing = this.#renew()
    return this
  }

  /** Take or renew. The lease counts from the moment at which the request is sent: the store's ends later. */
  async #take(/** @type {number} */ giveUp) {
    const sent = now()
    const timeout = Math.max(0.001, Math.min(this.#store.timeout, this.lease, giveUp - sent))
    const version = await this.#store.set(this.key, this.holder, { condition: 'NEX', expires: this.lease, timeout })
    if (version) [this.#token, this.#until] = [version, sent + this.lease]
    return Boolean(version)
  }

  async #renew() {
    const { signal } = this.#released
    for (let isHeld = true; isHeld; ) {
      const pause = Math.max(0, Math.min(this.lease / 3, this.#until - now()))
      await sleep(pause * 1000, undefined, { signal, ref: false }).catch(() => {})
      if (signal.aborted) return
      isHeld = now() < this.#until && (await this.#take(this.#until).catch(() => true)) // try again until the lease ends
    }
    this.#until = 0
    this.#lose()
  }
}

/** Use StateStore.connect(). A request without a reply within `timeout` seconds throws NoReply. */
export class StateStore {
  #mqtt = null // while connected and subscribed
  #connection = null
  #payloadMax = Infinity // bytes
  #pending = new Map()
  #watches = new Set()
  #isClosed = false
  #problem = 'not connected'

  /** @param {string} url mqtt:// or mqtts:// @param {mqtt.IClientOptions & { timeout?: number, reconnect?: number }} options */
  static async connect(url, { timeout = 10, reconnect = 1, ...options } = {}) {
    const id = options.clientId ?? `node-${randomUUID()}`
    const store = Object.assign(new StateStore(), { id, url, timeout, reconnect, options })
    store.replies = `clients/${id}/services/statestore/_any_/command/invoke/response`
    store.notified = `clients/${SERVICE}/${hex(id)}/command/notify/`
    store.#connect()
    return store
  }

  /** Set a key, which expires after `expires` seconds. Return the new version, or null if the condition is not met: NX (the
   *  key does not exist) or NEX (it does not exist, or has this value). @param {string} key @param {SetOptions} options */
  async set(key, value, { condition, expires, fence, timeout } = {}) {
    const px = expires === undefined ? [] : ['PX', Math.ceil(expires * 1000)]
    const reply = await this.ask(['SET', key, value, ...(condition ? [condition] : []), ...px], { fence, timeout })
    return reply.value === 'OK' ? reply.version : null
  }

  /** Return the value, or null if the key does not exist. ask(['GET', key]) also returns the version. */
  async get(/** @type {string} */ key) {
    return (await this.ask(['GET', key])).value
  }

  /** Delete the key, with `value` only if it has that value. Return whether it was deleted. @param {string} key */
  async delete(key, { value, fence } = {}) {
    return (await this.ask(value === undefined ? ['DEL', key] : ['VDEL', key, value], { fence })).value === 1
  }

  /** Register for the changes of one key; `*` is not special. */
  async watch(/** @type {string} */ key) {
    const watch = new Watch(this, key)
    this.#watches.add(watch)
    await watch._register()
    return watch
  }

  /** Wait until the lock is free and take it. Throw NoReply after `timeout` seconds, or if the store does not reply. */
  lock(/** @type {string} */ key, { lease = 10, timeout = Infinity } = {}) {
    return new Lock(this, key, lease)._acquire(timeout)
  }

  /** Send a request and return its reply. Throw Refused or NoReply. @returns {Promise<Value>} */
  async ask(words, { fence, timeout = this.timeout, topic = 'command/invoke' } = {}) {
    if (this.#isClosed) throw new StateStoreError('the client is closed')
    const correlation = randomUUID()
    const userProperties = { __ts: `${Date.now()}:0:${this.id}`, __srcId: this.id, ...(fence && { __ft: fence }) }
    const messageExpiryInterval = Math.max(1, Math.ceil(timeout)) // the store does not execute it much later
    const correlationData = Buffer.from(correlation)
    const properties = { responseTopic: this.replies, correlationData, messageExpiryInterval, userProperties }
    const message = [`${SERVICE}/${topic}`, encode(words), { qos: 1, properties }]
    const replied = new Promise((resolve, reject) => this.#pending.set(correlation, { message, resolve, reject }))
    const late = () => new NoReply(`${words[0]} got no reply within ${timeout} s: ${this.#problem}`)
    const timer = setTimeout(() => this.#pending.get(correlation)?.reject(late()), timeout * 1000)
    if (this.#mqtt) this.#publish(this.#pending.get(correlation)) // else when connected
    const { payload, version } = await replied.finally(() => { clearTimeout(timer); this.#pending.delete(correlation) })
    return { value: decode(payload), version }
  }

  /** Publish a request, unless the broker would close the connection because of its length. */
  #publish({ message, reject }) {
    if (Buffer.byteLength(message[1]) <= this.#payloadMax) this.#mqtt.publish(...message)
    else reject(new StateStoreError('the request is longer than the broker accepts'))
  }

  /** Disconnect. The store ends the registrations of this client. Locks are not released: they expire. */
  async close() {
    this.#isClosed = true
    for (const { reject } of this.#pending.values()) reject(new StateStoreError('the client is closed'))
    await this.#connection.endAsync()
  }

  /** Return whether this was the last watch of its key. */
  _forget(/** @type {Watch} */ watch) {
    return this.#watches.delete(watch) && [...this.#watches].every(({ key }) => key !== watch.key)
  }

  /** Connect, each time with a new client of MQTT.js: an old one would send outdated requests. */
  #connect() {
    const always = { clientId: this.id, protocolVersion: 5, clean: true, reconnectPeriod: 0, resubscribe: false }
    const connection = (this.#connection = mqtt.connect(this.url, { keepalive: 20, ...this.options, ...always }))
    connection.on('connect', ({ properties }) => {
      this.#payloadMax = (properties?.maximumPacketSize ?? Infinity) - 1000 // for the topic and the properties
      connection.stream.setNoDelay(true) // else each request waits for the broker's delayed TCP acknowledgement
      connection.subscribe(`${this.notified}+`, { qos: 1 }, () => {}) // may be refused: the plugin delivers without it
      connection.subscribe(this.replies, { qos: 1 }, (error) => {
        this.#problem = error ? `the subscription to ${this.replies}: ${error.message}` : 'connected'
        if (error) return
        this.#mqtt = connection
        for (const request of this.#pending.values()) this.#publish(request)
        for (const watch of this.#watches) watch._register()
      })
    })
    connection.on('message', (topic, payload, packet) => this.#onMessage(topic, payload, packet.properties ?? {}))
    connection.on('error', (error) => (this.#problem = error.message || error.code))
    connection.once('close', () => {
      this.#mqtt = null
      connection.end(true)
      if (!this.#isClosed) setTimeout(() => this.#isClosed || this.#connect(), this.reconnect * 1000)
    })
  }

  #onMessage(topic, payload, { correlationData, userProperties }) {
    const [text, version] = [payload.toString(), userProperties?.__ts]
    this.#pending.get(correlationData?.toString())?.resolve({ payload: text, version }) // else a repeated or late reply
    const value = text.startsWith(NOTIFY_SET) ? decode(text.slice(NOTIFY_SET.length)) : null
    for (const watch of this.#watches) if (topic === this.notified + hex(watch.key)) watch._offer({ value, version })
  }
}
