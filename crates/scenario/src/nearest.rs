//! Suggestions for misspelt names.

/// Returns the candidate with the smallest Damerau-Levenshtein distance to `name`, if it is small.
pub fn nearest<'c>(name: &str, candidates: impl IntoIterator<Item = &'c str>) -> Option<&'c str> {
    let small = name.to_lowercase();
    let allowed = (name.chars().count() / 3).max(1);
    candidates
        .into_iter()
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

/// Formats names as a list: `` `a`, `b` or `c` ``.
pub(super) fn one_of<'c>(names: impl IntoIterator<Item = &'c str>) -> String {
    let quoted: Vec<String> = names.into_iter().map(|name| format!("`{name}`")).collect();
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
    fn lists_read_as_sentences() {
        assert_eq!(one_of(["a"]), "`a`");
        assert_eq!(one_of(["a", "b", "c"]), "`a`, `b` or `c`");
    }
}
