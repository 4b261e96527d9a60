//! What came to a scripted API, and what it will still say.

use std::fmt::Debug;
use std::sync::Arc;

use super::super::wait::PATIENCE;
use super::watched::Watched;

/// What a request takes from a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Takes {
    /// A step, or the default.
    Step,
    /// A step that is for a summary, or the script's summary.
    Summary,
    /// Nothing.
    Nothing,
}

/// A request of a host.
pub trait Asked: Debug + Sized {
    type Kind: Copy + PartialEq;

    fn kind(&self) -> Self::Kind;
    fn takes(&self) -> Takes;
    /// Sets its place among all, from 0.
    fn place(&mut self, at: usize);
    /// All requests, for the message of a failure.
    fn outlines(requests: &[Arc<Self>]) -> String;
}

/// A step of a script.
pub trait Fits<R>: Clone {
    fn fits(&self, request: &R) -> bool;
}

#[derive(Debug)]
struct Book<R, S> {
    steps: Vec<S>,
    summary: S,
    default: S,
    requests: Vec<Arc<R>>,
}

/// The requests of an API and its script; it may be cloned.
#[derive(Debug)]
pub struct Recorder<R, S> {
    book: Arc<Watched<Book<R, S>>>,
    url: Arc<str>,
}

impl<R, S> Clone for Recorder<R, S> {
    fn clone(&self) -> Self {
        Self { book: Arc::clone(&self.book), url: Arc::clone(&self.url) }
    }
}

impl<R: Asked, S: Fits<R>> Recorder<R, S> {
    pub(super) fn new(url: &str, steps: Vec<S>, summary: S, default: S) -> Self {
        let book = Book { steps, summary, default, requests: Vec::new() };
        Self { book: Arc::new(Watched::new(book)), url: url.into() }
    }

    /// Where the API is, without a path.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Adds steps to the end of the script.
    pub fn script(&self, steps: impl IntoIterator<Item = S>) {
        self.book.with(|book| book.steps.extend(steps));
    }

    /// What every request for a summary gets that no step is for.
    pub fn summary(&self, step: S) {
        self.book.with(|book| book.summary = step);
    }

    /// What a request gets that no step is for.
    pub fn default(&self, step: S) {
        self.book.with(|book| book.default = step);
    }

    /// How many steps nobody took yet.
    #[must_use]
    pub fn left(&self) -> usize {
        self.book.with(|book| book.steps.len())
    }

    /// All requests so far, in the order in which they came.
    #[must_use]
    pub fn requests(&self) -> Vec<Arc<R>> {
        self.book.with(|book| book.requests.clone())
    }

    /// Those of a kind.
    #[must_use]
    pub fn of_kind(&self, kind: R::Kind) -> Vec<Arc<R>> {
        self.requests().into_iter().filter(|request| request.kind() == kind).collect()
    }

    /// Waits until the requests are as wanted.
    ///
    /// # Panics
    /// They are not in time; an outline of all is told.
    #[track_caller]
    pub fn wait_until<T>(&self, what: &str, mut look: impl FnMut(&[Arc<R>]) -> Option<T>) -> T {
        let found = self.book.wait(PATIENCE, |book| look(&book.requests));
        found.unwrap_or_else(|| panic!("not in time: {what}\n{}", R::outlines(&self.requests())))
    }

    /// Waits until there are this many requests, and gives the newest of them.
    #[track_caller]
    pub fn wait_for_requests(&self, count: usize) -> Arc<R> {
        let what = format!("{count} requests");
        self.wait_until(&what, |requests| {
            let last = count.checked_sub(1)?;
            requests.get(last).map(Arc::clone)
        })
    }

    /// Keeps a request, and gives the step that it takes.
    pub(super) fn note(&self, mut request: R) -> (Arc<R>, Option<S>) {
        self.book.with(|book| {
            request.place(book.requests.len());
            let takes = request.takes();
            let step = (takes != Takes::Nothing).then(|| {
                match book.steps.iter().position(|step| step.fits(&request)) {
                    Some(at) => book.steps.remove(at),
                    None if takes == Takes::Summary => book.summary.clone(),
                    None => book.default.clone(),
                }
            });
            let request = Arc::new(request);
            book.requests.push(Arc::clone(&request));
            (request, step)
        })
    }
}
