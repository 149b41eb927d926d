//! The style sheet, the script and the icon, under names that change with their content, so that browsers may keep them for ever.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use http::HeaderValue;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};

use super::fault::{Fault, nothing_here};
use crate::auth::to_hex;
use crate::read::Segments;

struct Asset {
    stem: &'static str,
    ending: &'static str,
    media_type: &'static str,
    text: &'static str,
}

const ASSETS: [Asset; 3] = [
    Asset {
        stem: "style",
        ending: "css",
        media_type: "text/css; charset=utf-8",
        text: include_str!("assets/style.css"),
    },
    Asset {
        stem: "script",
        ending: "js",
        media_type: "text/javascript; charset=utf-8",
        text: include_str!("assets/script.js"),
    },
    Asset { stem: "icon", ending: "svg", media_type: "image/svg+xml", text: include_str!("assets/icon.svg") },
];

static NAMES: LazyLock<[String; 3]> = LazyLock::new(|| {
    std::array::from_fn(|index| {
        let Asset { stem, ending, text, .. } = &ASSETS[index];
        let hash = to_hex(&Sha256::digest(text.as_bytes()));
        format!("{stem}-{}.{ending}", &hash[..12])
    })
});

/// Where the pages find them.
pub fn style() -> &'static str {
    &NAMES[0]
}

pub fn script() -> &'static str {
    &NAMES[1]
}

pub fn icon() -> &'static str {
    &NAMES[2]
}

pub async fn one(segments: Segments) -> Result<Response, Fault> {
    let name = segments.get("name");
    let at = NAMES.iter().position(|known| known == name).ok_or_else(nothing_here)?;
    let mut response = ASSETS[at].text.into_response();
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(ASSETS[at].media_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("public, max-age=31536000, immutable"));
    Ok(response)
}
