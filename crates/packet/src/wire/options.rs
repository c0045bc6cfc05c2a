//! TCP options in the order of each operating system, padding included.
//!
//! FreeBSD: `tcp_addoptions` (sys/netinet/tcp_output.c) aligns each option with NOPs before it and
//! ends with EOL and zeros. Linux: `tcp_options_write` (net/ipv4/tcp_output.c) writes whole words.
//! Option kinds: RFC 9293 section 3.2, RFC 7323 and RFC 2018.

use units::SeqNum;

use super::EmitError;
use crate::{
    Options, SackBlock, SackBlocks, Segment, SynExtras, SynLayout, SynOptions, Timestamps,
};

const EOL: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;
/// Multipath TCP (RFC 8684).
const MULTIPATH: u8 = 30;
const FAST_OPEN: u8 = 34;
/// Shared experimental option (RFC 6994), and its identifier of TCP Fast Open.
const EXPERIMENTAL: u8 = 254;
const FAST_OPEN_MAGIC: u16 = 0xf989;

/// Space for options in a TCP header, in bytes.
pub(super) const MAX_LEN: usize = 40;

/// Options of one segment as encoded on the wire, padding included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OptionBytes {
    /// Bytes beyond the end are counted in `len` but not stored.
    bytes: [u8; MAX_LEN],
    len: usize,
}

impl OptionBytes {
    /// Encodes the options of `segment` in the order of its operating system.
    ///
    /// # Errors
    ///
    /// [`EmitError::Options`] if they need more than 40 bytes (four SACK blocks and timestamps).
    pub fn of(segment: &Segment) -> Result<Self, EmitError> {
        let mut to = Self { bytes: [0; MAX_LEN], len: 0 };
        match &segment.options {
            Options::Syn(syn) => match syn.layout {
                SynLayout::FreeBsd | SynLayout::Other => to.freebsd_syn(syn, segment.timestamps),
                SynLayout::Linux => to.linux_syn(syn, segment.timestamps),
            },
            Options::None => to.non_syn(segment.timestamps, &[]),
            Options::Sack(blocks) => to.non_syn(segment.timestamps, blocks.as_slice()),
        }
        if to.len > MAX_LEN { Err(EmitError::Options { bytes: to.len }) } else { Ok(to) }
    }

    /// The bytes, a multiple of four.
    pub fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    fn freebsd_syn(&mut self, syn: &SynOptions, timestamps: Option<Timestamps>) {
        if syn.mss != 0 {
            self.mss(syn.mss);
        }
        if let Some(shift) = syn.window_scale {
            self.nops_until(4, 1);
            self.put(&[WINDOW_SCALE, 3, shift]);
        }
        if syn.sack_permitted {
            self.nops_until(2, 0);
            self.put(&[SACK_PERMITTED, 2]);
        }
        if let Some(stamps) = timestamps {
            self.nops_until(4, 2);
            self.timestamps(stamps);
        }
        while !self.len.is_multiple_of(4) {
            self.put(&[EOL]);
        }
    }

    fn linux_syn(&mut self, syn: &SynOptions, timestamps: Option<Timestamps>) {
        if syn.mss != 0 {
            self.mss(syn.mss);
        }
        match (timestamps, syn.sack_permitted) {
            (Some(stamps), true) => {
                self.put(&[SACK_PERMITTED, 2]);
                self.timestamps(stamps);
            }
            (Some(stamps), false) => {
                self.put(&[NOP, NOP]);
                self.timestamps(stamps);
            }
            (None, true) => self.put(&[NOP, NOP, SACK_PERMITTED, 2]),
            (None, false) => {}
        }
        if let Some(shift) = syn.window_scale {
            self.put(&[NOP, WINDOW_SCALE, 3, shift]);
        }
        if let Some(option) = &syn.fast_open {
            let len = option.wire_len() as u8;
            if option.experimental {
                let [high, low] = FAST_OPEN_MAGIC.to_be_bytes();
                self.put(&[EXPERIMENTAL, len, high, low]);
            } else {
                self.put(&[FAST_OPEN, len]);
            }
            self.put(option.cookie());
            self.nops_until(4, 0);
        }
    }

