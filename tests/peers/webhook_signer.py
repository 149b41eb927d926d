"""Signs webhooks as providers do, with their own libraries wherever one of them signs, and with the verifier of their library as the judge
where it only verifies.

It reads `{"provider", "secret", "url", "body_base64", "at", "content_type", "id"}` from standard input, or a list of such objects, and writes
`{"headers", "secret"}` for each; `at` is in seconds. It must not know who verifies what it signs.
"""

import base64
import hashlib
import hmac
import json
import os
import pathlib
import subprocess
import sys
from datetime import datetime, timezone

NODE = """
import { readFileSync } from "node:fs";
import { sign } from "@octokit/webhooks-methods";
const given = JSON.parse(readFileSync(0, "utf8"));
sign(given.secret, Buffer.from(given.body_base64, "base64").toString()).then((signature) => process.stdout.write(signature));
"""


def mac(secret, signed, algorithm="sha256"):
    return hmac.new(secret.encode(), signed, algorithm).digest()


def github(given, body):
    try:
        body.decode()
    except UnicodeDecodeError:
        # The library signs text only; what GitHub signs is bytes.
        return {"X-Hub-Signature-256": "sha256=" + mac(given["secret"], body).hex()}
    lab = pathlib.Path(os.environ.get("POSTRIDER_PEERS_NODE", "target/peers/node"))
    node = subprocess.run(
        ["node", "--input-type=module", "-e", NODE],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        cwd=lab,
        timeout=60,
        check=True,
    )
    return {"X-Hub-Signature-256": node.stdout}


def stripe(given, body):
    from stripe import WebhookSignature

    signed = f"{given['at']}.".encode() + body
    try:
        signature = WebhookSignature._compute_signature(signed.decode(), given["secret"])
    except UnicodeDecodeError:
        signature = mac(given["secret"], signed).hex()
    return {"Stripe-Signature": f"t={given['at']},v1={signature},v0=00"}


def slack(given, body):
    from slack_sdk.signature import SignatureVerifier

    try:
        signature = SignatureVerifier(given["secret"]).generate_signature(timestamp=str(given["at"]), body=body)
    except UnicodeDecodeError:
        signature = "v0=" + mac(given["secret"], f"v0:{given['at']}:".encode() + body).hex()
    return {"X-Slack-Signature": signature, "X-Slack-Request-Timestamp": str(given["at"])}


def twilio(given, body):
    from urllib.parse import parse_qsl

    from twilio.request_validator import RequestValidator
    from werkzeug.datastructures import MultiDict

    params = {}
    if given["content_type"].startswith("application/x-www-form-urlencoded"):
        params = MultiDict(parse_qsl(body.decode(), keep_blank_values=True))
    return {"X-Twilio-Signature": RequestValidator(given["secret"]).compute_signature(given["url"], params)}


def square(given, body):
    from square.utils.webhooks_helper import verify_signature

    signature = base64.b64encode(mac(given["secret"], given["url"].encode() + body)).decode()
    try:
        text = body.decode()
    except UnicodeDecodeError:
        return {"x-square-hmacsha256-signature": signature}
    accepted = verify_signature(
        request_body=text,
        signature_header=signature,
        signature_key=given["secret"],
        notification_url=given["url"],
    )
    assert accepted, "the provider's library does not accept the signature"
    return {"x-square-hmacsha256-signature": signature}


def shopify(given, body):
    return {"X-Shopify-Hmac-Sha256": base64.b64encode(mac(given["secret"], body)).decode()}


def hubspot(given, body):
    from hubspot.utils.signature import Signature

    version = given.get("version", "v3")
    at = str(given["at"] * 1000)
    try:
        text = body.decode()
        signature = Signature.get_signature(
            given["secret"], text, version, http_uri=given["url"], http_method="POST", timestamp=at
        )
    except UnicodeDecodeError:
        if version == "v3":
            signed = b"POST" + given["url"].encode() + body + at.encode()
            signature = base64.b64encode(mac(given["secret"], signed)).decode()
        else:
            before = b"" if version == "v1" else b"POST" + given["url"].encode()
            signature = hashlib.sha256(given["secret"].encode() + before + body).hexdigest()
    if version == "v3":
        return {"X-HubSpot-Signature-v3": signature, "X-HubSpot-Request-Timestamp": at}
    return {"X-HubSpot-Signature": signature, "X-HubSpot-Signature-Version": version}


def sendgrid(given, body):
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from sendgrid.helpers.eventwebhook import EventWebhook

    key = ec.derive_private_key(int.from_bytes(hashlib.sha256(given["secret"].encode()).digest()[:31], "big"), ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    signature = base64.b64encode(key.sign(str(given["at"]).encode() + body, ec.ECDSA(hashes.SHA256()))).decode()
    given["secret"] = base64.b64encode(public).decode()
    try:
        webhook = EventWebhook()
        loaded = webhook.convert_public_key_to_ecdsa(given["secret"])
        assert webhook.verify_signature(body.decode(), signature, str(given["at"]), loaded)
    except UnicodeDecodeError:
        pass
    return {
        "X-Twilio-Email-Event-Webhook-Signature": signature,
        "X-Twilio-Email-Event-Webhook-Timestamp": str(given["at"]),
    }


def standard(given, body):
    from standardwebhooks.webhooks import Webhook

    at = datetime.fromtimestamp(given["at"], tz=timezone.utc)
    try:
        signature = Webhook(given["secret"]).sign(given["id"], at, body.decode())
    except UnicodeDecodeError:
        key = base64.b64decode(given["secret"].removeprefix("whsec_"))
        signed = f"{given['id']}.{given['at']}.".encode() + body
        signature = "v1," + base64.b64encode(hmac.new(key, signed, "sha256").digest()).decode()
    return {"webhook-id": given["id"], "webhook-timestamp": str(given["at"]), "webhook-signature": signature}


def gitlab(given, body):
    if given["secret"].startswith("whsec_"):
        return standard(given, body)
    return {"X-Gitlab-Token": given["secret"]}


SIGNERS = {
    name: globals()[name]
    for name in ("github", "gitlab", "hubspot", "sendgrid", "shopify", "slack", "square", "standard", "stripe", "twilio")
}


def signed(given):
    body = base64.b64decode(given["body_base64"])
    headers = SIGNERS[given["provider"]](given, body)
    return {"headers": headers, "secret": given["secret"]}


def main():
    given = json.load(sys.stdin)
    answer = [signed(one) for one in given] if isinstance(given, list) else signed(given)
    print(json.dumps(answer))


if __name__ == "__main__":
    main()
