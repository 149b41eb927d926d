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

    /// What to invoke, on a connection of type soap; on one of type fhir the interaction: create, save, read, vread, update, patch, delete,
    /// search, history, batch, transaction, capabilities, page, or $NAME
    #[arg(long, value_name = "NAME")]
    pub operation: Option<String>,

    #[command(flatten)]
    pub fhir: FhirArgs,

    /// Appended to the connection's own path
    #[arg(long)]
    pub path: Option<String>,

    /// Fills a placeholder of the path, or goes to the query string
    #[arg(long = "param", value_name = "K=V", value_parser = param)]
    pub params: Vec<(String, String)>,

    #[arg(long = "header", value_name = "K:V", value_parser = header)]
    pub headers: Vec<(String, String)>,
}

/// What belongs to an interaction of FHIR.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "FHIR")]
pub struct FhirArgs {
    /// The resource's type, where the body does not say it
    #[arg(long, value_name = "TYPE", requires = "operation")]
    pub resource_type: Option<String>,
    /// The resource's id
    #[arg(long, requires = "operation")]
    pub id: Option<String>,
    /// The version that vread reads
    #[arg(long, value_name = "ID", requires = "operation")]
    pub version_id: Option<String>,
    /// The link to the next page, for the interaction page
    #[arg(long, value_name = "LINK", requires = "operation")]
    pub url: Option<String>,
    /// Create nothing where this search finds one, such as identifier=urn:mrn|7301
    #[arg(long, value_name = "SEARCH", requires = "operation")]
    pub if_none_exist: Option<String>,
    /// The version that is to be changed
    #[arg(long, value_name = "VERSION", requires = "operation")]
    pub if_match: Option<String>,
    /// The version that is known
    #[arg(long, value_name = "VERSION", requires = "operation")]
    pub if_none_match: Option<String>,
    /// A date of HTTP
    #[arg(long, value_name = "DATE", requires = "operation")]
    pub if_modified_since: Option<String>,
    /// What the answer should hold: minimal, representation or OperationOutcome
    #[arg(long, value_name = "WHAT", requires = "operation")]
    pub prefer: Option<String>,
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
