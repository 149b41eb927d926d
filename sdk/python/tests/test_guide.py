"""The examples of docs/python.md run, one after another, as they stand there."""

from __future__ import annotations

import re

from conftest import KEY, ROOT


def test_the_guides_examples_run(server, client, receiver, capsys):
    receiver.answers({"status": 200, "headers": {"Content-Type": "application/json"}, "body": '{"paid": false}'})
    if "Billing API" in [one["name"] for one in client.connections.list()]:
        client.connections.delete("Billing API", force=True)
    client.connections.create("rest", "Billing API", host=receiver.address, url_path="/in", use_queue=True)
    guide = (ROOT / "docs" / "python.md").read_text("utf-8")
    examples = re.findall(r"```python\n(.*?)```", guide, re.S)
    assert len(examples) == 9
    names = {"__name__": "guide", "address": server.address, "key": KEY}
    for number, example in enumerate(examples):
        exec(compile(example, f"docs/python.md, example {number + 1}", "exec"), names)
    said = capsys.readouterr().out
    for line in (
        "delivered: 200 {'paid': False}\n",
        "True msg_",
        "connection `Biling API` does not exist\n",
        "headers any but host, content-length",
        "b'{\"invoice\":17}'\n",
        "DONE\n",
        '{"invoice":19} closed 1\n',
    ):
        assert line in said, said
    # What the guide shows of the answers is what they are.
    refused = re.findall(r"^(?:connection `Biling.*|headers any but.*)$", said, re.M)
    assert all(f"    {line}\n" in guide for line in refused) and len(refused) == 2
