//! Random worlds for kernels: those of [`simtest::worlds`] with Linux hosts, and a line at the end of every path.

use simtest::worlds;
use toml::{Table, Value};
use units::RandomStream;

use super::WorldCc;

/// Maximum virtual time of a world.
const LONGEST: &str = "5s";
/// Memory of a packet that the guest's card received: receive_small of virtio_net.c, 1,596 bytes
/// and skb_shared_info in whole cache lines, and the sk_buff.
const TRUESIZE: &str = "2176B";

/// Profiles of hosts that are models beside guests.
const MODELS: [&str; 4] = ["linux-6.18", "freebsd-14.3", "freebsd-rack-14.3", "freebsd-main"];

/// Returns the world with this number, in which only some of the hosts have this profile, at least one of them.
pub(super) fn mixed_world(seed: u64, number: u64, profile: &str) -> String {
    let text = world(seed, number, profile);
    let Ok(mut root) = text.parse::<Table>() else { return text };
    let mut random = RandomStream::named(seed, &format!("world {number}"), "mixed hosts");
    if let Some(Value::Table(hosts)) = root.get_mut("host") {
        let guest = random.below(hosts.len().max(1) as u64) as usize;
        for (position, (_, host)) in hosts.iter_mut().enumerate() {
            let models = random.below(2) == 0;
            let model = MODELS[random.below(MODELS.len() as u64) as usize];
            if position == guest || !models {
                continue;
            }
            let mut table = Table::new();
            table.insert("profile".into(), Value::String(model.into()));
            *host = Value::Table(table);
        }
    }
    root.to_string()
}

/// What a guest's card and driver do, for models.
fn card() -> Table {
    let knobs = [
        ("driver.truesize".to_owned(), Value::String(TRUESIZE.into())),
        ("driver.holds_packets".to_owned(), Value::Boolean(true)),
    ];
    knobs.into_iter().collect()
}

/// Returns the wide world with this number, with Linux hosts of this profile.
pub(super) fn wide_world(seed: u64, number: u64, profile: &str, one_flow: bool) -> String {
    worlds::wide(seed, number, profile, one_flow, &card())
}

/// Returns a world whose hosts with this profile have one of these controllers each, drawn; unchanged if none is named.
pub(super) fn with_controllers(
    text: String,
    (seed, number): (u64, u64),
    profile: &str,
    controllers: &[WorldCc],
) -> String {
    let Ok(mut root) = text.parse::<Table>() else { return text };
    let Some(Value::Table(hosts)) = root.get_mut("host") else { return text };
    if controllers.is_empty() {
        return text;
    }
    let mut random = RandomStream::named(seed, &format!("world {number}"), "controllers");
    for host in hosts.iter_mut().filter_map(|(_, host)| host.as_table_mut()) {
        let cc = controllers[random.below(controllers.len() as u64) as usize];
        if host.get("profile").and_then(Value::as_str) == Some(profile) {
            host.insert("cc".into(), Value::String(cc.name().into()));
        }
    }
    root.to_string()
}

/// Returns the world with this number, with Linux hosts of this profile.
pub(super) fn world(seed: u64, number: u64, profile: &str) -> String {
    let text = worlds::draw(seed, number);
    let Ok(mut root) = text.parse::<Table>() else { return text };
    let mut random = RandomStream::named(seed, &format!("world {number}"), "linux hosts");
    if let Some(Value::Table(hosts)) = root.get_mut("host") {
        for host in hosts.iter_mut().map(|(_, host)| host) {
            let mut table = Table::new();
            let cc = ["cubic", "reno", "bbr"][random.below(3) as usize];
            table.insert("profile".into(), Value::String(profile.into()));
            table.insert("knobs".into(), Value::Table(card()));
            table.insert("cc".into(), Value::String(cc.into()));
            table.insert("tso".into(), Value::Boolean(true));
            *host = Value::Table(table);
        }
    }
    root.insert("duration".into(), Value::String(LONGEST.into()));
    let mut bursts = RandomStream::named(seed, &format!("world {number}"), "linux bursts");
    if let Some(Value::Array(flows)) = root.get_mut("flow") {
        flows.iter_mut().filter_map(Value::as_table_mut).for_each(|flow| {
            if let Some(Value::Table(on_off)) = flow.get_mut("on_off") {
                steady_bursts(on_off, &mut bursts);
            }
            if let Some(Value::Table(keepalive)) = flow.get_mut("keepalive") {
                round_up_to_seconds(keepalive);
            }
        });
    }
    // What happens at one instant has no order that two grades share.
    if let Some(Value::Array(paths)) = root.get_mut("path") {
        for path in paths.iter_mut().filter_map(Value::as_table_mut) {
            for way in ["forward", "return"] {
                add_link(path, way, &mut random);
            }
        }
    }
    root.to_string()
}

/// Rounds the times of a keepalive up to whole seconds, which a socket of a kernel has.
fn round_up_to_seconds(keepalive: &mut Table) {
    for key in ["idle", "interval"] {
        let span = keepalive.get(key).and_then(Value::as_str).map(scenario::units_text::duration);
        if let Some(Ok(span)) = span {
            let seconds = span.as_nanos().div_ceil(1_000_000_000).max(1);
            keepalive.insert(key.into(), Value::String(format!("{seconds}s")));
        }
    }
}

