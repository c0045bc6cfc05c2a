//! Arguments of `theory`.

use clap::{Args, Subcommand};
use scenario::units_text::{self, Misread};
use units::{Bytes, Duration, Rate, Ratio};

/// Which formulas to ask.
#[derive(Debug, Subcommand)]
pub(crate) enum TheoryCommand {
    /// The square root of loss: the four constants of Mathis, and the sawtooth with the round trips
    /// a loss costs
    #[command(after_help = MATHIS_EXAMPLES)]
    Mathis(MathisArgs),
    /// Additive increase and multiplicative decrease of any measure
    #[command(after_help = AIMD_EXAMPLES)]
    Aimd(AimdArgs),
    /// Timeouts counted: Padhye, Firoiu, Towsley, Kurose, short and full
    #[command(after_help = PFTK_EXAMPLES)]
    Pftk(PftkArgs),
    /// CUBIC: its response function, the Reno-friendly bound, one epoch
    #[command(after_help = CUBIC_EXAMPLES)]
    Cubic(CubicArgs),
}

pub(crate) const THEORY_EXAMPLES: &str = "\
Examples:
  ackclock theory mathis --mss 1252 --rtt 2ms --loss 2% --extra-rtts 2
  ackclock theory mathis --rtt 20ms --loss 0.1% --run freebsd-14.3
  ackclock theory pftk --rtt 100ms --loss 1% --rto 300ms
  ackclock theory cubic --rtt 2ms --loss 1%

Every answer says what it takes for granted and what in the numbers speaks against it.";

const MATHIS_EXAMPLES: &str = "\
Examples:
  ackclock theory mathis --mss 1252 --rtt 2ms --loss 2% --extra-rtts 2
  ackclock theory mathis --mss 1252 --rtt 2ms --loss 2% --ack-delay 25ms
  ackclock theory mathis --rtt 20ms --loss 0.1% --rate 1Gbit/s --window 1MiB
  ackclock theory mathis --rtt 20ms --loss 0.1% --run freebsd-14.3 --random --seed 7
  ackclock theory mathis --rtt 2ms --loss 2% --json | jq '.estimates[0].rate_bps'

--extra-rtts 2: one round trip until a loss is seen, one until recovery ends.
--ack-delay D: 2 + 3/4 min(1, D/RTT), for a receiver that acknowledges every other packet.";

const AIMD_EXAMPLES: &str = "\
Examples:
  ackclock theory aimd --rtt 20ms --loss 0.1%
  ackclock theory aimd --rtt 20ms --loss 0.1% --beta 0.7
  ackclock theory aimd --rtt 20ms --loss 0.1% --alpha 1 --beta 0.8";

const PFTK_EXAMPLES: &str = "\
Examples:
  ackclock theory pftk --rtt 100ms --loss 1% --rto 300ms
  ackclock theory pftk --rtt 100ms --loss 1% --rto 300ms --ack-every 1 --window 64KiB
  ackclock theory pftk --rtt 100ms --loss 1% --rto 300ms --run linux-6.18 --random";

const CUBIC_EXAMPLES: &str = "\
Examples:
  ackclock theory cubic --rtt 2ms --loss 1%
  ackclock theory cubic --rtt 100ms --loss 0.001% --w-max 1000
  ackclock theory cubic --rtt 100ms --loss 0.01% --json | jq '.cubic.reno_friendly'";

/// The path asked about.
#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// Payload of a segment, or what a QUIC packet has in its datagram; in bytes
    #[arg(long, value_name = "BYTES", default_value = "1448", value_parser = mss)]
    pub(crate) mss: Bytes,
    /// Round-trip time, such as 20ms
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) rtt: Duration,
    /// Share of packets that is lost, such as 2%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) loss: Ratio,
    /// Rate of the line, which may be the limit in place of loss [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// Window the receiver allows, which may be the limit [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) window: Option<Bytes>,
    /// Print the answer as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A run beside the formula.
#[derive(Debug, Args)]
pub(crate) struct TrialArgs {
    /// Run a sender of this profile over such a path and print both
    #[arg(long, value_name = "PROFILE")]
    pub(crate) run: Option<String>,
    /// Its congestion control [default: newreno or reno; of `theory cubic`, cubic]
    #[arg(long, value_name = "NAME", requires = "run")]
    pub(crate) cc: Option<String>,
    /// Lose packets at random in place of one after 1/p others
    #[arg(long, requires = "run")]
    pub(crate) random: bool,
    /// Seed of the run
    #[arg(long, value_name = "N", default_value = "1", requires = "run",
          value_parser = clap::value_parser!(u64).range(..=i64::MAX as u64))]
    pub(crate) seed: u64,
}

/// Arguments of `theory mathis`.
#[derive(Debug, Args)]
pub(crate) struct MathisArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Round trips of a cycle in which the window does not grow
    #[arg(long, value_name = "B", conflicts_with = "ack_delay")]
    pub(crate) extra_rtts: Option<f64>,
    /// The receiver acknowledges every other packet, and the last after this
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) ack_delay: Option<Duration>,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

/// Arguments of `theory aimd`.
#[derive(Debug, Args)]
pub(crate) struct AimdArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Segments added per round trip [default: 3 (1 - beta)/(1 + beta), as much as Reno has]
    #[arg(long, value_name = "SEGMENTS")]
    pub(crate) alpha: Option<f64>,
    /// Share of the window left after a loss
    #[arg(long, value_name = "SHARE", default_value = "0.5")]
    pub(crate) beta: f64,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

/// Arguments of `theory pftk`.
#[derive(Debug, Args)]
pub(crate) struct PftkArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// The first timeout of a row [default: four round trips, as in RFC 5348]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) rto: Option<Duration>,
    /// Packets that an ACK acknowledges
    #[arg(long, value_name = "N", default_value = "2",
          value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) ack_every: u32,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

/// Arguments of `theory cubic`.
#[derive(Debug, Args)]
pub(crate) struct CubicArgs {
    #[command(flatten)]
    pub(crate) path: PathArgs,
    /// Window at the loss that begins the epoch, in segments [default: that of the formula]
    #[arg(long, value_name = "SEGMENTS")]
    pub(crate) w_max: Option<f64>,
    #[command(flatten)]
    pub(crate) trial: TrialArgs,
}

fn mss(text: &str) -> Result<Bytes, String> {
    // Segments are counted in bytes everywhere: 1252 is as good as 1252B.
    match text.parse() {
        Ok(bytes) => Ok(Bytes(bytes)),
        Err(_) => size(text),
    }
    .and_then(|bytes| match bytes.get() {
        500..=65_000 => Ok(bytes),
        _ => Err("is no payload of a segment, expected 500 to 65000 bytes".to_owned()),
    })
}

fn duration(text: &str) -> Result<Duration, String> {
    units_text::duration(text).map_err(words)
}

fn size(text: &str) -> Result<Bytes, String> {
    units_text::size(text).map_err(words)
}

fn rate(text: &str) -> Result<Rate, String> {
    units_text::rate(text).map_err(words)
}

fn share(text: &str) -> Result<Ratio, String> {
    units_text::share(text).map_err(words)
}

pub(super) fn words(misread: Misread) -> String {
    let hint = misread.hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{}, expected {}{hint}", misread.message, misread.expected)
}
