// SPDX-License-Identifier: Apache-2.0
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'

// Use the double that the environment names, or start one that stops with the test run.
export default async function setup({ provide }) {
  if (process.env.STATESTORE_URL) {
    provide('url', process.env.STATESTORE_URL)
    return
  }
  const double = spawn('statestored', ['--dev', '--control', '--port', '0', '--exit-with-parent'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const ended = once(double, 'exit')
  const [url] = await Promise.race([
    once(createInterface({ input: double.stdout }), 'line'),
    ended.then(() => {
      throw new Error('statestored did not start')
    }),
  ])
  provide('url', url)
  return async () => {
    double.stdin.end()
    await ended
  }
}
