//! Changes that the limits of a recorded QUIC transfer suggest.

use fit::{QuicFit, WritePattern};

/// A change to try.
pub(crate) struct Cure {
    /// Keys of the fitted scenario, `KEY=VALUE`.
    pub(crate) set: Vec<String>,
    /// The fit with the change, if no key has it.
    pub(crate) fit: Option<QuicFit>,
    /// Its name, if it has no keys.
    pub(crate) label: Option<&'static str>,
}

impl Cure {
    const fn of(set: Vec<String>) -> Self {
        Self { set, fit: None, label: None }
    }
}

/// How much larger a window is tried.
const LARGER: u64 = 8;
/// Waits are tried to be left out from this part of the time on: one of this number.
const WAITS: u64 = 10;

/// The changes to try, one for each limit.
pub(crate) fn cures(fitted: &QuicFit) -> Vec<Cure> {
    let mut cures = Vec::new();
    if fitted.flow_limited && fitted.tcp.is_some() {
        let fit = QuicFit { flow_limited: false, reads: None, ..fitted.clone() };
        let label = Some("and the receive buffer of the system");
        cures.push(Cure { set: Vec::new(), fit: Some(fit), label });
    } else if fitted.flow_limited {
        let names = ["initial_max_data", "initial_max_stream_data"];
        let windows = names.iter().zip(fitted.windows_of_peer).filter_map(|(name, window)| {
            Some(format!("receiver.knobs.{name}={}B", window?.saturating_mul(LARGER)))
        });
        cures.push(Cure::of(windows.collect()));
    }
    if fitted.reads.is_some() {
        let fit = QuicFit { reads: None, ..fitted.clone() };
        let label = Some("and a receiver that reads at once");
        cures.push(Cure { set: Vec::new(), fit: Some(fit), label });
    }
    let own = fitted.conversation.as_ref().map(|found| {
        let own = found.messages.iter().filter(|one| one.by_client == fitted.is_client);
        own.map(|one| one.after).fold(0, u64::saturating_add)
    });
    // Of hosts that take turns, the messages are written, whatever pattern the packets have.
    let waits = match own {
        Some(waits) => waits.saturating_mul(WAITS) >= fitted.time,
        None => fitted.writes != WritePattern::Bulk,
    };
    if waits {
        let conversation = fitted.conversation.as_ref();
        let conversation = conversation.map(|found| found.with_waits(fitted.is_client, 0));
        let fit = QuicFit { writes: WritePattern::Bulk, conversation, ..fitted.clone() };
        let label = Some("and an application that writes all at once");
        cures.push(Cure { set: Vec::new(), fit: Some(fit), label });
    }
    let losses = &fitted.losses;
    let has_losses = !losses.packets.is_empty() || !losses.outages.is_empty();
    if has_losses || fitted.policer.is_some() {
        cures.push(Cure::of(vec!["path.forward.loss=0%".to_owned()]));
    }
    if let Some((_, extent)) = fitted.late.filter(|_| fitted.tcp.is_none()) {
        cures.push(Cure::of(vec![
            format!("sender.knobs.kPacketThreshold={}", extent.saturating_add(1).min(1_000_000)),
            // Twice the round trip: RFC 9002 section 6.1.2 recommends 9/8.
            "sender.knobs.time_threshold_eighths=16".to_owned(),
        ]));
    }
    if let Some((buffer, rate)) = fitted.buffer.zip(fitted.rate) {
        let product = (rate as f64 / 8.0 * fitted.rtt as f64 / 1e9) as u64;
        if buffer < product {
            cures.push(Cure::of(vec![format!("path.forward.link.buffer={product}B")]));
        }
    }
    cures
}
