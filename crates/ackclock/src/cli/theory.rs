//! Arguments of `theory`.

use clap::{Args, Subcommand};
use scenario::units_text::{self, QuantityError};
use units::{Bytes, Duration, Rate, Ratio};

/// The formulas.
#[derive(Debug, Subcommand)]
pub(crate) enum TheoryCommand {
    /// The square-root formula of Mathis et al. with its four constants, and the sawtooth with the
    /// round trips that a loss costs
    #[command(after_help = MATHIS_EXAMPLES)]
    Mathis(MathisArgs),
    /// Additive increase, multiplicative decrease with any parameters
    #[command(after_help = AIMD_EXAMPLES)]
    Aimd(AimdArgs),
    /// The formula of Padhye, Firoiu, Towsley and Kurose, which includes timeouts: approximate and
    /// full
    #[command(after_help = PFTK_EXAMPLES)]
    Pftk(PftkArgs),
    /// CUBIC: its response function, the Reno-friendly bound, one epoch
    #[command(after_help = CUBIC_EXAMPLES)]
    Cubic(CubicArgs),
    /// The share of BBR version 1 beside loss-based flows in a drop-tail queue (Ware et al., IMC 2019)
    #[command(after_help = BBR_EXAMPLES)]
    Bbr(BbrShareArgs),
}

pub(crate) const THEORY_EXAMPLES: &str = "\
Examples:
  ackclock theory mathis --mss 1252 --rtt 2ms --loss 2% --extra-rtts 2
  ackclock theory mathis --rtt 20ms --loss 0.1% --run freebsd-14.3
  ackclock theory pftk --rtt 100ms --loss 1% --rto 300ms
  ackclock theory cubic --rtt 2ms --loss 1%
  ackclock theory bbr --rate 40Mbit/s --rtt 30ms --buffer 4 --run

Every result states its assumptions and which of them the numbers violate.";

const MATHIS_EXAMPLES: &str = "\
Examples:
  ackclock theory mathis --mss 1252 --rtt 2ms --loss 2% --extra-rtts 2
  ackclock theory mathis --mss 1252 --rtt 2ms --loss 2% --ack-delay 25ms
  ackclock theory mathis --rtt 20ms --loss 0.1% --rate 1Gbit/s --window 1MiB
  ackclock theory mathis --rtt 20ms --loss 0.1% --run freebsd-14.3 --random --seed 7
  ackclock theory mathis --rtt 2ms --loss 2% --json | jq '.estimates[0].rate_bps'

--extra-rtts 2: one round trip until a loss is detected, one until recovery ends.
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

const BBR_EXAMPLES: &str = "\
Examples:
  ackclock theory bbr --rate 40Mbit/s --rtt 30ms --buffer 4
  ackclock theory bbr --rate 40Mbit/s --rtt 30ms --buffer 4 --run --seeds 3
  ackclock theory bbr --rate 40Mbit/s --rtt 30ms --buffer 16 --run --against reno --others 10
  ackclock theory bbr --rate 40Mbit/s --rtt 30ms --buffer 4 --run --cc linux-6.18/bbr3 --json";

/// Arguments of `theory bbr`.
#[derive(Debug, Args)]
pub(crate) struct BbrShareArgs {
    /// Rate of the link
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Rate,
    /// Round-trip time without queue, such as 30ms
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) rtt: Duration,
    /// The queue in bandwidth-delay products
    #[arg(long, value_name = "BDP", value_parser = products)]
    pub(crate) buffer: f64,
    /// Number of BBR flows
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) flows: u32,
    /// Simulate the flows and print the miss
    #[arg(long)]
    pub(crate) run: bool,
    /// Sender of the BBR flows of the simulation
    #[arg(long, value_name = "SENDER", default_value = "linux-6.18/bbr", requires = "run")]
    pub(crate) cc: String,
    /// Sender of the loss-based flows
    #[arg(long, value_name = "SENDER", default_value = "linux-6.18/cubic", requires = "run")]
    pub(crate) against: String,
    /// Number of loss-based flows
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "run", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) others: u32,
    /// Length of the simulation, of which the first quarter is not counted
    #[arg(long, value_name = "DURATION", default_value = "120s", requires = "run", value_parser = duration)]
    pub(crate) duration: Duration,
    /// Number of simulations, with seeds from 1 on
    #[arg(long, value_name = "COUNT", default_value_t = 1, requires = "run", value_parser = clap::value_parser!(u32).range(1..=100))]
    pub(crate) seeds: u32,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

fn products(text: &str) -> Result<f64, String> {
    let number = text.trim_end_matches("bdp").parse::<f64>().ok();
    let usable = number.filter(|number| (0.01..=1_000.0).contains(number));
    usable
        .ok_or_else(|| "is not a queue, expected 0.01 to 1000 bandwidth-delay products".to_owned())
}

/// The path.
#[derive(Debug, Args)]
pub(crate) struct PathArgs {
    /// Payload of a segment, or UDP payload of a QUIC packet, in bytes
    #[arg(long, value_name = "BYTES", default_value = "1448", value_parser = mss)]
    pub(crate) mss: Bytes,
    /// Round-trip time, such as 20ms
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) rtt: Duration,
    /// Packet loss rate, such as 2%
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) loss: Ratio,
    /// Link rate, which may be the limit instead of loss [default: no limit]
    #[arg(long, value_name = "RATE", value_parser = rate)]
    pub(crate) rate: Option<Rate>,
    /// Receive window, which may be the limit instead of loss [default: no limit]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub(crate) window: Option<Bytes>,
    /// Print the result as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// A simulation to compare with the formula.
#[derive(Debug, Args)]
pub(crate) struct TrialArgs {
    /// Simulate a sender of this profile over this path and print both
    #[arg(long, value_name = "PROFILE")]
    pub(crate) run: Option<String>,
    /// Its congestion control [default: newreno or reno; of `theory cubic`, cubic]
    #[arg(long, value_name = "NAME", requires = "run")]
    pub(crate) cc: Option<String>,
    /// Lose packets at random instead of one after every 1/p packets
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
    /// Delayed ACK timeout of a receiver that acknowledges every other packet
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
    /// Segments added per round trip [default: 3 (1 - beta)/(1 + beta), the throughput of Reno]
    #[arg(long, value_name = "SEGMENTS")]
    pub(crate) alpha: Option<f64>,
    /// Multiplicative decrease: fraction of the window kept after a loss
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
    /// Initial retransmission timeout [default: four round trips, as in RFC 5348]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub(crate) rto: Option<Duration>,
    /// Packets acknowledged per ACK
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
    // A segment size is always in bytes: 1252 is as good as 1252B.
    match text.parse() {
        Ok(bytes) => Ok(Bytes(bytes)),
        Err(_) => size(text),
    }
    .and_then(|bytes| match bytes.get() {
        500..=65_000 => Ok(bytes),
        _ => Err("is not a segment payload, expected 500 to 65000 bytes".to_owned()),
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

pub(super) fn words(misread: QuantityError) -> String {
    let hint = misread.hint.map_or_else(String::new, |hint| format!("; {hint}"));
    format!("{}, expected {}{hint}", misread.message, misread.expected)
}
