"""Starts a FHIR server made of npm `@medplum/fhir-router`: a real router over resources in memory.

    python fhir_medplum.py [--stop-with-stdin]

It prints `{"port": N}` once it answers. `fhir_medplum.cjs` beside it says what it offers.
"""

from node_peer import serve

if __name__ == "__main__":
    serve("@medplum/fhir-router", "fhir_medplum.cjs")
