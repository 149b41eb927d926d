"""Holds a running server against its own OpenAPI document, with requests that schemathesis makes up: `api_contract.py ADDRESS SECONDS`.

The key comes in POSTRIDER_KEY. Requests are of three kinds: the document's examples, what lies at the edges of each schema, and random ones,
right and wrong. A finding is an answer of 5xx, a status, content type or body that the document does not have, a wrong request that is taken, a
request that is taken without a key, and a method that is answered otherwise than 405 with `Allow`. Ends with 1 on any.

The document lets answers have further members, so that clients go on when one is added; here each answer is held to those it names.
"""

import json
import os
import pathlib
import subprocess
import sys
import tempfile

import requests

CHECKS = [
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
    "ignored_auth",
]
CONFIG = """
[auth.openapi]
bearer = { bearer = "${POSTRIDER_KEY}" }
header = { api_key = "${POSTRIDER_KEY}" }
"""

HOOKS = """
import json

import schemathesis


@schemathesis.serializer("application/x-ndjson", "application/jsonl")
def lines(context, value):
    return value if isinstance(value, bytes) else (value if isinstance(value, str) else json.dumps(value)).encode()
"""


def closed(schema, components, seen):
    """The same schema, of which no object has further members."""
    if isinstance(schema, list):
        return [closed(one, components, seen) for one in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        name = schema["$ref"].rsplit("/", 1)[-1]
        # A problem has further members where there is more to say (RFC 9457, section 3.2).
        if name != "Problem" and name not in seen:
            seen.add(name)
            components[name] = closed(components[name], components, seen)
        return schema
    made = {}
    for key, value in schema.items():
        if key == "properties":
            made[key] = {name: closed(member, components, seen) for name, member in value.items()}
        elif key in ("items", "anyOf", "additionalProperties"):
            made[key] = closed(value, components, seen)
        else:
            made[key] = value
    if "properties" in made:
        made.setdefault("additionalProperties", False)
    return made


def strict(document):
    components = document["components"]["schemas"]
    seen = set()
    for path, item in document["paths"].items():
        for method, operation in item.items():
            if method == "parameters":
                continue
            for response in operation["responses"].values():
                for media_type, content in response.get("content", {}).items():
                    content["schema"] = closed(content["schema"], components, seen)
    return document


def furnish(session, base):
    """Something under every name that the examples have, so that requests get past 404."""
    project = f"{base}/api/v1/projects/default"
    # Nobody listens there, so that what is sent becomes a dead letter.
    connection = {
        "name": "Billing API", "type": "rest", "host": "http://127.0.0.1:9", "url_path": "/invoices/{id}", "use_queue": True,
    }
    made = [
        session.post(f"{project}/connections", json=connection),
        session.post(f"{project}/connections", json={**connection, "name": "direct", "url_path": "", "use_queue": False}),
        session.post(f"{project}/topics", json={"name": "lab.failed"}),
        session.post(f"{project}/topics/lab.failed/subscriptions", json={"name": "audit"}),
        session.post(f"{project}/security", json={"name": "Billing login", "type": "bearer", "token": "t"}),
        session.post(f"{project}/keys", json={"name": "CI", "scopes": ["read"]}),
    ]
    made += [session.post(f"{project}/topics/lab.failed/publish", json={"body": str(at)}) for at in range(3)]
    made += [
        session.post(f"{project}/connections/Billing API/send", json={"params": {"id": str(at)}, "body": at}) for at in range(8)
    ]
    for answer in made:
        answer.raise_for_status()
    ids = [delivery["id"] for delivery in session.get(f"{project}/deliveries").json()["data"]]
    job = session.post(f"{project}/deliveries/retry", json={"filter": {}})
    job.raise_for_status()
    return ids[0], job.json()["id"]


def parts(document):
    """Documents for processes that run side by side (threads of one trip over each other), each with the checks that it is held to."""
    # The raw path takes any method, also those that a document cannot name.
    raw = sorted(path for path in document["paths"] if "/raw" in path)
    others = sorted(path for path in document["paths"] if "/raw" not in path)
    any_method = [check for check in CHECKS if check != "unsupported_method"]
    for paths, checks in ((others[::2], CHECKS), (others[1::2], CHECKS), (raw, any_method)):
        yield {**document, "paths": {path: document["paths"][path] for path in paths}}, checks


def run(document, checks, folder, base, seconds, more):
    folder.mkdir()
    (folder / "openapi.json").write_text(json.dumps(document), encoding="utf-8")
    (folder / "schemathesis.toml").write_text(CONFIG, encoding="utf-8")
    (folder / "hooks.py").write_text(HOOKS, encoding="utf-8")
    command = [
        str(pathlib.Path(sys.executable).parent / "schemathesis"), "run", "openapi.json", "--url", base,
        "--checks", ",".join(checks), "--max-time", seconds, "--request-timeout", "20",
        "--suppress-health-check", "all", "--warnings", "off", "--no-color", "--output-truncate", "false", *more,
    ]
    with open(folder / "report.txt", "wb") as report:
        environment = {**os.environ, "SCHEMATHESIS_HOOKS": "hooks"}
        return subprocess.Popen(command, cwd=folder, env=environment, stdout=report, stderr=subprocess.STDOUT)


def main():
    base, seconds, *more = sys.argv[1:]
    key = os.environ["POSTRIDER_KEY"]
    session = requests.Session()
    session.headers["X-API-Key"] = key
    delivery, job = furnish(session, base)
    document = strict(requests.get(f"{base}/openapi.json", timeout=10).json())
    text = json.dumps(document)
    # The examples of ids are made to name what is there.
    for example, real in (("msg_01k3v9q8h4m2n6p7r0s5t1w2x3", delivery), ("job_01k3v9q8h4m2n6p7r0s5t1w2x3", job)):
        text = text.replace(example, real)
    document = json.loads(text)
    with tempfile.TemporaryDirectory() as folder:
        runs = [
            run(part, checks, pathlib.Path(folder) / str(at), base, seconds, more)
            for at, (part, checks) in enumerate(parts(document))
        ]
        codes = [process.wait() for process in runs]
        for at in range(len(runs)):
            print((pathlib.Path(folder) / str(at) / "report.txt").read_text(encoding="utf-8"))
    # Whatever was asked, the server is still there and its store well.
    ready = requests.get(f"{base}/health/ready", timeout=10)
    if ready.status_code != 200:
        print(f"the server is not well afterwards: {ready.status_code} {ready.text}")
        sys.exit(1)
    sys.exit(max(codes))


if __name__ == "__main__":
    main()
