//! A draft as a scenario file, and what a sweep changes in it.

use net::choice::Only;
use scenario::document::{
    Choice, ElementTable, FlowTable, HostTable, LinkTable, PathTable, ScenarioFile, Setting,
    SweepTable, Volume, given, named, tables,
};
use scenario::units_text::Room;
use units::{Duration, Rate, Ratio};

use super::mapping::{CLIENT, Draft, SERVER, Stack, Unmapped};

/// How long a run lasts whose file does not say it.
const DURATION: Duration = Duration::from_secs(11);
/// When the application of INET's example begins.
const START: Duration = Duration::from_secs(2);
/// Rate of a line whose file does not say it.
const RATE: Rate = Rate::from_bits_per_second(100_000_000_000).unwrap();
/// Of a side that loses packets in other combinations.
const NO_LOSS: Ratio = Ratio::new(0, 1).unwrap();
const HOSTS: [&str; 2] = ["client", "server"];

/// What may change from one combination of values to another: a key as for `--set`, and a value.
pub(super) type Change = (String, Setting);

/// Which sides lose packets in any combination, so that the element is there in all.
pub(super) type Lossy = [bool; 2];

/// Values that go together, key by key: an axis of `[sweep.axes]`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AxisChanges {
    pub(super) keys: Vec<String>,
    /// For each value of the sweep one value of each key.
    pub(super) values: Vec<Vec<Setting>>,
}

impl Draft {
    /// All that a combination of values may change, always the same keys in the same order.
    pub(super) fn settings(&self, lossy: Lossy) -> Vec<Change> {
        let mut settings = Vec::new();
        let mut set = |key: String, value: Setting| settings.push((key, value));
        if let Some(seed) = self.seed {
            set("seed".to_owned(), seed.into());
        }
        set("duration".to_owned(), self.duration().into());
        for (side, host) in self.sides.iter().zip(HOSTS) {
            if let Some(mtu) = self.mtu {
                set(format!("host.{host}.mtu"), mtu.into());
            }
            for (knob, value) in &side.knobs {
                set(format!("host.{host}.knobs.{knob}"), value.clone());
            }
        }
        for (side, direction) in ["forward", "return"].into_iter().enumerate() {
            let first = usize::from(lossy[side]);
            if lossy[side] {
                set(format!("path.0.{direction}.0.loss"), self.loss(side).setting());
            }
            set(format!("path.0.{direction}.{first}.link.rate"), self.rate().into());
            let delay = self.delay.unwrap_or_default();
            set(format!("path.0.{direction}.{}.delay", first + 1), delay.into());
        }
        settings
    }

    pub(super) fn lossy(&self) -> Lossy {
        [CLIENT, SERVER].map(|side| self.sides[side].loss().is_some())
    }

    /// When the application begins: as in INET's example, unless the run is over by then.
    fn start(&self) -> Duration {
        if self.duration() > START { START } else { Duration::ZERO }
    }

    fn duration(&self) -> Duration {
        self.duration.unwrap_or(DURATION)
    }

    fn loss(&self, side: usize) -> Choice {
        self.sides[side].loss().unwrap_or(Choice::Share(NO_LOSS))
    }

    fn rate(&self) -> Rate {
        self.rate.unwrap_or(RATE)
    }

    /// The elements of one direction. A TCP's handshake is spared: INET's QUIC of February 2025 has
    /// none.
    fn elements(&self, side: usize, lossy: Lossy, stack: Stack) -> Vec<ElementTable> {
        let loss = lossy[side].then(|| ElementTable {
            loss: given(self.loss(side)),
            only: (stack == Stack::Tcp).then(|| Only::Data.into()),
            ..ElementTable::default()
        });
        let link = LinkTable {
            rate: given(self.rate()),
            buffer: given(Room::Packets(200)),
            ..LinkTable::default()
        };
        let link = ElementTable { link: given(link), ..ElementTable::default() };
        let delay = given(self.delay.unwrap_or_default());
        let delay = ElementTable { delay, ..ElementTable::default() };
        loss.into_iter().chain([link, delay]).collect()
    }

