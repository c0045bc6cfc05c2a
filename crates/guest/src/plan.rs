//! Instructions for process 1 of a guest: the text of `/plan`, which recipe/init.c reads.
//!
//! One directive a line: `sysctl NAME=VALUE`, `mtu`, `gro`, `four` and `six` (addresses), `end` (the
//! guest's time at the end of the run), `sample` (first time and interval of `tcp_info`, and whether it is reported),
//! `facts` (report what depends on the kernel's build), and `flow` with `key=value` pairs for each end of a
//! connection.

use core::fmt::Write as _;
use std::net::IpAddr;

use packet::IpVersion;
use packet::wire::Endpoints;
use sim::scenario::{
    App, Close, ExchangeSide, ExchangeStep, FlowSpec, OnPeriod, Pause, ReceiveOffloadSpec, Scenario,
};
use tcp::profile::{
    DelayedAckRule, EcnRule, Family, ReceiveBufferRule, SendBufferRule, TcpProfile,
};
use units::{Bytes, Duration};

/// Time before the end of the run at which running applications report: the report takes a few
/// reads of the clock, 256 ns each.
pub const BEFORE_END: Duration = Duration::from_micros(10);

/// A feature of a scenario that a guest does not support.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsupported {
    /// Name of the host.
    pub host: String,
    /// The unsupported feature.
    pub what: String,
}

impl core::fmt::Display for Unsupported {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "host `{}` is a real kernel: {}", self.host, self.what)
    }
}

impl core::error::Error for Unsupported {}

/// Reports of the state of senders.
#[derive(Debug, Clone, Copy)]
pub struct Samples {
    /// Their interval.
    pub every: Duration,
    /// They are wanted.
    pub wanted: bool,
}

/// The plan of host number `host`. `endpoints` are those of the flows, each seen from its connecting
/// side; `begins` is the guest's time at the world's time 0; `sysctls` come after those that follow
/// from the host's profile; with `facts` it reports what depends on the kernel's build, with `samples` what
/// its senders report.
///
/// # Errors
/// [`Unsupported`].
pub fn plan(
    scenario: &Scenario,
    host: usize,
    endpoints: &[Endpoints],
    begins: Duration,
    sysctls: &[(String, String)],
    facts: bool,
    samples: Samples,
) -> Result<String, Unsupported> {
    let own = &scenario.hosts[host];
    let refuse = |what: String| Unsupported { host: own.name.clone(), what };
    let Some(tcp) = own.stack.tcp() else {
        return Err(refuse("it has no QUIC".into()));
    };
    let gro = match own.offload.receive {
        ReceiveOffloadSpec::Off => 0,
        ReceiveOffloadSpec::Gro(_) => 1,
        // The card's: the kernel has nothing to merge.
        ReceiveOffloadSpec::Lro(_) => 0,
    };
    let mut plan = String::new();
    let mut line = |text: String| plan.push_str(&(text + "\n"));
    if facts {
        line("facts".to_owned());
    }
    for (name, value) in quiet(own.stack.mtu()).chain(settings(&tcp.profile)) {
        line(format!("sysctl {name}={value}"));
    }
    let congestion = tcp.cc.linux_name().ok_or_else(|| {
        refuse(format!("Linux has no congestion control `{}`", own.stack.cc_name()))
    })?;
    line(format!("sysctl net.ipv4.tcp_congestion_control={congestion}"));
    for (name, value) in sysctls {
        line(format!("sysctl {name}={value}"));
    }
    line(format!("mtu {}", own.stack.mtu()));
    line(format!("gro {gro}"));
    let end = begins.as_nanos() + scenario.duration.as_nanos();
    line(format!("end {}", end.saturating_sub(BEFORE_END.as_nanos())));
    // A sampler wakes in every run, whether an observer records samples or not: a timer interrupt adds to the kernel's pool
    // of random numbers, and when it fires the next one may be late by a step of the clock (256 ns).
    let every = samples.every.as_nanos().max(1);
    line(format!("sample {} {every} {}", begins.as_nanos(), u32::from(samples.wanted)));
    let (flows, addresses) = flows(scenario, host, endpoints, begins)?;
    plan.push_str(&flows);
    let mut line = |text: String| plan.push_str(&(text + "\n"));
    // The interface has an IPv4 address even if no flow uses it.
    let four =
        addresses[0].map_or_else(|| format!("10.0.0.{}", host % 254 + 1), |ip| ip.to_string());
    line(format!("four {four}"));
    if let Some(six) = addresses[1] {
        line(format!("six {six}"));
    }
    Ok(plan)
}

