//! The search space: the numbers and the parts that a world may have.
//!
//! A world is a choice of one level of each dimension. Level 0 is the plain path; shrinking returns
//! dimensions to it. All parts are drawn with the same probability.

/// Where a part belongs in a scenario.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PartPosition {
    /// An element of the route to the receiver, after the bottleneck.
    Forward,
    /// An element that all flows share, at the bottleneck.
    Bottleneck,
    /// The queue discipline of the bottleneck.
    Queue,
    /// The rate of the bottleneck.
    Rate,
    /// An element of the route back.
    Return,
    /// A key of the receiving host.
    Receiver,
    /// The receive offload of the receiving host.
    ReceiverOffload,
    /// A key of the sending host.
    Sender,
    /// The receive offload of the sending host.
    SenderOffload,
    /// The profile of the receiving host.
    ReceiverProfile,
    /// Parts of the path apply to the first flow only.
    FirstFlowOnly,
}

impl PartPosition {
    /// Whether a world has at most one part here.
    pub(crate) const fn is_single(self) -> bool {
        matches!(self, Self::Queue | Self::Rate | Self::ReceiverOffload | Self::SenderOffload)
    }

    /// Whether only TCP has it.
    pub(crate) const fn needs_tcp(self) -> bool {
        matches!(
            self,
            Self::Receiver
                | Self::ReceiverOffload
                | Self::Sender
                | Self::SenderOffload
                | Self::ReceiverProfile
        )
    }
}

/// A part of a path or host, and its levels as text of a scenario. `RATE/N` is that part of the
/// rate of the bottleneck.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Part {
    pub(crate) name: &'static str,
    pub(crate) position: PartPosition,
    pub(crate) levels: &'static [&'static str],
    /// The longest time in milliseconds that each level adds to every round trip; empty: none.
    pub(crate) holds: &'static [f64],
}

