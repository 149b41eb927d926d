"""Checks YAML files against a JSON Schema, one line of JSON each: `check_schema.py SCHEMA FILE…` → `{"file": …, "errors": […]}`.

YAML is read as version 1.2 by ruamel.yaml and judged by jsonschema, neither of which we wrote. The schema itself is checked first.
"""

import json
import sys

import jsonschema
from ruamel.yaml import YAML


def main() -> None:
    with open(sys.argv[1], encoding="utf-8") as file:
        schema = json.load(file)
    validator = jsonschema.validators.validator_for(schema)
    validator.check_schema(schema)
    for path in sys.argv[2:]:
        with open(path, encoding="utf-8") as file:
            document = YAML(typ="safe", pure=True).load(file)
        errors = [error.message for error in validator(schema).iter_errors(document)]
        print(json.dumps({"file": path, "errors": errors}))


if __name__ == "__main__":
    main()
