"""`python -m dev.bench.far PORT TO_PORT MILLISECONDS`: a proxy on 127.0.0.1 that adds so much to every round trip.

Bytes are held for half of it in each direction, without a bound on how many are under way: a long line, not a thin one.
"""

from __future__ import annotations

import asyncio
import sys

import uvloop

CHUNK = 1 << 18


async def main(port: int, to_port: int, milliseconds: float) -> None:
    """Serve until killed."""
    delay = milliseconds / 2000

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection("127.0.0.1", to_port, limit=CHUNK)
        await asyncio.gather(_carry(reader, far_writer, delay), _carry(far_reader, writer, delay))

    server = await asyncio.start_server(serve, "127.0.0.1", port, limit=CHUNK)
    await server.serve_forever()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, delay: float) -> None:
    loop = asyncio.get_running_loop()
    try:
        while data := await reader.read(CHUNK):
            loop.call_later(delay, writer.write, data)
    except ConnectionError:
        data = b""  # the other side learns it by the end of the line
    loop.call_later(delay, writer.close)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3])))
