//! One thing in full: a label and a value a line.

use serde_json::Value;

use super::plain;

#[derive(Debug, Default)]
pub struct Sheet(Vec<(String, String)>);

impl Sheet {
    pub fn line(&mut self, label: &str, value: impl ToString) {
        self.0.push((label.to_owned(), plain(&value.to_string())));
    }

    /// Nothing where there is nothing to say.
    pub fn maybe(&mut self, label: &str, value: Option<impl ToString>) {
        if let Some(value) = value {
            self.line(label, value);
        }
    }

    /// A JSON value: text without quotes, nothing for null and what is empty.
    pub fn value(&mut self, label: &str, value: Option<&Value>) {
        match value {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) if text.is_empty() => {}
            Some(Value::String(text)) => self.line(label, text),
            Some(Value::Object(object)) if object.is_empty() => {}
            Some(Value::Array(array)) if array.is_empty() => {}
            Some(other) => self.line(label, other),
        }
    }

    pub fn print(&self) {
        super::print(&self.text());
    }

    fn text(&self) -> String {
        let width = self.0.iter().map(|(label, _)| label.chars().count()).max().unwrap_or(0);
        let lines = self.0.iter().map(|(label, value)| {
            let gap = " ".repeat(width - label.chars().count());
            format!("{label}{gap}  {value}")
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_line_up_and_nothing_is_left_out_in_silence_but_nothing() {
        let mut sheet = Sheet::default();
        sheet.line("a", 1);
        sheet.maybe("none", None::<&str>);
        sheet.value("long", Some(&Value::from("x\u{7}")));
        sheet.value("null", Some(&Value::Null));
        assert_eq!(sheet.text(), "a     1\nlong  x\\u{7}");
    }
}
