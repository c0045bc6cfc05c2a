//! What each fault changes in a scenario.

use toml::{Table, Value};
use units::Duration;

use super::{Fault, FaultKind as K, origin};
use crate::draft::{DataDirection, Draft, SERVER, bytes, hundredths, kbits, micros, table};
use crate::world::{MSS, World};

impl Fault {
    /// Puts the fault into a scenario.
    pub(crate) fn apply(&self, world: &World, draft: &mut Draft) {
        let Self { strength, second, .. } = *self;
        let first = 0;
        let loss = |rule: Value| table([("loss", rule)]);
        let only = |mut element: Value, class: &str| {
            if let Value::Table(keys) = &mut element {
                keys.insert("only".into(), class.into());
            }
            element
        };
        match self.kind {
            K::RandomLoss => draft.data_path.insert(first, loss(hundredths(strength))),
            K::BurstLoss => draft.data_path.insert(first, bursts(strength, second)),
            K::NoSack => {
                draft.data_path.insert(first, bursts(strength, second));
                strip(draft, "sack");
            }
            K::BurstsInTime => {
                let outage = table([
                    ("from", micros(second / 2)),
                    ("until", micros(second / 2 + strength)),
                    ("period", micros(second)),
                ]);
                draft.data_path.insert(first, table([("outage", outage)]));
            }
            K::Policer => {
                let policer =
                    table([("rate", kbits(strength)), ("burst", bytes(second.max(3_000)))]);
                draft.data_path.insert(first, table([("policer", policer)]));
            }
            K::ShortQueue => {
                if let Some(link) = draft.link() {
                    link.insert("buffer".into(), format!("{strength}p").into());
                }
            }
            K::SmallReceiveBuffer => receive_buffer(draft.is_quic, &mut draft.receiver, strength),
            K::SmallSendBuffer => send_buffer(&mut draft.sender, strength),
            K::SlowReader => {
                let every = second.max(strength_interval(strength));
                draft.exchange.reads =
                    Some(table([("rate", kbits(strength)), ("every", micros(every))]));
            }
            K::SlowWriter => {
                let count = (world.size / second.max(1)).max(1);
                let write = world.step(true, second, strength);
                if world.direction == DataDirection::Download {
                    draft.exchange.opening.extend(draft.exchange.steps.first().cloned());
                }
                (draft.exchange.steps, draft.exchange.count) = (vec![write], count);
            }
            K::ServerThinks => wait(&mut draft.exchange.steps, "server", strength),
            K::ClientThinks => wait(&mut draft.exchange.steps, "client", strength),
            K::RoundTrips => {
                // The same bytes in many requests; without the fault they are one.
                draft.exchange.steps = match world.direction {
                    DataDirection::Upload => {
                        vec![world.step(true, second, 0), world.step(false, 100, 100)]
                    }
                    DataDirection::Download => {
                        vec![world.step(false, 100, 0), world.step(true, second, 100)]
                    }
                };
                draft.exchange.count = strength;
            }
            K::WaitInRequest => {
                // The head of each message, then the wait, then the rest.
                let data = world.step(true, world.size, strength);
                let head = world.step(true, 300, 0);
                let steps = draft.exchange.steps.iter().flat_map(|step| {
                    let is_data = step.get(side(world, true)).is_some();
                    if is_data { vec![head.clone(), data.clone()] } else { vec![step.clone()] }
                });
                draft.exchange.steps = steps.collect();
            }
            K::NagleDelayedAcks => {
                draft.nodelay = false;
                // The receiver acknowledges the first write late, and the second waits for that.
                let steps = draft.exchange.steps.iter().flat_map(|step| {
                    let is_data = step.get(side(world, true)).is_some();
                    let parts = vec![world.step(true, 200, 0), world.step(true, strength, 0)];
                    if is_data { parts } else { vec![step.clone()] }
                });
                draft.exchange.steps = steps.collect();
            }
            // The rests are a fault of their own, drawn with it.
            K::IdleRestart => {}
            K::AppWindow => {
                for step in &mut draft.exchange.steps {
                    if let Value::Table(keys) = step
                        && keys.contains_key(side(world, true))
                    {
                        keys.insert("window".into(), bytes(strength));
                    }
                }
            }
            K::Reordering => {
                let late =
                    table([("fraction", hundredths(second)), ("by", micros(strength.max(100)))]);
                draft.data_path.push(table([("reorder", late)]));
            }
            K::Outage => {
                let from = world.size * 8_000 / world.rate * second / 8;
                let (from, until) = (micros(from), micros(from + strength * 1_000));
                let outage = table([("from", from), ("until", until)]);
                draft.data_path.insert(first, table([("outage", outage)]));
            }
            K::TailLoss => {
                let tail = (0..world.count).map(|n| {
                    let end = (n + 1) * world.size;
                    let rule = table([("bytes", format!("{}B..{end}B", end - 1).into())]);
                    loss(rule)
                });
                let losses: Vec<Value> = tail.collect();
                draft.data_path.splice(0..0, losses);
            }
            K::SynLost => {
                let rule = table([("packets", numbers(strength))]);
                draft.upstream().insert(first, only(loss(rule), "syns"));
            }
            K::SynAckLost => {
                let rule = table([("packets", numbers(strength))]);
                draft.downstream().insert(first, only(loss(rule), "syn-acks"));
            }
            K::EcnSyns => {
                ask_for_ecn(draft);
                draft.upstream().insert(first, only(loss("100%".into()), "ecn-syns"));
            }
            K::SlowAckPath => {
                let link = table([("rate", kbits(strength.max(20))), ("buffer", "100p".into())]);
                draft.ack_path.insert(first, table([("link", link)]));
            }
            K::MtuHole => {
                let reports = second == 1;
                let hole = table([("size", bytes(strength)), ("icmp", reports.into())]);
                draft.data_path.insert(first, table([("mtu", hole)]));
            }
            K::Forgotten => {
                let forgets = table([("idle", micros(strength * 1_000))]);
                draft.shared.insert("box".into(), table([("forget", forgets)]));
                draft.data_path.insert(first, table([("shared", "box".into())]));
                draft.ack_path.push(table([("shared", "box".into())]));
                self.rest(draft);
            }
            K::BoxReset => {
                let reset = table([("reset", table([("bytes", bytes(strength))]))]);
                draft.data_path.insert(first, reset);
            }
            K::NoScaling => strip(draft, "window-scale"),
            K::ThinnedAcks => {
                let thin = table([
                    ("segments", Value::Integer(strength as i64)),
                    ("timeout", micros(second)),
                ]);
                draft.ack_path.insert(first, table([("thin", thin)]));
            }
            K::Marks => {
                ask_for_ecn(draft);
                let target = (world.round_trip() * strength / 100_000).clamp(50, 5_000);
                let marks = table([
                    ("target", micros(target)),
                    ("interval", micros(world.round_trip().max(1_000))),
                    ("ecn", true.into()),
                ]);
                if let Some(link) = draft.link() {
                    link.insert("queue".into(), table([("codel", marks)]));
                }
            }
            K::CompetingTraffic => compete(draft, strength, 4 * world.size),
            K::Backlog => {
                let listen = table([
                    ("backlog", Value::Integer(second as i64)),
                    ("accept", micros(strength * 1_000)),
                ]);
                listener(draft).insert("listen".into(), listen);
                connect_first(draft, second + 2);
            }
            K::SlowOpening => {
                let [hello, answer] = [("client", 517_u64, 0), ("server", 3_500, strength)]
                    .map(|(by, size, after)| table([(by, bytes(size)), ("after", micros(after))]));
                draft.exchange.opening = vec![hello, answer];
            }
            K::Proxy => {
                let chunks = origin::chunks(world, strength, second);
                match world.direction {
                    DataDirection::Download => {
                        let asked = draft.exchange.steps.first().cloned();
                        let sent = chunks
                            .iter()
                            .map(|chunk| world.step(true, chunk.bytes, chunk.wait.as_micros()));
                        draft.exchange.steps = asked.into_iter().chain(sent).collect();
                    }
                    DataDirection::Upload => {
                        let took: Duration = chunks.iter().map(|chunk| chunk.wait).sum();
                        let rate = world.size * 8_000 / took.as_micros().max(1);
                        let reads = [
                            ("rate", kbits(rate.max(1))),
                            ("every", micros(10_000.max(strength_interval(rate)))),
                        ];
                        draft.exchange.reads = Some(table(reads));
                    }
                }
            }
            K::RateDrop => {
                let at = world.size * 8_000 / world.rate * second / 100;
                let steps: Vec<Value> = vec![
                    vec![Value::from("0s"), kbits(world.rate)].into(),
                    vec![micros(at.max(1)), kbits(strength)].into(),
                ];
                if let Some(link) = draft.link() {
                    link.insert("rate".into(), table([("at", steps.into())]));
                }
            }
        }
    }

