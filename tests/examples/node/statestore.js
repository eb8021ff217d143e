// SPDX-License-Identifier: Apache-2.0
// A small client of the state store for tests. Copy it, or use your own client.
import { randomUUID } from 'node:crypto'
import mqtt from 'mqtt'

const SERVICE = 'statestore/v1/FA9AE35F-2F64-47CD-9BFF-08E2B32A0FE8'

const encode = (words) =>
  [`*${words.length}\r\n`, ...words.map((word) => `$${Buffer.byteLength(`${word}`)}\r\n${word}\r\n`)].join('')

const DELETED = Buffer.from(encode(['NOTIFY', 'DELETE']))

// Return a string, null for an absent value, or a number. Throw an error reply.
function decode(payload) {
  const [line, rest] = payload.toString().split(/\r\n(.*)/s)
  if (line.startsWith('-')) throw new Error(line.slice(1))
  if (line.startsWith(':')) return Number(line.slice(1))
  if (line.startsWith('$')) return line === '$-1' ? null : rest.slice(0, -2)
  return line.slice(1)
}

export class StateStore {
  static async connect(url) {
    const store = new StateStore()
    store.id = `test-${randomUUID()}`
    store.replies = `clients/${store.id}/replies`
    store.notified = `clients/${SERVICE}/${Buffer.from(store.id).toString('hex').toUpperCase()}/command/notify/`
    store.pending = new Map()
    store.notifications = []
    store.waiting = []
    store.counter = 0
    store.mqtt = await mqtt.connectAsync(url, { clientId: store.id, protocolVersion: 5 })
    store.mqtt.on('message', (topic, payload, packet) => store.receive(topic, payload, packet))
    await store.mqtt.subscribeAsync([store.replies, `${store.notified}+`], { qos: 1 })
    return store
  }

  close() {
    return this.mqtt.endAsync()
  }

  receive(topic, payload, packet) {
    if (topic === this.replies) {
      const correlation = packet.properties.correlationData.toString()
      this.pending.get(correlation)?.(payload)
      this.pending.delete(correlation)
      return
    }
    const key = Buffer.from(topic.slice(this.notified.length), 'hex').toString()
    const notification = { key, event: payload.equals(DELETED) ? 'DELETE' : 'SET' }
    const waiting = this.waiting.shift()
    if (waiting) waiting(notification)
    else this.notifications.push(notification)
  }

  async ask(words, topic = `${SERVICE}/command/invoke`) {
    const correlation = randomUUID()
    const replied = new Promise((resolve) => this.pending.set(correlation, resolve))
    await this.mqtt.publishAsync(topic, encode(words), {
      qos: 1,
      properties: {
        responseTopic: this.replies,
        correlationData: Buffer.from(correlation),
        userProperties: { __ts: `${Date.now()}:${this.counter++}:${this.id}`, __srcId: this.id },
      },
    })
    return decode(await replied)
  }

  // Send a control request to a double that was started with --control: the words of `statestorectl test`.
  control(...words) {
    return this.ask(words, `${SERVICE}/control/invoke`)
  }

  set(key, value) {
    return this.ask(['SET', key, value])
  }

  get(key) {
    return this.ask(['GET', key])
  }

  // Try to take the lease, and return whether the owner has it.
  async takeLease(key, owner, seconds) {
    return (await this.ask(['SET', key, owner, 'NX', 'PX', seconds * 1000])) === 'OK'
  }

  watch(key) {
    return this.ask(['KEYNOTIFY', key])
  }

  nextNotification() {
    return this.notifications.shift() ?? new Promise((resolve) => this.waiting.push(resolve))
  }
}
