//! GitLab: the secret itself in `X-Gitlab-Token`; or, with a signing token (`whsec_…`), the headers of Standard Webhooks. Who has given a
//! signing token is not let in by the plain one.

use postrider_core::source::SourceSpec;

use super::parts::{header, must, same};
use super::{Arrived, Proven, Rejected, VerificationKey, standard};

pub(super) const TOKEN: &str = "x-gitlab-token";

pub(super) fn verify(spec: &SourceSpec, keys: &[&VerificationKey], arrived: &Arrived<'_>) -> Result<Proven, Rejected> {
    if keys.iter().any(|key| key.is_signing_token()) && arrived.headers.contains_key(standard::SIGNATURE) {
        let signing: Vec<&VerificationKey> = keys.iter().copied().filter(|key| key.is_signing_token()).collect();
        return standard::verify(spec, &signing, arrived);
    }
    let plain: Vec<&VerificationKey> = keys.iter().copied().filter(|key| !key.is_signing_token()).collect();
    if plain.is_empty() {
        return Err(Rejected::Missing(standard::SIGNATURE.to_owned()));
    }
    let given = header(arrived.headers, TOKEN)?;
    let mut fits = false;
    for key in plain.iter().filter_map(|key| key.shared()) {
        fits |= same(key, given.as_bytes());
    }
    must(fits)?;
    Ok(Proven { signed: None, has_time: false })
}
