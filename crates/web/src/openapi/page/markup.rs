//! HTML as it is written: whatever is text is escaped.

use serde_json::Value;

#[derive(Default)]
pub struct Html(String);

impl Html {
    /// Markup of our own.
    pub fn raw(&mut self, markup: &str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Text, in an element or in an attribute's quotes.
    pub fn text(&mut self, text: &str) -> &mut Self {
        for letter in text.chars() {
            match letter {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                _ => self.0.push(letter),
            }
        }
        self
    }

    /// Text in which backquotes mark code.
    pub fn inline(&mut self, text: &str) -> &mut Self {
        for (at, part) in text.split('`').enumerate() {
            if at % 2 == 1 {
                self.raw("<code>").text(part).raw("</code>");
            } else {
                self.text(part);
            }
        }
        self
    }

    /// Paragraphs, with empty lines between.
    pub fn prose(&mut self, text: &str) -> &mut Self {
        for paragraph in text.split("\n\n").filter(|paragraph| !paragraph.is_empty()) {
            self.raw("<p>").inline(paragraph).raw("</p>\n");
        }
        self
    }

    /// The mark of an HTTP method.
    pub fn method(&mut self, method: &str) -> &mut Self {
        self.raw("<b class=\"method ").text(method).raw("\">").text(&method.to_ascii_uppercase()).raw("</b> ")
    }

    /// What a program reads or writes.
    pub fn example(&mut self, caption: &str, code: &str) -> &mut Self {
        self.raw("<figure><figcaption>").inline(caption).raw("</figcaption><pre><code>").text(code);
        self.raw("</code></pre></figure>\n")
    }

    /// Ends a chain as a statement.
    pub fn end(&mut self) {}

    pub fn finish(self) -> String {
        self.0
    }
}

/// Empty for what is no text.
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_stays_text() {
        let mut html = Html::default();
        html.text("<a href=\"x\">'&").inline("` `<b>` `");
        assert_eq!(html.finish(), "&lt;a href=&quot;x&quot;&gt;&#39;&amp;<code> </code>&lt;b&gt;<code> </code>");
    }
}
