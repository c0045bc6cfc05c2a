//! Cures: each is applied to the scenario of the case, and asked of the program as its user would.

use toml::Value;
use units::Duration;

use whatif::WhatIfRequest;

use crate::capture::Engine;
use crate::case::{Case, FaultCost, LARGE_BUFFER};
use crate::draft::{DataDirection, Draft, bytes};
use crate::faults::{self, Fault, FaultKind};

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

/// Applies the cures of the costliest fault: those that help names for it, whether the program can predict them or not.
pub(crate) fn apply(
    case: &Case,
    draft: &Draft,
    costs: &[FaultCost],
    engine: &Engine,
) -> Result<Vec<AppliedCure>, String> {
    let Some(first) = costs.first() else { return Ok(Vec::new()) };
    let mut cures = Vec::new();
    for Cure { name, request, draft } in of_fault(case, draft, &first.fault) {
        let time = engine.time(&draft.text())?;
        if time.finished {
            cures.push(AppliedCure { name, request, duration: time.duration });
        }
    }
    Ok(cures)
}

/// A cure with the scenario in which it is applied.
struct Cure {
    name: &'static str,
    request: WhatIfRequest,
    draft: Draft,
}

/// The cures of a fault.
fn of_fault(case: &Case, draft: &Draft, fault: &Fault) -> Vec<Cure> {
    let world = &case.world;
    let set = |set: &str| WhatIfRequest { set: vec![set.to_owned()], ..WhatIfRequest::default() };
    let mut cured = draft.clone();
    let without = |name, request: &str| {
        let draft = case.draft_without_fault(fault);
        vec![Cure { name, request: set(request), draft }]
    };
    let (is_linux, is_download) =
        (Draft::is_linux(&draft.sender), world.direction == DataDirection::Download);
    // The waits of the application that sends the data.
    let sender_waits =
        if is_download { "application.server_waits=0s" } else { "application.client_waits=0s" };
    match fault.kind() {
        // Short outages and what a policer drops are losses to a user.
        FaultKind::RandomLoss
        | FaultKind::BurstLoss
        | FaultKind::BurstsInTime
        | FaultKind::Policer
        | FaultKind::NoSack => {
            let drops = ["loss", "outage", "policer"];
            cured.data_path.retain(|element| drops.iter().all(|key| element.get(key).is_none()));
            let name = "loss removed";
            let mut cures = vec![Cure { name, request: set("path.forward.loss=0%"), draft: cured }];
            cures.extend(other_controller(draft));
            cures.extend(rack(draft));
            if fault.kind() == FaultKind::NoSack {
                let mut cured = draft.clone();
                cured.data_path.retain(|element| element.get("strip").is_none());
                cured.ack_path.retain(|element| element.get("strip").is_none());
                let request = set("path.strip=none");
                cures.push(Cure { name: "SACK", request, draft: cured });
            }
            cures
        }
        FaultKind::TailLoss | FaultKind::Outage => {
            let mut cures = without("loss removed", "path.forward.loss=0%");
            cures.extend(rack(draft));
            cures
        }
        FaultKind::SynLost | FaultKind::SynAckLost => {
            without("SYN not lost", "path.forward.loss=0%")
        }
        FaultKind::EcnSyns => {
            let host = match is_download {
                true => &mut cured.receiver,
                false => &mut cured.sender,
            };
            let knob = ecn_knob(host);
            Draft::set_knob(host, knob, 0.into());
            let client = if is_download { "receiver" } else { "sender" };
            let request = set(&format!("{client}.knobs.{knob}=0"));
            vec![Cure { name: "no ECN", request, draft: cured }]
        }
        FaultKind::IdleRestart if is_linux => {
            let knob = "net.ipv4.tcp_slow_start_after_idle";
            Draft::set_knob(&mut cured.sender, knob, 0.into());
            let request = set(&format!("sender.knobs.{knob}=0"));
            vec![Cure { name: "no restart after rests", request, draft: cured }]
        }
        FaultKind::Marks => {
            let knob = ecn_knob(&draft.sender);
            Draft::set_knob(&mut cured.sender, knob, 0.into());
            let request = set(&format!("sender.knobs.{knob}=0"));
            vec![Cure { name: "no ECN", request, draft: cured }]
        }
        FaultKind::SmallReceiveBuffer => {
            faults::receive_buffer(draft.is_quic, &mut cured.receiver, LARGE_BUFFER);
            let request = match draft.is_quic {
                true => quic_windows(),
                false => {
                    let knob = buffer_knob(&draft.receiver, "rmem", "recvspace");
                    set(&format!("receiver.knobs.{knob}"))
                }
            };
            vec![Cure { name: "larger receive buffer", request, draft: cured }]
        }
        FaultKind::SmallSendBuffer => {
            faults::send_buffer(&mut cured.sender, LARGE_BUFFER);
            let knob = buffer_knob(&draft.sender, "wmem", "sendspace");
            let request = set(&format!("sender.knobs.{knob}"));
            vec![Cure { name: "larger send buffer", request, draft: cured }]
        }
        FaultKind::ShortQueue => {
            let buffer = world.bdp().max(30_000);
            if let Some(link) = cured.link() {
                link.insert("buffer".into(), bytes(buffer));
            }
            let request = set(&format!("path.forward.link.buffer={buffer}B"));
            vec![Cure { name: "longer queue", request, draft: cured }]
        }
        FaultKind::AppWindow => {
            let window = 2 * fault.strength();
            for step in &mut cured.exchange.steps {
                if let Some(old) = step.get_mut("window") {
                    *old = bytes(window);
                }
            }
            let request = set(&format!("application.window={window}B"));
            vec![Cure { name: "twice the window", request, draft: cured }]
        }
        FaultKind::SlowReader => without("reads at once", "flow.reads.rate=100Gbit/s"),
        FaultKind::SlowWriter | FaultKind::WaitInRequest => without("no waits", sender_waits),
        FaultKind::ServerThinks | FaultKind::SlowOpening => {
            without("no waits", "application.server_waits=0s")
        }
        FaultKind::ClientThinks => without("no waits", "application.client_waits=0s"),
        FaultKind::RoundTrips => without("requests together", "application.batch=true"),
        FaultKind::NagleDelayedAcks => without("no Nagle", "flow.nodelay=true"),
        FaultKind::Reordering => without("no reordering", "path.forward.reorder=none"),
        FaultKind::SlowAckPath => without("faster way back", "path.return.link=none"),
        FaultKind::ThinnedAcks => without("ACKs not merged", "path.return.thin=none"),
        FaultKind::MtuHole => without("larger MTU", "path.forward.mtu=none"),
        FaultKind::NoScaling => without("window scaling", "path.strip=none"),
        // The accept queue of a listener, and resets, are not parts of a fitted path; what others send, and how the
        // rate of a path falls, has no cure at either host.
        FaultKind::IdleRestart
        | FaultKind::Backlog
        | FaultKind::Forgotten
        | FaultKind::BoxReset
        | FaultKind::CompetingTraffic
        | FaultKind::RateDrop
        | FaultKind::Proxy => Vec::new(),
    }
}

