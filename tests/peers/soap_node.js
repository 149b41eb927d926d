// What the server of npm `soap` offers, in SOAP 1.1 at /registry (plain) and /secured (a UsernameToken is asked for: ada, hunter2):
//
//   Submit(message)   -> { id }
//   Refuse(status)    -> a fault, under the HTTP status that is asked for
//
// GET /__log is the security headers that were seen, in order. It must not know anything of Postrider.
"use strict";

const crypto = require("node:crypto");
const http = require("node:http");
const soap = require("soap");

const WSDL = `<?xml version="1.0" encoding="UTF-8"?>
<wsdl:definitions name="Registry" targetNamespace="urn:lab:node" xmlns:tns="urn:lab:node" xmlns:xs="http://www.w3.org/2001/XMLSchema"
  xmlns:soap="http://schemas.xmlsoap.org/wsdl/soap/" xmlns:wsdl="http://schemas.xmlsoap.org/wsdl/">
  <wsdl:types><xs:schema targetNamespace="urn:lab:node" elementFormDefault="qualified">
    <xs:element name="SubmitRequest"><xs:complexType><xs:sequence><xs:element name="message" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="SubmitResponse"><xs:complexType><xs:sequence><xs:element name="id" type="xs:string"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="RefuseRequest"><xs:complexType><xs:sequence><xs:element name="status" type="xs:int"/></xs:sequence></xs:complexType></xs:element>
    <xs:element name="RefuseResponse"><xs:complexType/></xs:element>
  </xs:schema></wsdl:types>
  <wsdl:message name="SubmitIn"><wsdl:part name="parameters" element="tns:SubmitRequest"/></wsdl:message>
  <wsdl:message name="SubmitOut"><wsdl:part name="parameters" element="tns:SubmitResponse"/></wsdl:message>
  <wsdl:message name="RefuseIn"><wsdl:part name="parameters" element="tns:RefuseRequest"/></wsdl:message>
  <wsdl:message name="RefuseOut"><wsdl:part name="parameters" element="tns:RefuseResponse"/></wsdl:message>
  <wsdl:portType name="RegistryPortType">
    <wsdl:operation name="Submit"><wsdl:input message="tns:SubmitIn"/><wsdl:output message="tns:SubmitOut"/></wsdl:operation>
    <wsdl:operation name="Refuse"><wsdl:input message="tns:RefuseIn"/><wsdl:output message="tns:RefuseOut"/></wsdl:operation>
  </wsdl:portType>
  <wsdl:binding name="RegistryBinding" type="tns:RegistryPortType">
    <soap:binding style="document" transport="http://schemas.xmlsoap.org/soap/http"/>
    <wsdl:operation name="Submit"><soap:operation soapAction="urn:lab:node#Submit"/>
      <wsdl:input><soap:body use="literal"/></wsdl:input><wsdl:output><soap:body use="literal"/></wsdl:output></wsdl:operation>
    <wsdl:operation name="Refuse"><soap:operation soapAction="urn:lab:node#Refuse"/>
      <wsdl:input><soap:body use="literal"/></wsdl:input><wsdl:output><soap:body use="literal"/></wsdl:output></wsdl:operation>
  </wsdl:binding>
  <wsdl:service name="Registry"><wsdl:port name="RegistryPort" binding="tns:RegistryBinding">
    <soap:address location="http://127.0.0.1:0/registry"/></wsdl:port></wsdl:service>
</wsdl:definitions>`;

const seen = [];

const port = {
  Submit: (args) => ({ id: `N-${args.message}` }),
  Refuse: (args) => {
    throw {
      Fault: {
        faultcode: "soap:Server",
        faultstring: "refused as asked",
        detail: { status: args.status },
        statusCode: Number(args.status),
      },
    };
  },
};

const text = (value) => (value && typeof value === "object" ? value.$value : value);

function isAda(security) {
  const token = security && security.UsernameToken;
  if (!token) return false;
  const entry = { username: text(token.Username), nonce: text(token.Nonce), created: text(token.Created) };
  seen.push(entry);
  const type = (token.Password.attributes || {}).Type || "";
  const given = text(token.Password);
  if (entry.username !== "ada") return false;
  if (!type.endsWith("#PasswordDigest")) return given === "hunter2";
  const hash = crypto.createHash("sha1");
  hash.update(Buffer.concat([Buffer.from(entry.nonce, "base64"), Buffer.from(entry.created + "hunter2")]));
  return given === hash.digest("base64");
}

const server = http.createServer((request, response) => {
  if (request.url === "/__log") {
    response.setHeader("Content-Type", "application/json");
    return response.end(JSON.stringify(seen));
  }
  response.statusCode = 404;
  response.end();
});

server.listen(0, "127.0.0.1", () => {
  const services = { Registry: { RegistryPort: port } };
  soap.listen(server, "/registry", services, WSDL);
  const secured = soap.listen(server, "/secured", services, WSDL);
  secured.authenticate = isAda;
  console.log(JSON.stringify({ port: server.address().port }));
});
