//! Opening the database: where it is, who may look at the connection, and the settings that durability rests on. It must not know what is in
//! the tables.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio_postgres::Config;
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failures::{Fault, Outcome, causes};
use super::schema;
use crate::StoreError;
use crate::moving::MARK;

/// A database that does not answer a connection within this long is not there.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection while all are busy.
const FREE_CONNECTION: Duration = Duration::from_secs(5);
/// A cut network is noticed after this long without an acknowledgment of what we sent.
const SILENCE: Duration = Duration::from_secs(15);

/// What every session is opened with. A transaction that stands still (its process is stopped) must not keep others waiting: it is ended, well
/// before the leases of its worker are. Every statement of this store goes along an index, and must do so however old the statistics
/// are; that is what the planner's settings say.
const SETTINGS: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("lock_timeout", "5s"),
    ("idle_in_transaction_session_timeout", "10s"),
    ("enable_seqscan", "off"),
    ("plan_cache_mode", "force_generic_plan"),
    ("jit", "off"),
];

/// The schema that holds all our tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema(String);

impl Schema {
    /// # Errors
    /// Anything but small letters, digits and `_`, not beginning with a digit, or longer than 63.
    pub fn new(name: &str) -> Result<Self, StoreError> {
        let fits = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        if name.is_empty()
            || name.len() > 63
            || name.starts_with(|first: char| first.is_ascii_digit())
            || !name.chars().all(fits)
        {
            let allowed = "small letters, digits and `_`, at most 63, not beginning with a digit";
            return Err(StoreError::Conflict(format!(
                "the schema `{name}` of the database's URL: allowed are {allowed}"
            )));
        }
        Ok(Schema(name.to_owned()))
    }

    pub fn name(&self) -> &str {
        &self.0
    }
}

impl Default for Schema {
    fn default() -> Self {
        Schema("postrider".to_owned())
    }
}

/// A database, as its URL names it. Its text never shows a password.
#[derive(Clone)]
pub struct Database {
    config: Config,
    schema: Schema,
    root_certificates: Option<std::path::PathBuf>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Database {
    /// Reads `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…&schema=…`, as libpq does but for three things: `schema`
    /// is ours; every `sslmode` from `require` on checks the certificate and its name; client certificates are not supported.
    ///
    /// # Errors
    /// `Conflict`, with what is wrong and never the URL, which may hold a password.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut kept = Vec::new();
        let (mut schema, mut root_certificates, mut mode) = (Schema::default(), None, SslMode::Prefer);
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("schema", name) => schema = Schema::new(name)?,
                ("sslrootcert", path) => root_certificates = Some(unescaped(path)?.into()),
                ("sslmode", word) => mode = ssl_mode(word)?,
                _ => kept.push(pair),
            }
        }
        let url = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
        let mut config: Config =
            url.parse().map_err(|error| StoreError::Conflict(format!("the database's URL: {}", causes(&error))))?;
        config.ssl_mode(mode);
        let given = config.get_options().map(|options| format!("{options} ")).unwrap_or_default();
        config.options(format!("{given}{}", startup_options(&schema)));
        if config.get_application_name().is_none() {
            config.application_name("postrider");
        }
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(CONNECT);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(SILENCE);
        }
        config.keepalives_idle(SILENCE);
        Ok(Database { config, schema, root_certificates })
    }

    /// Host, database and schema, for messages and logs.
    pub fn shown(&self) -> String {
        use tokio_postgres::config::Host;
        let hosts: Vec<String> = self
            .config
            .get_hosts()
            .iter()
            .map(|host| match host {
                Host::Tcp(name) => name.clone(),
                #[cfg(unix)]
                Host::Unix(path) => path.display().to_string(),
            })
            .collect();
        let database = self.config.get_dbname().or(self.config.get_user()).unwrap_or("?");
        format!("postgres database `{database}` on {}, schema `{}`", hosts.join(", "), self.schema.name())
    }

    pub(super) const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A connection of its own, outside the pool, with the task that carries it.
    pub(super) async fn connect(
        &self,
    ) -> Outcome<(tokio_postgres::Client, tokio_postgres::Connection<tokio_postgres::Socket, TlsStream>)> {
        Ok(self.config.connect(self.tls()?).await?)
    }

    pub(super) fn pool(&self, connections_max: usize) -> Result<Pool, StoreError> {
        let checked = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls()?, checked);
        let timeouts = Timeouts { wait: Some(FREE_CONNECTION), create: Some(CONNECT * 2), recycle: Some(CONNECT) };
        Pool::builder(manager)
            .max_size(connections_max)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Unavailable(format!("the pool of connections: {error}")))
    }

    fn tls(&self) -> Result<MakeRustlsConnect, StoreError> {
        let mut roots = rustls::RootCertStore::empty();
        match &self.root_certificates {
            Some(path) => add_file(&mut roots, path)?,
            None => roots.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned()),
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| StoreError::Unavailable(format!("TLS to the database: {error}")))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(MakeRustlsConnect::new(client))
    }
}

type TlsStream = <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket>>::Stream;

