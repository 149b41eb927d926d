//! Trying whether a remote system can be reached: the way an attempt goes, step by step, without a request that anybody acts on.
//!
//! It must not know what the outcome leads to.

use std::pin::{Pin, pin};
use std::sync::Arc;

use bytes::Bytes;
use http::header::{ACCEPT, HOST, HeaderMap, HeaderValue, USER_AGENT};
use http::{Method, Request, Uri};
use http_body_util::Full;
use postrider_core::connection::{Connection, Target};
use postrider_core::reach::{ReachStage, Reached};
use postrider_core::{NoAnswer, NoAnswerKind, Reply, Wait};
use tokio::time::Sleep;

use super::cause;
use super::connect::{ConnectError, Connector};
use super::link::{Broken, Link, OutgoingRequest, Stream};
use super::metered::Meter;
use super::origin::TlsRoute;
use super::{OUR_USER_AGENT, Stamp};
use crate::auth::{Authorization, Credentials};
use crate::certificate;
use crate::egress::{Destination, Progress, Stage};

/// What is to be tried.
#[derive(Clone, Debug)]
pub struct Reach {
    pub connection: Arc<Connection>,
    /// Shown where something is asked over HTTP, as an attempt would.
    pub credentials: Option<Arc<Credentials>>,
    pub stamp: Option<Stamp>,
    /// What a connection of type `rest` is asked with.
    pub method: ReachMethod,
    /// For all of it together.
    pub timeout: Wait,
}

/// Methods that change nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReachMethod {
    Head,
    Get,
    Options,
}

impl ReachMethod {
    pub const ALL: [ReachMethod; 3] = [ReachMethod::Head, ReachMethod::Get, ReachMethod::Options];

    pub const fn as_str(self) -> &'static str {
        match self {
            ReachMethod::Head => "HEAD",
            ReachMethod::Get => "GET",
            ReachMethod::Options => "OPTIONS",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        ReachMethod::ALL.into_iter().find(|method| method.as_str().eq_ignore_ascii_case(text))
    }
}

/// One try under way.
pub(super) struct Trial<'a> {
    pub(super) connector: &'a Arc<Connector>,
    pub(super) to: Destination<'a>,
    pub(super) tls: Option<&'a TlsRoute>,
    pub(super) timeout: Wait,
}

