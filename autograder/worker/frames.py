"""Length-prefixed frames over a stream socket, with descriptors riding on the first byte."""

from __future__ import annotations

import socket
import struct
from collections.abc import Sequence

LENGTH = struct.Struct("!Q")


def send_frame(channel: socket.socket, payload: bytes, descriptors: Sequence[int] = ()) -> None:
    """Sends one frame; the descriptors are duplicated into the receiving process."""
    header = LENGTH.pack(len(payload))
    if descriptors:
        sent = socket.send_fds(channel, [header], list(descriptors))
        channel.sendall(header[sent:] + payload)
    else:
        channel.sendall(header + payload)


def receive_frame(channel: socket.socket, most: int) -> tuple[bytes, list[int]] | None:
    """Receives one frame of at most `most` bytes and its descriptors; None at the end of the stream."""
    header, descriptors, _, _ = socket.recv_fds(channel, LENGTH.size, 4)
    if not header:
        return None
    header += receive_exactly(channel, LENGTH.size - len(header))
    (length,) = LENGTH.unpack(header)
    if length > most:
        raise ValueError(f"a frame of {length} bytes, at most {most} are taken")
    return receive_exactly(channel, length), descriptors


def receive_exactly(channel: socket.socket, count: int) -> bytes:
    """Receives `count` bytes; EOFError when the stream ends before."""
    parts = bytearray()
    while len(parts) < count:
        part = channel.recv(min(count - len(parts), 1 << 20))
        if not part:
            raise EOFError(f"the stream ended after {len(parts)} of {count} bytes")
        parts += part
    return bytes(parts)