const fn part(name: &'static str, position: PartPosition, levels: &'static [&'static str]) -> Part {
    Part { name, position, levels, holds: &[] }
}

const fn holding(part: Part, holds: &'static [f64]) -> Part {
    Part { holds, ..part }
}

use PartPosition::{
    Bottleneck, FirstFlowOnly, Forward, Queue, Rate, Receiver, ReceiverOffload, ReceiverProfile,
    Return, Sender, SenderOffload,
};

/// All parts.
pub(crate) static PARTS: [Part; 32] = [
    part("loss", Forward, &["{ loss = \"0.01%\" }", "{ loss = \"0.1%\" }", "{ loss = \"1%\" }"]),
    part(
        "loss-bursts",
        Forward,
        &[
            "{ loss = { gilbert_elliott = { p = \"0.01%\", r = \"30%\" } } }",
            "{ loss = { gilbert_elliott = { p = \"0.1%\", r = \"30%\" } } }",
            "{ loss = { gilbert_elliott = { p = \"0.3%\", r = \"30%\" } } }",
        ],
    ),
    part(
        "corruption",
        Forward,
        &["{ corrupt = \"0.01%\" }", "{ corrupt = \"0.1%\" }", "{ corrupt = \"1%\" }"],
    ),
    part(
        "duplication",
        Forward,
        &["{ duplicate = \"0.1%\" }", "{ duplicate = \"1%\" }", "{ duplicate = \"10%\" }"],
    ),
    holding(
        part(
            "reversed-groups",
            Forward,
            &[
                "{ reorder = { reverse = 2 } }",
                "{ reorder = { reverse = 4 } }",
                "{ reorder = { reverse = 8 } }",
                "{ reorder = { reverse = 4, gap = \"1ms\" } }",
            ],
        ),
        &[0.5, 0.5, 0.5, 3.5],
    ),
    part(
        "late-packets",
        Forward,
        &[
            "{ reorder = { fraction = \"0.1%\", by = \"5ms\" } }",
            "{ reorder = { fraction = \"1%\", by = \"5ms\" } }",
            "{ reorder = { fraction = \"10%\", by = \"5ms\" } }",
            "{ reorder = { fraction = \"1%\", by = \"50ms\" } }",
        ],
    ),
    part(
        "displaced-packets",
        Forward,
        &[
            "{ reorder = { displace = 3, fraction = \"0.1%\" } }",
            "{ reorder = { displace = 3, fraction = \"1%\" } }",
            "{ reorder = { displace = 10, fraction = \"1%\" } }",
            "{ reorder = { displace = 10, fraction = \"10%\" } }",
        ],
    ),
    part(
        "swapped-packets",
        Forward,
        &[
            "{ reorder = { swap = \"0.1%\" } }",
            "{ reorder = { swap = \"1%\" } }",
            "{ reorder = { swap = \"10%\" } }",
        ],
    ),
    holding(
        part(
            "jitter",
            Forward,
            &["{ jitter = \"1ms\" }", "{ jitter = \"5ms\" }", "{ jitter = \"20ms\" }"],
        ),
        &[1.0, 5.0, 20.0],
    ),
    holding(
        part(
            "slots",
            Forward,
            &[
                "{ slot = { min = \"1ms\" } }",
                "{ slot = { min = \"5ms\" } }",
                "{ slot = { min = \"20ms\" } }",
            ],
        ),
        &[1.0, 5.0, 20.0],
    ),
    part(
        "outage",
        Forward,
        &[
            "{ outage = { from = \"3s\", until = \"3.3s\" } }",
            "{ outage = { from = \"3s\", until = \"5s\" } }",
            "{ outage = { from = \"2s\", until = \"2.1s\", period = \"2s\" } }",
        ],
    ),
    part(
        "held-packets",
        Forward,
        &[
            "{ outage = { from = \"3s\", until = \"3.3s\", hold = true } }",
            "{ outage = { from = \"3s\", until = \"5s\", hold = true } }",
            "{ outage = { from = \"2s\", until = \"2.1s\", period = \"2s\", hold = true } }",
        ],
    ),
    part(
        "policer",
        Bottleneck,
        &[
            "{ policer = { rate = \"RATE/2\", burst = \"150kB\" } }",
            "{ policer = { rate = \"RATE/2\", burst = \"15kB\" } }",
            "{ policer = { rate = \"RATE/5\", burst = \"150kB\" } }",
            "{ policer = { rate = \"RATE/5\", burst = \"15kB\" } }",
        ],
    ),
    part(
        "shaper",
        Bottleneck,
        &[
            "{ shaper = { rate = \"RATE/2\", burst = \"150kB\", buffer = \"100p\" } }",
            "{ shaper = { rate = \"RATE/5\", burst = \"150kB\", buffer = \"100p\" } }",
        ],
    ),
    part("codel", Queue, &["\"codel\""]),
    part("fq-codel", Queue, &["\"fq_codel\""]),
    part("pie", Queue, &["\"pie\""]),
    part("red", Queue, &["\"red\""]),
    part(
        "rate-change",
        Rate,
        &[
            "{ at = [[\"0s\", \"RATE/1\"], [\"5s\", \"RATE/2\"]] }",
            "{ at = [[\"0s\", \"RATE/1\"], [\"5s\", \"RATE/5\"]] }",
            "{ at = [[\"0s\", \"RATE/5\"], [\"5s\", \"RATE/1\"]] }",
            "{ at = [[\"0s\", \"RATE/1\"], [\"1s\", \"RATE/5\"]], period = \"2s\" }",
        ],
    ),
    part("ack-loss", Return, &["{ loss = \"1%\" }", "{ loss = \"10%\" }", "{ loss = \"50%\" }"]),
    holding(
        part(
            "ack-filter",
            Return,
            &[
                "{ thin = { segments = 4, timeout = \"1ms\" } }",
                "{ thin = { segments = 16, timeout = \"5ms\" } }",
                "{ thin = { segments = 64, timeout = \"20ms\" } }",
            ],
        ),
        &[1.0, 5.0, 20.0],
    ),
    holding(
        part(
            "ack-jitter",
            Return,
            &["{ jitter = \"1ms\" }", "{ jitter = \"5ms\" }", "{ jitter = \"20ms\" }"],
        ),
        &[1.0, 5.0, 20.0],
    ),
    holding(
        part(
            "ack-slots",
            Return,
            &[
                "{ slot = { min = \"1ms\" } }",
                "{ slot = { min = \"5ms\" } }",
                "{ slot = { min = \"20ms\" } }",
            ],
        ),
        &[1.0, 5.0, 20.0],
    ),
    holding(
        part(
            "ack-reordering",
            Return,
            &[
                "{ reorder = { swap = \"10%\" } }",
                "{ reorder = { reverse = 4 } }",
                "{ reorder = { fraction = \"10%\", by = \"5ms\" } }",
            ],
        ),
        &[0.0, 0.5, 0.0],
    ),
    part(
        "slow-return-link",
        Return,
        &[
            "{ link = { rate = \"RATE/50\", buffer = \"50p\" } }",
            "{ link = { rate = \"RATE/200\", buffer = \"50p\" } }",
        ],
    ),
    holding(
        part(
            "receiver-merges",
            ReceiverOffload,
            &["true", "{ flush = \"200us\" }", "{ flush = \"1ms\" }", "{ flush = \"5ms\" }"],
        ),
        &[0.0, 0.2, 1.0, 5.0],
    ),
    holding(
        part(
            "receiver-interrupts",
            Receiver,
            &[
                "interrupt_moderation = \"50us\"",
                "interrupt_moderation = \"200us\"",
                "interrupt_moderation = \"1ms\"",
            ],
        ),
        &[0.05, 0.2, 1.0],
    ),
    holding(
        part(
            "receiver-delay",
            Receiver,
            &["delay = \"50us\"", "delay = \"200us\"", "delay = \"1ms\""],
        ),
        &[0.05, 0.2, 1.0],
    ),
    holding(
        part(
            "sender-merges",
            SenderOffload,
            &["true", "{ flush = \"200us\" }", "{ flush = \"1ms\" }", "{ flush = \"5ms\" }"],
        ),
        &[0.0, 0.2, 1.0, 5.0],
    ),
    part("sender-tso", Sender, &["tso = true"]),
    part("other-receiver", ReceiverProfile, &["linux-6.18", "freebsd-main"]),
    part("first-flow-only", FirstFlowOnly, &[""]),
];

/// A number of a path or of its traffic.
#[derive(Debug)]
pub(crate) struct Number {
    pub(crate) name: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) values: &'static [f64],
}

