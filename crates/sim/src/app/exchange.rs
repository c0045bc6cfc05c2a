//! One side of an exchange: writes its steps, each after all that precedes it.

use std::sync::Arc;

use units::{Duration, Instant};

use super::reader::PacedReader;
use crate::scenario::{ExchangeSide, ExchangeSpec, ExchangeStep, WINDOW_UPDATE};

/// A side of an exchange.
#[derive(Debug, Clone)]
pub(crate) struct Exchanger {
    spec: Arc<ExchangeSpec>,
    side: ExchangeSide,
    /// Reads slowly.
    reader: Option<PacedReader>,
    /// Step whose bytes, or window updates, arrive next.
    reading: u64,
    /// Bytes of it that were read.
    got: u64,
    /// The peer's first step that has not been read whole.
    peer_step: u64,
    /// Own step that is written now or next.
    writing: u64,
    step: Option<WriteProgress>,
    /// Bytes of window updates not yet accepted by the stack.
    updates: u64,
    /// When the last step ended.
    ended: Instant,
    /// The repetition in progress and its start, at the client.
    started: Option<(u64, Instant)>,
    latencies: Vec<Duration>,
}

/// A step that is being written.
#[derive(Debug, Clone, Copy)]
struct WriteProgress {
    written: u64,
    /// Bytes for which the peer has sent window updates.
    granted: u64,
}

impl Exchanger {
    pub(crate) fn new(spec: &Arc<ExchangeSpec>, side: ExchangeSide) -> Self {
        let mut new = Self {
            spec: spec.clone(),
            side,
            reader: spec.reads[side as usize].map(PacedReader::new),
            reading: 0,
            got: 0,
            peer_step: 0,
            writing: 0,
            step: None,
            updates: 0,
            ended: Instant::ZERO,
            started: None,
            latencies: Vec::new(),
        };
        new.peer_step = new.next_step(0, false);
        new.writing = new.next_step(0, true);
        new
    }

    /// The first step from `index` on that this side (or the peer) writes; `u64::MAX` if there is none.
    fn next_step(&self, index: u64, own: bool) -> u64 {
        // All kinds of steps are within one pass.
        let pass = self.spec.opening.len() as u64 + self.spec.steps.len() as u64;
        let is_wanted = |step: &ExchangeStep| (step.by == self.side) == own;
        let mut steps = (index..=index.saturating_add(pass))
            .map_while(|index| self.spec.step(index).map(|step| (index, step)));
        steps.find(|(_, step)| is_wanted(step)).map_or(u64::MAX, |(index, _)| index)
    }

    /// Called when the connection is established.
    pub(crate) fn begin(&mut self, now: Instant) {
        self.ended = now;
    }

    /// Maximum bytes to read now.
    pub(crate) fn most(&self, now: Instant) -> u64 {
        self.reader.as_ref().map_or(u64::MAX, |reader| reader.most(now))
    }

    /// Called when `bytes` were read.
    pub(crate) fn read(&mut self, now: Instant, mut bytes: u64) {
        if let Some(reader) = &mut self.reader {
            reader.read(now, bytes);
        }
        while bytes > 0 {
            let Some(&step) = self.spec.step(self.reading) else { return };
            let is_own = step.by == self.side;
            let expected = if is_own { step.updates() } else { step.bytes.get() };
            let read = bytes.min(expected - self.got);
            let before = self.got;
            (self.got, bytes) = (self.got + read, bytes - read);
            match step.update_every() {
                Some(every) if is_own => self.grant(before, every),
                Some(every) => self.updates += (self.got / every - before / every) * WINDOW_UPDATE,
                None => {}
            }
            if self.got < expected {
                return;
            }
            self.got = 0;
            if !is_own {
                self.ended = now;
                self.peer_step = self.next_step(self.reading + 1, false);
                self.end_step(self.reading, now);
            }
            self.reading += 1;
        }
    }

    /// Extends the window of the step that is being written by the updates read since `before`.
    fn grant(&mut self, before: u64, every: u64) {
        let updates = self.got / WINDOW_UPDATE - before / WINDOW_UPDATE;
        if let Some(step) = self.step.as_mut().filter(|_| self.reading == self.writing) {
            step.granted += updates * every;
        }
    }

