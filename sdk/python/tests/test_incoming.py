"""Incoming webhooks, over the real server: a source, where it forwards to, what failed, and what is forwarded again."""

from __future__ import annotations

import asyncio
import datetime
import itertools
import urllib.request

import pytest

import postrider
from conftest import wait_for

numbers = itertools.count(1)


def send(client, source, body: bytes) -> int:
    """What a provider does."""
    address = client._core.transport.settings.server + source.ingress_path
    request = urllib.request.Request(address, body, {"Content-Type": "text/plain"}, method="POST")
    with urllib.request.urlopen(request) as answer:
        return answer.status


@pytest.fixture
def shop(client, receiver, make):
    """A source with one destination: a connection that the receiver answers for."""
    name = make(use_queue=True)
    source = client.sources.create(f"shop {next(numbers)}", "none", description="for tests")
    destination = client.destinations.create(source.id, connection=name)
    return source, destination


def test_r12_what_is_shown_once_is_shown_once(client, shop):
    source, _ = shop
    assert source.token.startswith("in_") and source.ingress_path.endswith(source.token)
    assert source.token not in repr(source)
    shown = client.sources.show(source.id)
    assert (shown.token, shown.secret, shown.topic) == (None, None, source.topic)
    rotated = client.sources.rotate_token(source.id, overlap_seconds=0)
    assert rotated.token not in (None, source.token)
    assert client.sources.update(source.id, enabled=False).enabled is False
    assert source.id in [one.id for one in client.sources.list(per_page=1)]
    with pytest.raises(postrider.Invalid) as refused:
        client.sources.create("x", "hithub")
    assert refused.value.fields == ["provider"]


def test_r12_failed_forwards_are_retried_as_new_ones(client, receiver, shop):
    source, destination = shop
    receiver.answers({"status": 500, "body": "no"})
    assert send(client, source, b"one") == 202
    (failed,) = wait_for(lambda: list(client.forwards.failed(source=source.id)))
    assert (failed.destination_id, failed.failure, failed.attempt_count) == (destination.id, "status", 1)
    receiver.answers({"status": 200})
    renewed = client.forwards.retry(failed.forward_id)
    assert renewed.id != failed.forward_id
    wait_for(lambda: client.forwards.show(renewed.id).status == "SUCCESS")
    assert client.forwards.show(failed.forward_id).status == "FAILED"
    done = client.forwards.retry_many(ids=[failed.forward_id])
    assert (done.retried, done.requested, len(done.refused), done.has_more) == (0, 1, 1, False)
    assert client.forwards.retry_many(where={"source": source.id}).requested == 0
    for wrong in ({}, {"ids": [], "where": {}}):
        with pytest.raises(postrider.BadArgument):
            client.forwards.retry_many(**wrong)
    since = datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc)
    assert client.sources.replay(source.id, since=since, dry_run=True).forwards == 1
    assert client.sources.replay(source.id, since=since, destination=destination.id).events == 1
    wait_for(lambda: len(list(client.forwards.list(source=source.id, status="SUCCESS"))) == 2)


def test_r12_destinations_are_changed_and_end(client, shop):
    source, destination = shop
    assert client.destinations.update(destination.id, enabled=False).enabled is False
    assert [one.id for one in client.destinations.list(source=source.id)] == [destination.id]
    with pytest.raises(postrider.BadArgument):
        client.destinations.create(source.id)
    client.destinations.delete(destination.id)
    assert list(client.destinations.list(source=source.id)) == []
    client.sources.delete(source.id)
    with pytest.raises(postrider.NotFound):
        client.sources.show(source.id)


def test_r12_the_same_for_asyncio(client, server):
    async def run() -> None:
        async with postrider.connect_async(server.address, client._core.transport.settings.key) as later:
            source = await later.sources.create(f"later {next(numbers)}", "github")
            assert source.secret and source.secret not in repr(source)
            assert source.id in [one.id async for one in later.sources.list()]
            assert [one async for one in later.forwards.failed(source=source.id)] == []
            await later.sources.delete(source.id)

    asyncio.run(run())
