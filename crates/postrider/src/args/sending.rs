//! `send` and `publish`.

/// A request for a connection.
#[derive(Debug, clap::Args)]
pub struct SendArgs {
    /// The connection's name; `rest:NAME` where a name alone is ambiguous
    pub connection: String,

    /// A file with the body; `-` reads standard input
    #[arg(long, value_name = "FILE|-")]
    pub body: Option<BodyArg>,

    /// GET, POST, PUT, …
    #[arg(long)]
    pub method: Option<String>,

    /// What to invoke, on a connection of type soap; the body is its message, in JSON or XML
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,

    /// Appended to the connection's own path
    #[arg(long)]
    pub path: Option<String>,

    /// Fills a placeholder of the path, or goes to the query string
    #[arg(long = "param", value_name = "K=V", value_parser = param)]
    pub params: Vec<(String, String)>,

    #[arg(long = "header", value_name = "K:V", value_parser = header)]
    pub headers: Vec<(String, String)>,
}

/// A request for a connection, or many.
#[derive(Debug, clap::Args)]
pub struct PublishArgs {
    #[command(flatten)]
    pub one: SendArgs,

    /// Many requests from a file, one JSON object a line, as in the API; `-` reads standard input
    #[arg(long, value_name = "FILE|-", conflicts_with_all = ["body", "method", "path", "params", "headers", "operation"])]
    pub batch: Option<BodyArg>,

    /// With --batch: the same file published again under this key within 24 hours is stored once
    #[arg(long, value_name = "KEY", requires = "batch")]
    pub idempotency_key: Option<String>,
}

/// Where a body is read from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BodyArg {
    StandardInput,
    File(std::path::PathBuf),
}

impl std::str::FromStr for BodyArg {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(if text == "-" { BodyArg::StandardInput } else { BodyArg::File(text.into()) })
    }
}

fn param(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it must be NAME=VALUE".to_owned()),
    }
}

pub fn header(text: &str) -> Result<(String, String), String> {
    match text.split_once(':') {
        Some((name, value)) if !name.trim().is_empty() => Ok((name.trim().to_owned(), value.trim().to_owned())),
        _ => Err("it must be NAME:VALUE".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_the_separator() {
        assert_eq!(param("a=b=c").unwrap(), ("a".into(), "b=c".into()));
        assert_eq!(header("X-A: http://b").unwrap(), ("X-A".into(), "http://b".into()));
        assert!(param("=v").is_err() && header(":v").is_err());
    }
}
