//! Opening the database: where it is, who may look at the connection, and the settings that durability rests on. It must not know what is in
//! the tables.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod, Runtime, Timeouts};
use tokio_postgres::Config;
use tokio_postgres_rustls::MakeRustlsConnect;

use super::failures::{Fault, Outcome, causes};
use super::schema;
use super::tls::Tls;
use crate::StoreError;

/// A database that does not answer a connection within this long is not there.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a call waits for a connection while all are busy.
const FREE_CONNECTION: Duration = Duration::from_secs(5);
/// A cut network is noticed after this long without an acknowledgment of what we sent.
const SILENCE: Duration = Duration::from_secs(15);

/// What every session is opened with. Nothing waits without an end: not for a lock, not for a statement. A transaction that stands still (its process is stopped) must not keep others waiting: it is ended, well
/// before the leases of its worker are. Every statement of this store goes along an index, and must do so however old the statistics
/// are; that is what the planner's settings say.
const SETTINGS: &[(&str, &str)] = &[
    ("synchronous_commit", "on"),
    ("default_transaction_isolation", "read committed"),
    ("lock_timeout", "5s"),
    ("statement_timeout", "20s"),
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
    tls: Tls,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
}

impl Database {
    /// Reads `postgres://user:password@host:port/database?sslmode=…&sslrootcert=…&schema=…`, as libpq does but for two things: `schema`
    /// is ours, and client certificates are not supported.
    ///
    /// # Errors
    /// `Conflict`, with what is wrong and never the URL, which may hold a password.
    pub fn parse(url: &str) -> Result<Self, StoreError> {
        let (address, query) = url.split_once('?').unwrap_or((url, ""));
        let mut kept = Vec::new();
        let (mut schema, mut tls) = (Schema::default(), Tls::default());
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            match pair.split_once('=').unwrap_or((pair, "")) {
                ("schema", name) => schema = Schema::new(name)?,
                (name, value) if tls.take(name, value)? => {}
                _ => kept.push(pair),
            }
        }
        tls.check()?;
        let url = if kept.is_empty() { address.to_owned() } else { format!("{address}?{}", kept.join("&")) };
        let mut config: Config =
            url.parse().map_err(|error| StoreError::Conflict(format!("the database's URL: {}", causes(&error))))?;
        config.ssl_mode(tls.ssl_mode());
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
        Ok(Database { config, schema, tls })
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

    /// Whether somebody in between could read and change everything unseen.
    pub(super) fn is_open_to_others(&self) -> bool {
        use tokio_postgres::config::Host;
        let is_near = |host: &Host| match host {
            Host::Tcp(name) => {
                name == "localhost" || name.parse::<std::net::IpAddr>().is_ok_and(|address| address.is_loopback())
            }
            #[cfg(unix)]
            Host::Unix(_) => true,
        };
        self.tls.is_unchecked() && !self.config.get_hosts().iter().all(is_near)
    }

    pub(super) const fn schema(&self) -> &Schema {
        &self.schema
    }

    /// A connection of its own, outside the pool, with the task that carries it.
    pub(super) async fn connect(
        &self,
    ) -> Outcome<(tokio_postgres::Client, tokio_postgres::Connection<tokio_postgres::Socket, TlsStream>)> {
        Ok(self.config.connect(self.tls.connector()?).await?)
    }

    pub(super) fn pool(&self, connections_max: usize) -> Result<Pool, StoreError> {
        let checked = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(self.config.clone(), self.tls.connector()?, checked);
        let timeouts = Timeouts { wait: Some(FREE_CONNECTION), create: Some(CONNECT * 2), recycle: Some(CONNECT) };
        Pool::builder(manager)
            .max_size(connections_max)
            .timeouts(timeouts)
            .runtime(Runtime::Tokio1)
            .build()
            .map_err(|error| StoreError::Unavailable(format!("the pool of connections: {error}")))
    }
}

type TlsStream = <MakeRustlsConnect as tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket>>::Stream;

