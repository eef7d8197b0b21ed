"""`serve` ends on a signal, answers while its caller says goodbye, lets it clean up, and waits for no long poll."""

import signal
import socket
import subprocess
import sys

import httpx
import pytest

from .support import until_sync

SERVER = """
import asyncio, sys
from paceline.kits.http import serve

async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        while True:
            message = await receive()
            await send({"type": message["type"] + ".complete"})
            if message["type"] == "lifespan.shutdown":
                return
    if scope["path"] == "/wait":
        print("waiting", flush=True)
        await asyncio.Event().wait()
    await send({"type": "http.response.start", "status": 204, "headers": []})
    await send({"type": "http.response.body", "body": b""})

async def goodbye():
    print("still there" if await answers() else "gone", flush=True)

async def answers():
    reader, writer = await asyncio.open_connection("127.0.0.1", int(sys.argv[1]))
    writer.write(b"GET / HTTP/1.1\\r\\nHost: x\\r\\nConnection: close\\r\\n\\r\\n")
    return b"204" in await reader.readline()

async def main():
    await serve(app, "127.0.0.1", int(sys.argv[1]), goodbye)
    print("cleaned up", flush=True)

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_serve_and_the_caller_cleans_up(number: signal.Signals) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    server = subprocess.Popen([sys.executable, "-c", SERVER, str(port)], stdout=subprocess.PIPE, text=True)
    try:
        until_sync(lambda: answers(url))
        with pytest.raises(httpx.ReadTimeout):
            httpx.get(f"{url}/wait", timeout=0.2)
        server.send_signal(number)
        output, _ = server.communicate(timeout=30)
    finally:
        server.kill()
        server.wait()
    assert (server.returncode, output) == (0, "waiting\nstill there\ncleaned up\n")


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 204
    except httpx.ConnectError:
        return False
