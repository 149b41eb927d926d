"""What people and programs do about deliveries, over the real server."""

from __future__ import annotations

import datetime

import pytest

import postrider
from conftest import wait_for


@pytest.fixture
def dead(client, receiver, make):
    """Three dead letters of one connection, oldest first."""
    receiver.answers({"status": 500, "body": "no"})
    name = make(use_queue=True)
    return name, [client.rest[name].post({"n": number}).msg_id for number in range(3)]


def test_z20_a_dead_letter_says_why_when_and_after_how_many_attempts(client, dead):
    name, ids = dead
    letter = client.dlq.show(ids[0])
    assert (letter.delivery_id, letter.connection, letter.attempt_count) == (ids[0], name, 1)
    assert letter.failure == "status" and "500" in letter.last_error
    assert letter.failed_at.tzinfo is datetime.timezone.utc
    delivery = client.deliveries.show(ids[0])
    assert (delivery.status, delivery.label, delivery.attempts, delivery.edited) == ("DLQ", "Not delivered", 1, False)
    (attempt,) = client.deliveries.attempts(ids[0])
    assert (attempt.number, attempt.status, attempt.response_body, attempt.failure) == (1, 500, b"no", "status")


def test_lists_page_by_themselves(client, dead):
    name, ids = dead
    found = [delivery.id for delivery in client.deliveries.list(per_page=1, connection=name)]
    assert found == ids[::-1]
    letters = client.dlq.list(
        per_page=2,
        connection=name,
        error="status",
        created_from=datetime.datetime(2020, 1, 1, tzinfo=datetime.timezone.utc),
    )
    assert [letter.delivery_id for letter in letters] == ids[::-1]
    assert list(client.deliveries.list(connection=name, status=["PENDING", "SUCCESS"])) == []
    with pytest.raises(postrider.Invalid) as refused:
        next(iter(client.deliveries.list(colour="red")))
    assert refused.value.fields == ["colour"]


def test_z23_edit_retry_and_discard(client, receiver, dead):
    name, ids = dead
    edited = client.deliveries.edit(ids[0], {"n": "mended"})
    assert edited.edited
    assert client.deliveries.body(ids[0]) == b'{"n":"mended"}'
    assert client.deliveries.body(ids[0], original=True) == b'{"n":0}'
    receiver.answers({"status": 200})
    client.dlq.retry(ids[0])
    wait_for(lambda: client.deliveries.show(ids[0]).status == "SUCCESS")
    with pytest.raises(postrider.Conflict) as refused:
        client.deliveries.retry(ids[0])
    assert refused.value.code == "already_delivered"
    assert client.deliveries.discard(ids[1]).status == "DISCARDED"
    with pytest.raises(postrider.BadArgument):
        client.deliveries.edit(ids[2], None)
    client.deliveries.resend(ids[2])
    assert wait_for(lambda: client.deliveries.show(ids[2]).delivered_at)


def test_r11_several_are_retried_in_their_order(client, receiver, dead):
    _, ids = dead
    receiver.answers({"status": 200})
    done = client.dlq.retry_many([*ids, "msg_00000000000000000000000000"])
    assert (done.retried, done.requested, len(done.refused)) == (3, 4, 1)
    numbers = [entry["body_base64"] for entry in receiver.got(6)][3:]
    assert numbers == sorted(numbers)


def test_p08_bulk_acts_are_jobs(client, receiver, dead):
    name, ids = dead
    assert client.deliveries.count("retry", where={"connection": name}).matched == 3
    receiver.answers({"status": 200})
    job = client.jobs.wait(client.dlq.bulk("retry", where={"connection": name}).id)
    assert (job.state, job.done, job.skipped_total, job.has_ended) == ("DONE", 3, 0, True)
    wait_for(lambda: not list(client.dlq.list(connection=name)))
    assert job.id in [one.id for one in client.jobs.list()]
    with pytest.raises(postrider.Conflict):
        client.jobs.cancel(job.id)
    by_ids = client.deliveries.bulk("resend", ids=ids)
    assert client.jobs.wait(by_ids.id).done == 3


