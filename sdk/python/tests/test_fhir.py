"""FHIR from Python against the real server and a FHIR server that others wrote (`tests/peers/fhir_medplum.py`)."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, Iterator

import pytest

import postrider
from conftest import PATIENCE_S, ROOT, http_json, numbers, wait_for


@pytest.fixture(scope="module")
def fhir_server() -> Iterator[str]:
    command = [sys.executable, str(ROOT / "tests/peers/fhir_medplum.py"), "--stop-with-stdin"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin is not None and process.stdout is not None
    yield f"http://127.0.0.1:{json.loads(process.stdout.readline())['port']}/fhir"
    process.stdin.close()
    process.wait(timeout=PATIENCE_S)


@pytest.fixture
def connect(client: postrider.Client, fhir_server: str) -> Any:
    def connection(**settings: Any) -> Any:
        name = f"FHIR {next(numbers)}"
        client.connections.create("fhir", name, **{"address": fhir_server, **settings})
        return client.fhir[name]

    return connection


# proves: Z33
def test_z33_save_gives_the_resource_with_the_queue_off_and_the_result_with_it_on(connect, fhir_server):
    off, on = connect(), connect(use_queue=True, max_retries=1)
    patient = off.resource("Patient", birthDate="1974-12-25")
    assert patient.save() is patient
    first = patient.meta["versionId"]
    patient.active = True
    patient.save(if_match=first)
    assert off.read("Patient", patient.id).active is True
    with pytest.raises(postrider.NotDelivered) as refused:
        patient.save(if_match=first)
    assert refused.value.result.response.status == 412

    result = on.resource("Patient", birthDate="1980-01-01").save()
    assert result.is_ok and result.response.resource_type == "Patient" and result.response.id
    stored = http_json(f"{fhir_server}/Patient/{result.response.id}")
    assert stored["meta"]["versionId"] == result.response.version_id


# proves: Z33
def test_z33_an_answer_that_says_little_still_names_the_resource(connect):
    minimal = connect(prefer="minimal")
    patient = minimal.resource("Patient", birthDate="1974-12-25")
    patient.save()
    assert patient.id and patient.meta["versionId"] and patient.birthDate == "1974-12-25"


# proves: Z31
def test_z31_a_published_resource_is_stored_and_then_created_once(client, connect, fhir_server):
    fhir = connect(use_queue=True)
    resource = {"resourceType": "Patient", "identifier": [{"system": "urn:sdk", "value": "31"}]}
    for _ in range(2):
        queued = fhir.publish(resource, if_none_exist="identifier=urn:sdk|31")
        assert queued.is_in_queue
        wait_for(lambda: client.deliveries.show(queued.msg_id).status == "SUCCESS", "it to be delivered")
    assert http_json(f"{fhir_server}/Patient?identifier=urn:sdk|31")["total"] == 1


def test_a_connection_is_tried_without_anything_being_stored(client, fhir_server):
    name = f"FHIR {next(numbers)}"
    client.connections.create("fhir", name, address=fhir_server)
    reached = client.connections.ping(name)
    assert reached["is_reachable"] and reached["status"] == 200 and reached["stages"][-1]["stage"] == "first_byte"
    client.connections.update(name, address="http://127.0.0.1:1/fhir")
    reached = client.connections.ping(name)
    assert not reached["is_reachable"] and reached["failedAt"] == "connect" and "`address`" in reached["advice"]
    assert list(client.deliveries.list(connection=name)) == []


def test_pages_are_followed_and_interactions_go_by_name(connect):
    fhir = connect()
    for number in range(3):
        fhir.resource("Observation", status="final", code={"text": f"paged-{number}"}).save()
    assert len(fhir.search("Observation", {"_count": 2})) == 2
    assert len(fhir.search("Observation", {"_count": 2}, pages_max=9)) == 3
    with pytest.raises(postrider.Refused):
        fhir.interact("page", url="https://elsewhere.example/fhir/Patient")
    batch = {"resourceType": "Bundle", "type": "batch", "entry": [{"request": {"method": "GET", "url": "Patient/none"}}]}
    result = fhir.interact("batch", batch)
    assert not result.is_ok and [entry["status"] for entry in result.response.entries] == [404]
