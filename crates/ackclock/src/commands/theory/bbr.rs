//! `ackclock theory bbr`: the share of BBR version 1 beside loss-based flows, and that of a run.

use core::fmt::Write as _;
use std::process::ExitCode;

use serde_json::{Value, json};
use suite::SuiteSender;
use suite::bbr::ShareTrial;
use theory::bbr::{BbrShare, BbrShareEstimate};

use super::refused;
use crate::cli::BbrShareArgs;
use crate::failure::Failure;
use crate::interrupt;
use crate::output::print;

/// Bytes of an IP packet.
const PACKET: u32 = 1_500;

/// What a run measured.
struct Measured {
    shares: Vec<f64>,
    bbr: String,
    others: String,
}

pub(super) fn run(args: &BbrShareArgs) -> Result<ExitCode, Failure> {
    let bdp = args.rate.bits_per_second() as f64 * args.rtt.as_secs_f64() / 8.0;
    let bytes = bdp * args.buffer;
    let queue = bytes / f64::from(PACKET);
    let model = BbrShare::new(args.rate, args.rtt, queue, PACKET, args.flows).map_err(refused)?;
    let estimate = model.estimate();
    let measured = if args.run { Some(measure(args, bytes as u64)?) } else { None };
    if interrupt::is_raised() {
        return Ok(interrupt::status());
    }
    let answer = if args.json {
        format!("{:#}\n", to_json(&estimate, measured.as_ref()))
    } else {
        to_text(&estimate, measured.as_ref())
    };
    print(&answer)?;
    Ok(ExitCode::SUCCESS)
}

fn measure(args: &BbrShareArgs, buffer: u64) -> Result<Measured, Failure> {
    let sender = |name: &str| {
        SuiteSender::read(name).map_err(|error| Failure::new(error.message).hint(error.hint))
    };
    let (bbr, others) = (sender(&args.cc)?, sender(&args.against)?);
    let stop = interrupt::orderly();
    let shares = (0..u64::from(args.seeds)).map(|seed| {
        let trial = ShareTrial {
            bbr: (bbr.clone(), args.flows),
            others: (others.clone(), args.others),
            rate: args.rate.bits_per_second(),
            rtt: args.rtt,
            buffer: buffer.max(2 * u64::from(PACKET)),
            duration: args.duration,
            seed: seed + 1,
        };
        trial.run(stop).map_err(|error| Failure::new(error.to_string()))
    });
    let shares = shares.collect::<Result<_, _>>()?;
    Ok(Measured { shares, bbr: bbr.to_string(), others: others.to_string() })
}

fn mean(shares: &[f64]) -> f64 {
    shares.iter().sum::<f64>() / shares.len().max(1) as f64
}

fn to_json(estimate: &BbrShareEstimate, measured: Option<&Measured>) -> Value {
    let doubts: Vec<String> = estimate.validity.doubts.iter().map(ToString::to_string).collect();
    json!({
        "queue_bdp": estimate.queue_bdp,
        "loss_based_part_of_queue": estimate.loss_based_part,
        "probe_rtt_time": estimate.probe_rtt_time,
        "share": estimate.share,
        "assumes": estimate.validity.assumes,
        "doubts": doubts,
        "measured": measured.map(|measured| json!({
            "bbr": measured.bbr,
            "against": measured.others,
            "shares": measured.shares,
            "mean": mean(&measured.shares),
            "miss": mean(&measured.shares) - estimate.share,
        })),
    })
}

fn to_text(estimate: &BbrShareEstimate, measured: Option<&Measured>) -> String {
    let mut text = format!(
        "Ware et al. 2019: BBR version 1 beside loss-based flows, a queue of {:.2} BDP\n\n\
         loss-based flows' part of the queue  {:.1} %\n\
         time in ProbeRTT                     {:.1} %\n\
         share of all BBR flows               {:.1} %\n",
        estimate.queue_bdp,
        estimate.loss_based_part * 100.0,
        estimate.probe_rtt_time * 100.0,
        estimate.share * 100.0
    );
    if let Some(measured) = measured {
        let mean = mean(&measured.shares);
        let all: Vec<String> =
            measured.shares.iter().map(|share| format!("{:.1}", share * 100.0)).collect();
        let _ = writeln!(
            text,
            "simulated: {} against {}        {:.1} % ({} % by seed)\nmiss                                 {:+.1} points",
            measured.bbr,
            measured.others,
            mean * 100.0,
            all.join(", "),
            (mean - estimate.share) * 100.0
        );
    }
    text += "\nassumes\n";
    for assumption in estimate.validity.assumes {
        let _ = writeln!(text, "  {assumption}");
    }
    if !estimate.validity.doubts.is_empty() {
        text += "doubts\n";
        for doubt in &estimate.validity.doubts {
            let _ = writeln!(text, "  {doubt}");
        }
    }
    text
}
