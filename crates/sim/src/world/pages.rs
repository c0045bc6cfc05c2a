//! Web pages: a document, then its objects over the connections of the page.
//!
//! An object is fetched over the connection with the fewest outstanding requests, the first of
//! several, up to [`PageSpec::streams`]. Connections other than the first are opened when the first
//! document has arrived, and stay open for the pages that follow.

use std::sync::Arc;

use units::{Duration, Instant, RandomStream};

use super::{CLIENT, SERVER, SimEvent, Simulation, end_of};
use crate::app::{Application, Fetcher};
use crate::observer::Observer;
use crate::scenario::{App, FlowSpec, PageSpec};

/// The pages that one client loads.
#[derive(Debug)]
pub(crate) struct PageLoads {
    spec: Arc<PageSpec>,
    /// Flow of the first connection.
    first: usize,
    /// Pages that have not begun; `None` for unlimited.
    left: Option<u64>,
    draws: RandomStream,
    phase: Phase,
    /// Objects of the present page not yet requested.
    waiting: u32,
    /// Responses of the present page that have not arrived.
    outstanding: u32,
    /// When the present page began.
    began: Instant,
    /// The other connections are opened.
    has_opened: bool,
    times: Vec<Duration>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// The next page begins at its time.
    Idle,
    Document,
    Objects,
    Over,
}

impl PageLoads {
    /// The load times of the pages.
    pub(crate) fn times(&self) -> &[Duration] {
        &self.times
    }
}