    fn host(&self, side: usize, profile: &str, stack: Stack) -> HostTable {
        let profile = if stack == Stack::Tcp && side == SERVER { "freebsd-14.3" } else { profile };
        let cc = if profile.starts_with("linux") { "reno" } else { "newreno" };
        let knobs = &self.sides[side].knobs;
        HostTable {
            profile: given(profile),
            cc: given(cc),
            mtu: self.mtu.and_then(given),
            knobs: (!knobs.is_empty()).then_some(knobs.clone()).and_then(named),
            ..HostTable::default()
        }
    }

    /// The scenario file; `head` are lines of its comment.
    pub(super) fn file(
        &self,
        head: Vec<String>,
        title: &str,
        (profile, stack): (&str, Stack),
        lossy: Lossy,
        axes: Vec<AxisChanges>,
    ) -> ScenarioFile {
        let path = PathTable {
            from: given(HOSTS[CLIENT]),
            to: given(HOSTS[SERVER]),
            forward: tables(self.elements(CLIENT, lossy, stack)),
            return_: tables(self.elements(SERVER, lossy, stack)),
            ..PathTable::default()
        };
        let flow = FlowTable {
            name: given("stream"),
            from: given(HOSTS[CLIENT]),
            to: given(HOSTS[SERVER]),
            start: given(self.start()),
            bulk: given(Volume::Unlimited),
            ..FlowTable::default()
        };
        let is_sweep = self.repeat.is_some() || !axes.is_empty();
        let axes = (!axes.is_empty()).then_some(axes.into_iter().map(AxisChanges::entry));
        let sweep = SweepTable {
            axes: axes.and_then(named),
            repeat: self.repeat.and_then(given),
            ..SweepTable::default()
        };
        let host = |side: usize| (HOSTS[side], self.host(side, profile, stack));
        ScenarioFile {
            comment: head,
            title: given(title),
            seed: self.seed.and_then(given),
            duration: given(self.duration()),
            host: named([CLIENT, SERVER].map(host)),
            path: tables([path]),
            flow: tables([flow]),
            sweep: is_sweep.then_some(sweep).and_then(given),
            ..ScenarioFile::default()
        }
    }
}

impl AxisChanges {
    /// The key and the values of `[sweep.axes]`.
    fn entry(self) -> (String, Setting) {
        let values = self.values.into_iter().map(|mut values| match values.len() {
            1 => values.remove(0),
            _ => Setting::from(values),
        });
        (self.keys.join(", "), Setting::from(values.collect::<Vec<_>>()))
    }
}

/// Lines of the comment that say what is not in the scenario.
pub(super) fn left_out(unmapped: &[Unmapped]) -> Vec<String> {
    let mut lines = Vec::new();
    if !unmapped.is_empty() {
        lines.push("Not in here:".to_owned());
    }
    lines.extend(unmapped.iter().map(|one| format!("  line {}: {}", one.line, one.key)));
    lines
}

/// Lines of the comment that say what the file does not, and what is taken instead.
pub(super) fn supposed(draft: &Draft) -> Vec<String> {
    let mut lines = Vec::new();
    let mut suppose = |given: bool, what: String| {
        if !given {
            lines.push(format!("Not in the file: {what}"));
        }
    };
    suppose(draft.duration.is_some(), format!("sim-time-limit, {DURATION} is taken"));
    suppose(draft.delay.is_some(), "linkDelay, none is taken".to_owned());
    suppose(draft.rate.is_some(), "linkDatarate, 100 Gbit/s is taken".to_owned());
    suppose(draft.mtu.is_some(), "mtu, the profile's is taken".to_owned());
    let start = draft.start();
    suppose(false, format!("when the application begins, {start} is taken as in INET's example"));
    lines
}
