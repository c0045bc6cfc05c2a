//! The table of README.md on what is modelled and how it is verified. All of its figures are those of
//! docs/ledger/fidelity.md.

use reproduce::cases;

const BEGIN: &str = "<!-- ledger: fidelity -->\n";
const END: &str = "<!-- end of ledger -->\n";

/// Short names of cases; others have their title.
const CASES: [(&str, &str); 6] = [
    ("slow-start-lro", "slow start and LRO"),
    ("reordering", "reordering"),
    ("mathis", "Mathis"),
    ("cubic-hz", "CUBIC and `kern.hz`"),
    ("cubic-tables", "RFC 9438's tables"),
    ("prr", "PRR, ACK by ACK"),
];

/// Returns README.md with the table of this ledger.
///
/// # Errors
/// The marks around the table are missing, or the ledger lacks a line.
pub(crate) fn filled(readme: &str, ledger: &str) -> Result<String, String> {
    let split = readme.split_once(BEGIN).and_then(|(head, rest)| {
        let (_, tail) = rest.split_once(END)?;
        Some((head, tail))
    });
    let (head, tail) = split.ok_or("README.md has lost the marks around its table")?;
    Ok(format!("{head}{BEGIN}{}{END}{tail}", table(&Ledger(ledger))?))
}

fn table(ledger: &Ledger<'_>) -> Result<String, String> {
    let rows = ledger.rows_of_functions()?;
    let recorded = ["freebsd-13.0", "freebsd-14.3", "freebsd-main", "rack-2022-07-as-14x"]
        .map(|stack| ledger.identical_transfers(stack));
    let [r13, r14, main, rack] = recorded;
    let linux = |version: &str| -> Result<String, String> {
        Ok(format!(
            "{} with one flow, {} with several",
            ledger.random_transfers(version, "one flow")?,
            ledger.random_transfers(version, "several flows")?
        ))
    };
    let senders = ledger.linux_senders()?;
    let goodput = ledger.line("goodput of ")?;
    let [repeat, near, ..] = numbers(goodput)[..] else { return Err(goodput.to_owned()) };
    let mut names = Vec::new();
    let mut holding = Vec::new();
    for case in cases::CASES {
        let short =
            CASES.iter().find(|(id, _)| *id == case.id).map_or(case.title, |(_, name)| name);
        names.push(short);
        holding.push(ledger.holding(case)?);
    }
    let mathis = cases::find("mathis").ok_or("no case mathis")?;
    let lro = ledger.line("lro.csv.gz rows ")?;
    let [lro, lro_mismatches] = numbers(lro)[..] else { return Err(lro.to_owned()) };
    Ok(format!(
        "\
| part | modelled | verified against |
|---|---|---|
| FreeBSD TCP | default stack of 13.0, 13.2, 14.3 and main; RACK stack of 14.3 and main | {rows} of the kernel's own functions; recorded transfers of the complete stacks, equal in every packet: {} (13.0), {} (14.3), {} (main), {} (RACK) |
| Linux TCP | 6.1, 6.12 and 6.18 with reno, CUBIC and BBR version 1 | recorded transfers of 6.18: {senders}; simulated goodput within 5 % in {near} of the {repeat} that repeat; random transfers of kernels in virtual time (each way ends in a line of 10 Mbit/s to 1 Gbit/s and 0.1 to 30 ms) with the same data packets and number of acknowledgments: of 6.12 {}; of 6.12 with ECN {}; of 6.1 {} |
| QUIC | sender of RFC 9002; INET's two; seven stacks from their sources ([docs/quic.md](docs/quic.md)) | {} figures of INET's experiment; quinn-proto ([measured](docs/ledger/quic.md)); quic-go, quinn and quiche as hosts ([measured](docs/ledger/quic-stacks.md)) |
| offloads | TSO, FreeBSD's LRO, Linux's GRO | {} rows of FreeBSD's LRO, {} |
| paths | queues, AQM, delay, jitter, loss, reordering, duplication, ACK filters, shapers | an independent verifier that checks every simulated run in the tests |
| published cases | {} | asserted figures that hold: {} |
",
        r13?,
        r14?,
        main?,
        rack?,
        linux("linux-6.12")?,
        linux("linux-6.12-ecn")?,
        linux("linux-6.1")?,
        ledger.holding(mathis)?,
        thousands(lro),
        mismatches(lro_mismatches),
        names.join("; "),
        holding.join("; "),
    ))
}

/// The text of docs/ledger/fidelity.md.
struct Ledger<'t>(&'t str);

