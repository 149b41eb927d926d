"""Looks after brokers with clients that we did not write: makes streams and queues, and reads what is in them.

It reads `{"broker", "address", "do", …}` from standard input and writes the answer. `do` is `declare`, `read` or `delete`. It must not know
who publishes.
"""

import asyncio
import base64
import json
import sys


def encoded(data):
    return base64.b64encode(data).decode()


async def nats(given):
    import nats as client
    from nats.js.errors import NotFoundError

    connection = await client.connect(f"nats://{given['address']}")
    streams = connection.jetstream()
    name = given["name"]
    try:
        if given["do"] == "declare":
            limits = given.get("limits", {})
            await streams.add_stream(name=name, subjects=[given["subject"]], **limits)
            return {}
        if given["do"] == "delete":
            try:
                await streams.delete_stream(name)
            except NotFoundError:
                pass
            return {}
        state = (await streams.stream_info(name)).state
        found = []
        if not state.messages:
            return {"messages": found}
        for number in range(state.first_seq, state.last_seq + 1):
            message = await streams.get_msg(name, number)
            headers = {key.lower(): value for key, value in (message.headers or {}).items()}
            found.append({"body": encoded(message.data or b""), "id": headers.get("nats-msg-id"), "headers": headers})
        return {"messages": found}
    finally:
        await connection.close()


def rabbitmq(given):
    import pika

    host, port = given["address"].rsplit(":", 1)
    connection = pika.BlockingConnection(pika.ConnectionParameters(host=host, port=int(port)))
    channel = connection.channel()
    name = given["name"]
    try:
        if given["do"] == "declare":
            channel.queue_declare(name, durable=True, arguments=given.get("limits", {}))
            return {}
        if given["do"] == "delete":
            channel.queue_delete(name)
            return {}
        found = []
        while True:
            method, properties, body = channel.basic_get(name, auto_ack=True)
            if method is None:
                return {"messages": found}
            found.append(
                {
                    "body": encoded(body),
                    "id": properties.message_id,
                    "headers": properties.headers or {},
                    "content_type": properties.content_type,
                    "persistent": properties.delivery_mode == 2,
                    "cid": properties.correlation_id,
                }
            )
    finally:
        connection.close()


def redis(given):
    import redis as client

    host, port = given["address"].rsplit(":", 1)
    connection = client.Redis(host=host, port=int(port))
    name = given["name"]
    if given["do"] == "delete":
        connection.delete(name)
        return {}
    if given["do"] == "declare":
        # Something else under the stream's name.
        connection.set(name, "no stream")
        return {}
    found = []
    for entry, fields in connection.xrange(name):
        headers = {key[7:].decode(): value.decode() for key, value in fields.items() if key.startswith(b"header:")}
        found.append(
            {
                "entry": entry.decode(),
                "body": encoded(fields[b"body"]),
                "id": fields[b"msg_id"].decode(),
                "headers": headers,
            }
        )
    return {"messages": found}


def main():
    given = json.load(sys.stdin)
    if given["broker"] == "nats":
        answer = asyncio.run(nats(given))
    else:
        answer = {"rabbitmq": rabbitmq, "redis": redis}[given["broker"]](given)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
