//! `video` of a flow: a player that fetches chunks in one of several bit rates.

use std::sync::Arc;

use serde_json::{Value as Json, json};
use sim::scenario::{App, BitrateRule, VideoSpec};
use toml_edit::Array;
use units::{Bytes, Duration, Rate};

use super::keys::{Key, KeyCodec, KeyType, Located, ScenarioReader};
use super::kinds::{DurationType, EnumType, RateType, SizeType};
use super::source::SpannedError;
use super::table::table;
use super::tree::TomlNode;
use crate::units_text::MAX_SIZE;

/// Maximum number of bit rates of a ladder.
const MOST_RATES: usize = 64;
/// Bounds of playing times: a chunk has at least one frame of 1 ms, a film at most a day.
const PLAYING: DurationType = DurationType { least: Duration::from_millis(1), default_unit: "s" };
const DAY: Duration = Duration::from_secs(86_400);

static LADDER: Key<LadderType> =
    Key::required("ladder", LadderType, "bit rates of the encodings, in ascending order");
static CHUNK: Key<DurationType> =
    Key::optional("chunk", PLAYING, "4s", "playing time of a chunk, fetched by one request");
static LENGTH: Key<DurationType> = Key::optional(
    "length",
    PLAYING,
    "until the run ends",
    "playing time of the video, rounded up to whole chunks",
);
static BUFFER: Key<DurationType> = Key::optional(
    "buffer",
    PLAYING,
    "30s",
    "playing time that the player buffers at most: it makes no request while there is no room for a \
     chunk",
);
static STARTUP: Key<DurationType> = Key::optional(
    "startup",
    PLAYING,
    "one chunk",
    "buffered playing time at which playback begins; after a stall it continues with the next chunk",
);
static RULE: Key<EnumType<PlayerRule>> = Key::optional(
    "rule",
    EnumType { names: &[("throughput", PlayerRule::Throughput), ("buffer", PlayerRule::Buffer)] },
    "\"throughput\"",
    "selects the bit rate of a chunk: `throughput` the highest below the harmonic mean of the \
     throughput of the last five chunks, `buffer` a function of the buffered playing time (BBA-0)",
);
static RESERVOIR: Key<DurationType> = Key::optional(
    "reservoir",
    PLAYING,
    "3/8 of `buffer`",
    "with `rule = \"buffer\"`: buffered playing time up to which the bit rate is the lowest",
);
static CUSHION: Key<DurationType> = Key::optional(
    "cushion",
    PLAYING,
    "up to 9/10 of `buffer`",
    "with `rule = \"buffer\"`: playing time above the reservoir at which the bit rate is the highest",
);
static REQUEST: Key<SizeType> = Key::optional(
    "request",
    SizeType { least: Bytes(1), most: MAX_SIZE },
    "300B",
    "bytes of a request",
);

table! {
    /// A video player.
    pub VideoTable: VIDEO_SECTION = "`video`" {
        ladder: Vec<Located<Rate>> = LADDER,
        chunk: Duration = CHUNK,
        length: Duration = LENGTH,
        buffer: Duration = BUFFER,
        startup: Duration = STARTUP,
        rule: PlayerRule = RULE,
        reservoir: Duration = RESERVOIR,
        cushion: Duration = CUSHION,
        request: Bytes = REQUEST,
    }
    elsewhere: |key| match key {
        "rates" | "bitrates" | "levels" => Some("the bit rates are called `ladder`"),
        "segment" => Some("the playing time of a segment is called `chunk`"),
        "duration" | "count" => Some("the playing time of the video is called `length`"),
        "abr" | "algorithm" => Some("write rule = \"throughput\" or rule = \"buffer\""),
        _ => None,
    },
}

/// The rule of a player, without its values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlayerRule {
    /// By the throughput of past chunks.
    Throughput,
    /// By the buffered playing time.
    Buffer,
}

/// A list of rates in ascending order.
struct LadderType;

impl KeyType for LadderType {
    fn schema(&self) -> Json {
        json!({
            "type": "array",
            "items": RateType.schema(),
            "minItems": 1,
            "maxItems": MOST_RATES,
        })
    }

    fn type_name(&self) -> String {
        "list of rates".into()
    }
}

impl KeyCodec for LadderType {
    type Value = Vec<Located<Rate>>;