impl Ledger<'_> {
    fn line(&self, prefix: &str) -> Result<&str, String> {
        let found = self.0.lines().find_map(|line| line.strip_prefix(prefix));
        found.ok_or_else(|| format!("docs/ledger/fidelity.md has no line {prefix:?}"))
    }

    /// The number of rows of all functions, and that of mismatches.
    fn rows_of_functions(&self) -> Result<String, String> {
        let (mut rows, mut differ, mut files) = (0, 0, 0);
        for line in self.0.lines() {
            let Some((_, counts)) = line.split_once(".csv.gz rows ") else { continue };
            let [of_file, mismatches] = numbers(counts)[..] else { return Err(line.to_owned()) };
            (rows, differ, files) = (rows + of_file, differ + mismatches, files + 1);
        }
        match files {
            0 => Err("docs/ledger/fidelity.md has no golden rows".to_owned()),
            _ => Ok(format!("{} rows, {},", thousands(rows), mismatches(differ))),
        }
    }

    /// `158 of 163`: recorded transfers of a stack that are equal in every packet.
    fn identical_transfers(&self, stack: &str) -> Result<String, String> {
        let line = self.line(&format!("{stack} identical: named "))?;
        let [named, of_named, random, of_random, ..] = numbers(line)[..] else {
            return Err(line.to_owned());
        };
        Ok(format!("{} of {}", named + random, of_named + of_random))
    }

    /// `40 of 42`: random transfers of a kernel with the same data packets.
    fn random_transfers(&self, version: &str, flows: &str) -> Result<String, String> {
        let line = self.line(&format!("{version} {flows}: transfers "))?;
        let identical = line.split_once(" identical ").map(|(_, rest)| numbers(rest));
        match (numbers(line).first(), identical.as_deref()) {
            (Some(all), Some([identical, ..])) => Ok(format!("{identical} of {all}")),
            _ => Err(line.to_owned()),
        }
    }

    /// The recorded senders that are equal at every ACK, and in what the others differ.
    fn linux_senders(&self) -> Result<String, String> {
        let (mut all, mut equal, mut fields) = (0, 0, Vec::new());
        let mut of_sender = false;
        for line in self.0.lines() {
            if let Some((_, counts)) = line.split_once(" in recovery) mismatches ") {
                (all, equal) = (all + 1, equal + usize::from(counts == "0"));
                of_sender = true;
            } else if let Some((field, _)) =
                line.strip_prefix("  ").filter(|_| of_sender).and_then(|line| line.split_once(": "))
            {
                if !field.starts_with("line ") {
                    fields.push(field.to_owned());
                }
            } else {
                of_sender = false;
            }
        }
        fields.sort_unstable();
        fields.dedup();
        let others = match fields.iter().map(String::as_str).collect::<Vec<_>>()[..] {
            _ if all == 0 => {
                return Err("docs/ledger/fidelity.md has no recorded sender".to_owned());
            }
            [] => String::new(),
            ["epoch_start"] => ", the others but for a clock tick".to_owned(),
            _ => format!(", the others but for {}", fields.join(", ")),
        };
        Ok(format!("{equal} of {all} reno and CUBIC senders equal at every ACK{others}"))
    }

    /// `47 of 47`: the asserted figures of a case that hold.
    fn holding(&self, case: &cases::Case) -> Result<String, String> {
        let head = format!("## {}\n", case.title);
        let section = self.0.split_once(&head).map(|(_, section)| section);
        let verdict = section
            .and_then(|section| section.lines().find(|line| line.contains(" asserted figures ")));
        match verdict.map(numbers).as_deref() {
            Some([all]) => Ok(format!("{all} of {all}")),
            Some([missed, all]) => Ok(format!("{} of {all}", all - missed)),
            _ => Err(format!("docs/ledger/fidelity.md has no verdict on {}", case.id)),
        }
    }
}

/// The whole numbers of a text; a version such as 6.12 is two.
fn numbers(text: &str) -> Vec<u64> {
    text.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn mismatches(count: u64) -> String {
    match count {
        0 => "no mismatch".to_owned(),
        1 => "1 mismatch".to_owned(),
        more => format!("{more} mismatches"),
    }
}

/// `45,278`.
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let head = digits.len() % 3;
    let (first, rest) = digits.split_at(head);
    let groups = rest.as_bytes().chunks(3).map(|group| String::from_utf8_lossy(group).into_owned());
    let all: Vec<String> =
        (!first.is_empty()).then(|| first.to_owned()).into_iter().chain(groups).collect();
    all.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> String {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        std::fs::read_to_string(root.join(name)).unwrap()
    }

    #[test]
    fn the_table_of_the_readme_is_that_of_the_ledger() {
        let (readme, ledger) = (read("README.md"), read("docs/ledger/fidelity.md"));
        let stale = "README.md is stale: run cargo xtask docs";
        assert!(filled(&readme, &ledger).unwrap() == readme, "{stale}");
        // Another figure of the ledger makes it stale.
        for line in ["linux-6.12 several flows: transfers ", "lro.csv.gz rows ", "goodput of "] {
            let other = ledger.replace(line, &format!("{line}9"));
            assert_ne!(other, ledger, "{line}");
            assert_ne!(filled(&readme, &other).unwrap(), readme, "{line}");
        }
        let missed = ledger.replace("All 51 asserted", "**2 of 51 asserted");
        assert!(filled(&readme, &missed).unwrap().contains("49 of 51"));
    }

    #[test]
    fn a_ledger_without_a_line_is_an_error() {
        let (readme, ledger) = (read("README.md"), read("docs/ledger/fidelity.md"));
        let error = filled(&readme, &ledger.replace("linux-6.1 one flow", "x")).unwrap_err();
        assert!(error.contains("linux-6.1 one flow"), "{error}");
        assert!(filled("no marks", &ledger).is_err());
    }

    #[test]
    fn thousands_have_commas() {
        assert_eq!([0, 999, 1_000, 45_278].map(thousands), ["0", "999", "1,000", "45,278"]);
        assert_eq!(thousands(1_234_567), "1,234,567");
    }
}