impl Trial<'_> {
    /// Up to a socket, with TLS on it where that is spoken; nothing is said over it.
    pub(super) async fn connect(&self) -> Reached {
        let progress = Progress::timed();
        let mut deadline = pin!(tokio::time::sleep(self.timeout.as_duration()));
        let mut reached = Reached::default();
        let opened = self.open(&progress, &mut reached, deadline.as_mut()).await;
        self.ended(opened.map(drop), reached, &progress)
    }

    /// The same, and a request behind it of which only the status is looked at.
    pub(super) async fn ask(&self, wanted: &Reach, request: OutgoingRequest) -> Reached {
        let progress = Progress::timed();
        let mut deadline = pin!(tokio::time::sleep(self.timeout.as_duration()));
        let mut reached = Reached::default();
        let asked = self.exchange(wanted, request, &progress, &mut reached, deadline.as_mut()).await;
        self.ended(asked, reached, &progress)
    }

    async fn exchange(
        &self,
        wanted: &Reach,
        mut request: OutgoingRequest,
        progress: &Progress,
        reached: &mut Reached,
        mut deadline: Pin<&mut Sleep>,
    ) -> Result<(), NoAnswer> {
        if let Some(credentials) = &wanted.credentials {
            let Authorization { name, value, .. } = match credentials.ready() {
                Some(ready) => ready,
                None => {
                    progress.reach(Stage::Token);
                    tokio::select! {
                        biased;
                        fetched = credentials.fetched(self.connector, wanted.stamp) => fetched?,
                        () = deadline.as_mut() => return Err(self.too_late(progress)),
                    }
                }
            };
            request.headers_mut().insert(name, value);
        }
        let (stream, meter) = self.open(progress, reached, deadline.as_mut()).await?;
        progress.reach(Stage::Answer);
        let internal = |detail: String| NoAnswer { kind: NoAnswerKind::Internal, detail };
        let mut link = Link::open(stream, meter).await.map_err(|error| internal(error.to_string()))?;
        match link.ask(request, false, deadline).await {
            Ok(response) => {
                reached.status = Some(response.status().as_u16());
                Ok(())
            }
            Err(Broken::Deadline) => Err(self.too_late(progress)),
            Err(Broken::Failed { error, sent }) => Err(told(cause::broken_off(self.to.host, &error, sent))),
        }
    }

    async fn open(
        &self,
        progress: &Progress,
        reached: &mut Reached,
        deadline: Pin<&mut Sleep>,
    ) -> Result<(Stream, Arc<Meter>), NoAnswer> {
        let opened: Result<_, ConnectError> = tokio::select! {
            biased;
            opened = self.connector.open_stream(self.to, self.tls, progress) => opened,
            () = deadline => return Err(self.too_late(progress)),
        };
        let (stream, meter) = opened.map_err(|error| told(cause::not_connected(self.to.host, &error)))?;
        reached.address = stream.peer().map(|address| address.to_string());
        reached.certificate_ends_at = stream.certificate().and_then(|der| certificate::ends_at(&der));
        Ok((stream, meter))
    }

    fn too_late(&self, progress: &Progress) -> NoAnswer {
        let late = told(cause::timed_out(self.to.host, self.timeout, progress.stage(), 1));
        NoAnswer { kind: NoAnswerKind::Timeout, ..late }
    }

    fn ended(&self, ended: Result<(), NoAnswer>, mut reached: Reached, progress: &Progress) -> Reached {
        reached.stages = progress.took().into_iter().map(|(stage, took)| (stage_of(stage), took)).collect();
        if let Err(NoAnswer { kind, detail }) = ended {
            let failed = Reached::not(stage_of(progress.stage()), kind, detail).failed;
            return Reached { failed, ..reached };
        }
        reached
    }
}

/// What is asked over HTTP; `None` where a socket is all that is tried. A path with placeholders is asked for up to the first one.
pub(super) fn request(wanted: &Reach, host: HeaderValue) -> Option<Result<OutgoingRequest, String>> {
    let (method, target, accept) = match &wanted.connection.spec.target {
        Target::Rest(rest) => {
            let path = rest.url_path.as_str();
            let literal = path.split('{').next().unwrap_or_default();
            let method = match wanted.method {
                ReachMethod::Head => Method::HEAD,
                ReachMethod::Get => Method::GET,
                ReachMethod::Options => Method::OPTIONS,
            };
            (method, if literal.is_empty() { "/".to_owned() } else { literal.to_owned() }, "*/*")
        }
        Target::Fhir(fhir) => {
            let path = format!("{}/metadata", fhir.http.url_path.as_str());
            (Method::GET, path, "application/fhir+json, application/json;q=0.9")
        }
        Target::Soap(_) | Target::Mllp(_) | Target::Webhook(_) | Target::Channel(_) | Target::Service(_) => {
            return None;
        }
    };
    let Ok(uri) = Uri::try_from(target) else { return Some(Err("the path is no address".to_owned())) };
    let mut request = Request::new(Full::new(Bytes::new()));
    *request.method_mut() = method;
    *request.uri_mut() = uri;
    let headers: HeaderMap =
        [(HOST, host), (USER_AGENT, OUR_USER_AGENT), (ACCEPT, HeaderValue::from_static(accept))].into_iter().collect();
    *request.headers_mut() = headers;
    Some(Ok(request))
}

fn told(reply: Reply) -> NoAnswer {
    match reply {
        Reply::Unanswered(none) => none,
        Reply::Answered(_) => NoAnswer { kind: NoAnswerKind::Internal, detail: "an answer that is none".to_owned() },
    }
}

const fn stage_of(stage: Stage) -> ReachStage {
    match stage {
        Stage::Token => ReachStage::Token,
        // Nothing is waited for here: what fails before the look-up fails with it.
        Stage::Slot | Stage::Resolve => ReachStage::Resolve,
        Stage::Connect => ReachStage::Connect,
        Stage::Tls => ReachStage::Tls,
        Stage::Answer => ReachStage::Answer,
    }
}