def test_a_queue_is_seen_from_its_head_and_attempted_now(client, receiver, make):
    name = make(use_queue=True)
    client.connections.pause(name)
    ids = [client.rest[name].publish(str(number)).msg_id for number in range(3)]
    assert [one.id for one in client.connections.queue(name, per_page=2)] == ids
    assert client.deliveries.set_aside(ids[2]).status == "DLQ"
    client.connections.resume(name)
    receiver.got(2)
    with pytest.raises(postrider.Conflict):
        wait_for(lambda: client.connections.show(name)["state"]["waiting"] == 0)
        client.connections.attempt_now(name)


def test_z22_a_dead_letter_is_forwarded_to_a_topic_and_pulled(client, dead):
    name, ids = dead
    topic = f"failed.{ids[0]}"
    client.topics.create(topic, description="undeliverable", retention_seconds=3600)
    client.topics.subscribe(topic, "ops", redeliver_after_seconds=60)
    assert client.deliveries.forward(ids[0], topic).status == "FORWARDED"
    job = client.deliveries.bulk("forward", ids=[ids[1]], topic=topic, keep_header=False)
    client.jobs.wait(job.id)
    messages = client.topics.pull(topic, "ops", messages_max=10)
    assert [message.text for message in messages] == ['{"n":0}', '{"n":1}']
    assert [message.times_given for message in messages] == [1, 1]
    done = client.topics.ack(topic, "ops", messages)
    assert (done.acknowledged, done.requested) == (2, 2)
    assert client.topics.ack(topic, "ops", messages[0]).acknowledged == 0
    assert client.topics.pull(topic, "ops") == []
    assert [one.redeliver_after_seconds for one in client.topics.subscriptions(topic)] == [60]


def test_p02_a_message_comes_out_of_a_topic_as_it_went_in(client):
    client.topics.create("orders.eu")
    assert client.topics.show("orders.eu").retention_seconds == 7 * 24 * 3600
    client.topics.subscribe("orders.eu", "one")
    sent = [client.publish("orders.eu", data, headers={"X-Kind": "k"}) for data in ({"a": "ü"}, "text", b"\x00\xff")]
    messages = client.topics.pull("orders.eu", "one")
    assert [message.body for message in messages] == ['{"a":"ü"}'.encode(), b"text", b"\x00\xff"]
    assert [message.id for message in messages] == [one.msg_id for one in sent]
    assert messages[0].headers["x-kind"] == "k"
    assert [message.id for message in client.topics.messages("orders.eu", per_page=1)] == [one.msg_id for one in sent][
        ::-1
    ]
    assert "orders.eu" in [topic.name for topic in client.topics.list()]
    client.topics.unsubscribe("orders.eu", "one")
    client.topics.delete("orders.eu")
    with pytest.raises(postrider.NotFound):
        client.publish("orders.eu", "x")


def test_connections_are_configured(client, receiver, make):
    name = make(use_queue=True, max_retries=2)
    shown = client.connections.show(name, type="rest")
    assert (shown["max_retries"], shown["state"]["paused"]) == (2, False)
    assert client.connections.update(name, max_retries=4)["max_retries"] == 4
    assert "max_retries" not in client.connections.update(name, max_retries=None)
    with pytest.raises(postrider.Invalid) as refused:
        client.connections.update(name, max_retries=1001)
    assert refused.value.fields == ["max_retries"]
    client.connections.pause(name)
    client.rest[name].publish("x")
    with pytest.raises(postrider.Conflict):
        client.connections.delete(name)
    client.connections.delete(name, force=True)
    assert name not in [one["name"] for one in client.connections.list(per_page=5)]


def test_everything_else_goes_by_its_path(client):
    projects = client.request("GET", "/api/v1/projects", params={})
    assert projects["data"][0]["name"] or projects["data"][0]["id"]
    made = client.request("POST", "/api/v1/projects", {"name": "second"})
    assert made
    elsewhere = client.in_project("second")
    assert elsewhere.project == "second"
    assert list(elsewhere.connections.list()) == []
    with pytest.raises(postrider.NotFound):
        list(client.in_project("third").deliveries.list())