/// BBR in place of the controller of a sender of Linux, the other one of a stack of QUIC.
fn other_controller(draft: &Draft) -> Option<Cure> {
    let mut cured = draft.clone();
    let profile = draft.sender.get("profile").and_then(Value::as_str)?;
    let now = draft.sender.get("cc").and_then(Value::as_str);
    let other = match (draft.is_quic, now) {
        (true, Some("cubic")) => "newreno",
        (true, _) => "cubic",
        (false, now) => (Draft::is_linux(&draft.sender) && now != Some("bbr")).then_some("bbr")?,
    };
    let compare = vec![format!("{profile}/{other}")];
    cured.sender.insert("cc".into(), other.into());
    let request = WhatIfRequest { compare, ..WhatIfRequest::default() };
    Some(Cure { name: "another controller", request, draft: cured })
}

/// Windows of a receiver of QUIC that limit nothing.
fn quic_windows() -> WhatIfRequest {
    let limits = ["initial_max_data", "initial_max_stream_data"];
    let set = limits.map(|limit| format!("receiver.knobs.{limit}={LARGE_BUFFER}B")).to_vec();
    WhatIfRequest { set, ..WhatIfRequest::default() }
}

/// The RACK stack of FreeBSD in place of its base stack.
fn rack(draft: &Draft) -> Option<Cure> {
    let mut cured = draft.clone();
    let profile = draft.sender.get("profile").and_then(Value::as_str)?;
    let version = profile.strip_prefix("freebsd-").filter(|rest| !rest.starts_with("rack-"))?;
    let version = if version == "main" { version } else { "14.3" };
    let cc = draft.sender.get("cc").and_then(Value::as_str).unwrap_or("cubic");
    let stack = format!("freebsd-rack-{version}");
    let request =
        WhatIfRequest { compare: vec![format!("{stack}/{cc}")], ..WhatIfRequest::default() };
    cured.sender.insert("profile".into(), stack.into());
    Some(Cure { name: "RACK", request, draft: cured })
}

/// The knob of ECN of a host.
fn ecn_knob(host: &toml::Table) -> &'static str {
    match Draft::is_linux(host) {
        true => "net.ipv4.tcp_ecn",
        false => "net.inet.tcp.ecn.enable",
    }
}

/// The knob of a buffer with a large value, as a user writes it.
fn buffer_knob(host: &toml::Table, linux: &str, freebsd: &str) -> String {
    match Draft::is_linux(host) {
        true => format!("net.ipv4.tcp_{linux}=[\"4KiB\",\"{LARGE_BUFFER}B\",\"{LARGE_BUFFER}B\"]"),
        false => format!("net.inet.tcp.{freebsd}={LARGE_BUFFER}B"),
    }
}
