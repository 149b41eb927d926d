"""Uses a FHIR server through fhirpy, and reads what it answers with fhir.resources: two programs that know nothing of each other.

    python fhir_client.py BASE_URL [HEADER:VALUE]

It creates, finds, changes, patches and deletes a patient, and prints one JSON object of what it saw. It ends with an error when the server
is none that fhirpy can use, or answers what fhir.resources cannot read.
"""

import json
import sys

from fhir.resources.R4B.bundle import Bundle
from fhir.resources.R4B.patient import Patient
from fhirpy import SyncFHIRClient
from fhirpy.base.exceptions import OperationOutcome, ResourceNotFound


def main() -> None:
    headers = dict(argument.split(":", 1) for argument in sys.argv[2:])
    client = SyncFHIRClient(sys.argv[1], extra_headers=headers)
    patient = client.resource("Patient", identifier=[{"system": "urn:lab", "value": "1"}], birthDate="1974-12-25")
    patient.save()
    seen = {"id": patient.id, "version": patient.meta["versionId"]}
    read = client.reference("Patient", patient.id).to_resource()
    seen["birthDate"] = Patient.model_validate(json.loads(json.dumps(read.serialize()))).birthDate.isoformat()
    found = client.resources("Patient").search(identifier="urn:lab|1").fetch_raw()
    plain = json.loads(json.dumps(found, default=lambda resource: resource.serialize()))
    seen["found"] = len(Bundle.model_validate(plain).entry)
    patient["active"] = True
    patient.save()
    seen["changed"] = client.reference("Patient", patient.id).to_resource()["active"]
    patient.delete()
    try:
        client.reference("Patient", patient.id).to_resource()
    except (ResourceNotFound, OperationOutcome) as error:
        seen["gone"] = type(error).__name__
    print(json.dumps(seen))


if __name__ == "__main__":
    main()
