//! Frames of a capture that were not read, and why.

use diagnose::rules::many;

use crate::inputs::File;

/// Link types of pcap that are met in the wild and that are not read.
const LINKS: &[(u16, &str)] = &[
    (6, "Token Ring"),
    (8, "SLIP"),
    (10, "FDDI"),
    (107, "Frame Relay"),
    (117, "OpenBSD pflog"),
    (119, "802.11 with Prism header"),
    (143, "DOCSIS"),
    (163, "802.11 with AVS header"),
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
        (others.fragments, "fragment", "of IP packets"),
        (others.tunnelled, "packet", "of a tunnel with unknown contents"),
        (others.cut, "packet", "cut off within the headers by the snap length"),
    ];
    for (frames, what, of) in counted {
        if frames > 0 {
            lines.push(format!("not read: {} {of}", many(frames, what)));
        }
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