fn startup_options(schema: &Schema) -> String {
    let mut options = format!("-c search_path={}", schema.name());
    for (name, value) in SETTINGS {
        options.push_str(&format!(" -c {name}={}", value.replace(' ', "\\ ")));
    }
    options
}

/// A name for this process among the others. Before that the schema up to date, and a look whether our settings arrived and stay: a pooler in
/// between drops them, or hands each transaction another session.
pub(super) async fn prepare(database: &Database) -> Outcome<String> {
    let (mut client, connection) = database.connect().await.map_err(told_of_a_pooler)?;
    let carried = tokio::spawn(connection);
    let prepared = prepare_with(&mut client, database).await;
    drop(client);
    let _ = carried.await;
    prepared
}

const ABOUT_POOLERS: &str = "Connect to PostgreSQL directly, or let the pooler keep sessions and give their settings to the role (docs/guides/operating.md)";

/// PgBouncer's words for a setting that it does not know.
fn told_of_a_pooler(fault: Fault) -> Fault {
    let told = StoreError::from(fault.clone()).to_string();
    if !told.contains("unsupported startup parameter") {
        return fault;
    }
    Fault::Refused(StoreError::Unavailable(format!(
        "a pooler in between does not pass the settings of a session on: {told}. {ABOUT_POOLERS}"
    )))
}

async fn prepare_with(client: &mut tokio_postgres::Client, database: &Database) -> Outcome<String> {
    for (name, wanted) in SETTINGS.iter().chain(&[("search_path", database.schema().name())]) {
        let row = client.query_one("SELECT current_setting($1)", &[name]).await?;
        let found: String = row.try_get(0)?;
        if found != *wanted {
            return Err(Fault::Refused(StoreError::Unavailable(format!(
                "the setting {name} of the session is `{found}` and not `{wanted}`, as was asked for: is there a pooler in between? {ABOUT_POOLERS}"
            ))));
        }
    }
    require_a_session(client, database).await?;
    // A step over a large table takes as long as it takes.
    client.batch_execute("SET statement_timeout = 0").await?;
    schema::migrate(client, database.schema()).await?;
    let row = client.query_one("SELECT gen_random_uuid()::text", &[]).await?;
    Ok(row.try_get(0)?)
}

/// While somebody else has a transaction open, a pooler that hands out sessions by the transaction gives us another one than before, and
/// prepared statements, settings and `LISTEN` would be lost as well.
async fn require_a_session(client: &tokio_postgres::Client, database: &Database) -> Outcome<()> {
    client.batch_execute("SET postrider.session = 'ours'").await?;
    let (other, connection) = database.connect().await?;
    let carried = tokio::spawn(connection);
    other.batch_execute("BEGIN; SELECT 1").await?;
    let found = client.simple_query("SELECT current_setting('postrider.session', true)").await?;
    drop(other);
    let _ = carried.await;
    let is_kept = found.iter().any(|message| match message {
        tokio_postgres::SimpleQueryMessage::Row(row) => row.get(0) == Some("ours"),
        _ => false,
    });
    if is_kept {
        return Ok(());
    }
    Err(Fault::Refused(StoreError::Unavailable(format!(
        "a pooler in between gives each transaction another session (pool_mode = transaction), and sessions matter. {ABOUT_POOLERS}"
    ))))
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
        assert_eq!(database.config.get_ssl_mode(), tokio_postgres::config::SslMode::Require);
        let refused = Database::parse("postgres://user:s3cret@host/db?port=nine").unwrap_err().to_string();
        assert!(!refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn what_is_wrong_in_a_url_is_named() {
        for (url, named) in [
            ("postgres://h/d?sslmode=allow", "disable, prefer, require, verify-ca, verify-full"),
            ("postgres://h/d?sslcert=/me.pem", "sslcert"),
            ("postgres://h/d?schema=a-b", "small letters"),
            ("postgres://h/d?sslrootcert=%f", "sslrootcert"),
            ("postgres://h:x/d", "URL"),
        ] {
            let refused = Database::parse(url).unwrap_err().to_string();
            assert!(refused.contains(named), "{url}: {refused}");
        }
    }
}
