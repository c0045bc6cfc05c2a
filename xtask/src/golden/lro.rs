//! Rows of `tcp_lro_sort` and `tcp_lro_condense`: [`net::offload::Lro`].

use net::offload::RssHash;
use net::offload::lro_freebsd::{Lro, LroEntry, LroParams};
use packet::{Flags, Options, SackBlock, SackBlocks, Segment, Timestamps};
use units::SeqNum;

use super::rows::{GoldenColumn, GoldenError, GoldenRow, GoldenRows, GoldenTally};

/// Replays both kinds of rows.
pub(super) fn replay(rows: &mut GoldenRows, tally: &mut GoldenTally) -> Result<(), GoldenError> {
    let [kind, n, a, b, c, d] = rows.columns(["kind", "n", "a", "b", "c", "d"])?;
    while let Some(row) = rows.next()? {
        tally.row();
        match row.text(kind) {
            "sort" => {
                let queue = sort_queue(&row, a)?;
                row.compare(tally, n, queue.len());
                row.compare(tally, b, sorted(&queue));
            }
            "condense" => {
                let params = LroParams {
                    ack_limit: row.number(a)?,
                    length_limit: row.number(b)?,
                    ..LroParams::FREEBSD_14
                };
                let packets = packets(&row, c)?;
                row.compare(tally, n, packets.len());
                let up = condensed(&params, &packets);
                row.compare(tally, d, text(&up));
                // The same through the whole queue, as the simulator drives it.
                let queued = through_the_queue(params, &packets);
                let heads = up.iter().map(|(head, _)| *head);
                row.compare(tally, d, text(&heads.zip(queued).collect::<Vec<_>>()));
            }
            other => return Err(row.garbled(kind, &format!("{other:?} is neither kind"))),
        }
    }
    Ok(())
}

/// `hashtype:flowid|...` in order of arrival.
fn sort_queue(row: &GoldenRow<'_>, column: GoldenColumn) -> Result<Vec<RssHash>, GoldenError> {
    let item = |text: &str| {
        let (hashtype, flowid) = text.split_once(':')?;
        Some(RssHash { hashtype: hashtype.parse().ok()?, flowid: flowid.parse().ok()? })
    };
    items(row, column, item)
}

/// `seq:len:ack:win:flags:opt:tsval|...` in order of arrival.
fn packets(row: &GoldenRow<'_>, column: GoldenColumn) -> Result<Vec<Segment>, GoldenError> {
    items(row, column, |text| {
        let fields: Vec<u32> =
            text.split(':').map(|field| field.parse().ok()).collect::<Option<_>>()?;
        let [seq, payload, ack, window, flags, option, val] = fields[..] else { return None };
        let timestamps = Some(Timestamps { val, ecr: 0 });
        let (timestamps, options) = match option {
            0 => (None, Options::default()),
            1 => (timestamps, Options::default()),
            2 => (timestamps, sack_option()),
            _ => return None,
        };
        Some(Segment {
            seq: SeqNum(seq),
            payload,
            ack: SeqNum(ack),
            window: u16::try_from(window).ok()?,
            flags: Flags(u8::try_from(flags).ok()?),
            timestamps,
            options,
            ..Segment::default()
        })
    })
}

/// Parses the parts of a field separated by bars.
fn items<T>(
    row: &GoldenRow<'_>,
    column: GoldenColumn,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, GoldenError> {
    let text = row.text(column);
    let item = |part| parse(part).ok_or_else(|| row.garbled(column, &format!("{part:?}")));
    if text.is_empty() { Ok(Vec::new()) } else { text.split('|').map(item).collect() }
}

/// Returns an option other than timestamps.
fn sack_option() -> Options {
    let mut blocks = SackBlocks::EMPTY;
    blocks.push(SackBlock { left: SeqNum(1), right: SeqNum(2) });
    Options::Sack(blocks)
}

/// Returns the order in which unmergeable packets are flushed, by arrival index.
fn sorted(queue: &[RssHash]) -> String {
    let mut lro = Lro::new(LroParams::FREEBSD_14);
    for (arrival, &rss) in queue.iter().enumerate() {
        let packet = Segment {
            seq: SeqNum(arrival as u32),
            payload: 1,
            flags: Flags::ACK,
            options: sack_option(),
            ..Segment::default()
        };
        lro.push(&packet, rss);
    }
    let mut up = Vec::new();
    lro.flush(&mut up);
    let arrivals: Vec<_> = up.iter().map(|packet| packet.seq.0.to_string()).collect();
    arrivals.join("|")
}

/// Returns the aggregates passed up, each with the index of its first packet.
fn condensed(params: &LroParams, packets: &[Segment]) -> Vec<(usize, Segment)> {
    let Some((first, others)) = packets.split_first() else { return Vec::new() };
    let mut entry = LroEntry::new(first);
    let mut head = 0;
    let mut up = Vec::new();
    for (at, packet) in others.iter().enumerate() {
        if let Some(done) = entry.offer(params, packet) {
            up.push((head, done));
            head = at + 1;
        }
    }
    up.push((head, entry.finish()));
    up
}

fn through_the_queue(params: LroParams, packets: &[Segment]) -> Vec<Segment> {
    let mut lro = Lro::new(params);
    for packet in packets {
        lro.push(packet, RssHash::of_flow(packet.flow));
    }
    let mut up = Vec::new();
    lro.flush(&mut up);
    up
}

/// `head_index:seq:len:ack:lro_nsegs:win|...`.
fn text(up: &[(usize, Segment)]) -> String {
    let item = |(head, s): &(usize, Segment)| {
        format!("{head}:{}:{}:{}:{}:{}", s.seq.0, s.payload, s.ack.0, s.nsegs, s.window)
    };
    up.iter().map(item).collect::<Vec<_>>().join("|")
}
