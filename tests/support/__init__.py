# SPDX-License-Identifier: Apache-2.0
"""What the integration tests stand on: a real broker, a real store, a client of the state store protocol."""
