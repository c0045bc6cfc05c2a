//! Frames of a capture that were not read, and why.

use diagnose::rules::many;

use crate::inputs::File;

/// Link types of pcap that are met in the wild and that are not read.
const LINKS: &[(u16, &str)] = &[
    (6, "Token Ring"),
    (8, "SLIP"),
    (107, "Frame Relay"),
    (117, "OpenBSD pflog"),
    (119, "802.11 with Prism header"),
    (129, "ARCnet"),
    (143, "DOCSIS"),
    (163, "802.11 with AVS header"),
    (178, "Juniper Ethernet"),
    (187, "Bluetooth"),
    (189, "USB"),
    (195, "802.15.4"),
    (197, "ERF"),
    (201, "Bluetooth"),
    (220, "USB"),
    (230, "802.15.4"),
    (249, "USBPcap"),
    (252, "Wireshark upper PDU"),
];

/// Names of IP protocols (IANA).
const PROTOCOLS: &[(u8, &str)] = &[
    (1, "ICMP"),
    (2, "IGMP"),
    (17, "UDP"),
    (47, "GRE"),
    (50, "ESP"),
    (51, "AH"),
    (58, "ICMPv6"),
    (89, "OSPF"),
    (103, "PIM"),
    (112, "VRRP"),
    (115, "L2TP"),
    (132, "SCTP"),
];

/// One line for each kind of frames that the diagnosis does not cover, and one for copies.
pub(super) fn not_read(file: &File) -> Vec<String> {
    let others = &file.others;
    let mut lines: Vec<String> = others
        .links
        .iter()
        .map(|(&number, &frames)| {
            let name = LINKS.iter().find(|(known, _)| *known == number);
            let name = name.map_or(String::new(), |(_, name)| format!(" ({name})"));
            format!("not read: {} of link type {number}{name}", many(frames, "frame"))
        })
        .collect();
    let counted = [
        (others.tunnelled, "packet", "of a tunnel with unknown contents"),
        (others.cut, "packet", "cut off within the headers by the snap length"),
    ];
    if others.fragments > 0 {
        let mut line = format!("not read: {} of IP packets", many(others.fragments, "fragment"));
        let counts = others.fragmented;
        if counts.incomplete + counts.overlapping > 0 {
            let (missing, overlap) = (counts.incomplete, counts.overlapping);
            line += &format!(": {missing} incomplete, {overlap} with parts that overlap");
        }
        lines.push(line);
    }
    for (frames, what, of) in counted {
        if frames > 0 {
            lines.push(format!("not read: {} {of}", many(frames, what)));
        }
    }
    // Never a silent 0: without TCP, what else there is.
    if file.tcp == 0 {
        let protocols = others.protocols.iter().map(|(&number, &frames)| {
            let name = PROTOCOLS.iter().find(|(known, _)| *known == number);
            let name =
                name.map_or_else(|| format!("IP protocol {number}"), |(_, name)| (*name).into());
            (frames, format!("of {name}"))
        });
        let rest = [
            (others.not_ip, "that is not IP".to_owned()),
            (others.broken, "with an invalid TCP header".to_owned()),
        ];
        for (frames, what) in protocols.chain(rest).filter(|(frames, _)| *frames > 0) {
            let what = if frames > 1 { what.replace("that is", "that are") } else { what };
            lines.push(format!("not read: {} {what}", many(frames, "packet")));
        }
    }
    let counts = others.fragmented;
    if counts.reassembled > 0 {
        lines.push(format!(
            "reassembled: {} of {}",
            many(counts.reassembled, "IP packet"),
            many(counts.used, "fragment")
        ));
    }
    if file.options_cut > 0 {
        lines.push(format!(
            "cut off by the snap length: the TCP options of {}",
            many(file.options_cut, "packet")
        ));
    }
    if file.forgotten > 0 {
        let connections = many(file.forgotten, "connection");
        lines.push(format!("forgotten after a time without packets (--forget): {connections}"));
    }
    if file.duplicates > 0 {
        let copies = if file.duplicates == 1 { "copy is" } else { "copies are" };
        lines.push(format!(
            "captured twice: {}; the second {copies} not counted",
            many(file.duplicates, "frame")
        ));
    }
    lines
}
