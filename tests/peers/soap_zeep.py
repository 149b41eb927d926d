"""A caller of SOAP: zeep reads a WSDL and calls one operation by it.

    python soap_zeep.py        reads one JSON object on standard input, prints one

    {"wsdl": URL, "operation": name, "content": XML of one element inside the operation's, "user": [name, password] or null}
    {"told": {…} or text} or {"fault": {"code", "message"}} or {"status": …, "content": …}

It must not know anything of Postrider.
"""

import json
import sys

import requests
from lxml import etree
from zeep import Client, Transport
from zeep.exceptions import Fault, TransportError
from zeep.helpers import serialize_object


def shown(value):
    """Values of a schema as JSON has them; an element that none describes as its text."""
    if isinstance(value, dict):
        return {name: shown(one) for name, one in value.items()}
    if isinstance(value, list):
        return [shown(one) for one in value]
    if isinstance(value, etree._Element):
        return {etree.QName(value).localname: "".join(value.itertext())}
    return value


def main():
    asked = json.load(sys.stdin)
    session = requests.Session()
    if asked.get("user"):
        session.auth = tuple(asked["user"])
    transport = Transport(session=session, timeout=20, operation_timeout=20)
    try:
        client = Client(asked["wsdl"], transport=transport)
        operation = getattr(client.service, asked["operation"])
        told = operation(_value_1=[etree.fromstring(asked["content"])])
        print(json.dumps({"told": shown(serialize_object(told, dict))}))
    except Fault as fault:
        print(json.dumps({"fault": {"code": fault.code, "message": fault.message}}))
    except TransportError as error:
        content = error.content.decode("utf-8", "replace") if error.content else ""
        print(json.dumps({"status": error.status_code, "content": content}))
    except requests.HTTPError as error:
        print(json.dumps({"status": error.response.status_code, "content": error.response.text}))


if __name__ == "__main__":
    main()