    fn read(&self, key: &str, node: &TomlNode, reader: &mut ScenarioReader) -> Option<Self::Value> {
        let items = reader.list(key, node)?;
        if items.is_empty() {
            reader.report(SpannedError::new(node.span, format!("`{key}` is empty")));
            return None;
        }
        if items.len() > MOST_RATES {
            let fault = SpannedError::new(node.span, format!("`{key}` has too many rates"));
            let found = items.len().to_string();
            reader.report(fault.expected(format!("at most {MOST_RATES}")).found(found));
            return None;
        }
        let rates: Vec<Option<Located<Rate>>> = items
            .iter()
            .map(|item| {
                let value = RateType.read(key, item, reader)?;
                Some(Located { value, span: item.span })
            })
            .collect();
        let rates = rates.into_iter().collect::<Option<Vec<_>>>()?;
        let falls = |pair: &&[Located<Rate>]| pair[1].value <= pair[0].value;
        if let Some(pair) = rates.windows(2).find(falls) {
            let message = "this bit rate is not above the one before";
            let fault = SpannedError::new(pair[1].span, message);
            reader.report(fault.expected("rates in ascending order"));
            return None;
        }
        Some(rates)
    }

    fn write(&self, value: &Self::Value) -> toml_edit::Value {
        value.iter().map(|rate| RateType.write(&rate.value)).collect::<Array>().into()
    }
}

impl VideoTable {
    /// Builds the application; reports playing times that do not fit. `None` if a key is missing.
    pub(super) fn app(&self, reader: &mut ScenarioReader) -> Option<App> {
        let or = |given: Option<Located<Duration>>, usual: Duration| {
            given.map_or(usual, |given| given.value)
        };
        let chunk = or(self.chunk, Duration::from_secs(4));
        let buffer = or(self.buffer, Duration::from_secs(30).max(chunk));
        let startup = or(self.startup, chunk);
        let part = |eighty: u64| Duration::from_nanos(buffer.as_nanos() / 80 * eighty);
        let reservoir = or(self.reservoir, part(30));
        let cushion = or(self.cushion, part(72).saturating_sub(reservoir));
        let mut is_valid = true;
        let mut longest = |given: Option<Located<Duration>>, most: Duration, than: &str| {
            if let Some(given) = given.filter(|given| given.value > most) {
                is_valid = false;
                let message = format!("this playing time is longer than {than}");
                let fault = SpannedError::new(given.span, message);
                reader.report(fault.expected(format!("at most {most}")));
            }
        };
        for key in [self.length, self.buffer] {
            longest(key, DAY, "a day");
        }
        longest(self.chunk, buffer, "the player's `buffer`");
        longest(self.startup, buffer, "the player's `buffer`");
        longest(self.reservoir, buffer, "the player's `buffer`");
        let is_buffer = self.rule.is_some_and(|rule| rule.value == PlayerRule::Buffer);
        for (name, given) in [("reservoir", self.reservoir), ("cushion", self.cushion)] {
            if let Some(given) = given.filter(|_| !is_buffer) {
                is_valid = false;
                let message = format!("`{name}` goes with rule = \"buffer\"");
                reader.report(SpannedError::new(given.span, message));
            }
        }
        if is_valid && is_buffer && cushion.is_zero() {
            is_valid = false;
            let span = self.reservoir.map_or(super::source::TextSpan::NONE, |given| given.span);
            let message = "this `reservoir` leaves no room for a cushion";
            let fault = SpannedError::new(span, message);
            reader.report(fault.expected(format!("less than {}", part(72))));
        }
        let ladder = self.ladder.as_ref()?.value.iter().map(|rate| rate.value).collect();
        is_valid.then(|| {
            App::Video(Arc::new(VideoSpec {
                ladder,
                chunk,
                chunks: self
                    .length
                    .map(|length| length.value.as_nanos().div_ceil(chunk.as_nanos().max(1))),
                buffer,
                startup,
                rule: match is_buffer {
                    true => BitrateRule::Buffer { reservoir, cushion },
                    false => BitrateRule::Throughput,
                },
                request: self.request.map_or(Bytes(300), |request| request.value),
            }))
        })
    }

    /// Had the length of a video an invalid value?
    pub(super) fn limit_was_invalid(reader: &ScenarioReader) -> bool {
        reader.was_invalid(&LENGTH)
    }
}