impl<O: Observer> Simulation<'_, O> {
    /// Adds the web page of a flow, if it has one and this is its first connection. Returns whether
    /// the connection is opened later.
    pub(super) fn add_page(&mut self, index: usize, flow: &FlowSpec) -> bool {
        let App::Page { page: spec, connection } = &flow.app else { return false };
        if *connection > 0 {
            return true;
        }
        self.pages.push(PageLoads {
            spec: spec.clone(),
            first: index,
            left: spec.count,
            draws: RandomStream::named(
                self.scenario.seed,
                &format!("flow {}", flow.name),
                "object",
            ),
            phase: Phase::Idle,
            waiting: 0,
            outstanding: 0,
            began: Instant::ZERO + flow.start,
            has_opened: false,
            times: Vec::new(),
        });
        false
    }

    /// Makes the requests of a client that are due.
    #[cold]
    pub(super) fn fetch(&mut self, index: usize) {
        let now = self.network.now;
        match &mut self.ends[index].app {
            Application::Player(player) => {
                if let Some(size) = player.ask(now) {
                    self.ends[index ^ 1].app.expect(size);
                }
            }
            Application::Fetcher(fetcher) => {
                let (page, complete) = (fetcher.page as usize, fetcher.take_complete());
                self.pages[page].outstanding -= complete;
                self.advance_page(page, index);
            }
            _ => {}
        }
    }

    /// The page at this client: its state, and its requests.
    fn advance_page(&mut self, page: usize, acting: usize) {
        let now = self.network.now;
        loop {
            let load = &mut self.pages[page];
            let is_complete = load.waiting == 0 && load.outstanding == 0;
            let first = load.first;
            match load.phase {
                Phase::Idle => {
                    let is_first = load.times.is_empty();
                    let fetcher = fetcher(&mut self.ends[end_of(first, CLIENT)].app);
                    let Some(fetcher) = fetcher.filter(|it| it.is_connected(now)) else { return };
                    if fetcher.next_act().is_some_and(|due| due > now) {
                        return;
                    }
                    fetcher.wait(None);
                    if load.left == Some(0) {
                        return self.end_page(page, acting);
                    }
                    load.left = load.left.map(|left| left - 1);
                    if !is_first {
                        load.began = now;
                    }
                    load.phase = Phase::Document;
                    load.outstanding = 1;
                    let size = load.spec.html.get().max(1);
                    self.ask(end_of(first, CLIENT), size, acting);
                    return;
                }
                Phase::Document if is_complete => {
                    load.phase = Phase::Objects;
                    load.waiting = load.spec.objects;
                    let connections = load.spec.connections as usize;
                    if !core::mem::replace(&mut load.has_opened, true) {
                        for flow in first + 1..first + connections {
                            self.flows[flow].started = now;
                            self.network.calendar.push(now, SimEvent::Start(flow as u32));
                        }
                    }
                }
                Phase::Objects if is_complete => {
                    load.times.push(now.since(load.began));
                    load.phase = Phase::Idle;
                    if load.left == Some(0) {
                        return self.end_page(page, acting);
                    }
                    let due = now + load.spec.think;
                    if let Some(fetcher) = fetcher(&mut self.ends[end_of(first, CLIENT)].app) {
                        fetcher.wait(Some(due));
                    }
                    if due > now {
                        if acting != end_of(first, CLIENT) {
                            self.schedule_app(end_of(first, CLIENT), due);
                        }
                        return;
                    }
                }
                Phase::Objects if load.waiting > 0 => {
                    let Some(free) = self.free_connection(page) else { return };
                    let load = &mut self.pages[page];
                    let number = (load.spec.objects - load.waiting) as usize;
                    let size = load.spec.sizes.draw(number, &mut load.draws);
                    load.waiting -= 1;
                    load.outstanding += 1;
                    self.ask(free, size, acting);
                }
                Phase::Document | Phase::Objects | Phase::Over => return,
            }
        }
    }

    /// The client that fetches the next object; `None` if all connections are in use.
    fn free_connection(&mut self, page: usize) -> Option<usize> {
        let now = self.network.now;
        let load = &self.pages[page];
        let (first, spec) = (load.first, load.spec.clone());
        let flows = first..first + spec.connections as usize;
        let free = flows.filter_map(|flow| {
            let index = end_of(flow, CLIENT);
            let fetcher = fetcher(&mut self.ends[index].app)?;
            let outstanding = fetcher.outstanding();
            let is_free = fetcher.is_connected(now) && outstanding < spec.streams.max(1) as usize;
            is_free.then_some((outstanding, index))
        });
        free.min().map(|(_, index)| index)
    }

    /// Makes a request at the client `index`; the `acting` one writes it anyway.
    fn ask(&mut self, index: usize, size: u64, acting: usize) {
        if let Some(fetcher) = fetcher(&mut self.ends[index].app) {
            fetcher.ask(size);
        }
        self.ends[index ^ SERVER].app.expect(size);
        if index != acting {
            self.schedule_app(index, self.network.now);
        }
    }

    /// Closes the connections of a page.
    fn end_page(&mut self, page: usize, acting: usize) {
        let now = self.network.now;
        let load = &mut self.pages[page];
        load.phase = Phase::Over;
        let (first, has_opened) = (load.first, load.has_opened);
        let connections = load.spec.connections as usize;
        for flow in first..first + connections {
            let index = end_of(flow, CLIENT);
            if flow > first && !has_opened {
                let ends = [CLIENT, SERVER].map(|side| end_of(flow, side));
                ends.into_iter().for_each(|end| self.ends[end].closed = true);
                self.open -= 1;
                continue;
            }
            if let Some(fetcher) = fetcher(&mut self.ends[index].app) {
                fetcher.end();
                if fetcher.is_connected(now) && index != acting {
                    self.schedule_app(index, now);
                }
            }
        }
    }

    /// Ends the page of a connection that was aborted.
    #[cold]
    pub(super) fn abandon_page(&mut self, flow: usize) {
        let Application::Fetcher(fetcher) = &self.ends[end_of(flow, CLIENT)].app else { return };
        let page = fetcher.page as usize;
        if self.pages[page].phase != Phase::Over {
            self.end_page(page, end_of(flow, CLIENT));
        }
    }
}

/// The application of one end, if it fetches a page.
fn fetcher(app: &mut Application) -> Option<&mut Fetcher> {
    match app {
        Application::Fetcher(fetcher) => Some(fetcher),
        _ => None,
    }
}