    /// What the scenario without this fault has in its place, beyond leaving it out: waits of the
    /// applications that are no part of the fault.
    pub(crate) fn apply_healthy(&self, world: &World, draft: &mut Draft) {
        match self.kind {
            K::IdleRestart => {
                for host in [&mut draft.sender, &mut draft.receiver] {
                    if Draft::is_linux(host) {
                        Draft::set_knob(host, "net.ipv4.tcp_slow_start_after_idle", 0.into());
                    }
                }
            }
            K::RoundTrips => {
                let sum = self.second * self.strength;
                draft.exchange.steps = match world.direction {
                    DataDirection::Upload => {
                        vec![world.step(true, sum, 0), world.step(false, 100 * self.strength, 100)]
                    }
                    DataDirection::Download => {
                        vec![world.step(false, 100 * self.strength, 0), world.step(true, sum, 100)]
                    }
                };
                draft.exchange.count = 1;
            }
            K::NagleDelayedAcks => {
                self.apply(world, draft);
                draft.nodelay = true;
            }
            K::SlowOpening => {
                let hello = [("client", 517_u64, 0), ("server", 3_500, 1_000)];
                draft.exchange.opening = hello
                    .map(|(by, size, after)| table([(by, bytes(size)), ("after", micros(after))]))
                    .to_vec();
            }
            K::EcnSyns | K::Marks => ask_for_ecn(draft),
            K::Forgotten => self.rest(draft),
            K::Backlog => {
                listener(draft);
            }
            _ => {}
        }
    }

