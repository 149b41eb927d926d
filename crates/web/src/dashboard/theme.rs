//! Light or dark: as the device says, until somebody chooses. The choice is in a cookie, so that it needs no script and no page flashes.

use axum::response::Response;
use http::{HeaderMap, HeaderValue};

use super::answer::{redirect, with_cookie};
use super::form::Form;
use super::session::cookie;

const COOKIE_NAME: &str = "postrider_theme";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Theme {
    /// `prefers-color-scheme`.
    #[default]
    Device,
    Light,
    Dark,
}

impl Theme {
    pub const ALL: [Theme; 3] = [Theme::Device, Theme::Light, Theme::Dark];

    pub fn of(headers: &HeaderMap) -> Theme {
        Theme::named(cookie(headers, COOKIE_NAME).unwrap_or_default())
    }

    fn named(word: &str) -> Theme {
        Theme::ALL.into_iter().find(|theme| theme.as_str() == word).unwrap_or_default()
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Theme::Device => "device",
            Theme::Light => "light",
            Theme::Dark => "dark",
        }
    }

    pub const fn label(self) -> &'static str {
        match self {
            Theme::Device => "As the device",
            Theme::Light => "Light",
            Theme::Dark => "Dark",
        }
    }
}

pub async fn choose(form: Form) -> Response {
    let theme = Theme::named(form.get("theme").unwrap_or_default());
    let kept = if theme == Theme::Device { "; Max-Age=0" } else { "; Max-Age=31536000" };
    let value = format!("{COOKIE_NAME}={}; Path=/ui; HttpOnly; SameSite=Lax{kept}", theme.as_str());
    let response = redirect(&form.way_back("/ui"));
    match HeaderValue::from_str(&value) {
        Ok(value) => with_cookie(response, value),
        Err(_) => response,
    }
}
