//! Suggestions for misspelt names, and for versions of a name that are not known.

/// Maximum length of a name that is compared.
const MAX_LENGTH: usize = 256;

/// Returns the candidate of the nearest version, for a name with a version such as `linux-6.19`;
/// otherwise the one with the smallest Damerau-Levenshtein distance to `name`, if it is small.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let candidates: Vec<&str> = candidates.into_iter().collect();
    nearest_version(name, &candidates).or_else(|| most_similar(name, candidates))
}

/// Returns the candidate of the same family with the nearest version: of the same major version if
/// there is one, else the last one before, else the first one after.
pub(super) fn nearest_version<'c>(name: &str, candidates: &[&'c str]) -> Option<&'c str> {
    let small = name.to_lowercase();
    let (family, wanted) = family_and_version(&small)?;
    let known = || {
        let versions = candidates.iter().filter_map(|&candidate| {
            family_and_version(candidate).map(|(family, version)| (family, version, candidate))
        });
        versions.filter(|(_, version, _)| !version.is_empty())
    };
    let families = || known().map(|(other, ..)| other);
    let family = match families().find(|other| *other == family) {
        None if wanted.is_empty() => return None,
        None => most_similar(family, families())?,
        Some(family) => family,
    };
    let of_family = || known().filter(|(other, ..)| *other == family);
    if wanted.is_empty() {
        return of_family().max_by(|(_, a, _), (_, b, _)| a.cmp(b)).map(|(.., name)| name);
    }
    let same_major = of_family().filter(|(_, version, _)| version.first() == wanted.first());
    let before = of_family().filter(|(_, version, _)| *version < wanted);
    let after = of_family().filter(|(_, version, _)| *version > wanted);
    same_major
        .min_by_key(|(_, version, _)| distance(version, &wanted))
        .or_else(|| before.max_by(|(_, a, _), (_, b, _)| a.cmp(b)))
        .or_else(|| after.min_by(|(_, a, _), (_, b, _)| a.cmp(b)))
        .map(|(.., name)| name)
}

/// Splits `linux-6.18` into `linux` and its version; a family alone has an empty one. `None` for a
/// text after the family that is no number.
fn family_and_version(name: &str) -> Option<(&str, Vec<u64>)> {
    let digit_after = |at: usize| name[at + 1..].starts_with(|c: char| c.is_ascii_digit());
    let Some(at) = name.match_indices('-').map(|(at, _)| at).find(|at| digit_after(*at)) else {
        return name.ends_with(|c: char| c.is_ascii_alphabetic()).then(|| (name, Vec::new()));
    };
    let version: Result<Vec<u64>, _> = name[at + 1..].split(['.', '-']).map(str::parse).collect();
    Some((&name[..at], version.ok()?))
}

/// The name without its version.
pub(super) fn family_of(name: &str) -> Option<&str> {
    family_and_version(name).map(|(family, _)| family)
}

/// Differences of the components; missing ones are 0.
fn distance(a: &[u64], b: &[u64]) -> Vec<u64> {
    let component = |version: &[u64], at: usize| version.get(at).copied().unwrap_or(0);
    (0..a.len().max(b.len())).map(|at| component(a, at).abs_diff(component(b, at))).collect()
}

fn most_similar<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let small = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
        // The time is the product of both lengths.
        .filter(|candidate| name.len().max(candidate.len()) <= MAX_LENGTH)
        .map(|candidate| {
            let distance = strsim::damerau_levenshtein(&small, &candidate.to_lowercase());
            // A prefix or suffix of a candidate: `freebsd-13`, `abc_l_var`.
            let part = name.chars().count() >= 3
                && (candidate.starts_with(name) || candidate.ends_with(name));
            (if part { distance.min(1) } else { distance }, candidate)
        })
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// Formats the result of [`nearest`] as a question.
pub(super) fn did_you_mean<'c>(
    name: &str,
    candidates: impl IntoIterator<Item = &'c str>,
) -> Option<String> {
    nearest(name, candidates).map(|near| format!("did you mean `{near}`?"))
}

/// Maximum number of names in a list of [`one_of`].
const MAX_NAMES: usize = 60;

/// Formats names as a list: `` `a`, `b` or `c` ``; of many, the first [`MAX_NAMES`].
pub(super) fn one_of<'c>(names: impl IntoIterator<Item = &'c str>) -> String {
    let mut names = names.into_iter();
    let mut quoted: Vec<String> =
        names.by_ref().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    match names.count() {
        0 => {}
        others => quoted.push(format!("one of {others} others")),
    }
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some((last, rest)) => format!("{} or {last}", rest.join(", ")),
        None => "nothing".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_suggested_and_others_are_not() {
        let knobs = ["net.inet.tcp.abc_l_var", "net.inet.tcp.rfc3465", "kern.hz"];
        assert_eq!(nearest("net.inet.tcp.abc_lvar", knobs), Some(knobs[0]));
        assert_eq!(nearest("abc_l_var", knobs), Some(knobs[0]));
        assert_eq!(nearest("Kern.HZ", knobs), Some(knobs[2]));
        assert_eq!(nearest("net.ipv4.tcp_rmem", knobs), None);
        assert_eq!(nearest("ack_limti", ["ack_limit"]), Some("ack_limit"));
        assert_eq!(nearest("x", ["to", "at"]), None);
    }

    #[test]
    fn a_version_leads_to_the_nearest_of_its_family() {
        let names = [
            "freebsd-13.0",
            "freebsd-13.2",
            "freebsd-14.3",
            "freebsd-main",
            "freebsd-rack-14.3",
            "linux-6.1",
            "linux-6.12",
            "linux-6.18",
            "quic-inet-2025-02",
            "quic-inet-2025-03",
            "quiche-0.29",
        ];
        for (name, expected) in [
            ("linux-6.19", "linux-6.18"),
            ("linux-6.18.3", "linux-6.18"),
            ("linux-6.8", "linux-6.12"),
            ("linux-7.2", "linux-6.18"),
            ("linux-5.15", "linux-6.1"),
            ("Linux-6.17", "linux-6.18"),
            ("linx-6.17", "linux-6.18"),
            ("linux", "linux-6.18"),
            ("freebsd-15", "freebsd-14.3"),
            ("freebsd-14", "freebsd-14.3"),
            ("freebsd-13", "freebsd-13.0"),
            ("freebsd-13.22", "freebsd-13.2"),
            ("freebsd-rack-15.0", "freebsd-rack-14.3"),
            ("freebsd-mian", "freebsd-main"),
            ("quic-inet-2025-04", "quic-inet-2025-03"),
            ("quiche-0.30", "quiche-0.29"),
        ] {
            assert_eq!(nearest(name, names), Some(expected), "{name}");
        }
        // No number, and too many digits of one.
        assert_eq!(nearest("windows-11", names), None);
        assert_eq!(nearest("linux-6.x", names), Some("linux-6.1"));
        assert_eq!(nearest("solaris-99999999999999999999999", names), None);
        assert_eq!(nearest("", names), None);
    }

    #[test]
    fn lists_read_as_sentences() {
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
        let many = one_of(core::iter::repeat_n("h", 2_000));
        assert!(many.ends_with("`h`, `h` or one of 1940 others"), "{many}");
    }
}