    /// When the next own step is due, if only time is in the way.
    fn due(&self) -> Option<Instant> {
        let step = self.spec.step(self.writing)?;
        let waits = self.step.is_some() || self.peer_step < self.writing;
        (!waits).then(|| self.ended + step.after)
    }

    /// Bytes to offer to the stack now.
    pub(crate) fn offer(&mut self, now: Instant) -> u64 {
        if self.updates > 0 {
            return self.updates;
        }
        if self.due().is_some_and(|due| due <= now) {
            self.step = Some(WriteProgress { written: 0, granted: 0 });
            if let Some((repetition, _)) = self.spec.repetition(self.writing)
                && self.started.is_none_or(|(started, _)| started != repetition)
            {
                self.started = Some((repetition, now));
            }
        }
        let (Some(step), Some(spec)) = (self.step, self.spec.step(self.writing)) else { return 0 };
        let left = spec.bytes.get() - step.written;
        let window = |window: units::Bytes| window.get() + step.granted - step.written;
        spec.window.map_or(left, |size| left.min(window(size)))
    }

    /// Called when the stack has accepted `bytes` of the offer.
    pub(crate) fn taken(&mut self, now: Instant, bytes: u64) {
        if self.updates > 0 {
            self.updates -= bytes;
            return;
        }
        let Some(step) = &mut self.step else { return };
        step.written += bytes;
        if self.spec.step(self.writing).is_some_and(|spec| step.written == spec.bytes.get()) {
            self.step = None;
            self.ended = now;
            let ended = self.writing;
            self.writing = self.next_step(ended + 1, true);
            self.end_step(ended, now);
        }
    }

    /// Notes the end of a repetition.
    fn end_step(&mut self, index: u64, now: Instant) {
        let started = self.started.filter(|_| self.side == ExchangeSide::Client);
        if let (Some((repetition, true)), Some((begun, at))) =
            (self.spec.repetition(index), started)
            && repetition == begun
        {
            self.latencies.push(now.since(at));
        }
    }

    /// Will more bytes arrive, of a step or of window updates?
    fn expects(&self) -> bool {
        // All kinds of steps are within one pass.
        let pass = self.spec.opening.len() as u64 + self.spec.steps.len() as u64;
        let steps = (self.reading..=self.reading.saturating_add(pass))
            .map_while(|index| self.spec.step(index).map(|step| (index, step)));
        steps.into_iter().any(|(index, step)| {
            let bytes = if step.by == self.side { step.updates() } else { step.bytes.get() };
            bytes > if index == self.reading { self.got } else { 0 }
        })
    }

    /// Returns whether it will write no more; `at_end`: all data of the peer has been read.
    pub(crate) fn done(&self, now: Instant, at_end: bool) -> bool {
        let is_written = self.writing == u64::MAX && self.updates == 0;
        match self.side {
            ExchangeSide::Client => is_written && !self.expects(),
            // Without an end of its own, it ends when the client has.
            ExchangeSide::Server => {
                let reads = self.reader.as_ref().is_some_and(|reader| reader.next_read() > now);
                at_end && !reads && self.updates == 0 && self.step.is_none()
            }
        }
    }

    /// Returns when it wants to run without a prior event.
    pub(crate) fn next_act(&self, now: Instant) -> Option<Instant> {
        let read = self.reader.as_ref().map(PacedReader::next_read).filter(|&at| at > now);
        [self.due(), read].into_iter().flatten().min()
    }

