//! Cures: each is applied to the scenario of the case, and asked of the program as its user would.

use toml::Value;
use units::Duration;

use whatif::WhatIfRequest;

use crate::capture::Engine;
use crate::case::{FaultCost, LARGE_BUFFER};
use crate::draft::{Draft, bytes};
use crate::faults::{self, FaultKind};
use crate::world::World;

/// A cure with the time that the same transfer takes with it.
#[derive(Debug, Clone, PartialEq)]
pub struct AppliedCure {
    /// Name in reports.
    pub name: &'static str,
    /// How a user asks for it.
    pub request: WhatIfRequest,
    /// The time of the transfer with it.
    pub duration: Duration,
}

/// Applies the cures of the costliest fault.
pub(crate) fn apply(
    draft: &Draft,
    world: &World,
    costs: &[FaultCost],
    engine: &Engine,
) -> Result<Vec<AppliedCure>, String> {
    let Some(first) = costs.first() else { return Ok(Vec::new()) };
    let mut cures = Vec::new();
    let mut add = |name, request: WhatIfRequest, draft: &Draft| {
        let time = engine.time(&draft.text())?;
        if time.finished {
            cures.push(AppliedCure { name, request, duration: time.duration });
        }
        Ok::<(), String>(())
    };
    let set = |set: String| WhatIfRequest { set: vec![set], ..WhatIfRequest::default() };
    let mut cured = draft.clone();
    match first.fault.kind() {
        // Short outages and what a policer drops are losses to a user.
        FaultKind::RandomLoss
        | FaultKind::BurstLoss
        | FaultKind::BurstsInTime
        | FaultKind::Policer
        | FaultKind::NoSack => {
            let drops = ["loss", "outage", "policer"];
            cured.data_path.retain(|element| drops.iter().all(|key| element.get(key).is_none()));
            add("loss removed", set("path.forward.loss=0%".to_owned()), &cured)?;
            if Draft::is_linux(&draft.sender) {
                let mut cured = draft.clone();
                cured.sender.insert("cc".into(), "bbr".into());
                let profile = cured.sender.get("profile").and_then(Value::as_str);
                let bbr = format!("{}/bbr", profile.unwrap_or("linux-6.18"));
                let request = WhatIfRequest { compare: vec![bbr], ..WhatIfRequest::default() };
                add("another controller", request, &cured)?;
            }
        }
        FaultKind::IdleRestart if Draft::is_linux(&draft.sender) => {
            let knob = "net.ipv4.tcp_slow_start_after_idle";
            Draft::set_knob(&mut cured.sender, knob, 0.into());
            add("no restart after rests", set(format!("sender.knobs.{knob}=0")), &cured)?;
        }
        FaultKind::Marks => {
            let knob = match Draft::is_linux(&draft.sender) {
                true => "net.ipv4.tcp_ecn",
                false => "net.inet.tcp.ecn.enable",
            };
            Draft::set_knob(&mut cured.sender, knob, 0.into());
            add("no ECN", set(format!("sender.knobs.{knob}=0")), &cured)?;
        }
        FaultKind::SmallReceiveBuffer => {
            faults::receive_buffer(false, &mut cured.receiver, LARGE_BUFFER);
            let knob = buffer_knob(&draft.receiver, "rmem", "recvspace");
            add("larger receive buffer", set(format!("receiver.knobs.{knob}")), &cured)?;
        }
        FaultKind::SmallSendBuffer => {
            faults::send_buffer(&mut cured.sender, LARGE_BUFFER);
            let knob = buffer_knob(&draft.sender, "wmem", "sendspace");
            add("larger send buffer", set(format!("sender.knobs.{knob}")), &cured)?;
        }
        FaultKind::ShortQueue => {
            let buffer = world.bdp().max(30_000);
            if let Some(link) = cured.link() {
                link.insert("buffer".into(), bytes(buffer));
            }
            add("longer queue", set(format!("path.forward.link.buffer={buffer}B")), &cured)?;
        }
        _ => {}
    }
    Ok(cures)
}

/// The knob of a buffer with a large value, as a user writes it.
fn buffer_knob(host: &toml::Table, linux: &str, freebsd: &str) -> String {
    match Draft::is_linux(host) {
        true => format!("net.ipv4.tcp_{linux}=[\"4KiB\",\"{LARGE_BUFFER}B\",\"{LARGE_BUFFER}B\"]"),
        false => format!("net.inet.tcp.{freebsd}={LARGE_BUFFER}B"),
    }
}