/// The plan of a host that a packet script drives: `profile` gives its sysctls.
pub(crate) fn script_plan(profile: &TcpProfile, mtu: u32, addresses: [IpAddr; 2]) -> String {
    let mut plan = String::new();
    let settings = quiet(mtu).chain(settings(profile));
    for (name, value) in settings {
        let _ = writeln!(plan, "sysctl {name}={value}");
    }
    let [four, six] = addresses;
    let _ = writeln!(plan, "mtu {mtu}\ngro 0\nfour {four}");
    if mtu >= IPV6_MTU {
        let _ = writeln!(plan, "six {six}");
    }
    plan
}

/// The description of a host for a program that is no kernel ([`crate::socket`]).
///
/// # Errors
/// [`Unsupported`].
pub fn program(
    scenario: &Scenario,
    host: usize,
    endpoints: &[Endpoints],
) -> Result<String, Unsupported> {
    let own = &scenario.hosts[host];
    let end = scenario.duration.as_nanos();
    let (flows, _) = flows(scenario, host, endpoints, Duration::ZERO)?;
    let (seed, mtu) = (scenario.seed, own.stack.mtu());
    Ok(format!("version 1\nseed {seed}\nmtu {mtu}\nend {end}\n{flows}"))
}

/// A line for each end of a connection at a host, and the host's addresses of both versions.
fn flows(
    scenario: &Scenario,
    host: usize,
    endpoints: &[Endpoints],
    begins: Duration,
) -> Result<(String, [Option<IpAddr>; 2]), Unsupported> {
    let refuse = |what: String| Unsupported { host: scenario.hosts[host].name.clone(), what };
    let mut text = String::new();
    let mut line = |flow: String| text.push_str(&(flow + "\n"));
    let mut addresses: [Option<IpAddr>; 2] = [None, None];
    for (number, flow) in scenario.flows.iter().enumerate() {
        let endpoints = endpoints[number];
        for (listens, end) in [(false, flow.from), (true, flow.to)] {
            if end != host {
                continue;
            }
            let endpoints = if listens { endpoints.reversed() } else { endpoints };
            let address = endpoints.src.ip();
            addresses[usize::from(address.is_ipv6())] = Some(address);
            let what = application(flow, listens).map_err(&refuse)?;
            let start = begins.as_nanos() + flow.start.as_nanos();
            line(format!(
                "flow number={number} listens={} six={} own={} own_port={} peer={} peer_port={} \
                 start={start}{what}",
                u32::from(listens),
                u32::from(flow.ip == IpVersion::V6),
                address,
                endpoints.src.port(),
                endpoints.dst.ip(),
                endpoints.dst.port(),
            ));
        }
    }
    Ok((text, addresses))
}

/// Smallest MTU of a card with IPv6 (`IPV6_MIN_MTU`).
const IPV6_MTU: u32 = 1_280;

/// Disables packets that no application causes. Below the MTU that IPv6 needs its card has no settings of it.
fn quiet(mtu: u32) -> impl Iterator<Item = (&'static str, String)> {
    let off = || "0".to_owned();
    let settings = [
        ("net.ipv6.conf.all.router_solicitations", off()),
        ("net.ipv6.conf.default.router_solicitations", off()),
        ("net.ipv6.conf.eth0.router_solicitations", off()),
        ("net.ipv6.conf.eth0.accept_dad", off()),
        ("net.ipv6.conf.eth0.addr_gen_mode", "1".to_owned()),
    ];
    settings.into_iter().filter(move |(name, _)| mtu >= IPV6_MTU || !name.contains("eth0"))
}