const fn number(name: &'static str, unit: &'static str, values: &'static [f64]) -> Number {
    Number { name, unit, values }
}

/// Index of a number in [`NUMBERS`].
pub(crate) const RATE: usize = 0;
pub(crate) const RTT: usize = 1;
pub(crate) const BUFFER: usize = 2;
pub(crate) const FLOWS: usize = 3;
pub(crate) const GAP: usize = 4;
pub(crate) const RATIO: usize = 5;
pub(crate) const TRANSFER: usize = 6;
pub(crate) const PAUSE: usize = 7;

/// All numbers. A transfer of 0 MB has no end.
pub(crate) static NUMBERS: [Number; 8] = [
    number(
        "rate",
        "Mbit/s",
        &[
            1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1_000.0, 2_000.0, 5_000.0,
            10_000.0,
        ],
    ),
    number("round-trip", "ms", &[1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 100.0, 200.0, 300.0]),
    number("buffer", "BDP", &[0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0]),
    number("flows", "", &[1.0, 2.0, 3.0, 4.0, 8.0]),
    number("start-gap", "s", &[0.0, 0.1, 0.5, 1.0]),
    number("round-trip-ratio", "", &[1.0, 2.0, 5.0, 10.0]),
    number("transfer", "MB", &[0.0, 0.1, 1.0, 10.0, 100.0]),
    number("pause", "ms", &[0.0, 100.0, 1_000.0]),
];

/// The part of the space that is searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SpaceLimits {
    /// Index of the least and the largest value of each number.
    pub(crate) numbers: [(usize, usize); NUMBERS.len()],
    /// Index of the value of the plain path.
    pub(crate) plain: [usize; NUMBERS.len()],
    /// Parts that are drawn.
    pub(crate) parts: [bool; PARTS.len()],
}

impl SpaceLimits {
    /// Transfers of 0.1 to 100 MB at any rate; the plain path has 100 Mbit/s, 40 ms and a buffer of
    /// two bandwidth-delay products.
    pub(crate) fn transfers() -> Self {
        let mut numbers = NUMBERS.each_ref().map(|number| (0, number.values.len() - 1));
        numbers[TRANSFER].0 = 1;
        Self { numbers, plain: [6, 5, 4, 0, 0, 0, 3, 0], parts: [true; PARTS.len()] }
    }

    /// Flows without end, of at least this number, at up to 200 Mbit/s; the plain path has 20 Mbit/s
    /// and two flows, since queues and shares are a matter of several.
    pub(crate) fn endless(least_flows: usize) -> Self {
        let mut limits = Self::transfers();
        limits.numbers[RATE].1 = 7;
        limits.numbers[FLOWS].0 = least_flows - 1;
        limits.numbers[TRANSFER] = (0, 0);
        limits.numbers[PAUSE] = (0, 0);
        limits.plain = [4, 5, 4, 1, 0, 0, 0, 0];
        limits
    }
}

/// The names of all numbers and parts.
pub fn dimension_names() -> impl Iterator<Item = &'static str> {
    NUMBERS.iter().map(|number| number.name).chain(PARTS.iter().map(|part| part.name))
}

/// The search space as text: each number and part with its levels.
pub(crate) fn describe(limits: &SpaceLimits) -> String {
    let mut text = String::from("numbers (the plain path)\n");
    for (index, number) in NUMBERS.iter().enumerate() {
        let (least, most) = limits.numbers[index];
        let values: Vec<String> =
            number.values[least..=most].iter().map(ToString::to_string).collect();
        let plain = number.values[limits.plain[index]];
        let unit = if number.unit.is_empty() { String::new() } else { format!(" {}", number.unit) };
        text += &format!("  {:<20} {}{unit} ({plain})\n", number.name, values.join(", "));
    }
    text += "parts\n";
    for (part, _) in PARTS.iter().zip(&limits.parts).filter(|(_, searched)| **searched) {
        let mut name = part.name;
        for level in part.levels {
            text += format!("  {name:<20} {level}").trim_end();
            text.push('\n');
            name = "";
        }
    }
    text
}
