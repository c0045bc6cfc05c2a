//! Options of tbf (iproute2, tc/q_tbf.c) as a shaper.

use super::quantity::{tc_rate, tc_size, time};
use super::rate_limit::{LineFrame, RateLimit};
use super::tokens::{Given, ImportError, ScriptToken, TokenReader, set_once};

/// A frame of an Ethernet path: a smaller limit would drop all of them.
const FULL_PACKET: u64 = 1_514;

/// A token bucket with a queue.
#[derive(Debug)]
pub(super) struct TbfOptions<'t> {
    /// In bit/s.
    rate: Given<'t, u64>,
    /// In bytes.
    burst: u64,
    /// In bytes.
    limit: u64,
    frame: LineFrame,
    /// How the limit was written.
    limit_text: String,
}

impl<'t> TbfOptions<'t> {
    pub(super) fn parse(
        kind: ScriptToken<'t>,
        reader: &mut TokenReader<'t>,
    ) -> Result<Self, ImportError> {
        let (mut rate, mut burst) = (None, None);
        let (mut limit, mut latency) = (None, None);
        let mut frame = LineFrame::default();
        while let Some(option) = reader.next() {
            match option.text {
                "rate" => set_once(&mut rate, option, tc_rate(reader.value("a rate")?)?)?,
                "burst" | "buffer" | "maxburst" => {
                    set_once(&mut burst, option, tc_size(reader.value("a size")?)?)?;
                }
                "limit" => set_once(&mut limit, option, tc_size(reader.value("a size")?)?)?,
                "latency" | "lat" => {
                    set_once(&mut latency, option, time(reader.value("a time")?, "us")?)?;
                }
                _ if frame.option(option, reader)? => {}
                other => {
                    return Err(option.error(format!("tbf: option `{other}` is not supported")));
                }
            }
        }
        let missing = |what: &str| kind.error(format!("tbf: {what} is missing"));
        let rate: Given<'t, u64> = rate.ok_or_else(|| missing("`rate`"))?;
        let burst: Given<'t, u64> = burst.ok_or_else(|| missing("`burst`"))?;
        let limit = match (limit, latency) {
            (None, None) => return Err(missing("`limit` or `latency`")),
            (Some(_), Some(latency)) => {
                return Err(latency.token.error("tbf: either `limit` or `latency`, not both"));
            }
            (Some(limit), None) => limit,
            (None, Some(Given { value, token })) => {
                Given { value: queued_for(rate.value, value, burst.value, token)?, token }
            }
        };
        let sizes = [(burst, "bucket", frame.full_packet()), (limit, "queue", FULL_PACKET)];
        for (given, what, least) in sizes {
            if given.value < least {
                let message = format!(
                    "tbf: the {what} has {} bytes: packets of 1500 bytes, {least} of this line, would never pass",
                    given.value
                );
                return Err(given.token.error(message));
            }
        }
        let limit_text = format!("{} of {} bytes", limit.token.text, limit.value);
        Ok(Self { rate, burst: burst.value, limit: limit.value, frame, limit_text })
    }

    /// Returns the token bucket.
    pub(super) fn bucket(&self) -> RateLimit<'t> {
        RateLimit {
            rate: self.rate,
            burst: self.burst,
            buffer: format!("{}B", self.limit),
            frame: self.frame,
            notes: Vec::new(),
            unused_limit: Some(self.limit_text.clone()),
        }
    }
}

/// Returns the bytes of a queue that empties within a latency, as `tbf_parse_opt` does.
fn queued_for(
    rate: u64,
    latency: u64,
    burst: u64,
    token: ScriptToken<'_>,
) -> Result<u64, ImportError> {
    let bytes = u128::from(rate) * u128::from(latency) / 8_000_000_000 + u128::from(burst);
    u64::try_from(bytes).map_err(|_| token.error("tbf: `latency` is out of range"))
}
