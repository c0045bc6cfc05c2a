//! Flows by chance: every application, small transfers.

use toml::{Table, Value};

use super::luck::{Luck, size, span, table};

/// Draws the key of an application and what it holds. An `endless` one writes until the run ends.
pub(super) fn application(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    match luck.within(0..=5) {
        0 => paced(endless, luck),
        1 => on_off(endless, luck),
        2 => requests(endless, luck),
        _ if endless => ("bulk", "unlimited".into()),
        _ => ("bulk", size(volume(luck))),
    }
}

/// From nothing to a thousand packets; most of them few.
fn volume(luck: &mut Luck) -> u64 {
    match luck.within(0..=15) {
        0 => 0,
        1..=5 => luck.within(1..=5_000),
        6..=14 => luck.magnitude(1_000..=300_000),
        _ => luck.magnitude(200_000..=2_000_000),
    }
}

fn paced(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    let chunk = luck.magnitude(1..=20_000);
    let mut keys = Table::new();
    keys.insert("chunk".into(), size(chunk));
    keys.insert("every".into(), luck.span(1..=100_000));
    if !endless {
        let chunks = luck.pick(&[1, 10, 100]);
        keys.insert("bytes".into(), size(luck.within(0..=chunks * chunk)));
    }
    ("paced", Value::Table(keys))
}

fn on_off(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    let on = luck.magnitude(1..=50_000);
    let mut keys = Table::new();
    keys.insert("on".into(), if luck.once_in(3) { luck.span(1..=50_000) } else { size(on) });
    let off = luck.magnitude(1..=1_000_000);
    let least = luck.within(0..=off);
    let between = table([("least", span(least)), ("most", span(off))]);
    keys.insert("off".into(), if luck.once_in(2) { between } else { span(off) });
    if !endless {
        keys.insert("bytes".into(), size(luck.within(0..=10 * on)));
    }
    ("on_off", Value::Table(keys))
}

fn requests(endless: bool, luck: &mut Luck) -> (&'static str, Value) {
    let mut keys = Table::new();
    keys.insert("request".into(), luck.size(1..=5_000));
    keys.insert("response".into(), luck.size(1..=50_000));
    if luck.once_in(2) {
        keys.insert("think".into(), luck.span(1..=100_000));
    }
    if !endless {
        keys.insert("count".into(), luck.count(1..=16));
    }
    ("requests", Value::Table(keys))
}