/// Returns the sysctls that follow from the host's profile, if it is a Linux profile: the knobs are
/// set in the profile.
fn settings(profile: &TcpProfile) -> Vec<(&'static str, String)> {
    if profile.family != Family::Linux {
        return Vec::new();
    }
    let switch = |on: bool| u32::from(on).to_string();
    let three = |sizes: [Bytes; 3]| sizes.map(|size| size.get().to_string()).join(" ");
    let ecn = match profile.ecn {
        EcnRule::Off => 0,
        EcnRule::Active => 1,
        EcnRule::Passive => 2,
    };
    // A kernel before 6.5 has none of them, whatever the profile says.
    let linear = "-net.ipv4.tcp_syn_linear_timeouts";
    let mut settings = vec![
        ("net.ipv4.tcp_timestamps", switch(profile.timestamps)),
        ("net.ipv4.tcp_sack", switch(profile.sack)),
        ("net.ipv4.tcp_window_scaling", switch(profile.window_scaling)),
        ("net.ipv4.tcp_slow_start_after_idle", switch(profile.after_idle)),
        ("net.ipv4.tcp_ecn", ecn.to_string()),
        ("net.ipv4.tcp_early_retrans", if profile.loss_probes { "3" } else { "0" }.to_owned()),
        ("net.ipv4.tcp_retries2", profile.retries.to_string()),
        ("net.ipv4.tcp_syn_retries", profile.syn.retries.to_string()),
        ("net.ipv4.tcp_synack_retries", profile.syn.answer_retries.to_string()),
        (linear, profile.syn.linear_timeouts.to_string()),
        ("net.ipv4.tcp_keepalive_time", (profile.keepalive.idle.as_millis() / 1_000).to_string()),
        (
            "net.ipv4.tcp_keepalive_intvl",
            (profile.keepalive.interval.as_millis() / 1_000).to_string(),
        ),
        ("net.ipv4.tcp_keepalive_probes", profile.keepalive.count.to_string()),
    ];
    if let SendBufferRule::Linux { wmem, notsent_lowat, .. } = profile.send_buffer {
        settings.push(("net.ipv4.tcp_wmem", three(wmem)));
        settings.push(("net.ipv4.tcp_notsent_lowat", notsent_lowat.to_string()));
    }
    if let ReceiveBufferRule::Linux { rmem, auto, rmem_max, .. } = profile.receive_buffer {
        settings.push(("net.core.rmem_max", rmem_max.get().to_string()));
        settings.push(("net.ipv4.tcp_rmem", three(rmem)));
        settings.push(("net.ipv4.tcp_moderate_rcvbuf", switch(auto)));
    }
    if let DelayedAckRule::Linux { compression, .. } = profile.acks {
        settings.push(("net.ipv4.tcp_comp_sack_delay_ns", compression.delay_ns.to_string()));
        settings.push(("net.ipv4.tcp_comp_sack_slack_ns", compression.slack_ns.to_string()));
        settings.push(("net.ipv4.tcp_comp_sack_nr", compression.nr.to_string()));
    }
    // Memory of the whole host: the model has no memory pressure.
    settings.push(("net.ipv4.tcp_mem", "1000000 1000000 1000000".to_owned()));
    settings
}

/// Longest text of the steps of an exchange: process 1 reads lines of up to 4,096 bytes.
const MOST_STEPS: usize = 3_000;

/// A step of an exchange: the side, bytes, nanoseconds to wait, the application's window.
fn step(step: &ExchangeStep) -> String {
    let side = if step.by == ExchangeSide::Server { 's' } else { 'c' };
    let window = step.window.map_or(0, Bytes::get);
    format!("{side}{}@{}w{window}", step.bytes.get(), step.after.as_nanos())
}