    /// Times of the repetitions so far, from the first write of the client to the end of the last step.
    pub(crate) fn latencies(&self) -> &[Duration] {
        &self.latencies
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn step(by: ExchangeSide, bytes: u64, after: u64) -> ExchangeStep {
        let after = Duration::from_millis(after);
        ExchangeStep { by, bytes: Bytes(bytes), after, window: None }
    }

    use ExchangeSide::{Client, Server};

    fn spec(opening: Vec<ExchangeStep>, steps: Vec<ExchangeStep>, count: u64) -> Arc<ExchangeSpec> {
        Arc::new(ExchangeSpec { opening, steps, count, reads: [None; 2] })
    }

    #[test]
    fn each_side_waits_for_what_precedes_its_step_and_then_thinks() {
        let steps = vec![step(Client, 100, 0), step(Server, 1_000, 30), step(Client, 10, 5)];
        let spec = spec(vec![], steps, 1);
        let (mut client, mut server) =
            (Exchanger::new(&spec, Client), Exchanger::new(&spec, Server));
        client.begin(at(1));
        server.begin(at(1));
        assert_eq!((client.offer(at(1)), server.offer(at(1))), (100, 0));
        client.taken(at(1), 100);
        assert_eq!((client.offer(at(2)), client.next_act(at(2))), (0, None));
        server.read(at(3), 99);
        assert_eq!(server.next_act(at(3)), None);
        server.read(at(4), 1);
        assert_eq!((server.offer(at(4)), server.next_act(at(4))), (0, Some(at(34))));
        assert_eq!(server.offer(at(34)), 1_000);
        server.taken(at(34), 1_000);
        client.read(at(40), 1_000);
        assert_eq!((client.offer(at(44)), client.done(at(44), false)), (0, false));
        assert_eq!(client.offer(at(45)), 10);
        client.taken(at(45), 10);
        assert!(client.done(at(45), false));
        assert_eq!(client.latencies(), [Duration::from_millis(44)]);
        assert!(!server.done(at(50), false));
        assert!(server.done(at(50), true));
    }

    #[test]
    fn consecutive_steps_of_a_side_are_writes_of_their_own() {
        let spec =
            spec(vec![step(Client, 7, 0)], vec![step(Client, 100, 0), step(Client, 50, 20)], 2);
        let mut client = Exchanger::new(&spec, Client);
        client.begin(at(0));
        let mut writes = Vec::new();
        for now in [0, 0, 10, 20, 20, 40, 41] {
            let offer = client.offer(at(now));
            client.taken(at(now), offer);
            writes.push(offer);
        }
        assert_eq!(writes, [7, 100, 0, 50, 100, 50, 0]);
        assert!(client.done(at(41), false));
        assert_eq!(client.latencies(), [Duration::from_millis(20); 2]);
    }

    #[test]
    fn a_windowed_step_waits_for_the_reader_to_ask() {
        let windowed = ExchangeStep { window: Some(Bytes(100)), ..step(Server, 260, 0) };
        let spec = spec(vec![], vec![step(Client, 10, 0), windowed, step(Client, 10, 0)], 1);
        assert_eq!(spec.bytes(Client), Bytes(20 + 5 * WINDOW_UPDATE));
        let (mut client, mut server) =
            (Exchanger::new(&spec, Client), Exchanger::new(&spec, Server));
        client.begin(at(0));
        server.begin(at(0));
        assert_eq!(client.offer(at(0)), 10);
        client.taken(at(0), 10);
        server.read(at(1), 10);
        assert_eq!(server.offer(at(1)), 100);
        server.taken(at(1), 100);
        assert_eq!(server.offer(at(1)), 0);
        client.read(at(2), 60);
        assert_eq!(client.offer(at(2)), WINDOW_UPDATE);
        client.taken(at(2), WINDOW_UPDATE);
        server.read(at(3), WINDOW_UPDATE);
        assert_eq!(server.offer(at(3)), 50);
        server.taken(at(3), 50);
        client.read(at(4), 90);
        assert_eq!(client.offer(at(4)), 2 * WINDOW_UPDATE);
        client.taken(at(4), 2 * WINDOW_UPDATE);
        server.read(at(5), 2 * WINDOW_UPDATE);
        assert_eq!(server.offer(at(5)), 100);
        server.taken(at(5), 100);
        client.read(at(6), 100);
        server.read(at(6), 0);
        assert_eq!(server.offer(at(6)), 0);
        client.taken(at(6), 2 * WINDOW_UPDATE);
        server.read(at(7), 2 * WINDOW_UPDATE);
        assert_eq!(server.offer(at(7)), 10);
        server.taken(at(7), 10);
        client.read(at(8), 10);
        assert_eq!(client.offer(at(8)), 10);
        client.taken(at(8), 10);
        assert!(client.done(at(8), false));
        server.read(at(9), 10);
        assert!(server.done(at(9), true));
    }

    #[test]
    fn an_exchange_of_one_side_ends() {
        let spec = spec(vec![], vec![step(Server, 5, 1)], 3);
        let (client, mut server) = (Exchanger::new(&spec, Client), Exchanger::new(&spec, Server));
        assert!(!client.done(at(0), false));
        for round in 1..=3 {
            assert_eq!(server.offer(at(round)), 5);
            server.taken(at(round), 5);
        }
        assert_eq!(server.offer(at(9)), 0);
    }
}