    /// The client rests longer than a box remembers the connection.
    fn rest(&self, draft: &mut Draft) {
        wait(&mut draft.exchange.steps, "client", (self.strength + 500) * 1_000);
    }
}

/// Interval in µs that holds at least a segment at this rate.
const fn strength_interval(kbits: u64) -> u64 {
    MSS * 8_000 / if kbits == 0 { 1 } else { kbits }
}

/// The key of the side of a step that sends the data, or the other.
fn side(world: &World, of_data: bool) -> &'static str {
    let is_server = of_data == (world.direction == DataDirection::Download);
    if is_server { "server" } else { "client" }
}

/// A box that removes an option from the SYNs of both sides.
fn strip(draft: &mut Draft, option: &str) {
    let element = || table([("strip", vec![Value::from(option)].into())]);
    draft.data_path.insert(0, element());
    draft.ack_path.insert(0, element());
}

/// The host that listens, as Linux: only its accept queue is modelled.
fn listener(draft: &mut Draft) -> &mut Table {
    let host = match draft.direction {
        DataDirection::Upload => &mut draft.receiver,
        DataDirection::Download => &mut draft.sender,
    };
    if !Draft::is_linux(host) {
        host.insert("profile".into(), "linux-6.18".into());
        host.insert("cc".into(), "cubic".into());
        if host.remove("lro").is_some() {
            host.insert("gro".into(), true.into());
        }
    }
    host
}

