import shutil, os
R=''; C=R+'crates/'; B='bridges/'
def sub(p, *pairs):
    s=open(C+p).read()
    for a,b in pairs:
        assert a in s, (p,a)
        s=s.replace(a,b,1)
    open(C+p,'w').write(s)
def allsub(p,a,b):
    s=open(C+p).read(); assert a in s,(p,a); open(C+p,'w').write(s.replace(a,b))
os.makedirs(C+'wire/src/send/broker',exist_ok=True)
for f in ['nats','resp','amqp']: shutil.copy(B+f'codec/{f}.rs',C+f'wire/src/codec/{f}.rs')
for f in ['mod','nats','rabbitmq','redis']: shutil.copy(B+f'broker/{f}.rs',C+f'wire/src/send/broker/{f}.rs')
shutil.copy(B+'core/broker.rs',C+'core/src/broker.rs')
shutil.copy(B+'core/target.rs',C+'core/src/connection/broker.rs')
shutil.copy(B+'core/settings.rs',C+'core/src/settings/broker.rs')
sub('core/src/lib.rs',('pub mod breaker;\n','pub mod breaker;\npub mod broker;\n'))
K='''    Nats,
    Rabbitmq,
    Redis,
'''
sub('core/src/connection.rs',
('mod channel;\n','mod broker;\nmod channel;\n'),
('pub use channel::','pub use broker::{BrokerTarget, Place};\npub use channel::'),
('    Fhir,\n    Webhook,\n    /// Takes','    Fhir,\n    /// A subject that a stream of NATS JetStream takes.\n    Nats,\n    /// An exchange of RabbitMQ.\n    Rabbitmq,\n    /// A stream of Redis.\n    Redis,\n    Webhook,\n    /// Takes'),
('pub const ALL: [ConnectionKind; 9]','pub const ALL: [ConnectionKind; 12]'),
('        ConnectionKind::Fhir,\n        ConnectionKind::Webhook,\n        ConnectionKind::ChannelRest,','        ConnectionKind::Fhir,\n        ConnectionKind::Nats,\n        ConnectionKind::Rabbitmq,\n        ConnectionKind::Redis,\n        ConnectionKind::Webhook,\n        ConnectionKind::ChannelRest,'),
('"one of rest, mllp, soap, fhir, webhook, channel_rest','"one of rest, mllp, soap, fhir, nats, rabbitmq, redis, webhook, channel_rest'),
('pub const CONNECTIONS: [ConnectionKind; 5]','pub const CONNECTIONS: [ConnectionKind; 8]'),
('        ConnectionKind::Fhir,\n        ConnectionKind::Webhook,\n    ];','        ConnectionKind::Fhir,\n        ConnectionKind::Nats,\n        ConnectionKind::Rabbitmq,\n        ConnectionKind::Redis,\n        ConnectionKind::Webhook,\n    ];'),
('"one of rest, mllp, soap, fhir, webhook"','"one of rest, mllp, soap, fhir, nats, rabbitmq, redis, webhook"'),
('            ConnectionKind::Fhir => "fhir",','            ConnectionKind::Fhir => "fhir",\n            ConnectionKind::Nats => "nats",\n            ConnectionKind::Rabbitmq => "rabbitmq",\n            ConnectionKind::Redis => "redis",'),
('            | ConnectionKind::Fhir\n            | ConnectionKind::Webhook => Family::Connection,','            | ConnectionKind::Fhir\n            | ConnectionKind::Nats\n            | ConnectionKind::Rabbitmq\n            | ConnectionKind::Redis\n            | ConnectionKind::Webhook => Family::Connection,'),
('    /// The type of a channel as it is called','    /// A bridge to somebody else\'s message broker.\n    pub const fn is_broker(self) -> bool {\n        matches!(self, ConnectionKind::Nats | ConnectionKind::Rabbitmq | ConnectionKind::Redis)\n    }\n\n    /// The type of a channel as it is called'),
('    Fhir(Box<FhirTarget>),\n','    Fhir(Box<FhirTarget>),\n    Broker(Box<BrokerTarget>),\n'),
('            Target::Webhook(_) => ConnectionKind::Webhook,','            Target::Broker(broker) => broker.kind(),\n            Target::Webhook(_) => ConnectionKind::Webhook,'),
('    pub fn channel(&self) -> Option<&ChannelTarget> {','    pub fn broker(&self) -> Option<&BrokerTarget> {\n        match self {\n            Target::Broker(broker) => Some(broker),\n            _ => None,\n        }\n    }\n\n    pub fn channel(&self) -> Option<&ChannelTarget> {'),
('            Target::Mllp(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => None,','            Target::Mllp(_) | Target::Broker(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => None,'),
('            Target::Webhook(endpoint) => endpoint.url.to_string(),','            Target::Broker(broker) => broker.address(),\n            Target::Webhook(endpoint) => endpoint.url.to_string(),'),
('            Target::Webhook(_) | Target::Service(_) => DataFormat::Json,','            Target::Webhook(_) | Target::Broker(_) | Target::Service(_) => DataFormat::Json,'),
('            Target::Mllp(_) | Target::Soap(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => false,','            Target::Mllp(_)\n            | Target::Soap(_)\n            | Target::Broker(_)\n            | Target::Webhook(_)\n            | Target::Channel(_)\n            | Target::Service(_) => false,'),
)
sub('core/src/reply.rs',('use crate::ack::Ack;\n','use crate::ack::Ack;\nuse crate::broker::BrokerAnswer;\n'),
('    Fhir(Box<FhirAnswer>),\n','    Fhir(Box<FhirAnswer>),\n    Broker(BrokerAnswer),\n'),
('            Said::Soap(_) | Said::Fhir(_) => None,','            Said::Soap(_) | Said::Fhir(_) | Said::Broker(_) => None,'),
('            Said::Ack(_) | Said::Fhir(_) => None,','            Said::Ack(_) | Said::Fhir(_) | Said::Broker(_) => None,'),
('            Said::Ack(_) | Said::Soap(_) => None,','            Said::Ack(_) | Said::Soap(_) | Said::Broker(_) => None,'),
('    pub fn fault(&self)','    /// What a broker said.\n    pub fn broker(&self) -> Option<&BrokerAnswer> {\n        match self.said.as_ref()? {\n            Said::Broker(answer) => Some(answer),\n            Said::Ack(_) | Said::Soap(_) | Said::Fhir(_) => None,\n        }\n    }\n\n    pub fn fault(&self)'),
('            Said::Ack(_) => None,\n','            Said::Ack(_) | Said::Broker(_) => None,\n'))
sub('core/src/verdict.rs',('use crate::ack::AckMeaning;\n','use crate::ack::AckMeaning;\nuse crate::broker::BrokerAnswer;\n'),
('        Target::Channel(_) | Target::Service(_) => of_run(reply),','        Target::Broker(_) => at_a_broker(reply),\n        Target::Channel(_) | Target::Service(_) => of_run(reply),'),
('/// The verdict over SOAP: a fault','''/// The verdict at a broker: only its own word that the message is kept is a delivery.
///
/// A place that is not there or is full may be mended, so that is tried again; a message that is itself at fault is not.
pub fn at_a_broker(reply: &Reply) -> Verdict {
    let answer = match reply {
        Reply::Answered(answer) => answer,
        Reply::Unanswered(none) => return unanswered(none),
    };
    let (error, again) = match answer.broker() {
        Some(BrokerAnswer::Taken) => return Verdict::Delivered,
        Some(BrokerAnswer::NotTaken(why)) => (why.clone(), Again::Worthwhile),
        Some(BrokerAnswer::Unfit(why)) => (why.clone(), Again::Pointless),
        None => {
            let detail = "an answer without a broker's word".to_owned();
            return unanswered(&NoAnswer { kind: NoAnswerKind::NoAck, detail });
        }
    };
    Verdict::Failed(Failed { failure: Failure::Rejected, error, again, status: None })
}

/// The verdict over SOAP: a fault'''))
sub('core/src/settings/mod.rs',('mod canonical;\n','mod broker;\nmod canonical;\n'),
('            ConnectionKind::Webhook => &webhook::SETTINGS,','            ConnectionKind::Nats => &broker::NATS,\n            ConnectionKind::Rabbitmq => &broker::RABBITMQ,\n            ConnectionKind::Redis => &broker::REDIS,\n            ConnectionKind::Webhook => &webhook::SETTINGS,'))
sub('core/src/settings/mllp.rs',('fn tls(reader: &mut Reader<\'_>) -> Option<TlsSettings> {','pub(super) fn tls(reader: &mut Reader<\'_>) -> Option<TlsSettings> {'))
sub('core/src/settings/warnings.rs',('        Target::Mllp(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => {}','        Target::Mllp(_) | Target::Broker(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => {}'))
sub('core/src/reach.rs',('        ConnectionKind::Mllp | ConnectionKind::Fhir | ConnectionKind::Service => "`address`",','        ConnectionKind::Mllp\n        | ConnectionKind::Fhir\n        | ConnectionKind::Nats\n        | ConnectionKind::Rabbitmq\n        | ConnectionKind::Redis\n        | ConnectionKind::Service => "`address`",'))
sub('wire/src/send/mod.rs',('mod answer;\n','mod answer;\npub mod broker;\n'))
s=open(C+'wire/src/codec/mod.rs').read(); print(s)
sub('wire/src/send/connect.rs',('''                progress.reach(Stage::Tls);
                let connector = self.tls_connector(tls).await?;
                let tls = connector.connect(tls.server_name.clone(), metered).await.map_err(ConnectError::Tls)?;
                Stream::Tls(Box::new(tls))
            }
        };
        Ok((stream, meter))
    }
''','''                self.secure(metered, tls, progress).await?
            }
        };
        Ok((stream, meter))
    }

    /// TLS on a socket over which something may have been said already.
    pub(crate) async fn secure(
        &self,
        metered: Metered,
        tls: &TlsRoute,
        progress: &Progress,
    ) -> Result<Stream, ConnectError> {
        progress.reach(Stage::Tls);
        let connector = self.tls_connector(tls).await?;
        let tls = connector.connect(tls.server_name.clone(), metered).await.map_err(ConnectError::Tls)?;
        Ok(Stream::Tls(Box::new(tls)))
    }
'''))
sub('wire/src/send/request.rs',('Target::Mllp(_) | Target::Channel(_) | Target::Service(_) => return Err(Unsendable::Kind),','Target::Mllp(_) | Target::Broker(_) | Target::Channel(_) | Target::Service(_) => return Err(Unsendable::Kind),'),
('fn is_ours(field: &HeaderName) -> bool {','pub(super) fn is_ours(field: &HeaderName) -> bool {'),
('/// What frames a request or belongs','/// What an attempt says of its trace in place of the stored request.\npub(super) fn is_trace(field: &HeaderName, outgoing: &Outgoing) -> bool {\n    outgoing.trace.is_some() && [TRACE_PARENT, TRACE_STATE].contains(field)\n}\n\n/// What frames a request or belongs'))
sub('wire/src/send/reach.rs',('Target::Soap(_) | Target::Mllp(_) | Target::Webhook(_)','Target::Soap(_) | Target::Mllp(_) | Target::Broker(_) | Target::Webhook(_)'))
sub('wire/src/send/route.rs',('Target::Mllp(_) | Target::Channel(_) => return','Target::Mllp(_) | Target::Broker(_) | Target::Channel(_) => return'))
sub('wire/src/send/check.rs',('        Target::Channel(_) | Target::Service(_) => super::service::check','        Target::Broker(_) => super::broker::check(message),\n        Target::Channel(_) | Target::Service(_) => super::service::check'),
('        | Target::Fhir(_)\n','        | Target::Fhir(_)\n        | Target::Broker(_)\n'),
('        Target::Fhir(_) => Some(super::fhir','        Target::Broker(_) => Some(Said::Broker(super::broker::said(body))),\n        Target::Fhir(_) => Some(super::fhir'))
sub('wire/src/send/many.rs',('use super::http::{','use super::broker::BrokerSender;\nuse super::http::{'),
('    mllp: MllpSender,\n','    mllp: MllpSender,\n    broker: BrokerSender,\n'),
('        Senders { http: HttpSender::new(options, Arc::clone(&egress)), mllp: MllpSender::new(answer_bytes_max, egress) }','        Senders {\n            http: HttpSender::new(options, Arc::clone(&egress)),\n            mllp: MllpSender::new(answer_bytes_max, Arc::clone(&egress)),\n            broker: BrokerSender::new(egress),\n        }'),
('            ConnectionKind::Mllp => self.mllp.send(outgoing).await,','            ConnectionKind::Mllp => self.mllp.send(outgoing).await,\n            ConnectionKind::Nats | ConnectionKind::Rabbitmq | ConnectionKind::Redis => self.broker.send(outgoing).await,'),
('            ConnectionKind::Mllp => self.mllp.may_reach(connection).await,','            ConnectionKind::Mllp => self.mllp.may_reach(connection).await,\n            ConnectionKind::Nats | ConnectionKind::Rabbitmq | ConnectionKind::Redis => {\n                self.broker.may_reach(connection).await\n            }'),
('            ConnectionKind::Mllp => self.mllp.reach(wanted).await,','            ConnectionKind::Mllp => self.mllp.reach(wanted).await,\n            ConnectionKind::Nats | ConnectionKind::Rabbitmq | ConnectionKind::Redis => self.broker.reach(wanted).await,'),
('        self.mllp.forget(connection);','        self.mllp.forget(connection);\n        self.broker.forget(connection);'))
sub('wire/src/auth/mod.rs',('    /// Whether each attempt needs a time','''    /// Name and password, or a token alone, for protocols that have a log-in of their own.
    pub(crate) fn login(&self) -> Result<Login, NoAnswer> {
        let refused = || NoAnswer {
            kind: NoAnswerKind::Unsendable,
            detail: "a broker takes security definitions of type basic_auth and bearer".to_owned(),
        };
        let Kind::Fixed(Authorization { name, value, .. }) = &self.0 else { return Err(refused()) };
        let (scheme, rest) = value.to_str().ok().and_then(|text| text.split_once(' ')).ok_or_else(refused)?;
        match scheme {
            "Basic" if name == AUTHORIZATION => {
                let decoded = STANDARD.decode(rest).ok().and_then(|bytes| String::from_utf8(bytes).ok());
                let decoded = decoded.ok_or_else(refused)?;
                let (user, password) = decoded.split_once(':').ok_or_else(refused)?;
                Ok(Login { username: Some(user.to_owned()), secret: Some(Secret::new(password)) })
            }
            "Bearer" if name == AUTHORIZATION => Ok(Login { username: None, secret: Some(Secret::new(rest)) }),
            _ => Err(refused()),
        }
    }

    /// Whether each attempt needs a time'''),
('/// Who a UsernameToken is for.','/// Who logs in to a broker; nobody where both are `None`.\n#[derive(Default)]\npub(crate) struct Login {\n    pub(crate) username: Option<String>,\n    pub(crate) secret: Option<Secret>,\n}\n\n/// Who a UsernameToken is for.'))
sub('config/src/section/webhook_subscription.rs',('        ConnectionKind::Webhook => "webhook_endpoint",','        ConnectionKind::Nats => "outgoing_nats",\n        ConnectionKind::Rabbitmq => "outgoing_rabbitmq",\n        ConnectionKind::Redis => "outgoing_redis",\n        ConnectionKind::Webhook => "webhook_endpoint",'))
sub('config/src/section/outgoing.rs',('pub const WEBHOOK: Outgoing','''pub const NATS: Outgoing = Outgoing {
    kind: ConnectionKind::Nats,
    name: "outgoing_nats",
    meaning: "Bridges to subjects of NATS that a stream of JetStream takes.",
    required: &["address", "subject"],
    aliases: &[],
};

pub const RABBITMQ: Outgoing = Outgoing {
    kind: ConnectionKind::Rabbitmq,
    name: "outgoing_rabbitmq",
    meaning: "Bridges to exchanges and queues of RabbitMQ.",
    required: &["address"],
    aliases: &[],
};

pub const REDIS: Outgoing = Outgoing {
    kind: ConnectionKind::Redis,
    name: "outgoing_redis",
    meaning: "Bridges to streams of Redis.",
    required: &["address", "stream"],
    aliases: &[],
};

pub const WEBHOOK: Outgoing'''))
sub('config/src/section/mod.rs',('    &outgoing::FHIR,\n','    &outgoing::FHIR,\n    &outgoing::NATS,\n    &outgoing::RABBITMQ,\n    &outgoing::REDIS,\n'))
sub('engine/src/securing.rs',('        let unfit = match (known.definition.kind(), kind.family()) {\n','''        let unfit = match (known.definition.kind(), kind.family()) {
            (found, _) if kind.is_broker() && !matches!(found, SecurityKind::BasicAuth | SecurityKind::Bearer) => {
                Some("a definition of type basic_auth or bearer: those are what a broker takes")
            }
'''))
sub('web/src/api/docs/connections.rs',('        ConnectionKind::Webhook => ["WebhookC','        ConnectionKind::Nats => ["NatsConnection", "NewNatsConnection", "NatsConnectionChange"],\n        ConnectionKind::Rabbitmq => ["RabbitmqConnection", "NewRabbitmqConnection", "RabbitmqConnectionChange"],\n        ConnectionKind::Redis => ["RedisConnection", "NewRedisConnection", "RedisConnectionChange"],\n        ConnectionKind::Webhook => ["WebhookC'))
sub('web/src/api/shapes.rs',('        Said::Fhir(fhir) => fhir_into(object, fhir),','        Said::Fhir(fhir) => fhir_into(object, fhir),\n        // Its words are the body.\n        Said::Broker(_) => {}'))
sub('postrider/src/args/resources.rs',('/// rest, mllp, soap or fhir; left out with --file','/// rest, mllp, soap, fhir, nats, rabbitmq or redis; left out with --file'))
