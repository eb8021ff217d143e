// SPDX-License-Identifier: Apache-2.0
import { GenericContainer, Wait } from 'testcontainers'

// As ../../node/double.js, with the store in a container. Use it with the other files there.
export default async function setup({ provide }) {
  const double = await new GenericContainer(process.env.STATESTORE_IMAGE ?? 'statestored-double')
    .withExposedPorts(1883)
    .withWaitStrategy(Wait.forLogMessage('mqtt://'))
    .start()
  provide('url', `mqtt://${double.getHost()}:${double.getMappedPort(1883)}`)
  return () => double.stop()
}
