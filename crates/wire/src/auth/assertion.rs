//! A signed assertion of who asks for a token (RFC 7523, as SMART Backend Services of HL7 profile it).
//!
//! One is made for each request for a token, with an id of its own and a few minutes to live, so that nobody can use it twice. It must not know
//! how a token is fetched, and no error shows the key.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use postrider_core::Secret;
use postrider_core::security::SigningAlgorithm;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, RSA_PKCS1_SHA384, RsaKeyPair};
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::PemObject;
use serde_json::json;

use crate::send::Stamp;

pub(super) const TYPE: &str = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
/// Five minutes are the most that SMART allows; a minute less bears with clocks that differ.
const LIFE_S: i64 = 240;

pub(super) struct Signer {
    key: Key,
    key_id: String,
    client_id: String,
    /// The address of the token server, as it is written.
    audience: String,
}

enum Key {
    Rs384(Box<RsaKeyPair>),
    Es384(Box<EcdsaKeyPair>),
}

/// Why a key cannot sign, in words that continue "`private_key` …".
pub(super) type Unusable = &'static str;

impl Signer {
    pub(super) fn new(
        algorithm: SigningAlgorithm,
        key: &Secret,
        [key_id, client_id, audience]: [String; 3],
    ) -> Result<Signer, Unusable> {
        let der = PrivateKeyDer::from_pem_slice(key.expose().as_bytes());
        let der = der.map_err(|_| "is no private key in PEM form")?;
        let key = match (algorithm, der) {
            (SigningAlgorithm::Rs384, PrivateKeyDer::Pkcs8(der)) => Key::Rs384(Box::new(
                RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map_err(|_| "is no RSA key of 2048 to 8192 bits")?,
            )),
            (SigningAlgorithm::Rs384, PrivateKeyDer::Pkcs1(der)) => Key::Rs384(Box::new(
                RsaKeyPair::from_der(der.secret_pkcs1_der()).map_err(|_| "is no RSA key of 2048 to 8192 bits")?,
            )),
            (SigningAlgorithm::Es384, PrivateKeyDer::Pkcs8(der)) => Key::Es384(Box::new(
                EcdsaKeyPair::from_pkcs8(
                    &ECDSA_P384_SHA384_FIXED_SIGNING,
                    der.secret_pkcs8_der(),
                    &SystemRandom::new(),
                )
                .map_err(|_| "is no key of the curve P-384")?,
            )),
            (SigningAlgorithm::Rs384, _) => return Err("is no RSA key"),
            (SigningAlgorithm::Es384, _) => {
                return Err("is not in PKCS #8 form (`openssl pkcs8 -topk8 -nocrypt` makes that of another)");
            }
        };
        Ok(Signer { key, key_id, client_id, audience })
    }

    /// The assertion of one request for a token. `stamp` is that of the attempt which needs it.
    pub(super) fn assertion(&self, stamp: Stamp) -> Result<String, Unusable> {
        let algorithm = match &self.key {
            Key::Rs384(_) => SigningAlgorithm::Rs384,
            Key::Es384(_) => SigningAlgorithm::Es384,
        };
        let header = json!({"alg": algorithm.as_str(), "kid": self.key_id, "typ": "JWT"});
        let claims = json!({
            "iss": self.client_id,
            "sub": self.client_id,
            "aud": self.audience,
            "exp": stamp.at.as_millis().div_euclid(1000) + LIFE_S,
            "jti": format!("{:032x}", stamp.nonce),
        });
        let part = |json: serde_json::Value| URL_SAFE_NO_PAD.encode(json.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = self.signature(signed.as_bytes())?;
        Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    fn signature(&self, signed: &[u8]) -> Result<Vec<u8>, Unusable> {
        // What is drawn here hides the key and shows in nothing that a decision reads.
        let random = SystemRandom::new();
        match &self.key {
            Key::Rs384(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                key.sign(&RSA_PKCS1_SHA384, &random, signed, &mut signature).map_err(|_| "cannot sign")?;
                Ok(signature)
            }
            Key::Es384(key) => {
                let signature = key.sign(&random, signed).map_err(|_| "cannot sign")?;
                Ok(signature.as_ref().to_vec())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use postrider_core::Timestamp;
    use ring::signature::{ECDSA_P384_SHA384_FIXED, KeyPair as _, UnparsedPublicKey};

    use super::*;

    fn signer(algorithm: SigningAlgorithm, pem: &str) -> Result<Signer, Unusable> {
        let names = ["k1", "client", "https://login.example.org/token"].map(str::to_owned);
        Signer::new(algorithm, &Secret::new(pem), names)
    }

    #[test]
    fn an_assertion_says_who_to_whom_and_until_when_and_is_signed() {
        let made = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P384_SHA384).unwrap();
        let signer = signer(SigningAlgorithm::Es384, &made.serialize_pem()).unwrap();
        let stamp = Stamp { at: Timestamp::from_millis(1_000_500), nonce: 0xab };
        let assertion = signer.assertion(stamp).unwrap();
        let parts: Vec<&str> = assertion.split('.').collect();
        let json = |part: &str| -> serde_json::Value {
            serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).unwrap()).unwrap()
        };
        assert_eq!(json(parts[0]), json!({"alg": "ES384", "kid": "k1", "typ": "JWT"}));
        let jti = "000000000000000000000000000000ab";
        let claims = json!({"iss": "client", "sub": "client", "aud": "https://login.example.org/token", "exp": 1240, "jti": jti});
        assert_eq!(json(parts[1]), claims);
        let Key::Es384(key) = &signer.key else { panic!() };
        let public = UnparsedPublicKey::new(&ECDSA_P384_SHA384_FIXED, key.public_key().as_ref());
        let signed = &assertion[..assertion.rfind('.').unwrap()];
        public.verify(signed.as_bytes(), &URL_SAFE_NO_PAD.decode(parts[2]).unwrap()).unwrap();
    }

    #[test]
    fn a_key_of_another_kind_is_refused_without_being_shown() {
        let p256 = rcgen::KeyPair::generate_for(&rcgen::PKCS_ECDSA_P256_SHA256).unwrap().serialize_pem();
        for (algorithm, pem, why) in [
            (SigningAlgorithm::Es384, p256.as_str(), "P-384"),
            (SigningAlgorithm::Rs384, p256.as_str(), "RSA"),
            (SigningAlgorithm::Rs384, "hunter2", "PEM"),
            (SigningAlgorithm::Es384, "-----BEGIN PRIVATE KEY-----\nhunter2\n-----END PRIVATE KEY-----", "P"),
        ] {
            let error = signer(algorithm, pem).err().unwrap();
            assert!(error.contains(why) && !error.contains("hunter2"), "{error}");
        }
    }
}
