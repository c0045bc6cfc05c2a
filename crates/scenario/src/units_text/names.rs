//! The units of each dimension, and suggestions for misspelt units.

use super::dimension::Dimension;
use super::{MAX_BDP, MAX_DURATION, MAX_PACKETS, MAX_RATE, MAX_SIZE};

pub(super) const TIME: Dimension = Dimension {
    noun: "a duration",
    of: "time",
    examples: r#""100ms""#,
    usual: "ms",
    units: "ns, us, ms, s, min and h",
    factor: time_factor,
    meant: time_meant,
    step: "a nanosecond",
    most: MAX_DURATION.as_nanos(),
    most_text: "1000000s",
};

pub(super) const SIZE: Dimension = Dimension {
    noun: "a size",
    of: "size",
    examples: r#""64KiB" or "1MB""#,
    usual: "B",
    units: "B, kB, MB, GB, TB (powers of 1000) and KiB, MiB, GiB, TiB (powers of 1024)",
    factor: size_factor,
    meant: size_meant,
    step: "a byte",
    most: MAX_SIZE.get(),
    most_text: "1EB",
};

pub(super) const RATE: Dimension = Dimension {
    noun: "a rate",
    of: "rate",
    examples: r#""100Mbit/s""#,
    usual: "Mbit/s",
    units: "bit/s, kbit/s, Mbit/s, Gbit/s, Tbit/s (bits) and kB/s, MB/s, GB/s (bytes)",
    factor: rate_factor,
    meant: rate_meant,
    step: "a bit per second",
    most: MAX_RATE,
    most_text: "100Tbit/s",
};

pub(super) const SHARE: Dimension = Dimension {
    noun: "a percentage",
    of: "percentages",
    examples: r#""2%""#,
    usual: "%",
    units: "%",
    factor: |_| None,
    meant: fraction_meant,
    step: "nothing",
    most: 100,
    most_text: "100%",
};

pub(super) const ROOM: Dimension = Dimension {
    noun: "a queue capacity",
    of: "queue capacity",
    examples: r#""64KiB", "100p" (packets) or "1bdp""#,
    usual: "p",
    units: "p (packets), bdp (rate times round trip) and those of sizes: B, kB, KiB, MB, ...",
    meant: buffer_size_meant,
    ..SIZE
};

pub(super) const PACKETS: Dimension =
    Dimension { step: "a packet", most: MAX_PACKETS, most_text: "1000000000p", ..ROOM };

pub(super) const BDP: Dimension = Dimension { most: MAX_BDP, most_text: "10000bdp", ..ROOM };

fn time_factor(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // The micro sign, and the Greek letter that looks like it.
        "us" | "µs" | "μs" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

fn time_meant(unit: &str) -> Option<&'static str> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "ns" | "nsec" | "nsecs" | "nanoseconds" => "ns",
        "us" | "usec" | "usecs" | "microseconds" => "us",
        "ms" | "msec" | "msecs" | "millis" | "milliseconds" => "ms",
        "s" | "sec" | "secs" | "second" | "seconds" => "s",
        "m" | "min" | "mins" | "minute" | "minutes" => "min",
        "h" | "hr" | "hour" | "hours" => "h",
        _ => return None,
    })
}

fn size_factor(unit: &str) -> Option<u64> {
    let prefix = unit.strip_suffix('B')?;
    Some(match prefix {
        "" => 1,
        // Both spellings mean 1000.
        "k" | "K" => 1_000,
        "M" => 1_000_000,
        "G" => 1_000_000_000,
        "T" => 1_000_000_000_000,
        "P" => 1_000_000_000_000_000,
        "E" => 1_000_000_000_000_000_000,
        "Ki" => 1 << 10,
        "Mi" => 1 << 20,
        "Gi" => 1 << 30,
        "Ti" => 1 << 40,
        "Pi" => 1 << 50,
        "Ei" => 1 << 60,
        _ => return None,
    })
}

fn size_meant(unit: &str) -> Option<&'static str> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "b" | "byte" | "bytes" => "B",
        "k" | "kb" | "kbyte" | "kbytes" => "kB",
        "m" | "mb" | "mbyte" | "mbytes" => "MB",
        "g" | "gb" | "gbyte" | "gbytes" => "GB",
        "t" | "tb" => "TB",
        "ki" | "kib" => "KiB",
        "mi" | "mib" => "MiB",
        "gi" | "gib" => "GiB",
        "ti" | "tib" => "TiB",
        _ => return None,
    })
}

fn rate_factor(unit: &str) -> Option<u64> {
    const SUFFIXES: [(&str, u64); 7] =
        [("bits/s", 1), ("bit/s", 1), ("bit", 1), ("bps", 1), ("b/s", 1), ("B/s", 8), ("Bps", 8)];
    SUFFIXES.iter().find_map(|&(suffix, bits)| {
        let factor = match unit.strip_suffix(suffix)? {
            "" => 1,
            "k" | "K" => 1_000,
            "m" | "M" => 1_000_000,
            "g" | "G" => 1_000_000_000,
            "t" | "T" => 1_000_000_000_000,
            "ki" | "Ki" => 1 << 10,
            "mi" | "Mi" => 1 << 20,
            "gi" | "Gi" => 1 << 30,
            "ti" | "Ti" => 1 << 40,
            _ => return None,
        };
        Some(factor * bits)
    })
}

fn rate_meant(unit: &str) -> Option<&'static str> {
    let lower = unit.to_ascii_lowercase();
    let bytes = lower.contains("byte") || unit.contains('B') && !lower.contains("bit");
    Some(match (lower.chars().next()?, bytes) {
        ('k', false) => "kbit/s",
        ('k', true) => "kB/s",
        ('m', false) => "Mbit/s",
        ('m', true) => "MB/s",
        ('g', false) => "Gbit/s",
        ('g', true) => "GB/s",
        ('t', false) => "Tbit/s",
        ('b', false) => "bit/s",
        ('b', true) => "B/s",
        _ => return None,
    })
}

fn fraction_meant(unit: &str) -> Option<&'static str> {
    matches!(unit.to_ascii_lowercase().as_str(), "percent" | "per cent" | "pct").then_some("%")
}

fn buffer_size_meant(unit: &str) -> Option<&'static str> {
    Some(match unit.to_ascii_lowercase().as_str() {
        "p" | "pkt" | "pkts" | "packet" | "packets" | "segments" | "segs" | "mss" => "p",
        "bdp" | "bdps" | "bpd" | "bandwidth-delay" => "bdp",
        other => return size_meant(other),
    })
}
