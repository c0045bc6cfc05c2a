//! Paths for transfers.

use std::fmt::Write as _;

use units::RandomStream;

/// What happens to packets besides the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    None,
    Periodic,
    Random,
    Burst,
    Reordering,
    Policer,
    Marks,
}

impl Trouble {
    pub(super) const ALL: [Self; 7] = [
        Self::None,
        Self::Periodic,
        Self::Random,
        Self::Burst,
        Self::Reordering,
        Self::Policer,
        Self::Marks,
    ];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::None => "queue only",
            Self::Periodic => "periodic loss",
            Self::Random => "random loss",
            Self::Burst => "burst loss",
            Self::Reordering => "reordering",
            Self::Policer => "policer",
            Self::Marks => "ECN marks",
        }
    }
}

/// A path and a transfer over it.
#[derive(Debug, Clone)]
pub(super) struct DrawnPath {
    pub(super) number: u64,
    seed: u64,
    pub(super) trouble: Trouble,
    pub(super) kbit: u64,
    pub(super) round_trip_us: u64,
    pub(super) buffer: u64,
    pub(super) bytes: u64,
    /// The element of the trouble, and words for it.
    element: String,
    queue: &'static str,
    pub(super) detail: String,
}

/// A value between two bounds, uniform by its logarithm in steps of 1/8 of an octave or less.
fn between(draws: &mut RandomStream, least: u64, most: u64) -> u64 {
    let mut octaves = 0;
    while least << (octaves + 1) <= most {
        octaves += 1;
    }
    let low = least << draws.below(octaves + 1);
    (low + draws.below(low)).min(most)
}

impl DrawnPath {
    /// Path number `number` of a seed. The kinds of trouble take turns.
    pub(super) fn draw(seed: u64, number: u64) -> Self {
        let mut draws = RandomStream::named(seed, &format!("path {number}"), "stacks");
        let trouble = Trouble::ALL[(number % Trouble::ALL.len() as u64) as usize];
        let kbit = between(&mut draws, 2_000, 100_000);
        let round_trip_us = between(&mut draws, 4_000, 150_000);
        let product = kbit * round_trip_us / 8_000;
        // A quarter of a bandwidth-delay product to four of them.
        let buffer = (product * between(&mut draws, 256, 4_096) / 1_024).max(20_000);
        // About three seconds of the line.
        let bytes = (kbit * 1_000 / 8 * 3).clamp(1_000_000, 12_000_000);
        let mut detail = String::new();
        let mut queue = "";
        // Hundredths of a percent.
        let mut share = |draws: &mut RandomStream, least, most| {
            let share = between(draws, least, most);
            detail = format!("{}.{:02} %", share / 100, share % 100);
            format!("\"{}.{:02}%\"", share / 100, share % 100)
        };
        let element = match trouble {
            Trouble::None => String::new(),
            Trouble::Periodic => {
                let pass = between(&mut draws, 50, 2_000);
                detail = format!("1 in {}", pass + 1);
                format!("{{ loss = {{ pass = {pass} }} }}, ")
            }
            Trouble::Random => format!("{{ loss = {} }}, ", share(&mut draws, 5, 200)),
            Trouble::Burst => {
                let enter = share(&mut draws, 2, 40);
                format!("{{ loss = {{ gilbert_elliott = {{ p = {enter}, r = \"30%\" }} }} }}, ")
            }
            Trouble::Reordering => {
                let fraction = share(&mut draws, 10, 200);
                let by = between(&mut draws, 1_000, round_trip_us / 2 + 1_000);
                detail = format!("{detail} by {:.1} ms", by as f64 / 1e3);
                format!("{{ reorder = {{ fraction = {fraction}, by = \"{by}us\" }} }}, ")
            }
            Trouble::Policer => {
                let rate = kbit * (50 + draws.below(40)) / 100;
                let burst = (product / 2).max(30_000);
                detail = format!("{:.1} Mbit/s", rate as f64 / 1e3);
                format!("{{ policer = {{ rate = \"{rate}kbit/s\", burst = \"{burst}B\" }} }}, ")
            }
            Trouble::Marks => {
                queue = ", queue = { codel = { ecn = true } }";
                detail = "codel".to_owned();
                String::new()
            }
        };
        Self { number, seed, trouble, kbit, round_trip_us, buffer, bytes, element, queue, detail }
    }

    /// The scenario, with hosts of this profile, or of this stack.
    pub(super) fn scenario(&self, profile: &str, stack: Option<&str>) -> String {
        let Self { seed, number, kbit, buffer, bytes, element, queue, .. } = self;
        let half = self.round_trip_us / 2;
        let mut text =
            format!("title = \"path {number}\"\nseed = {}\nduration = \"120s\"\n", seed + number);
        for host in ["client", "server"] {
            // Writing to a string cannot fail.
            let _ = write!(text, "\n[host.{host}]\nprofile = \"{profile}\"\n");
            if let Some(stack) = stack {
                let _ = writeln!(text, "stack = \"{stack}\"");
            }
        }
        let _ = write!(
            text,
            "\n[[path]]\nfrom = \"client\"\nto = \"server\"\nforward = [\n    {element}\n    {{ link = {{ rate = \"{kbit}kbit/s\", \
             buffer = \"{buffer}B\"{queue} }} }},\n    {{ delay = \"{half}us\" }},\n]\nreturn = [{{ delay = \"{half}us\" }}]\n\n\
             [[flow]]\nname = \"up\"\nfrom = \"client\"\nto = \"server\"\nbulk = \"{bytes}B\"\n"
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use scenario::{Overrides, load};

    #[test]
    fn every_drawn_path_is_a_scenario() {
        for number in 0..70 {
            let path = DrawnPath::draw(3, number);
            let text = path.scenario("quic-go-0.61", None);
            let loaded = load(&text, "path", &Overrides::default());
            assert!(loaded.is_ok(), "{text}\n{:?}", loaded.err());
        }
    }
}