    /// Options of a segment other than a SYN: both systems write the same.
    fn non_syn(&mut self, timestamps: Option<Timestamps>, blocks: &[SackBlock]) {
        if let Some(stamps) = timestamps {
            self.put(&[NOP, NOP]);
            self.timestamps(stamps);
        }
        if !blocks.is_empty() {
            self.put(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            for block in blocks {
                self.put(&block.left.0.to_be_bytes());
                self.put(&block.right.0.to_be_bytes());
            }
        }
    }

    fn mss(&mut self, mss: u16) {
        let [high, low] = mss.to_be_bytes();
        self.put(&[MSS, 4, high, low]);
    }

    fn timestamps(&mut self, stamps: Timestamps) {
        self.put(&[TIMESTAMPS, 10]);
        self.put(&stamps.val.to_be_bytes());
        self.put(&stamps.ecr.to_be_bytes());
    }

    /// NOPs until the length is `rest` modulo `modulus`.
    fn nops_until(&mut self, modulus: usize, rest: usize) {
        while self.len % modulus != rest {
            self.put(&[NOP]);
        }
    }

    fn put(&mut self, bytes: &[u8]) {
        let end = self.len + bytes.len();
        if let Some(room) = self.bytes.get_mut(self.len..end) {
            room.copy_from_slice(bytes);
        }
        self.len = end;
    }
}

/// Options decoded from a header.
pub(super) struct DecodedOptions {
    pub(super) timestamps: Option<Timestamps>,
    pub(super) options: Options,
    /// True if the segment represents all options.
    pub(super) complete: bool,
}

/// Decodes options; malformed or unknown ones are skipped and clear [`DecodedOptions::complete`].
pub(super) fn decode(raw: &[u8], is_syn: bool) -> DecodedOptions {
    let mut syn = SynOptions::default();
    let mut sack = SackBlocks::EMPTY;
    let mut timestamps = None;
    let mut whole = true;
    let mut rest = raw;
    loop {
        rest = match rest {
            [] | [EOL, ..] => break,
            [NOP, tail @ ..] => tail,
            [kind, len, ..] if *len >= 2 && usize::from(*len) <= rest.len() => {
                let (option, tail) = rest.split_at(usize::from(*len));
                match (*kind, &option[2..]) {
                    (MSS, &[high, low]) if is_syn => syn.mss = u16::from_be_bytes([high, low]),
                    (WINDOW_SCALE, &[shift]) if is_syn => syn.window_scale = Some(shift),
                    (SACK_PERMITTED, []) if is_syn => syn.sack_permitted = true,
                    (SACK, blocks) if !is_syn && blocks.len().is_multiple_of(8) => {
                        for block in blocks.as_chunks::<8>().0 {
                            whole &= sack.push(sack_block(*block));
                        }
                    }
                    (TIMESTAMPS, &[a, b, c, d, e, f, g, h]) => {
                        timestamps = Some(Timestamps {
                            val: u32::from_be_bytes([a, b, c, d]),
                            ecr: u32::from_be_bytes([e, f, g, h]),
                        });
                    }
                    (kind, body) => {
                        whole = false;
                        if is_syn {
                            extra(kind, body, &mut syn.extras);
                        }
                    }
                }
                tail
            }
            _ => {
                whole = false;
                break;
            }
        };
    }
    let options = if is_syn {
        syn.layout = layout(raw, syn, timestamps);
        Options::Syn(syn)
    } else {
        sack.into()
    };
    DecodedOptions { timestamps, options, complete: whole }
}

/// Reads an option that is not represented otherwise.
fn extra(kind: u8, body: &[u8], extras: &mut SynExtras) {
    let magic = FAST_OPEN_MAGIC.to_be_bytes();
    match (kind, body) {
        (MULTIPATH, _) => extras.multipath = true,
        (FAST_OPEN, cookie) => extras.fast_open = Some(cookie.len() as u8),
        (EXPERIMENTAL, body) if body.starts_with(&magic) => {
            extras.fast_open = Some((body.len() - magic.len()) as u8);
        }
        _ => {}
    }
}

fn sack_block([a, b, c, d, e, f, g, h]: [u8; 8]) -> SackBlock {
    SackBlock {
        left: SeqNum(u32::from_be_bytes([a, b, c, d])),
        right: SeqNum(u32::from_be_bytes([e, f, g, h])),
    }
}

/// The system that encodes these options as `raw`: FreeBSD if both do.
fn layout(raw: &[u8], syn: SynOptions, timestamps: Option<Timestamps>) -> SynLayout {
    let written_by = |layout| {
        let options = Options::Syn(SynOptions { layout, ..syn });
        let segment = Segment { timestamps, options, ..Segment::default() };
        OptionBytes::of(&segment).is_ok_and(|encoded| encoded.as_slice() == raw)
    };
    [SynLayout::FreeBsd, SynLayout::Linux]
        .into_iter()
        .find(|layout| written_by(*layout))
        .unwrap_or(SynLayout::Other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FastOpenOption;

    fn syn(layout: SynLayout) -> Segment {
        Segment {
            timestamps: Some(Timestamps { val: 1, ecr: 2 }),
            options: Options::Syn(SynOptions {
                mss: 1_460,
                window_scale: Some(10),
                sack_permitted: true,
                layout,
                ..SynOptions::default()
            }),
            ..Segment::default()
        }
    }

    fn bytes(segment: &Segment) -> Vec<u8> {
        OptionBytes::of(segment).unwrap().as_slice().to_vec()
    }

    #[test]
    fn each_system_has_its_order() {
        // tcpdump: [mss 1460,nop,wscale 10,sackOK,TS val 1 ecr 2]
        let freebsd = [2, 4, 5, 180, 1, 3, 3, 10, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
        assert_eq!(bytes(&syn(SynLayout::FreeBsd)), freebsd);
        // tcpdump: [mss 1460,sackOK,TS val 1 ecr 2,nop,wscale 10]
        let linux = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 3, 3, 10];
        assert_eq!(bytes(&syn(SynLayout::Linux)), linux);
    }

    #[test]
    fn options_left_out_are_padded_as_each_system_pads() {
        let mss_and_sack = |layout| {
            let options = Options::Syn(SynOptions {
                mss: 1_460,
                sack_permitted: true,
                layout,
                ..SynOptions::default()
            });
            bytes(&Segment { options, ..Segment::default() })
        };
        assert_eq!(mss_and_sack(SynLayout::FreeBsd), [2, 4, 5, 180, 4, 2, 0, 0]);
        assert_eq!(mss_and_sack(SynLayout::Linux), [2, 4, 5, 180, 1, 1, 4, 2]);
    }

    #[test]
    fn options_in_the_order_of_neither_system_are_of_none() {
        let cases: [(&[u8], SynLayout); 5] = [
            // FreeBSD: [mss 1460,nop,wscale 6,sackOK,TS val 1 ecr 0]
            (&[2, 4, 5, 180, 1, 3, 3, 6, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0], SynLayout::FreeBsd),
            (&[2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7], SynLayout::Linux),
            // macOS: [mss 1460,nop,wscale 6,nop,nop,TS val 1 ecr 0,sackOK,eol]
            (
                &[2, 4, 5, 180, 1, 3, 3, 6, 1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 4, 2, 0, 0],
                SynLayout::Other,
            ),
            // Windows: [mss 1460,nop,wscale 8,nop,nop,sackOK]
            (&[2, 4, 5, 180, 1, 3, 3, 8, 1, 1, 4, 2], SynLayout::Other),
            // Both write a segment size alone.
            (&[2, 4, 5, 180], SynLayout::FreeBsd),
        ];
        for (raw, layout) in cases {
            let Options::Syn(syn) = decode(raw, true).options else { unreachable!() };
            assert_eq!(syn.layout, layout, "{raw:?}");
        }
    }

    #[test]
    fn encoded_length_matches_options_len() {
        for bits in 0..32_u8 {
            let has = |bit: u8| bits & (1 << bit) != 0;
            let segment = Segment {
                timestamps: has(0).then(Timestamps::default),
                options: Options::Syn(SynOptions {
                    mss: if has(1) { 536 } else { 0 },
                    window_scale: has(2).then_some(7),
                    sack_permitted: has(3),
                    layout: if has(4) { SynLayout::Linux } else { SynLayout::FreeBsd },
                    ..SynOptions::default()
                }),
                ..Segment::default()
            };
            assert_eq!(bytes(&segment).len(), segment.options_len() as usize, "{segment:?}");
        }
    }

    #[test]
    fn fast_open_comes_last_and_is_padded() {
        // google/packetdrill, fastopen/server/simple1.pkt: `mss 1460,...,wscale 8, FOEXP` with a
        // cookie of 8 bytes; opt34/simple1.pkt: `FO` with it, then `nop,nop`.
        let cookie = [0x00, 0xab, 0xaa, 0xab, 0xe8, 0xe9, 0x54, 0xc2];
        let with = |experimental, cookie: &[u8]| {
            let fast_open = FastOpenOption::new(cookie, experimental);
            let layout = SynLayout::Linux;
            let options = Options::Syn(SynOptions { layout, fast_open, ..SynOptions::default() });
            let segment = Segment { options, ..Segment::default() };
            assert_eq!(bytes(&segment).len(), segment.options_len() as usize);
            bytes(&segment)
        };
        let experimental = [&[254, 12, 0xf9, 0x89][..], &cookie].concat();
        assert_eq!(with(true, &cookie), experimental);
        assert_eq!(with(false, &cookie), [&[34, 10][..], &cookie, &[1, 1]].concat());
        assert_eq!(with(false, &[]), [34, 2, 1, 1]);
        for invalid in [2, 5, 18] {
            assert_eq!(FastOpenOption::new(&[1; 18][..invalid], false), None);
        }
    }

    #[test]
    fn requests_of_captured_syns_are_read() {
        let extras = |raw: &[u8]| {
            let decoded = decode(raw, true);
            assert!(!decoded.complete);
            let Options::Syn(syn) = decoded.options else { unreachable!() };
            syn.extras
        };
        // Linux: [mptcp 4 capable v1], [tfo cookiereq], [exp-tfo cookiereq].
        let multipath = SynExtras { multipath: true, ..SynExtras::NONE };
        assert_eq!(extras(&[30, 4, 1, 0x81]), multipath);
        let fast_open = |bytes| SynExtras { fast_open: Some(bytes), ..SynExtras::NONE };
        assert_eq!(extras(&[34, 2, 1, 1]), fast_open(0));
        assert_eq!(extras(&[254, 4, 0xf9, 0x89]), fast_open(0));
        assert_eq!(extras(&[34, 10, 1, 2, 3, 4, 5, 6, 7, 8]), fast_open(8));
    }

    #[test]
    fn four_sack_blocks_do_not_fit_with_timestamps() {
        let mut blocks = SackBlocks::EMPTY;
        for _ in 0..4 {
            blocks.push(SackBlock::default());
        }
        let segment = Segment { options: Options::Sack(blocks), ..Segment::default() };
        assert_eq!(bytes(&segment).len(), 36);
        let stamped = Segment { timestamps: Some(Timestamps::default()), ..segment };
        assert_eq!(OptionBytes::of(&stamped), Err(EmitError::Options { bytes: 48 }));
    }

    #[test]
    fn unknown_and_malformed_options_are_skipped_and_flagged() {
        // A TCP Fast Open cookie request (kind 34), then timestamps.
        let decoded = decode(&[34, 2, 8, 10, 0, 0, 0, 9, 0, 0, 0, 8], false);
        assert_eq!(decoded.timestamps, Some(Timestamps { val: 9, ecr: 8 }));
        assert!(!decoded.complete);
        for broken in
            [&[8, 10, 0][..], &[8, 0, 0, 0], &[8, 1, 0, 0], &[2], &[5, 9, 0, 0, 0, 0, 0, 0, 0]]
        {
            assert!(!decode(broken, false).complete, "{broken:?}");
        }
        assert!(decode(&[1, 1, 0, 99], false).complete);
    }
}
