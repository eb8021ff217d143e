// SPDX-License-Identifier: Apache-2.0
import { defineConfig } from 'vitest/config'

// All tests share one double and begin with reset, so test files run one after the other.
export default defineConfig({
  test: {
    globalSetup: './double.js',
    fileParallelism: false,
    testTimeout: 30_000,
  },
})
