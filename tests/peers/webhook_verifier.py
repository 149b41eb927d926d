"""Verifies a webhook as those who receive it do, with libraries that we did not write.

It reads `{"secret", "public_key", "headers", "body_base64"}` from standard input and writes which of them accepted the request:
PyPI and npm `standardwebhooks` and npm `svix` for a secret (`whsec_…`), Node's own Ed25519 for a public key (`whpk_…`).
"""

import base64
import json
import os
import pathlib
import subprocess
import sys

from standardwebhooks.webhooks import Webhook, WebhookVerificationError

NODE = """
const { createPublicKey, verify } = require("node:crypto");
const given = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const body = Buffer.from(given.body_base64, "base64");
const accepts = (check) => { try { check(); return true; } catch { return false; } };
const result = {};
if (given.secret) {
  const { Webhook: Standard } = require("standardwebhooks");
  const { Webhook: Svix } = require("svix");
  result.npm_standardwebhooks = accepts(() => new Standard(given.secret).verify(body.toString(), given.headers));
  result.npm_svix = accepts(() => new Svix(given.secret).verify(body.toString(), given.headers));
}
if (given.public_key) {
  const raw = Buffer.from(given.public_key.replace("whpk_", ""), "base64");
  const key = createPublicKey({ key: { kty: "OKP", crv: "Ed25519", x: raw.toString("base64url") }, format: "jwk" });
  const { "webhook-id": id, "webhook-timestamp": at, "webhook-signature": signatures } = given.headers;
  const signed = Buffer.concat([Buffer.from(`${id}.${at}.`), body]);
  const entries = signatures.split(" ").filter((entry) => entry.startsWith("v1a,"));
  result.ed25519 = entries.some((entry) => verify(null, signed, key, Buffer.from(entry.slice(4), "base64")));
}
process.stdout.write(JSON.stringify(result));
"""


def main() -> None:
    given = json.load(sys.stdin)
    lab = pathlib.Path(os.environ.get("POSTRIDER_PEERS_NODE", "target/peers/node"))
    node = subprocess.run(
        ["node", "-e", NODE], input=json.dumps(given), capture_output=True, text=True, cwd=lab, timeout=60, check=True
    )
    result = json.loads(node.stdout)
    if given.get("secret"):
        try:
            Webhook(given["secret"]).verify(base64.b64decode(given["body_base64"]), given["headers"])
            result["pypi_standardwebhooks"] = True
        except WebhookVerificationError:
            result["pypi_standardwebhooks"] = False
    print(json.dumps(result))


if __name__ == "__main__":
    main()