/// Returns a world all of whose packets are late by a random time up to a microsecond, which is less than a guest's
/// timers are late: what differs then is no matter of a stack.
pub(super) fn jittered(text: &str) -> String {
    let Ok(mut root) = text.parse::<Table>() else { return text.to_owned() };
    if let Some(Value::Array(paths)) = root.get_mut("path") {
        for path in paths.iter_mut().filter_map(Value::as_table_mut) {
            for way in ["forward", "return"] {
                if let Some(Value::Array(elements)) = path.get_mut(way) {
                    let jitter = [("jitter".to_owned(), Value::String("1us".into()))];
                    // At the end: the random stream of a jitter depends on its index among them.
                    elements.push(Value::Table(jitter.into_iter().collect()));
                }
            }
        }
    }
    root.to_string()
}

/// Returns a world in which every host requests ECN, and the line at the end of every path marks packets.
pub(super) fn marking(text: &str) -> String {
    let Ok(mut root) = text.parse::<Table>() else { return text.to_owned() };
    if let Some(Value::Table(hosts)) = root.get_mut("host") {
        for host in hosts.iter_mut().filter_map(|(_, host)| host.as_table_mut()) {
            let linux = host
                .get("profile")
                .and_then(Value::as_str)
                .is_some_and(|name| name.starts_with("linux"));
            let knob = if linux { "net.ipv4.tcp_ecn" } else { "net.inet.tcp.ecn.enable" };
            let knobs = host.entry("knobs").or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(knobs) = knobs {
                knobs.insert(knob.into(), Value::Integer(1));
            }
        }
    }
    let queue = "{ codel = { ecn = true } }";
    if let Some(Value::Array(paths)) = root.get_mut("path") {
        for path in paths.iter_mut().filter_map(Value::as_table_mut) {
            for way in ["forward", "return"] {
                let Some(Value::Array(elements)) = path.get_mut(way) else { continue };
                let links = elements.iter_mut().filter_map(|element| element.get_mut("link"));
                if let Some(Value::Table(link)) = links.last()
                    && let Ok(queue) = toml::from_str::<Table>(&format!("queue = {queue}"))
                {
                    link.extend(queue);
                }
            }
        }
    }
    root.to_string()
}

/// Makes bursts of a duration bursts in bytes, and random pauses the longest of them: a guest's application has no
/// other.
fn steady_bursts(on_off: &mut Table, random: &mut RandomStream) {
    let bytes = 1 + random.below(50_000);
    let on = on_off.get("on").and_then(Value::as_str);
    if on.is_some_and(|on| on.ends_with('s')) {
        on_off.insert("on".into(), Value::String(format!("{bytes}B")));
    }
    let most = on_off.get("off").and_then(|off| off.get("most")).cloned();
    on_off.extend(most.map(|most| ("off".to_owned(), most)));
}

/// Adds a line and its delay to one direction of a path.
fn add_link(path: &mut Table, way: &str, random: &mut RandomStream) {
    let rate = ["1Gbit/s", "200Mbit/s", "50Mbit/s", "10Mbit/s"][random.below(4) as usize];
    let micros = 100 + random.below(30_000);
    let link =
        toml::from_str::<Table>(&format!("link = {{ rate = \"{rate}\", buffer = \"2MB\" }}"));
    let delay = toml::from_str::<Table>(&format!("delay = \"{micros}us\""));
    let Some(Value::Array(elements)) = path.get_mut(way) else { return };
    elements.extend(link.into_iter().chain(delay).map(Value::Table));
}

/// Does every direction of every path of a world end in a line and its delay, as
/// [`add_link`] leaves them, and are the hosts still guests or models beside them?
pub(super) fn has_links(text: &str) -> bool {
    let Ok(root) = text.parse::<Table>() else { return false };
    let Some(Value::Table(hosts)) = root.get("host") else { return false };
    let guest = |host: &Value| {
        let knob = |name: &str| host.get("knobs").and_then(|knobs| knobs.get(name));
        knob("driver.truesize").and_then(Value::as_str) == Some(TRUESIZE)
            && knob("driver.holds_packets") == Some(&Value::Boolean(true))
    };
    let is_model = |host: &Value| {
        let profile = host.get("profile").and_then(Value::as_str);
        profile.is_some_and(|name| MODELS.contains(&name))
    };
    let mut all = hosts.iter().map(|(_, host)| host);
    if !all.all(|host| guest(host) || is_model(host)) || !hosts.iter().any(|(_, host)| guest(host))
    {
        return false;
    }
    let Some(Value::Array(paths)) = root.get("path") else { return true };
    paths.iter().filter_map(Value::as_table).all(|path| {
        ["forward", "return"].iter().all(|way| {
            let Some(Value::Array(elements)) = path.get(*way) else { return false };
            let [.., link, delay] = elements.as_slice() else { return false };
            link.get("link").is_some() && delay.get("delay").is_some()
        })
    })
}