fn add_file(roots: &mut rustls::RootCertStore, path: &Path) -> Result<(), StoreError> {
    let unusable =
        |why: String| StoreError::Unavailable(format!("the certificates of {} (sslrootcert): {why}", path.display()));
    let mut found = 0;
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| unusable(error.to_string()))? {
        let certificate = certificate.map_err(|error| unusable(error.to_string()))?;
        roots.add(certificate).map_err(|error| unusable(error.to_string()))?;
        found += 1;
    }
    if found == 0 { Err(unusable("there is none in it".to_owned())) } else { Ok(()) }
}

fn ssl_mode(word: &str) -> Result<SslMode, StoreError> {
    match word {
        "disable" => Ok(SslMode::Disable),
        "prefer" => Ok(SslMode::Prefer),
        "require" | "verify-full" => Ok(SslMode::Require),
        other => Err(StoreError::Conflict(format!(
            "`sslmode` of the database's URL is `{other}`; allowed are disable, prefer, require, verify-full"
        ))),
    }
}

fn unescaped(text: &str) -> Result<String, StoreError> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, behind @ ..] = rest {
        rest = behind;
        match (first, behind) {
            (b'%', [high, low, behind @ ..]) => {
                let digit = |digit: &u8| char::from(*digit).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
                let (Some(high), Some(low)) = (digit(high), digit(low)) else { return Err(bad_escape()) };
                bytes.push(high * 16 + low);
                rest = behind;
            }
            (b'%', _) => return Err(bad_escape()),
            _ => bytes.push(*first),
        }
    }
    String::from_utf8(bytes).map_err(|_| bad_escape())
}

fn bad_escape() -> StoreError {
    StoreError::Conflict("`sslrootcert` of the database's URL is not percent-encoded UTF-8".to_owned())
}

fn startup_options(schema: &Schema) -> String {
    let mut options = format!("-c search_path={}", schema.name());
    for (name, value) in SETTINGS {
        options.push_str(&format!(" -c {name}={}", value.replace(' ', "\\ ")));
    }
    options
}

/// A name for this process among the others. Before that the schema up to date, and a look whether our settings arrived: a pooler in between drops them, or hands each transaction another session.
pub(super) async fn prepare(database: &Database) -> Outcome<String> {
    let (mut client, connection) = database.connect().await?;
    let carried = tokio::spawn(connection);
    let prepared = prepare_with(&mut client, database).await;
    drop(client);
    let _ = carried.await;
    prepared
}

async fn prepare_with(client: &mut tokio_postgres::Client, database: &Database) -> Outcome<String> {
    for (name, wanted) in SETTINGS.iter().chain(&[("search_path", database.schema().name())]) {
        let row = client.query_one("SELECT current_setting($1)", &[name]).await?;
        let found: String = row.try_get(0)?;
        if found != *wanted {
            return Err(Fault::Refused(StoreError::Unavailable(format!(
                "the setting {name} of the session is `{found}` and not `{wanted}`, as was asked for: is there a pooler in between? \
                 Connect to PostgreSQL directly, or let the pooler keep sessions"
            ))));
        }
    }
    schema::migrate(client, database.schema()).await?;
    let row = client.query_one("SELECT gen_random_uuid()::text", &[]).await?;
    Ok(row.try_get(0)?)
}

/// A connection of its own to a schema that is up to date, for whoever wants its rows and not its verbs.
pub(crate) async fn way_in(database: &Database) -> Result<tokio_postgres::Client, StoreError> {
    let entered = async {
        prepare(database).await?;
        let (client, connection) = database.connect().await?;
        tokio::spawn(connection);
        Ok(client)
    };
    entered.await.map_err(|fault: Fault| super::opening(database, fault.into()))
}

/// What the database says to whoever has its rows.
pub(crate) fn told(error: tokio_postgres::Error) -> StoreError {
    Fault::from(error).into()
}

/// A store that another one is being moved into has only a part of it, and nobody serves that.
///
/// # Errors
/// `Unavailable` when it is one.
pub(super) async fn refuse_unfinished(database: &Database) -> Outcome<()> {
    let (client, connection) = database.connect().await?;
    let carried = tokio::spawn(connection);
    let found = client.query_opt("SELECT 1 FROM value WHERE name = $1", &[&MARK]).await;
    drop(client);
    let _ = carried.await;
    match found? {
        Some(_) => Err(Fault::Refused(StoreError::Unavailable(
            "a store is being moved into it and is not whole yet: run the same `postrider migrate` again, which goes on where it was".to_owned(),
        ))),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_read_and_its_password_never_shown() {
        let database =
            Database::parse("postgres://us%40er:s3cret@db.example.org:5433/hospital?sslmode=require&schema=one")
                .unwrap();
        assert_eq!(format!("{database:?}"), "postgres database `hospital` on db.example.org, schema `one`");
        assert_eq!(database.config.get_user(), Some("us@er"));
        assert_eq!(database.config.get_ssl_mode(), SslMode::Require);
        let refused = Database::parse("postgres://user:s3cret@host/db?port=nine").unwrap_err().to_string();
        assert!(!refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn what_is_wrong_in_a_url_is_named() {
        for (url, named) in [
            ("postgres://h/d?sslmode=allow", "disable, prefer, require, verify-full"),
            ("postgres://h/d?schema=a-b", "small letters"),
            ("postgres://h/d?sslrootcert=%f", "sslrootcert"),
            ("postgres://h:x/d", "URL"),
        ] {
            let refused = Database::parse(url).unwrap_err().to_string();
            assert!(refused.contains(named), "{url}: {refused}");
        }
    }
}