/// Other clients nearby, which connect before the transfer's client does.
fn connect_first(draft: &mut Draft, others: u64) {
    let other = table([("profile", "linux-6.18".into()), ("count", Value::Integer(others as i64))]);
    draft.other_hosts.insert("other".into(), other);
    let delay = || vec![table([("delay", "1ms".into())])];
    let ends = || [("from", "other".into()), ("to", SERVER.into())];
    let [from, to] = ends();
    draft
        .others
        .push(("path", table([from, to, ("forward", delay().into()), ("return", delay().into())])));
    let [from, to] = ends();
    draft
        .others
        .push(("flow", table([("name", "other".into()), from, to, ("bulk", "1kB".into())])));
}

/// Losses in bursts that begin with this probability and end with that (percent).
fn bursts(begins: u64, ends: u64) -> Value {
    let channel = table([("p", hundredths(begins)), ("r", format!("{ends}%").into())]);
    table([("loss", table([("gilbert_elliott", channel)]))])
}

fn numbers(count: u64) -> Value {
    (1..=count).map(|n| Value::Integer(n as i64)).collect::<Vec<_>>().into()
}

/// A side waits before each of its steps.
fn wait(steps: &mut [Value], side: &str, after: u64) {
    for step in steps {
        if let Value::Table(keys) = step
            && keys.contains_key(side)
        {
            keys.insert("after".into(), micros(after));
        }
    }
}

/// Limits the receive buffer as an administrator does, of QUIC its flow control.
pub(crate) fn receive_buffer(is_quic: bool, host: &mut Table, size: u64) {
    if is_quic {
        for limit in ["initial_max_data", "initial_max_stream_data"] {
            Draft::set_knob(host, limit, bytes(size));
        }
    } else if Draft::is_linux(host) {
        let sizes = [4_096, size, size].map(|n| bytes(n.max(4_096)));
        Draft::set_knob(host, "net.ipv4.tcp_rmem", sizes.to_vec().into());
    } else {
        Draft::set_knob(host, "net.inet.tcp.recvspace", bytes(size));
        Draft::set_knob(host, "net.inet.tcp.recvbuf_auto", 0.into());
    }
}

/// Limits the send buffer as an administrator does.
pub(crate) fn send_buffer(host: &mut Table, size: u64) {
    if Draft::is_linux(host) {
        let sizes = [4_096, size, size].map(|n| bytes(n.max(4_096)));
        Draft::set_knob(host, "net.ipv4.tcp_wmem", sizes.to_vec().into());
    } else {
        Draft::set_knob(host, "net.inet.tcp.sendspace", bytes(size));
        Draft::set_knob(host, "net.inet.tcp.sendbuf_auto", 0.into());
    }
}

/// Both hosts ask for ECN.
fn ask_for_ecn(draft: &mut Draft) {
    for host in [&mut draft.sender, &mut draft.receiver] {
        let knob = match Draft::is_linux(host) {
            true => "net.ipv4.tcp_ecn",
            false => "net.inet.tcp.ecn.enable",
        };
        Draft::set_knob(host, knob, 1.into());
    }
}

/// Other hosts send through the same bottleneck.
fn compete(draft: &mut Draft, senders: u64, size: u64) {
    let is_quic = draft.is_quic;
    let Some(position) = draft.data_path.iter().position(|element| element.get("link").is_some())
    else {
        return;
    };
    let link =
        core::mem::replace(&mut draft.data_path[position], table([("shared", "line".into())]));
    draft.shared.insert("line".into(), link);
    let name = if is_quic { "quic-rfc9002" } else { "linux-6.18" };
    let profile = || table([("profile", name.into())]);
    let mut source = profile();
    if let Value::Table(keys) = &mut source {
        keys.insert("count".into(), Value::Integer(senders as i64));
    }
    draft.other_hosts.insert("source".into(), source);
    draft.other_hosts.insert("sink".into(), profile());
    draft.others.push((
        "path",
        table([
            ("from", "source".into()),
            ("to", "sink".into()),
            (
                "forward",
                vec![table([("shared", "line".into())]), table([("delay", "5ms".into())])].into(),
            ),
            ("return", vec![table([("delay", "5ms".into())])].into()),
        ]),
    ));
    draft.others.push((
        "flow",
        table([
            ("name", "beside".into()),
            ("from", "source".into()),
            ("to", "sink".into()),
            ("bulk", bytes(size)),
        ]),
    ));
}
