# SPDX-License-Identifier: Apache-2.0
"""Support for the integration tests: a real broker, a real store, and clients of the state store protocol."""
