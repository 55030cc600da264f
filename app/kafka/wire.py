"""Batches between socket and client with few copies: fast and strange, and therefore alone here.

aiokafka reads through asyncio's streams, which copy a response three times before it is taken apart, and nests a
produce request from the inside out, which copies every batch seven times. Here a large response is received where it is
taken apart, and the batches of a request go to the socket as they are. Measured: docs/performance.md.
"""

from __future__ import annotations

import asyncio
import io
import struct
from collections import deque
from collections.abc import Iterable
from typing import Any

from aiokafka.protocol.produce import ProduceRequest
from aiokafka.protocol.types import Int16, Int32, String

#: Bytes of small responses that are received at once; what is left of a larger one goes to its own place.
STAGE = 1 << 16

_SIZE = struct.Struct(">i")

#: From this version on a produce request begins with the transactional id; what follows did not change up to v8.
_TRANSACTIONAL = 3


class Wire(asyncio.BufferedProtocol):
    """Both ends of one connection: frames of responses in, requests out. aiokafka keeps few of them waiting."""

    def __init__(self, **_: Any) -> None:
        self.closed: asyncio.Future[None] | None = None
        self.transport: Any = None
        self._stage = memoryview(bytearray(STAGE))
        self._staged = 0
        self._large: tuple[io.BytesIO, memoryview] | None = None
        self._filled = 0
        self._frames: deque[io.BytesIO] = deque()
        self._ended: BaseException | None = None
        self._waiter: asyncio.Future[None] | None = None

    # -- what the transport calls --------------------------------------------------------------------------------------

    def connection_made(self, transport: Any) -> None:
        """As asyncio's."""
        self.transport = transport

    def get_buffer(self, sizehint: int) -> memoryview:
        """As asyncio's."""
        del sizehint
        return self._stage[self._staged :] if self._large is None else self._large[1][self._filled :]

    def buffer_updated(self, count: int) -> None:
        """As asyncio's."""
        if self._large is None:
            self._staged += count
            self._take_staged()
            return
        self._filled += count
        frame, place = self._large
        if self._filled == len(place):
            self._large = None
            self._add(frame)

    def eof_received(self) -> None:
        """As asyncio's: the transport closes itself."""
        self._end(EOFError("the broker closed the connection"))

    def connection_lost(self, exc: BaseException | None) -> None:
        """As asyncio's."""
        self._end(exc or EOFError("the connection is closed"))
        if self.closed is not None and not self.closed.done():
            self.closed.set_result(None)

    def _take_staged(self) -> None:
        begin, end = 0, self._staged
        while end - begin >= _SIZE.size:
            (size,) = _SIZE.unpack_from(self._stage, begin)
            body = begin + _SIZE.size
            if end - body < size:
                if _SIZE.size + size > STAGE:
                    self._begin_large(size, self._stage[body:end])
                    begin = end
                break
            self._add(io.BytesIO(self._stage[body : body + size]))
            begin = body + size
        if begin:
            rest = bytes(self._stage[begin:end])
            self._stage[: len(rest)] = rest
            self._staged = len(rest)

    def _begin_large(self, size: int, received: memoryview) -> None:
        frame = io.BytesIO()
        frame.seek(size - 1)
        frame.write(b"\0")
        frame.seek(0)
        place = frame.getbuffer()
        place[: len(received)] = received
        self._large, self._filled = (frame, place), len(received)

    def _add(self, frame: io.BytesIO) -> None:
        self._frames.append(frame)
        self._wake()

    def _end(self, error: BaseException) -> None:
        self._ended = self._ended or error
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    # -- what aiokafka's connection calls, as of a stream's reader and writer ------------------------------------------

    async def frame(self) -> io.BytesIO:
        """Return the next response, without its size. Raises EOFError or what ended the connection."""
        while not self._frames:
            if self._ended is not None:
                raise self._ended
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        return self._frames.popleft()

    def at_eof(self) -> bool:
        """Tell whether nothing more will come."""
        return self._ended is not None and not self._frames

    def write(self, message: bytes | Parts) -> None:
        """Send a request; the socket's buffer has no bound here, what is unacknowledged has one in the writer."""
        if isinstance(message, Parts):
            self.transport.writelines(message.parts)
        else:
            self.transport.write(message)

    async def drain(self) -> None:
        """Return at once: aiokafka waits for room only with requests that have no answer."""

    def close(self) -> None:
        """As asyncio's."""
        self.transport.close()


class Streams:
    """Stands in for asyncio where aiokafka's connection makes its streams: all of them are one `Wire`."""

    StreamReader = Wire

    @staticmethod
    def StreamWriter(transport: Any, protocol: Wire, reader: Wire, loop: Any) -> Wire:
        """Return the wire."""
        del transport, protocol, loop
        return reader


def protocol(closed: asyncio.Future[None], wire: Wire, **_: Any) -> Wire:
    """Stand in for `AIOKafkaProtocol`: the wire itself, which tells `closed` when the connection is gone."""
    wire.closed = closed
    return wire


class Frames:
    """Stands in for `io` where a response is taken apart: a frame is one of its readers already."""

    @staticmethod
    def BytesIO(frame: io.BytesIO) -> io.BytesIO:
        """Return the frame."""
        return frame


class Parts:
    """A request in parts. aiokafka puts a header and a size before it by adding bytes."""

    def __init__(self, parts: Iterable[Any]) -> None:
        self.parts = list(parts)

    def __radd__(self, before: bytes) -> Parts:
        return Parts([before, *self.parts])

    def __len__(self) -> int:
        return sum(map(len, self.parts))


class PartedProduceRequest(ProduceRequest):  # type: ignore[misc]
    """A produce request whose batches are not copied into it."""

    def build(self, request_struct_class: Any) -> Any:
        """As aiokafka's."""
        request = super().build(request_struct_class)
        if request.API_VERSION >= _TRANSACTIONAL:
            request.encode = lambda: Parts(self._encoded())
        return request

    def _encoded(self) -> Iterable[Any]:
        head = [
            String("utf-8").encode(self._transactional_id),
            Int16.encode(self._required_acks),
            Int32.encode(self._timeout),
            Int32.encode(len(self._topics)),
        ]
        for topic, partitions in self._topics:
            head += [String("utf-8").encode(topic), Int32.encode(len(partitions))]
            for partition, batch in partitions:
                yield b"".join([*head, Int32.encode(partition), Int32.encode(len(batch))])
                yield batch
                head = []
        yield b"".join(head)
