//! A browser without script, over a real socket.

use super::api::Api;

/// A browser: its cookies, and forms with their token.
pub struct Browser<'a> {
    api: &'a Api,
    pub cookies: Vec<(String, String)>,
}

impl<'a> Browser<'a> {
    /// Without cookies.
    pub fn new(api: &'a Api) -> Browser<'a> {
        Browser { api, cookies: Vec::new() }
    }

    /// Status, head in lower case, page.
    pub async fn asks(&mut self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, String) {
        let cookies: Vec<String> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let cookie = if cookies.is_empty() { String::new() } else { format!("Cookie: {}\r\n", cookies.join("; ")) };
        let request = format!(
            "{method} {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-www-form-urlencoded\r\n{cookie}{headers}Content-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let (status, head, text) = self.api.raw(request.as_bytes()).await;
        for line in head.lines().filter_map(|line| line.strip_prefix("set-cookie: ")) {
            let (name, value) = line.split(';').next().unwrap().split_once('=').unwrap();
            self.cookies.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.cookies.push((name.to_owned(), value.to_owned()));
            }
        }
        (status, head, text)
    }

    /// Status and page.
    pub async fn get(&mut self, path: &str) -> (u16, String) {
        let (status, _, text) = self.asks("GET", path, "", "").await;
        (status, text)
    }

    /// Opens a page and sends a form with the token that the page has.
    pub async fn sends(&mut self, page: &str, path: &str, fields: &str) -> (u16, String, String) {
        let (_, shown) = self.get(page).await;
        let (_, token) =
            shown.split_once("name=\"csrf\" value=\"").unwrap_or_else(|| panic!("no form on {page}: {shown}"));
        let token = token.split('"').next().unwrap();
        self.asks("POST", path, "", &format!("csrf={token}&{fields}")).await
    }

    /// The status of what came of it.
    pub async fn logs_in(&mut self, name: &str, password: &str) -> u16 {
        let fields = format!("name={name}&password={}", password.replace(' ', "+"));
        self.sends("/ui/log-in", "/ui/log-in", &fields).await.0
    }

    /// The value of a cookie.
    pub fn cookie(&self, name: &str) -> Option<&str> {
        self.cookies.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}
