//! The daemon's answers, typed.

use std::path::{Path, PathBuf};
use std::time::Duration;

use compactd_api::dirs::Env;
use compactd_api::ids;
use compactd_api::passes::{Pass, PassList};
use compactd_api::recall::Recall;
use compactd_api::routes;
use compactd_api::sessions::{Explain, Focus, Pin, Pins, SessionItem, SessionList, Stats, Status};
use compactd_api::{ErrorBody, ErrorCode, History, Host, PROTOCOL, Profile};
use serde::de::DeserializeOwned;

use crate::error::Error;
use crate::find;
use crate::http::{self, Request, Response};
use crate::socket;

/// What an answer from memory may take.
const QUICK: Duration = Duration::from_secs(5);
/// What reading a large transcript may take.
const SLOW: Duration = Duration::from_secs(60);

/// A daemon that answered.
#[derive(Debug)]
pub struct Daemon {
    env: Env,
    socket: PathBuf,
}

/// An answer as it came, and what is in it.
#[derive(Debug)]
pub struct Answer<T> {
    /// The JSON.
    pub body: Vec<u8>,
    /// What it says.
    pub value: T,
}

/// An answer, or `None` where a route or a pass is not there.
fn known<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Err(Error::Refused { code: ErrorCode::PassUnknown | ErrorCode::NotFound, .. }) => Ok(None),
        answer => answer.map(Some),
    }
}

impl Daemon {
    /// Finds a daemon that listens.
    ///
    /// # Errors
    /// There is none, or what is there is not ours.
    pub fn find(env: &Env) -> Result<Self, Error> {
        let (_stream, socket) = socket::connect(env)?;
        Ok(Self { env: env.clone(), socket })
    }

    /// Where it listens.
    #[must_use]
    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Its health.
    ///
    /// # Errors
    /// No understandable answer came.
    pub fn status(&self) -> Result<Answer<Status>, Error> {
        self.get(routes::STATUS, QUICK)
    }

    /// Its counters.
    ///
    /// # Errors
    /// No understandable answer came.
    pub fn stats(&self) -> Result<Answer<Stats>, Error> {
        self.get(routes::STATS, QUICK)
    }

    /// The sessions it knows, the newest first; `limit` 0 is all.
    ///
    /// # Errors
    /// No understandable answer came.
    pub fn sessions(&self, host: Option<Host>, limit: u64) -> Result<Answer<SessionList>, Error> {
        let mut query = Vec::new();
        query.extend(host.map(|host| format!("host={host}")));
        query.extend((limit > 0).then(|| format!("limit={limit}")));
        let mark = if query.is_empty() { "" } else { "?" };
        self.get(&format!("{}{mark}{}", routes::SESSIONS, query.join("&")), SLOW)
    }

    /// What a compaction would do with a session; the body of an [`Explain`].
    ///
    /// # Errors
    /// The session is not known, cannot be read, or no understandable answer came.
    pub fn explain(
        &self,
        id: &str,
        profile: Option<Profile>,
        history: History,
    ) -> Result<Vec<u8>, Error> {
        let profile = profile.map_or_else(String::new, |profile| format!("&profile={profile}"));
        let route = routes::fill(routes::EXPLAIN, &[id]);
        let answer = self.ask("GET", &format!("{route}?history={history}{profile}"), None, SLOW)?;
        self.parse_explain(&answer.body)?;
        Ok(answer.body)
    }

