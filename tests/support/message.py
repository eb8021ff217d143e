# SPDX-License-Identifier: Apache-2.0
"""A received MQTT message."""

import time  # noqa: F401 flake8 takes it for the field of this name
from dataclasses import dataclass, field
from typing import Optional

from support.hlc import Hlc


@dataclass
class Message:
    topic: str
    payload: bytes
    qos: int
    retain: bool
    user: list  # (name, value) in the order of arrival
    correlation: Optional[bytes]
    response_topic: Optional[str]
    content_type: Optional[str]
    format_indicator: Optional[int]
    expiry: Optional[int]
    time: float = field(default_factory=time.monotonic)

    @classmethod
    def from_paho(cls, message):
        def get(name):
            return getattr(message.properties, name, None)

        return cls(message.topic, bytes(message.payload), message.qos, bool(message.retain), get("UserProperty") or [],
                   get("CorrelationData"), get("ResponseTopic"), get("ContentType"), get("PayloadFormatIndicator"),
                   get("MessageExpiryInterval"))

    def prop(self, name):
        """Return the value of the user property, or None. More than one is an error."""
        values = [value for key, value in self.user if key == name]
        assert len(values) <= 1, f"{name} more than once: {self.user}"
        return values[0] if values else None

    @property
    def status(self):
        return self.prop("__stat")

    @property
    def ts(self):
        """Return the version, or None."""
        text = self.prop("__ts")
        return Hlc.parse(text) if text is not None else None


def error(text):
    """Return the payload of an error reply."""
    return f"-ERR {text}\r\n".encode()