/// Returns the workload of one endpoint, as pairs that begin with a blank.
fn application(flow: &FlowSpec, listens: bool) -> Result<String, String> {
    let mut text = String::new();
    let mut set = |key: &str, value: u64| {
        let _ = write!(text, " {key}={value}");
    };
    let endless = |bytes: Option<Bytes>| bytes.map_or(u64::MAX, Bytes::get);
    let mut reads = flow.reads.filter(|_| listens);
    let name = match flow.app {
        App::Bulk { bytes, write } => {
            set("bytes", endless(bytes));
            write.into_iter().for_each(|write| set("write", write.get()));
            "bulk"
        }
        App::Paced { chunk, every, bytes, .. } => {
            set("bytes", endless(bytes));
            set("chunk", chunk.get());
            set("every", every.as_nanos().max(1));
            "paced"
        }
        App::OnOff { on: OnPeriod::Bytes(chunk), off: Pause::Fixed(every), bytes } => {
            set("bytes", endless(bytes));
            set("chunk", chunk.get());
            set("every", every.as_nanos());
            "onoff"
        }
        App::OnOff { .. } => {
            return Err("its `on_off` needs bursts in bytes and a fixed pause".into());
        }
        App::Datagrams(_) | App::Video(_) | App::Page { .. } => {
            return Err("`udp`, `ping`, `video` and `page` need hosts that are modelled".into());
        }
        App::Exchange(ref exchange) => {
            set("count", exchange.count);
            reads = exchange.reads[usize::from(listens)];
            "exchange"
        }
        App::Requests { request, response, think, count } => {
            set("request", request.get().max(1));
            set("response", response.get().max(1));
            set("think", think.as_nanos());
            set("count", count.unwrap_or(u64::MAX));
            "requests"
        }
    };
    if let Some(reads) = reads {
        set("read_chunk", reads.chunk.get().max(1));
        set("read_every", reads.every.as_nanos().max(1));
    }
    set("nodelay", flow.nodelay.into());
    set("reset", (flow.close == Close::Reset).into());
    if let Some(keepalive) = flow.keepalive {
        set("keepalive", 1);
        let spans = [keepalive.idle, keepalive.interval].into_iter().flatten();
        if spans.into_iter().any(|span| span.is_zero() || span.as_nanos() % 1_000_000_000 > 0) {
            return Err("its `keepalive` needs times in whole seconds, as sockets have them".into());
        }
        let seconds = |span: Option<Duration>| span.map_or(0, |span| span.as_millis() / 1_000);
        set("keep_idle", seconds(keepalive.idle));
        set("keep_interval", seconds(keepalive.interval));
        set("keep_count", keepalive.count.unwrap_or(0).into());
    }
    if let App::Exchange(exchange) = &flow.app {
        let mut list = |key: &str, list: &[ExchangeStep]| {
            let list: Vec<String> = list.iter().map(step).collect();
            let _ = write!(text, " {key}={}", list.join(","));
            list.iter().map(String::len).sum::<usize>()
        };
        if list("opening", &exchange.opening) + list("steps", &exchange.steps) > MOST_STEPS {
            return Err("its `exchange` has too many steps for a kernel".into());
        }
    }
    // In the plan -1 means unlimited.
    Ok(format!(" app={name}{}", text.replace(&format!("={}", u64::MAX), "=-1")))
}

/// Returns the initial file system of a guest: an archive (newc, see cpio(5)) of `/init` and
/// `/plan`. The kernel's built-in archive provides /dev/console.
pub fn initial_archive(init: &[u8], plan: &[u8]) -> Vec<u8> {
    let mut archive = Vec::with_capacity(init.len() + plan.len() + 1_024);
    let mut file = |number: u32, name: &str, mode: u32, bytes: &[u8]| {
        let fields =
            [number, mode, 0, 0, 1, 0, bytes.len() as u32, 0, 0, 0, 0, name.len() as u32 + 1, 0];
        archive.extend_from_slice(b"070701");
        for field in fields {
            archive.extend_from_slice(format!("{field:08X}").as_bytes());
        }
        archive.extend_from_slice(name.as_bytes());
        archive.push(0);
        archive.resize(archive.len().next_multiple_of(4), 0);
        archive.extend_from_slice(bytes);
        archive.resize(archive.len().next_multiple_of(4), 0);
    };
    file(1, "init", 0o100_755, init);
    file(2, "plan", 0o100_644, plan);
    file(0, "TRAILER!!!", 0, &[]);
    archive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_linear_syn_timeouts_takes_any_profile() {
        for name in ["linux-6.1", "linux-6.12", "linux-6.18"] {
            let settings = settings(&TcpProfile::named(name).unwrap());
            let linear = settings.iter().find(|(name, _)| name.ends_with("linear_timeouts"));
            assert!(linear.unwrap().0.starts_with('-'), "{name}");
        }
    }

    #[test]
    fn keepalive_times_are_whole_seconds() {
        let text = |idle: u64| {
            application(
                &FlowSpec {
                    name: String::new(),
                    path: 0,
                    from: 0,
                    to: 1,
                    start: Duration::ZERO,
                    app: App::Bulk { bytes: Some(Bytes(1)), write: None },
                    ip: IpVersion::V4,
                    nodelay: false,
                    reads: None,
                    close: Close::Fin,
                    keepalive: Some(sim::scenario::KeepaliveSpec {
                        idle: Some(Duration::from_millis(idle)),
                        interval: None,
                        count: None,
                    }),
                },
                false,
            )
        };
        assert!(text(2_000).unwrap().contains("keep_idle=2 "));
        for idle in [0, 52, 1_001] {
            assert!(text(idle).unwrap_err().contains("whole seconds"), "{idle}");
        }
    }
}