    /// Reads the body of an [`Explain`].
    ///
    /// # Errors
    /// It has another shape.
    pub fn parse_explain<'a>(&self, body: &'a [u8]) -> Result<Explain<'a>, Error> {
        serde_json::from_slice(body).map_err(|source| self.odd(source))
    }

    /// The passes of a session; none of a daemon that keeps none.
    ///
    /// # Errors
    /// The session is not known, or no understandable answer came.
    pub fn passes(&self, id: &str) -> Result<Option<PassList>, Error> {
        let list = self.get(&routes::fill(routes::PASSES, &[id]), QUICK);
        Ok(known(list)?.map(|answer: Answer<PassList>| answer.value))
    }

    /// A pass of a session, by its number or `last`; `None` if there is no such.
    ///
    /// # Errors
    /// The session is not known, or no understandable answer came.
    pub fn pass(&self, id: &str, number: &str) -> Result<Option<Answer<Pass>>, Error> {
        known(self.get(&routes::fill(routes::PASS, &[id, number]), QUICK))
    }

    /// What a host's summary should keep of a session.
    ///
    /// # Errors
    /// The session is not known, cannot be read, or no understandable answer came.
    pub fn focus(&self, id: &str) -> Result<Answer<Focus>, Error> {
        self.get(&routes::fill(routes::FOCUS, &[id]), SLOW)
    }

    /// Where a result stands, in one session or in all that are in memory.
    ///
    /// # Errors
    /// The session is not known, or no understandable answer came.
    pub fn recall(&self, id: &str, session: Option<&str>) -> Result<Recall, Error> {
        let query = session.map_or_else(String::new, |session| format!("?session={session}"));
        let route = routes::fill(routes::RECALL, &[id]);
        Ok(self.get(&format!("{route}{query}"), SLOW)?.value)
    }

    /// Lists, sets (`POST`) or takes back (`DELETE`) what is pinned.
    ///
    /// # Errors
    /// The session is not known, the pins cannot be kept, or no understandable answer came.
    pub fn pins(&self, method: &str, id: &str, pin: Option<&Pin>) -> Result<Answer<Pins>, Error> {
        let body = pin.map(serde_json::to_vec).transpose().map_err(std::io::Error::from)?;
        let route = routes::fill(routes::PINS, &[id]);
        let answer = self.ask(method, &route, body.as_deref(), SLOW)?;
        self.parse(answer.body)
    }

    /// Looks whether a session has exactly this id, without reading it.
    ///
    /// # Errors
    /// It has not, or no understandable answer came.
    pub fn knows(&self, id: &str) -> Result<(), Error> {
        if !ids::is_id(id) {
            let message = "that is not a session id".to_owned();
            return Err(Error::Refused { code: ErrorCode::InvalidId, message, hint: None });
        }
        self.pins("GET", id, None).map(|_| ())
    }

    /// The whole id of a session that is named by its id or the beginning of it.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn resolve(&self, wanted: &str) -> Result<String, Error> {
        let known = self.sessions(None, 0)?.value.sessions;
        let ids: Vec<&str> = known.iter().map(|item: &SessionItem| item.id.as_str()).collect();
        Ok(find::resolve(wanted, &ids)?.to_owned())
    }

    fn get<T: DeserializeOwned>(&self, target: &str, limit: Duration) -> Result<Answer<T>, Error> {
        let answer = self.ask("GET", target, None, limit)?;
        self.parse(answer.body)
    }

    fn parse<T: DeserializeOwned>(&self, body: Vec<u8>) -> Result<Answer<T>, Error> {
        let value = serde_json::from_slice(&body).map_err(|source| self.odd(source))?;
        Ok(Answer { body, value })
    }

    /// An answer that has another shape is a newer daemon's, if it says so.
    fn odd(&self, source: serde_json::Error) -> Error {
        self.newer().unwrap_or(Error::Answer { socket: self.socket.clone(), source })
    }

    fn ask(
        &self,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
        limit: Duration,
    ) -> Result<Response, Error> {
        let answer = self.send(method, target, body, limit)?;
        if (200..300).contains(&answer.status) {
            return Ok(answer);
        }
        Err(self.refused(&answer))
    }

    fn send(
        &self,
        method: &str,
        target: &str,
        body: Option<&[u8]>,
        limit: Duration,
    ) -> Result<Response, Error> {
        let (stream, socket) = socket::connect(&self.env)?;
        Ok(http::send(stream, &socket, Request { method, target, body }, limit)?)
    }

    fn refused(&self, answer: &Response) -> Error {
        match serde_json::from_slice::<ErrorBody>(&answer.body) {
            Ok(ErrorBody { error, .. }) => {
                let is_strange = matches!(
                    error.code,
                    ErrorCode::NotFound
                        | ErrorCode::MethodNotAllowed
                        | ErrorCode::InvalidJson
                        | ErrorCode::Other
                );
                // A route that we know and it does not: another version.
                let newer = if is_strange { self.newer() } else { None };
                let hint = error.hint.filter(|hint| !hint.is_empty());
                newer.unwrap_or(Error::Refused { code: error.code, message: error.message, hint })
            }
            Err(source) => self.odd(source),
        }
    }

    /// The error that says so, if the daemon speaks a newer protocol.
    fn newer(&self) -> Option<Error> {
        #[derive(serde::Deserialize)]
        struct Spoken {
            protocol: u32,
        }
        let answer = self.send("GET", routes::STATUS, None, QUICK).ok()?;
        let Spoken { protocol: theirs } = serde_json::from_slice(&answer.body).ok()?;
        let socket = self.socket.clone();
        (theirs > PROTOCOL).then_some(Error::Protocol { socket, theirs, ours: PROTOCOL })
    }
}
