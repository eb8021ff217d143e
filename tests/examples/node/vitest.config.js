// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitest/config'

// One double serves all tests, and each begins with reset: so one file after the other.
export default defineConfig({
  test: {
    globalSetup: './double.js',
    fileParallelism: false,
    testTimeout: 30_000,
  },
})
