//! Who signs: the providers whose way of proving a webhook is known. It must not know how any of them does it.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Provider {
    GitHub,
    GitLab,
    HubSpot,
    SendGrid,
    Shopify,
    Slack,
    Square,
    Stripe,
    Twilio,
    /// Standard Webhooks 1.0.0, whoever sends them.
    Standard,
    /// Any other HMAC of the body.
    Hmac,
    /// Nothing is signed: who knows the address may send.
    None,
}

/// Where a source's secret comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SecretOrigin {
    /// Ours to make, when nobody brings one.
    Either,
    /// The provider's own.
    Provider,
    /// There is none.
    Nobody,
}

impl Provider {
    pub const ALL: [Provider; 12] = [
        Provider::GitHub,
        Provider::GitLab,
        Provider::HubSpot,
        Provider::SendGrid,
        Provider::Shopify,
        Provider::Slack,
        Provider::Square,
        Provider::Stripe,
        Provider::Twilio,
        Provider::Standard,
        Provider::Hmac,
        Provider::None,
    ];
    /// The same as words.
    pub const WORDS: &[&str] = &[
        "github", "gitlab", "hubspot", "sendgrid", "shopify", "slack", "square", "stripe", "twilio", "standard",
        "hmac", "none",
    ];

    pub const fn as_str(self) -> &'static str {
        Provider::WORDS[self as usize]
    }

    pub fn parse(text: &str) -> Option<Self> {
        Provider::ALL.into_iter().find(|known| known.as_str() == text)
    }

    pub const fn secret_origin(self) -> SecretOrigin {
        match self {
            Provider::GitHub | Provider::GitLab | Provider::Standard | Provider::Hmac => SecretOrigin::Either,
            Provider::HubSpot
            | Provider::SendGrid
            | Provider::Shopify
            | Provider::Slack
            | Provider::Square
            | Provider::Stripe
            | Provider::Twilio => SecretOrigin::Provider,
            Provider::None => SecretOrigin::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r12_every_provider_reads_back() {
        for provider in Provider::ALL {
            assert_eq!(Provider::parse(provider.as_str()), Some(provider));
            assert_eq!(serde_json::to_value(provider).unwrap(), provider.as_str());
        }
    }
}
