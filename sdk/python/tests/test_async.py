"""The client for asyncio, over the real server: the same code, awaited."""

from __future__ import annotations

import asyncio
import socket
import threading
import time

import pytest

import postrider
from conftest import KEY


def test_calls_and_lists_are_awaited(server, receiver, make):
    name = make(use_queue=True)

    async def work():
        async with postrider.connect_async(server.address, KEY) as client:
            result = await client.rest[name].post({"a": 1})
            assert result.is_ok
            published = await asyncio.gather(*(client.rest[name].publish(str(n)) for n in range(20)))
            ids = [one.id async for one in client.deliveries.list(connection=name, per_page=7)]
            assert sorted(ids) == sorted([result.msg_id, *(one.msg_id for one in published)])
            with pytest.raises(postrider.NotFound):
                await client.rest["No such"].post()
            assert (await client.with_cid("c-9").rest[name].post()).cid == "c-9"
            assert await client.is_ready()

    asyncio.run(work())
    assert len(receiver.got(22)) == 22


def test_calls_are_under_way_side_by_side(server, receiver, make):
    receiver.answers({"status": 200, "delay_ms": 1000})
    name = make()

    async def work():
        async with postrider.connect_async(server.address, KEY, connections_max=20) as client:
            began = time.monotonic()
            assert all(one.is_ok for one in await asyncio.gather(*(client.rest[name].get() for _ in range(20))))
            return time.monotonic() - began

    # One after another they would take 20 s.
    assert asyncio.run(work()) < 15


def test_a_cancelled_call_lets_go_of_its_connection_at_once():
    listener = socket.create_server(("127.0.0.1", 0))
    ended = threading.Event()

    def hang():
        accepted, _ = listener.accept()
        while accepted.recv(65536):
            pass
        ended.set()

    threading.Thread(target=hang, daemon=True).start()

    async def work():
        address = f"http://127.0.0.1:{listener.getsockname()[1]}"
        async with postrider.connect_async(address, "k", timeout=600) as client:
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(client.rest["x"].post(), 0.5)

    asyncio.run(work())
    assert ended.wait(60)
    listener.close()


def test_a_closed_client_says_so(server):
    async def work():
        client = postrider.connect_async(server.address, KEY)
        await client.aclose()
        with pytest.raises(postrider.BadArgument, match="closed"):
            await client.rest["x"].post()

    asyncio.run(work())
    client = server.connect()
    client.close()
    with pytest.raises(postrider.BadArgument, match="closed"):
        client.rest["x"].post()
